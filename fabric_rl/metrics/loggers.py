"""Loggers of metrics: TensorBoard or the user's own, and `metrics.csv`, which every run has."""

import csv
import math
import os
import time
from argparse import Namespace
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from lightning.fabric.loggers.logger import Logger
from lightning.fabric.loggers.tensorboard import TensorBoardLogger

from fabric_rl.base.files import regular_file, write_text
from fabric_rl.metrics.log import logger
from fabric_rl.metrics.metrics_csv import Row, csv_text, read_rows

_OUTCOME = "outcome"
_MOST_WAITING = 100_000


class Loggers:
    """The loggers of a run. Their failures only cause warnings, as training matters more."""

    def __init__(self, loggers: Iterable[Logger]) -> None:
        self._loggers = list(loggers)

    def use_run_folder(self, folder: Path) -> None:
        """Let a `WandbLogger` with default folder and name write into the run's folder, under the run's name.

        Lightning's defaults are the current folder and a random name. The logger accepts both only in its constructor,
        before the run folder exists, but does not use them before its first metrics, so private attributes are set.

        Args:
            folder: Folder of the run, `<runs_dir>/<run_id>`.
        """
        for each in self._loggers:
            settings: dict[str, Any] | None = getattr(each, "_wandb_init", None)
            if settings is None or getattr(each, "_experiment", None) is not None:
                continue
            if settings.get("dir") == ".":
                settings["dir"] = each._save_dir = str(folder)  # type: ignore[attr-defined]
            if settings.get("name") is None:
                settings["name"] = each._name = folder.name  # type: ignore[attr-defined]

    def log_settings(self, settings: Mapping[str, Any], changes: Sequence[str], step: int) -> None:
        """Log the settings: as text for TensorBoard, as hyperparameters for other loggers.

        Args:
            settings: Values by dotted name.
            changes: A line for each setting that differs in a resumed run.
            step: Agent-steps done.
        """
        for each in self._loggers:
            with self._surviving(each, "did not get the settings of the run"):
                if isinstance(each, TensorBoardLogger):
                    table = (f"| {name} | {value} |" for name, value in settings.items())
                    each.experiment.add_text("settings", "\n".join(["| setting | value |", "|---|---|", *table]), step)
                    if changes:
                        each.experiment.add_text("changed settings", "\n".join(f"- {line}" for line in changes), step)
                else:
                    each.log_hyperparams(dict(settings))

    def log(self, metrics: dict[str, float], step: int) -> None:
        """Log one iteration; a logger that fails is not used again."""
        for each in list(self._loggers):
            with self._surviving(each, "failed and is no longer used", leave_out=True):
                each.log_metrics(metrics, step)

    def log_outcome(self, settings: Mapping[str, Any], summary: Mapping[str, Any], step: int) -> None:
        """Write the settings and results for TensorBoard's HParams tab; a resumed run replaces its row.

        Args:
            settings: Values by dotted name.
            summary: Content of `summary.json`; of figures with a start and an end, only the end is written.
            step: Agent-steps done.
        """
        figures = {name: figure["end"] if isinstance(figure, dict) else figure for name, figure in summary.items()}
        chosen = {
            f"{_OUTCOME}/{name}": figure
            for name, figure in figures.items()
            if isinstance(figure, float) and math.isfinite(figure)
        }
        plain = {name: x if isinstance(x, bool | int | float) else str(x) for name, x in settings.items()}
        for each in self._loggers:
            if isinstance(each, TensorBoardLogger):
                with self._surviving(each, "did not get the settings of the run"):
                    for old in Path(each.log_dir, _OUTCOME).glob("events.out.tfevents.*"):
                        old.unlink()
                    each.experiment.add_hparams(plain, chosen, run_name=_OUTCOME, global_step=step)

    def finalize(self) -> None:
        """Let every logger write its buffered metrics at the end of the run."""
        for each in self._loggers:
            with self._surviving(each, "failed at the end of the run"):
                each.finalize("success")

    @contextmanager
    def _surviving(self, each: Logger, trouble: str, leave_out: bool = False) -> Iterator[None]:
        try:
            yield
        except NotImplementedError:  # Fabric's CSVLogger takes no settings
            pass
        except Exception as error:  # a service that is down, a full disk, a folder that is gone...
            if leave_out:
                self._loggers.remove(each)
            cause = _first_cause(error)
            logger.warning("%s %s (%s: %s)", type(each).__name__, trouble, type(cause).__name__, cause)


