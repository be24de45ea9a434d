"""Tables of runs and milestones that fit in a terminal with 80 columns."""

from collections.abc import Sequence

from rich.table import Table
from rich.text import Text

from fabric_rl.analysis.curves import final_score
from fabric_rl.base.tables import cell, format_number, format_time, table
from fabric_rl.metrics.metrics_csv import Curve
from fabric_rl.runs.records import SET_ASIDE, Milestone, RunRecord, checkpoint_steps, list_checkpoints

_LATEST = 3
"""Milestones shown for each run."""


def runs_table(runs: Sequence[RunRecord]) -> Table:
    """Return a table of runs with their latest milestones."""
    grouped = any(run.group for run in runs)
    rows: list[list[str | Text]] = []
    for run in runs:
        figures = [format_number(run.summary.get("mean_return")), "", format_time(run.changed)]
        rows.append([Text(run.name, "bold"), run.status, f"{run.steps:,}", *figures, *[run.group or ""] * grouped])
        for milestone in sorted(run.milestones, key=lambda m: m.steps)[-_LATEST:]:
            figures = [*map(format_number, (milestone.mean_reward, milestone.rating)), format_time(milestone.timestamp)]
            rows.append([f"  {milestone.phase}", "milestone", f"{milestone.steps:,}", *figures])
        if len(run.milestones) > _LATEST:
            rows.append(["", Text(f"{len(run.milestones) - _LATEST} more", "dim")])
    columns = ["Run", "State", ">Steps", ">Return", ">Rating", "Changed", *["Group"] * grouped]
    return table("", columns, rows, tight=True)


def run_table(run: RunRecord) -> Table:
    """Return a table of one run's state and the numbers in its summary."""
    saved = ", ".join(f"{checkpoint_steps(path):,}" for path in list_checkpoints(run.folder / "checkpoints"))
    found = {"folder": str(run.folder), "state": run.status, "group": run.group, "steps": f"{run.steps:,}"}
    found |= {"changed": format_time(run.changed), "checkpoints": saved or "-"}
    found["abandoned"] = f"{run.abandoned} milestones, in milestones/{SET_ASIDE}" if run.abandoned else None
    for key, value in run.summary.items():
        if isinstance(value, dict):
            value = ", ".join(f"{format_number(part)} at the {name}" for name, part in value.items())
        if key not in ("run_id", "total_steps", "stopped_early", "inference", "checkpoint"):
            found[key.replace("_", " ")] = value if isinstance(value, str) else format_number(value)
    grid = Table.grid(padding=(0, 2))
    grid.add_row("run", cell(run.name, "bold"))
    for name, shown in found.items():
        if shown is not None:
            grid.add_row(cell(name), cell(shown))
    return grid


def milestones_table(milestones: Sequence[Milestone]) -> Table:
    """Return a table of all milestones of a run."""
    rows = [
        [
            m.phase,
            f"{m.steps:,}",
            *map(format_number, (m.mean_reward, m.entropy, m.kl, m.rating)),
            format_time(m.timestamp),
        ]
        for m in milestones
    ]
    columns = ["Phase", ">Steps", ">Return", ">Entropy", ">KL", ">Rating", "When"]
    return table("", columns, rows, tight=True)


def comparison_table(curves: dict[str, dict[str, Curve]], metrics: Sequence[str]) -> Table:
    """Return a table of each metric's mean over the last tenth of each run's points (at least one point)."""
    rows = [
        [metric, *(format_number(final_score(run[metric]) if metric in run else None) for run in curves.values())]
        for metric in metrics
    ]
    made = table("", ["Mean of the last 10 %", *(f">{name}" for name in curves)], rows, tight=True)
    for column in made.columns:  # run ids may be long
        column.no_wrap = False
    return made
