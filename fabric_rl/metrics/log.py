"""Metrics: reduced once per iteration over all ranks, logged, and shown on the console of rank 0."""

import logging
import os
import shutil
import sys
import warnings
from collections import deque
from collections.abc import Iterable
from contextlib import suppress
from types import TracebackType
from typing import Any, cast

import torch
from lightning import Fabric
from rich.console import Console, Group
from rich.live import Live
from rich.padding import Padding
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

logger = logging.getLogger("fabric_rl")
"""What happens in a run; `Run.open_log` writes it into the run folder."""

Sums = dict[str, tuple[float, float]]
"""Metric name -> (sum, count) on one rank."""


def reduce_sums(fabric: Fabric, local: Sums) -> Sums:
    """Adds up sums and counts over all ranks. Every rank must pass the same names."""
    names = sorted(local)
    table = torch.tensor([local[name] for name in names], dtype=torch.float64, device=fabric.device).reshape(-1, 2)
    if fabric.world_size > 1:
        table = cast(torch.Tensor, fabric.all_reduce(table, reduce_op="sum"))
    return {name: (total, count) for name, (total, count) in zip(names, table.tolist(), strict=True)}


def means(sums: Sums) -> dict[str, float]:
    """Sum / count of every metric that has a count."""
    return {name: total / count for name, (total, count) in sums.items() if count > 0}


START_STEPS, END_STEPS = 50_000, 200_000
"""Agent-steps over which the summary's figures 'at the start' and 'at the end' are taken (at least one iteration)."""


def _mean(trace: Iterable[Sums], name: str) -> float:
    pairs = [sums[name] for sums in trace if name in sums]
    count = sum(pair[1] for pair in pairs)
    return sum(pair[0] for pair in pairs) / count if count else 0.0


