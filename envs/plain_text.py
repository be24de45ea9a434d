"""Text for a terminal: rows in columns, and what `python -m envs.actions`, `envs.obs` and `envs.rewards` share."""

import argparse
import sys
from collections.abc import Callable, Sequence


def in_columns(rows: Sequence[Sequence[str]], align: Callable[[str, int], str] = str.ljust) -> str:
    """Rows of as many cells each as lines, their columns as wide as the longest cell; `align` fills up a cell."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join("  ".join(map(align, row, widths)).rstrip() for row in rows)


def print_text(
    parser: argparse.ArgumentParser, text: Callable[[argparse.Namespace], str], argv: Sequence[str] | None
) -> int:
    """Prints the text for some flags; returns the exit status.

    Args:
        parser: Of the flags.
        text: Makes the text; a ValueError is one line on standard error and status 2.
        argv: The flags; None for those of this process.
    """
    args = parser.parse_args(argv)
    try:
        print(text(args))
    except ValueError as error:
        print(f"{parser.prog.split()[-1]}: {error}", file=sys.stderr)
        return 2
    return 0
