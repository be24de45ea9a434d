"""`python -m envs.actions [class path]`: print the rows of an action table."""

import argparse
from collections.abc import Sequence

from envs.actions.tables import ActionTable
from envs.factories import from_class_path


def main(argv: Sequence[str] | None = None) -> None:
    """Print the table, or one line that explains why there is none (exit status 2)."""
    parser = argparse.ArgumentParser("python -m envs.actions", description="Print an action table.")
    parser.add_argument("class_path", nargs="?", default="LookupTable", help="default: %(default)s")
    try:
        print(from_class_path(parser.parse_args(argv).class_path, ActionTable).describe())
    except ValueError as error:
        parser.exit(2, f"envs.actions: {error}\n")


if __name__ == "__main__":
    main()
