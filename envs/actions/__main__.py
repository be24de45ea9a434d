"""`python -m envs.actions [class path]`: print the rows of an action table."""

import argparse
import sys
from collections.abc import Sequence

from envs.actions.tables import ActionTable
from envs.checks import from_class_path
from envs.plain_text import print_text


def main(argv: Sequence[str] | None = None) -> int:
    """Print the table; return the exit status, 2 when there is none."""
    parser = argparse.ArgumentParser("python -m envs.actions", description="Print an action table.")
    parser.add_argument("class_path", nargs="?", default="LookupTable", help="default: %(default)s")
    return print_text(parser, lambda args: from_class_path(args.class_path, ActionTable).describe(), argv)


if __name__ == "__main__":
    sys.exit(main())