def _first_cause(error: BaseException) -> BaseException:
    """Return the original cause of an error: TensorBoardLogger hides a full disk behind another message."""
    while (cause := error.__cause__ or error.__context__) is not None and str(cause):
        error = cause
    return error


def wait_for_next_second(folder: Path) -> None:
    """Wait, for one second at most, until TensorBoard's next file in this folder sorts after the existing ones.

    TensorBoard reads files in the order of their names, which begin with the second of their creation. Within a second,
    process ids as text decide (1003 comes before 993). A clock that was set back is not handled.
    """
    seconds = [path.name.removeprefix("events.out.tfevents.")[:10] for path in folder.glob("events.out.tfevents.*")]
    if str(int(now := time.time())) in seconds:
        time.sleep(int(now) + 1 - now)


class MetricsFile(Logger):
    """Logger that writes `metrics.csv`: no row is lost or repeated after a crash, a full disk or a resume.

    Fabric's CSVLogger deletes the file of a resumed run, and rewrites it in place when there is a new metric. This
    logger appends rows or replaces the file atomically, and does not touch it before the first metrics. Rows that
    cannot be written (a full disk, a missing folder) are kept until they can be written.

    Attributes:
        path: The file, `<folder>/metrics.csv`; header `step,<metric names...>`.
    """

    def __init__(self, folder: str | Path, until: int | None = None) -> None:
        """Prepare the file.

        Args:
            folder: Folder of the run.
            until: Agent-steps at which a run is resumed; later rows are removed. None: start a new file.
        """
        self.path = Path(folder) / "metrics.csv"
        self._until: float = -1 if until is None else until
        self._columns: list[str] = []
        self._waiting: list[Row] = []
        self._size = 0

    @property
    def name(self) -> str:
        return "metrics"

    @property
    def version(self) -> str:
        return ""

    def log_metrics(self, metrics: dict[str, Any], step: int | None = None) -> None:
        row = {"step": str(step if step is not None else 0)} | {name: str(float(x)) for name, x in metrics.items()}
        self._waiting = [*self._waiting[-_MOST_WAITING:], row]
        try:
            self._write()
        except OSError as error:
            if len(self._waiting) == 1:  # warn once, until it works again
                reason = error.strerror or error
                logger.warning("%s cannot be written (%s); its rows are kept until it can be", self.path, reason)

    def log_hyperparams(self, params: dict[str, Any] | Namespace, *args: object, **kwargs: object) -> None:
        """Do nothing: a run keeps its settings in `config.yaml`."""

    def finalize(self, status: str) -> None:
        if self._waiting:
            self._write()

    def _write(self) -> None:
        """Append the waiting rows, or write the whole file if they have new columns or it is missing."""
        new = {name for row in self._waiting for name in row}.difference(self._columns)
        if new or not self.path.exists():
            rows = read_rows(self.path) if self.path.exists() else []
            kept = [row for row in rows if row.get("step", "").isdigit() and int(row["step"]) <= self._until]
            names = dict.fromkeys(("step", *self._columns, *(name for row in kept for name in row), *sorted(new)))
            self.path.parent.mkdir(parents=True, exist_ok=True)
            write_text(self.path, csv_text([*names], [*kept, *self._waiting]))
            self._columns, self._until = [*names], math.inf
        else:
            with open(self.path, "r+", newline="", encoding="utf-8", opener=regular_file) as file:
                file.truncate(self._size)  # removes half a line, written when the disk became full
                file.seek(0, os.SEEK_END)
                csv.DictWriter(file, self._columns, restval="").writerows(self._waiting)
        self._waiting, self._size = [], self.path.stat().st_size
