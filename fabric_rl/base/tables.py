"""Numbers, tables and progress on a console."""

import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.progress import Progress
from rich.table import Table
from rich.text import Text

from fabric_rl.base.text import escape_control_characters

WIDTH = 132
"""Width, in columns, of a table that is not printed to a terminal."""


def console() -> Console:
    """Return the console for tables, at least `WIDTH` wide unless it is a terminal."""
    made = Console()
    return made if made.is_terminal else Console(width=WIDTH)


def finite_or_none(value: object) -> float | None:
    """Return a finite number as a float, None for anything else."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= sys.float_info.max
    return float(value) if is_number else None  # type: ignore[arg-type]


def format_number(value: object, digits: int = 4) -> str:
    """Return a number with `digits` significant digits, or rounded to an integer from 1,000 on; `-` if not finite."""
    number = finite_or_none(value)
    if number is None:
        return "-"
    return f"{number:,.0f}" if abs(number) >= 1000 else f"{number:.{digits}g}"


def format_time(moment: datetime | None) -> str:
    """Return `YYYY-MM-DD hh:mm`, or `-` for None."""
    return "-" if moment is None else f"{moment:%Y-%m-%d %H:%M}"


def cell(text: str | Text, style: str = "") -> Text:
    """Return text for a table: without markup, and with escapes for invisible characters."""
    return Text(escape_control_characters(text), text.style if isinstance(text, Text) else style)


def table(
    title: str, columns: Sequence[str], rows: Iterable[Sequence[str | Text] | None], tight: bool = False
) -> Table:
    """Return a table of plain text (markup is escaped).

    Args:
        title: Title above the table; may be empty.
        columns: Headers; a leading `>` aligns the column to the right.
        rows: Cells of each row; None draws a line.
        tight: Fit 80 columns: minimal padding, and only cells of the first column wrap.
    """
    made = Table(title=escape(escape_control_characters(title, "\n")) or None, box=box.SIMPLE_HEAD)
    if tight:
        made.padding, made.pad_edge = (0, int(len(columns) < 7), 0, 0), False
    for number, header in enumerate(columns):
        justify = "right" if header.startswith(">") else "left"
        own_line = tight and number > 0
        made.add_column(cell(header.removeprefix(">")), justify=justify, no_wrap=own_line, overflow="fold")  # type: ignore[arg-type]
    for row in rows:
        if row is None:
            made.add_section()
        else:
            made.add_row(*map(cell, row))
    return made


@contextmanager
def progress(what: str, line_every_seconds: float = 10.0) -> Iterator[Callable[[float], None]]:
    """Show progress on standard error: a bar on a terminal, a line every few seconds elsewhere.

    Yields:
        Function to call with the completed share, 0..1.
    """
    errors = Console(stderr=True)
    if errors.is_terminal:
        with Progress(console=errors, transient=True) as bar:
            task = bar.add_task(what, total=1.0)
            yield lambda share: bar.update(task, completed=share)
        return
    began = time.monotonic()
    told = began - max(0.0, line_every_seconds - 2.0)  # the first line comes early

    def tell(share: float) -> None:
        nonlocal told
        now = time.monotonic()
        if now - told >= line_every_seconds:
            told = now
            print(f"{what}: {share:.0%} after {now - began:.0f} s", file=sys.stderr, flush=True)

    yield tell
