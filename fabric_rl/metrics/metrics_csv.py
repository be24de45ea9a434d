"""Writing `metrics.csv`: one row per iteration, none lost and none twice, whatever happens to the run or the disk."""

import csv
import os
import warnings
from argparse import Namespace
from pathlib import Path
from typing import Any

from lightning.fabric.loggers.csv_logs import CSVLogger

from fabric_rl.base.files import write_text
from fabric_rl.metrics.csv_tables import Row, csv_text, read_rows

_MOST_WAITING = 100_000


class MetricsFile(CSVLogger):
    """Fabric's CSVLogger, except that what is in the file stays.

    Fabric's deletes the file of a run that goes on and rewrites it in place when a metric is new. This one changes it
    in one step (temporary file, then rename) or by adding a line, and first when there is something to log. Rows that
    cannot be written (the disk is full, the folder is gone) wait until they can.

    Attributes:
        path: The file, `<folder>/metrics.csv`; header `step,<metric names...>`.
    """

    def __init__(self, folder: str | Path, until: int | None = None) -> None:
        """Writes into `folder`.

        Args:
            folder: The run's.
            until: A run goes on after so many agent-steps: the rows up to there stay, later ones go. None: a new file.
        """
        super().__init__(folder, name="", version="")
        self.path = Path(folder) / "metrics.csv"
        self._until = until
        self._columns: list[str] | None = None
        self._waiting: list[Row] = []
        self._size = 0

    def log_metrics(self, metrics: dict[str, Any], step: int | None = None) -> None:
        """Adds a row."""
        row = {"step": str(step if step is not None else 0)} | {name: str(float(x)) for name, x in metrics.items()}
        self._waiting = [*self._waiting[-_MOST_WAITING:], row]
        try:
            self._write()
        except OSError as error:
            if len(self._waiting) == 1:  # once, until it works again
                message = f"{self.path} cannot be written ({error.strerror or error}); its rows wait until it can"
                warnings.warn(message, RuntimeWarning, stacklevel=2)

    def log_hyperparams(self, params: dict[str, Any] | Namespace) -> None:
        """A run keeps its settings in `config.yaml`."""

    def save(self) -> None:
        """Every row is written at once."""

    def finalize(self, status: str) -> None:
        """Tries again to write what waits."""
        if self._waiting:
            self._write()

    def _write(self) -> None:
        kept: list[Row] = []
        if self._columns is None:
            kept = [] if self._until is None else _rows_until(self.path, self._until)
            names = list(dict.fromkeys(name for row in kept for name in row))
        else:
            names = self._columns
        names = [*names, *sorted({name for row in self._waiting for name in row}.difference(names))]
        names = ["step", *(name for name in names if name != "step")]
        if names != self._columns or not self.path.exists():
            if self._columns is not None:
                kept = _rows_until(self.path, None)
            self.path.parent.mkdir(parents=True, exist_ok=True)
            write_text(self.path, csv_text(names, [*kept, *self._waiting]))
        else:
            with open(self.path, "r+", newline="", encoding="utf-8") as file:
                file.truncate(self._size)  # half a line, if the disk became full in the middle of it
                file.seek(0, os.SEEK_END)
                csv.DictWriter(file, names, restval="").writerows(self._waiting)
        self._columns, self._waiting = names, []
        self._size = self.path.stat().st_size


def _rows_until(path: Path, steps: int | None) -> list[Row]:
    """The rows up to so many agent-steps (None: all); none without a file."""
    rows = [row for row in read_rows(path) if row.get("step", "").isdigit()] if path.exists() else []
    return rows if steps is None else [row for row in rows if int(row["step"]) <= steps]
