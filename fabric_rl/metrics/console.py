"""Console of rank 0: a live table on a terminal, lines elsewhere."""

import shutil
import sys
from collections.abc import Mapping
from contextlib import suppress
from types import MappingProxyType

from rich.console import Console, Group
from rich.live import Live
from rich.padding import Padding
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table

from fabric_rl.base.tables import cell
from fabric_rl.metrics.log import is_terminal, print_lines


class TrainConsole:
    """A live table and progress bar on a terminal, one line per iteration elsewhere. Silent on other ranks."""

    def __init__(
        self,
        total_steps: int,
        enabled: bool = True,
        plain: bool | None = None,
        done: int = 0,
        headlines: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        """Prepare the console.

        Args:
            total_steps: Agent-steps of the whole run.
            enabled: Print metrics; False on ranks other than 0.
            plain: Print lines instead of the live view. Default: only if standard output is not a terminal.
            done: Agent-steps before the run was resumed.
            headlines: Metric -> short label of the environment's most important metrics.
        """
        self._labels = {_RETURN: "return", "eval/return": "eval", **headlines, **_LABELS}
        self.enabled = enabled
        self.plain = not is_terminal(sys.stdout) if plain is None else plain
        self._total = total_steps
        self._live: Live | None = None
        self._progress = Progress(
            TextColumn("steps"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TimeRemainingColumn()
        )
        self._task = self._progress.add_task("steps", total=total_steps, completed=min(done, total_steps))

    def __enter__(self) -> "TrainConsole":
        if self.enabled and not self.plain:
            self._live = Live(self._progress, console=Console(), refresh_per_second=4)
            self._live.start()
        return self

    def __exit__(self, *error: object) -> None:
        if self._live is not None:
            with suppress(OSError):
                self._live.stop()

    def show(self, steps: int, metrics: dict[str, float]) -> None:
        """Show one iteration."""
        if not self.enabled:
            return
        if self._live is not None:
            self._progress.update(self._task, completed=min(steps, self._total))
            with suppress(OSError):  # the terminal was closed
                self._live.update(Group(self._progress, _table(metrics)))  # a terminal with few rows cuts off the rest
        else:
            columns = shutil.get_terminal_size().columns if is_terminal(sys.stdout) else None
            print_lines(_line(self._labels, steps, self._total, metrics, columns))


def _table(metrics: dict[str, float]) -> Table:
    """Return all metrics by group, two per row. Labels that are too long for the terminal wrap, numbers never do."""
    table = Table.grid(padding=(0, 2, 0, 0))
    for _ in range(2):
        table.add_column(overflow="fold")
        table.add_column(justify="right", no_wrap=True)
    groups: dict[str, list[tuple[str, str]]] = {}
    for name, number in sorted(metrics.items()):
        group, _, label = name.partition("/")
        label = label.replace("_per_second", "/s").replace("_per_minute", "/min")  # leaves room for others
        groups.setdefault(group, []).append((label, _number(number)))
    for group, rows in groups.items():
        table.add_row(cell(group, "bold"))
        half = (len(rows) + 1) // 2
        for i in range(half):
            cells = [*rows[i], *(rows[i + half] if i + half < len(rows) else ("", ""))]
            table.add_row(*(Padding(cell(text), (0, 0, 0, 2 * (column % 2 == 0))) for column, text in enumerate(cells)))
    return table


_RETURN = "reward/episode_return"
_LABELS = {
    "ppo/entropy": "entropy",
    "ppo/approx_kl": "kl",
    "speed/overall_steps_per_second": "steps/s",
    "ppo/value_loss": "value loss",
    "ppo/explained_variance": "expl. var.",
    "sac/entropy": "entropy",
    "sac/critic_loss": "critic loss",
    "sac/temperature": "temperature",
}
"""Metrics that follow the return and the environment's headlines in the one-line view, with short labels."""


def _line(labels: Mapping[str, str], steps: int, total: int, metrics: Mapping[str, float], columns: int | None) -> str:
    """Return one iteration as a line; the least important figures are left out if it would be too long."""
    line = f"{steps:>9,}/{total:,}"
    for name, label in labels.items():
        figure = f"  {label} {_number(metrics[name])}" if name in metrics else ""
        if columns is None or len(line + figure) < columns:
            line += figure
    return line


def _number(number: float) -> str:
    return f"{number:,.0f}" if abs(number) >= 1000 else f"{number:.4g}"
