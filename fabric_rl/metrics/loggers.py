"""Loggers of metrics: TensorBoard and others of the user's choice, and `metrics.csv`, which every run has."""

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

from fabric_rl.base.files import write_text
from fabric_rl.metrics.csv_tables import Row, csv_text, read_rows
from fabric_rl.metrics.log import logger

_OUTCOME = "outcome"
_MOST_WAITING = 100_000


class Loggers:
    """The loggers of a run. What one of them fails to do is a warning: training matters more."""

    def __init__(self, loggers: Iterable[Logger]) -> None:
        self._loggers = list(loggers)

    def keep_in(self, folder: Path) -> None:
        """Let a `WandbLogger` whose place and name nobody has chosen write into the run's folder, under the run's name.

        Lightning's default is the current folder and a name made up by the service. Nothing has been written yet: the
        logger begins with its first metrics. It takes both in its constructor only, before there is a run folder, and
        keeps them in private attributes; one without them is left as it is.

        Args:
            folder: The run's, `<runs_dir>/<run_id>`.
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
        """Log the settings: TensorBoard gets a text, others what they call hyperparameters or config.

        Args:
            settings: By their dotted names.
            changes: A line for each setting that a run that goes on had otherwise.
            step: Agent-steps done.
        """
        for each in self._loggers:
            with self._surviving(each, "has not got the settings of the run"):
                if isinstance(each, TensorBoardLogger):
                    table = (f"| {name} | {value} |" for name, value in settings.items())
                    each.experiment.add_text("settings", "\n".join(["| setting | value |", "|---|---|", *table]), step)
                    if changes:
                        each.experiment.add_text("changed settings", "\n".join(f"- {line}" for line in changes), step)
                else:
                    each.log_hyperparams(dict(settings))

    def log(self, metrics: dict[str, float], step: int) -> None:
        """Log one iteration; a logger that fails is left out from then on."""
        for each in list(self._loggers):
            with self._surviving(each, "failed and is left out from now on", leave_out=True):
                each.log_metrics(metrics, step)

    def log_outcome(self, settings: Mapping[str, Any], summary: Mapping[str, Any], step: int) -> None:
        """Tell TensorBoard's HParams tab what the settings have led to; a run that went on has one row, the newest.

        Args:
            settings: By their dotted names.
            summary: The content of `summary.json`; its figures at the end count.
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
                with self._surviving(each, "has not got the settings of the run"):
                    for old in Path(each.log_dir, _OUTCOME).glob("events.out.tfevents.*"):
                        old.unlink()
                    each.experiment.add_hparams(plain, chosen, run_name=_OUTCOME, global_step=step)

    def finalize(self) -> None:
        """Tell every logger that the run has ended, so that it writes what it still has."""
        for each in self._loggers:
            with self._surviving(each, "failed at the end"):
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
    """Returns the cause of an error, if it says so: TensorBoardLogger hides a full disk behind another message."""
    while (cause := error.__cause__ or error.__context__) is not None and str(cause):
        error = cause
    return error


def wait_for_a_later_name(folder: Path) -> None:
    """Waits until TensorBoard's next file in this folder will be read after those of this second: a second at most.

    Files are read in the order of their names, which begin with the second in which each was opened; those of the same
    second follow each other by the text of a process's number, in which 1003 comes before 993. A clock that was put
    back is not waited for.
    """
    seconds = [path.name.removeprefix("events.out.tfevents.")[:10] for path in folder.glob("events.out.tfevents.*")]
    if str(int(now := time.time())) in seconds:
        time.sleep(int(now) + 1 - now)


class MetricsFile(Logger):
    """Writes `metrics.csv`: one row per iteration, none lost and none twice, whatever happens to the run or the disk.

    Fabric's CSVLogger deletes the file of a run that goes on and rewrites it in place when a metric is new. This one
    changes it in one step (temporary file, then rename) or by adding a line, and first when there is something to log.
    Rows that cannot be written (the disk is full, the folder is gone) wait until they can.

    Attributes:
        path: The file, `<folder>/metrics.csv`; header `step,<metric names...>`.
    """

    def __init__(self, folder: str | Path, until: int | None = None) -> None:
        """Writes into `folder`.

        Args:
            folder: The run's.
            until: A run goes on after so many agent-steps: the rows up to there stay, later ones go. None: a new file.
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
            if len(self._waiting) == 1:  # once, until it works again
                reason = error.strerror or error
                logger.warning("%s cannot be written (%s); its rows wait until it can", self.path, reason)

    def log_hyperparams(self, params: dict[str, Any] | Namespace, *args: object, **kwargs: object) -> None:
        """A run keeps its settings in `config.yaml`."""

    def finalize(self, status: str) -> None:
        if self._waiting:
            self._write()

    def _write(self) -> None:
        """Adds the rows that wait; the whole file is written where they have new columns, or where it is gone."""
        new = {name for row in self._waiting for name in row}.difference(self._columns)
        if new or not self.path.exists():
            rows = read_rows(self.path) if self.path.exists() else []
            kept = [row for row in rows if row.get("step", "").isdigit() and int(row["step"]) <= self._until]
            names = dict.fromkeys(("step", *self._columns, *(name for row in kept for name in row), *sorted(new)))
            self.path.parent.mkdir(parents=True, exist_ok=True)
            write_text(self.path, csv_text([*names], [*kept, *self._waiting]))
            self._columns, self._until = [*names], math.inf
        else:
            with open(self.path, "r+", newline="", encoding="utf-8") as file:
                file.truncate(self._size)  # half a line, if the disk became full in the middle of it
                file.seek(0, os.SEEK_END)
                csv.DictWriter(file, self._columns, restval="").writerows(self._waiting)
        self._waiting, self._size = [], self.path.stat().st_size
