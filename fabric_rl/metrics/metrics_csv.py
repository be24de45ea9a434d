"""Read and write `metrics.csv` and other CSV tables; a truncated last row, left by a killed run, is skipped."""

import csv
import errno
import io
import math
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fabric_rl.base.files import open_regular

_MOST_BYTES, _MOST_HEADER_BYTES = 2 << 30, 1 << 20
"""Maximum sizes of a table (a row of metrics has about 3 kB) and of its header."""
Row = dict[str, str]
"""Cells by column, as text; a metrics file has a column `step`."""
Curve = tuple[NDArray[np.float64], NDArray[np.float64]]
"""Steps and values of one metric, `[points]` float64 each, with increasing steps."""


def read_rows(path: str | Path, last_bytes: int | None = None) -> list[Row]:
    """Return the complete rows of a file, in order; half a line at the end, left by a killed run, is skipped.

    Args:
        path: The file.
        last_bytes: Number of bytes to read at the end, for the newest rows of a long file. Default: the whole file.

    Raises:
        OSError: The file cannot be read, is not a table, or has more than 2 GiB.
    """
    with open_regular(path, _MOST_BYTES) as file:
        header = file.readline(_MOST_HEADER_BYTES)
        if last_bytes is not None and file.seek(0, os.SEEK_END) - last_bytes > len(header):
            file.seek(-last_bytes, os.SEEK_END)
            file.readline()  # most likely the rest of a line
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
    """Return a header and rows as text; missing cells stay empty."""
    text = io.StringIO(newline="")
    table = csv.DictWriter(text, columns, restval="")
    table.writeheader()
    table.writerows(rows)
    return text.getvalue()


def parse_number(cell: str | None) -> float | None:
    """Return the finite number in a cell; None for anything else."""
    try:
        value = float(cell or "nan")
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def read_metrics(file: str | Path) -> dict[str, Curve]:
    """Return the curves of a `metrics.csv` (header `step,<metric names...>`).

    If a step occurs twice (a killed run was resumed from an earlier checkpoint), the later row is used. Empty cells,
    NaN and an incomplete last row are left out.

    Raises:
        ValueError: The file is missing or has no column `step`.
    """
    points: dict[str, dict[float, float]] = {}
    try:
        rows = read_rows(file)
    except OSError as error:
        raise ValueError(f"{file} cannot be read ({error.strerror}); the run has logged no metrics") from error
    if rows and "step" not in rows[0]:
        raise ValueError(f"{file} has no column 'step'; it is not the metrics file of a run")
    for row in rows:
        step = parse_number(row.pop("step"))
        for name, cell in row.items():
            value = parse_number(cell)
            if step is not None and value is not None:
                points.setdefault(name, {})[step] = value
    return {name: tuple(np.array(sorted(curve.items())).T) for name, curve in points.items()}


def mean_of_last_tenth(values: NDArray[np.float64], first: bool = False) -> float:
    """Return the mean over the last (or `first`) tenth of `values [points]`, without overflow of the sum."""
    tenth = max(1, len(values) // 10)
    return float(((values[:tenth] if first else values[-tenth:]) / tenth).sum())