class Trace:
    """The metrics of a run's first and last iterations, for the summary."""

    def __init__(self, steps_per_iteration: int) -> None:
        """Keeps as many iterations as make up `START_STEPS` and `END_STEPS` agent-steps."""
        self._first: list[Sums] = []
        self._first_size = max(1, START_STEPS // steps_per_iteration)
        self._last: deque[Sums] = deque(maxlen=max(1, END_STEPS // steps_per_iteration))

    def add(self, sums: Sums) -> None:
        """Adds an iteration."""
        if len(self._first) < self._first_size:
            self._first.append(sums)
        self._last.append(sums)

    def __contains__(self, name: str) -> bool:
        """Whether the newest iteration has that metric."""
        return bool(self._last) and name in self._last[-1]

    def start_and_end(self, name: str) -> dict[str, float]:
        """Means of a metric over the first and over the last iterations."""
        return {"start": _mean(self._first, name), "end": _mean(self._last, name)}

    def state_dict(self) -> dict[str, Any]:
        """Both ends."""
        return {"first": self._first, "last": list(self._last)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Takes what `state_dict` gave."""
        self._first = list(state["first"])
        self._last.clear()
        self._last.extend(state["last"])


def say(*lines: str) -> None:
    """Prints lines. Where nobody listens any more (a closed terminal or pipe) output is dropped from then on."""
    try:
        print(*lines, sep="\n", flush=True)
    except OSError:
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115 - as long as the process


class RunLog(logging.FileHandler):
    """The file log of a run; what cannot be written to it is left out."""

    def emit(self, record: logging.LogRecord) -> None:
        """Writes one record; the folder may be gone."""
        with suppress(OSError):
            super().emit(record)

    def handleError(self, record: logging.LogRecord) -> None:
        """Says nothing: the disk is full, which the checkpoints' warning says."""


class Loggers:
    """Fabric's loggers. One that fails is left out from then on, with a warning: training matters more."""

    def __init__(self, fabric: Fabric) -> None:
        """Takes the loggers of `fabric`."""
        self._loggers = list(fabric.loggers) if fabric.is_global_zero else []

    def log(self, metrics: dict[str, float], step: int) -> None:
        """Logs one iteration."""
        for each in list(self._loggers):
            try:
                each.log_metrics(metrics, step)
            except Exception as error:  # a service that is down, a full disk, a folder that is gone...
                self._loggers.remove(each)
                cause = _first_cause(error)
                warnings.warn(
                    f"{type(each).__name__} failed and is left out from now on ({type(cause).__name__}: {cause})",
                    RuntimeWarning,
                    stacklevel=2,
                )

    def finalize(self) -> None:
        """Tells every logger that the run has ended, so that it writes what it still has."""
        for each in self._loggers:
            try:
                each.finalize("success")
            except Exception as error:
                message = f"{type(each).__name__} failed at the end ({type(error).__name__}: {error})"
                warnings.warn(message, RuntimeWarning, stacklevel=2)


def _first_cause(error: BaseException) -> BaseException:
    """What made an error happen, if it says so: TensorBoardLogger hides a full disk behind another message."""
    while (cause := error.__cause__ or error.__context__) is not None and str(cause):
        error = cause
    return error


class TrainConsole:
    """A live table and progress bar on a terminal, one line per iteration elsewhere. Silent on other ranks."""

    def __init__(self, total_steps: int, enabled: bool = True, plain: bool | None = None, done: int = 0) -> None:
        """Prepares the console.

        Args:
            total_steps: Agent-steps of the whole run.
            enabled: False prints nothing (other ranks).
            plain: Lines instead of the live view. Default: when standard output is no terminal.
            done: Agent-steps before a run went on.
        """
        self.enabled = enabled
        self.plain = not sys.stdout.isatty() if plain is None else plain
        self._total = total_steps
        self._live: Live | None = None
        self._progress = Progress(
            TextColumn("steps"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TimeRemainingColumn()
        )
        self._task = self._progress.add_task("steps", total=total_steps, completed=min(done, total_steps))

    def __enter__(self) -> "TrainConsole":
        """Starts the live view."""
        if self.enabled and not self.plain:
            self._live = Live(self._progress, console=Console(), refresh_per_second=4)
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Leaves the last view on the screen."""
        if self._live is not None:
            with suppress(OSError):
                self._live.stop()

    def show(self, steps: int, metrics: dict[str, float]) -> None:
        """Shows one iteration."""
        if not self.enabled:
            return
        if self._live is not None:
            self._progress.update(self._task, completed=min(steps, self._total))
            with suppress(OSError):  # the terminal was closed
                self._live.update(Group(self._progress, _table(metrics)))  # a low terminal cuts off what is below
        else:
            say(_line(steps, self._total, metrics, shutil.get_terminal_size().columns if sys.stdout.isatty() else None))


def _table(metrics: dict[str, float]) -> Table:
    """All metrics by group, two to a row. Labels that are too long for the terminal fold, numbers never do."""
    table = Table.grid(padding=(0, 2, 0, 0))
    for _ in range(2):
        table.add_column(overflow="fold")
        table.add_column(justify="right", no_wrap=True)
    groups: dict[str, list[tuple[str, str]]] = {}
    for name, number in sorted(metrics.items()):
        group, _, label = name.partition("/")
        groups.setdefault(group, []).append((_short(label), _number(number)))
    for group, rows in groups.items():
        table.add_row(Text(group, "bold"))
        half = (len(rows) + 1) // 2
        for i in range(half):
            cells = [*rows[i], *(rows[i + half] if i + half < len(rows) else ("", ""))]
            table.add_row(*(Padding(Text(cell), (0, 0, 0, 2 * (column % 2 == 0))) for column, cell in enumerate(cells)))
    return table


def _short(label: str) -> str:
    """A label that leaves room for others: `collected_steps/s`, `goals/min`."""
    return label.replace("_per_second", "/s").replace("_per_minute", "/min")


# The figures of the one-line view, with a short label each.
_LINE = {
    "reward/episode_return": "return",
    "game/touches_per_minute": "touches/min",
    "game/goals_per_minute": "goals/min",
    "ppo/entropy": "entropy",
    "ppo/approx_kl": "kl",
    "speed/overall_steps_per_second": "steps/s",
    "ppo/value_loss": "value loss",
    "ppo/explained_variance": "expl. var.",
}


def _line(steps: int, total: int, metrics: dict[str, float], columns: int | None) -> str:
    """One iteration in a line; the least important figures are left out where it would be too long."""
    line = f"{steps:>9,}/{total:,}"
    for name, label in _LINE.items():
        figure = f"  {label} {_number(metrics[name])}" if name in metrics else ""
        if columns is None or len(line + figure) < columns:
            line += figure
    return line


def _number(number: float) -> str:
    return f"{number:,.0f}" if abs(number) >= 1000 else f"{number:.4g}"
