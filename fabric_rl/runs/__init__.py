"""Run folders for people: `fabric-rl runs`, `fabric-rl runs show ID`, `fabric-rl runs compare A B`.

Reads only what a run leaves behind (`summary.json`, `metrics.csv`, `checkpoints/`, `milestones/`), so it works while
the run is going on and on folders that were copied from elsewhere. What is missing or damaged is shown as a dash.
"""

from fabric_rl.commands.runs import runs_command
from fabric_rl.runs.curves import DEFAULT_METRICS, Curve, choose_metrics, draw_png, draw_text, read_metrics
from fabric_rl.runs.records import Milestone, RunRecord, find_run, list_runs, load_run
from fabric_rl.runs.tables import comparison_table, milestones_table, run_table, runs_table

__all__ = [
    "DEFAULT_METRICS",
    "Curve",
    "Milestone",
    "RunRecord",
    "choose_metrics",
    "comparison_table",
    "draw_png",
    "draw_text",
    "find_run",
    "list_runs",
    "load_run",
    "milestones_table",
    "read_metrics",
    "run_table",
    "runs_command",
    "runs_table",
]
