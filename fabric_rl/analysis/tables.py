"""Tables of runs and milestones that fit on a terminal of 80 columns."""

from collections.abc import Sequence

from rich.table import Table
from rich.text import Text

from fabric_rl.analysis.curves import Curve, final_score
from fabric_rl.base.tables import figure_text, table, when_text
from fabric_rl.runs.records import SET_ASIDE, Milestone, RunRecord, checkpoints, steps_of

_LATEST = 3
"""Milestones shown for each run."""


def runs_table(runs: Sequence[RunRecord]) -> Table:
    """Return a table of runs with their latest milestones."""
    grouped = any(run.group for run in runs)
    rows: list[list[str | Text]] = []
    for run in runs:
        figures = [figure_text(run.summary.get("mean_return")), "", when_text(run.changed)]
        rows.append([Text(run.name, "bold"), run.status, f"{run.steps:,}", *figures, *[run.group or ""] * grouped])
        for milestone in sorted(run.milestones, key=lambda m: m.steps)[-_LATEST:]:
            figures = [*map(figure_text, (milestone.mean_reward, milestone.rating)), when_text(milestone.timestamp)]
            rows.append([f"  {milestone.phase}", "milestone", f"{milestone.steps:,}", *figures])
        if len(run.milestones) > _LATEST:
            rows.append(["", Text(f"{len(run.milestones) - _LATEST} more", "dim")])
    columns = ["Run", "State", ">Steps", ">Return", ">Rating", "Changed", *["Group"] * grouped]
    return table("", columns, rows, framed=False, tight=True)


def run_table(run: RunRecord) -> Table:
    """Return a table of one run's state and the numbers of its summary."""
    saved = ", ".join(f"{steps_of(path):,}" for path in checkpoints(run.folder / "checkpoints"))
    found = {"folder": str(run.folder), "state": run.status, "group": run.group, "steps": f"{run.steps:,}"}
    found |= {"changed": when_text(run.changed), "checkpoints": saved or "-"}
    found["abandoned"] = f"{run.abandoned} milestones, in milestones/{SET_ASIDE}" if run.abandoned else None
    for key, value in run.summary.items():
        if isinstance(value, dict):
            value = ", ".join(f"{figure_text(part)} at the {name}" for name, part in value.items())
        if key not in ("run_id", "total_steps", "stopped_early", "inference", "checkpoint"):
            found[key.replace("_", " ")] = value if isinstance(value, str) else figure_text(value)
    grid = Table.grid(padding=(0, 2))
    grid.add_row("run", Text(run.name, "bold"))
    for name, shown in found.items():
        if shown is not None:
            grid.add_row(Text(name), Text(shown))
    return grid


def milestones_table(milestones: Sequence[Milestone]) -> Table:
    """Return a table of all milestones of a run."""
    rows = [
        [m.phase, f"{m.steps:,}", *map(figure_text, (m.mean_reward, m.entropy, m.kl, m.rating)), when_text(m.timestamp)]
        for m in milestones
    ]
    columns = ["Phase", ">Steps", ">Return", ">Entropy", ">KL", ">Rating", "When"]
    return table("", columns, rows, framed=False, tight=True)


def comparison_table(curves: dict[str, dict[str, Curve]], metrics: Sequence[str]) -> Table:
    """Return a table of each metric's mean over the last tenth of each run's points (at least one point)."""
    rows = [
        [metric, *(figure_text(final_score(run[metric]) if metric in run else None) for run in curves.values())]
        for metric in metrics
    ]
    made = table("", ["Mean of the last 10 %", *(f">{name}" for name in curves)], rows, framed=False, tight=True)
    for column in made.columns:  # run ids may be long
        column.no_wrap = False
    return made
