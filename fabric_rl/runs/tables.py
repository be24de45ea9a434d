"""Tables of runs and milestones that fit on a terminal of 80 columns."""

from collections.abc import Sequence
from datetime import datetime

from rich import box
from rich.table import Table
from rich.text import Text

from fabric_rl.runs.curves import Curve
from fabric_rl.runs.records import SET_ASIDE, Milestone, RunRecord, checkpoints, number_of, steps_of

_LATEST = 3


def runs_table(runs: Sequence[RunRecord]) -> Table:
    """Runs with their latest milestones below them; fits 80 columns."""
    groups = [run.group or "" for run in runs]
    table = _table("Run", "State", ">Steps", ">Return", ">Rating", "Changed", *(["Group"] if any(groups) else []))
    for run, group in zip(runs, groups, strict=True):
        row = (run.status, f"{run.steps:,}", figure_text(run.summary.get("mean_return")), "", when_text(run.changed))
        table.add_row(Text(run.name, "bold"), *row, *([Text(group)] if any(groups) else []))
        for milestone in sorted(run.milestones, key=lambda m: m.steps)[-_LATEST:]:
            figures = map(figure_text, (milestone.mean_reward, milestone.rating))
            cells = ("milestone", f"{milestone.steps:,}", *figures, when_text(milestone.timestamp))
            table.add_row(Text(f"  {milestone.phase}"), *cells)
        if len(run.milestones) > _LATEST:
            table.add_row("", Text(f"{len(run.milestones) - _LATEST} more", "dim"))
    return table


def run_table(run: RunRecord) -> Table:
    """The figures of one run, from its summary."""
    table = Table.grid(padding=(0, 2))
    table.add_row("run", Text(run.name, "bold"))
    table.add_row("folder", Text(str(run.folder)))
    table.add_row("state", run.status)
    if run.group is not None:
        table.add_row("group", Text(run.group))
    table.add_row("steps", f"{run.steps:,}")
    table.add_row("changed", when_text(run.changed))
    saved = checkpoints(run.folder / "checkpoints")
    table.add_row("checkpoints", ", ".join(f"{steps_of(path):,}" for path in saved) or "-")
    if run.abandoned:
        table.add_row("abandoned", f"{run.abandoned} milestones, in milestones/{SET_ASIDE}")
    for key, value in run.summary.items():
        if isinstance(value, dict):
            value = ", ".join(f"{figure_text(part)} at the {name}" for name, part in value.items())
        if key not in ("run_id", "total_steps", "stopped_early", "inference", "checkpoint"):
            table.add_row(Text(key.replace("_", " ")), Text(value if isinstance(value, str) else figure_text(value)))
    return table


def milestones_table(milestones: Sequence[Milestone]) -> Table:
    """All milestones of a run; fits 80 columns."""
    table = _table("Phase", ">Steps", ">Return", ">Entropy", ">KL", ">Rating", "When")
    for m in milestones:
        figures = map(figure_text, (m.mean_reward, m.entropy, m.kl, m.rating))
        table.add_row(Text(m.phase), f"{m.steps:,}", *figures, when_text(m.timestamp))
    return table


def comparison_table(curves: dict[str, dict[str, Curve]], metrics: Sequence[str]) -> Table:
    """Each metric's mean over the last tenth of each run's points (at least one point)."""
    table = _table("Mean of the last 10 %", *(f">{name}" for name in curves), fold=True)
    for metric in metrics:
        last = [
            run[metric][1][-max(1, len(run[metric][1]) // 10) :] if metric in run else None for run in curves.values()
        ]
        table.add_row(Text(metric), *(figure_text(None if part is None else part.mean()) for part in last))
    return table


def _table(first: str, *others: str, fold: bool = False) -> Table:
    """A table whose first column folds where the terminal is narrow; `>` aligns to the right."""
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    table.add_column(Text(first), overflow="fold")
    for header in others:
        justify = "right" if header.startswith(">") else "left"
        table.add_column(Text(header.lstrip(">")), justify=justify, no_wrap=not fold, overflow="fold")  # type: ignore[arg-type]
    return table


def figure_text(value: object) -> str:
    """A number with four digits, or whole from 1,000 on; a dash for anything else."""
    number = number_of(value)
    if number is None:
        return "-"
    return f"{number:,.0f}" if abs(number) >= 1000 else f"{number:.4g}"


def when_text(moment: datetime | None) -> str:
    """Date and minute; a dash where it is not known."""
    return "-" if moment is None else f"{moment:%Y-%m-%d %H:%M}"
