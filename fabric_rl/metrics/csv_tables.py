"""CSV tables: writing them whole, reading the rows that are whole however the run that writes them has ended."""

import csv
import errno
import io
import math
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

Row = dict[str, str]
"""Cells by column, as text; `step` is one of the columns of a metrics file."""


def read_rows(path: str | Path, last_bytes: int | None = None) -> list[Row]:
    """The complete rows of a file, in order; a killed run leaves half a line.

    Args:
        path: The file.
        last_bytes: Read only so much of its end, where the newest rows of a long file are asked for.

    Raises:
        OSError: The file cannot be read, or is no table.
    """
    with open(path, "rb") as file:
        header = file.readline()
        if last_bytes is not None and file.seek(0, os.SEEK_END) - last_bytes > len(header):
            file.seek(-last_bytes, os.SEEK_END)
            file.readline()  # most likely not from its beginning
        else:
            file.seek(len(header))
        text = (header + file.read()).decode("utf-8", "replace")
    whole = text[: text.rfind("\n") + 1]
    table = csv.DictReader(io.StringIO(whole, newline=""))
    try:
        return [row for row in table if None not in row and None not in row.values()]
    except csv.Error as error:
        raise OSError(errno.EILSEQ, str(error), str(path)) from error


def csv_text(columns: Sequence[str], rows: Iterable[Mapping[str, object]]) -> str:
    """A header and rows; cells that a row lacks stay empty."""
    text = io.StringIO(newline="")
    table = csv.DictWriter(text, columns, restval="")
    table.writeheader()
    table.writerows(rows)
    return text.getvalue()


def number(cell: str | None) -> float | None:
    """The finite number in a cell; None for anything else."""
    try:
        value = float(cell or "nan")
    except ValueError:
        return None
    return value if math.isfinite(value) else None
