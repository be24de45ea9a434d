"""`python -m envs.actions [class path]`: what is in an action table, to see at a glance that nothing is missing."""

import argparse
import sys

from envs.actions.description import described_table
from envs.actions.lookup import ActionTable
from envs.checks import find_class


def load_table(class_path: str) -> ActionTable:
    """Makes the table that a class path names (`envs.` may be left out), without arguments.

    Raises:
        ValueError: There is no such class, it is no `ActionTable`, or it cannot be made without arguments.
    """
    found = find_class(class_path, ActionTable, ", so it has no rows to show")
    try:
        made: ActionTable = found()
    except TypeError as error:
        raise ValueError(f"{class_path} cannot be made without arguments ({error})") from error
    return made


def main() -> int:
    """Prints the table; returns the exit status, 2 when there is none."""
    parser = argparse.ArgumentParser(prog="python -m envs.actions", description="Prints an action table.")
    parser.add_argument("class_path", nargs="?", default="envs.LookupTable", help="default: %(default)s")
    try:
        table = load_table(parser.parse_args().class_path)
    except ValueError as error:
        print(f"envs.actions: {error}", file=sys.stderr)
        return 2
    print(described_table(table))
    return 0


if __name__ == "__main__":
    sys.exit(main())
