"""Console of rank 0: a live table on a terminal, lines elsewhere."""

import shutil
import sys
from collections.abc import Mapping
from contextlib import suppress
from types import MappingProxyType

from rich.console import Console, Group
from rich.live import Live
from rich.padding import Padding
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
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
        self._headlines = {_RETURN: "return", "eval/return": "eval", **headlines, _SPEED: "steps/s"}
        self._labels = {_RETURN: "return", "eval/return": "eval", **headlines, **_LABELS}
        self._first: dict[str, float] = {}
        self.enabled = enabled
        self.plain = not is_terminal(sys.stdout) if plain is None else plain
        self._total = total_steps
        self._live: Live | None = None
        count = TextColumn("{task.completed:,.0f}/{task.total:,.0f}")
        columns = BarColumn(None), count, TimeRemainingColumn(), TextColumn("left")
        self._progress = Progress(*columns, expand=True, speed_estimate_period=300)
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
                self._live.update(
                    Group(self._progress, self.headline(metrics), metrics_table(metrics, self._live.console.width))
                )
        else:
            columns = shutil.get_terminal_size().columns if is_terminal(sys.stdout) else None
            print_lines(_line(self._labels, steps, self._total, metrics, columns))

    def headline(self, metrics: Mapping[str, float]) -> Table:
        """Return the most important metrics, each with its first value of this session."""
        table = Table.grid(padding=(0, 2, 0, 0))
        for name, label in self._headlines.items():
            if name in metrics:
                first, now = self._first.setdefault(name, metrics[name]), metrics[name]
                trend = "" if first == now else f"{'up' if now > first else 'down'} from {_number(first)}"
                table.add_row(cell(label, "bold"), cell(_number(now), "bold"), cell(trend, "dim"))
        return table


def metrics_table(metrics: Mapping[str, float], width: int) -> Table:
    """Return all metrics by group, as many per row as fit. Long labels wrap, numbers never do."""
    per_row = max(1, min(3, width // 38))
    table = Table.grid(padding=(0, 2, 0, 0))
    for _ in range(per_row):
        table.add_column(overflow="fold")
        table.add_column(justify="right", no_wrap=True)
    groups: dict[str, list[tuple[str, str]]] = {"reward": [], "game": [], "ppo": []}
    for name, number in sorted(metrics.items()):
        group, _, label = name.partition("/")
        share = metrics.get(f"reward_percent/{label}", 0.0) if group == "reward" else 0.0
        label = label.replace("_per_second", "/s").replace("_per_minute", "/min")  # leaves room for others
        zero_sum = share > 0 and abs(number) < 1e-9
        groups.setdefault(group, []).append((f"{label} *" if zero_sum else label, _number(number)))
    for group, rows in groups.items():
        if rows:
            table.add_row(cell(group, "bold"))
        if any(label.endswith(" *") for label, _ in rows):
            table.add_row(cell("* cancels in self-play", "dim"))
        height = -(-len(rows) // per_row)
        for i in range(height):
            cells = [text for row in rows[i::height] for text in row]
            table.add_row(*(Padding(cell(text), (0, 0, 0, 2 * (column % 2 == 0))) for column, text in enumerate(cells)))
    return table


_RETURN, _SPEED = "reward/episode_return", "speed/overall_steps_per_second"
_LABELS = {
    "ppo/entropy": "entropy",
    "ppo/approx_kl": "kl",
    _SPEED: "steps/s",
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
