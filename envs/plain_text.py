"""Plain text for terminals: tables, and the entry point of `python -m envs.actions` and `python -m envs.obs`."""

import argparse
import sys
from collections.abc import Callable, Sequence


def in_columns(rows: Sequence[Sequence[str]], align: Callable[[str, int], str] = str.ljust) -> str:
    """Format rows of cells as lines, with columns as wide as their longest cell; `align` pads a cell."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join("  ".join(map(align, row, widths)).rstrip() for row in rows)


def print_text(
    parser: argparse.ArgumentParser, text: Callable[[argparse.Namespace], str], argv: Sequence[str] | None
) -> int:
    """Print the text for the given flags; return the exit status.

    Args:
        parser: Parser of the flags.
        text: Function that returns the text; its ValueError becomes one line on standard error and status 2.
        argv: Flags; None for those of this process.
    """
    args = parser.parse_args(argv)
    try:
        print(text(args))
    except ValueError as error:
        print(f"{parser.prog.split()[-1]}: {error}", file=sys.stderr)
        return 2
    return 0
