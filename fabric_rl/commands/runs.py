"""`fabric-rl runs`: lists, shows and plots runs, even while they train."""

import sys
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.text import Text

from fabric_rl.analysis.curves import choose_metrics, draw_png, draw_text
from fabric_rl.analysis.tables import comparison_table, milestones_table, run_table, runs_table
from fabric_rl.commands.output import check_file
from fabric_rl.metrics.metrics_csv import read_metrics
from fabric_rl.runs.records import find_run, list_runs

_RUNS = Path("runs")
USUAL_METRICS = ("reward/episode_return", "game/touches_per_minute", "game/goals_per_minute", "ppo/entropy")
"""Metrics that `fabric-rl runs compare` shows by default."""


def runs(runs_dir: Path = _RUNS) -> int:
    """List the runs in a folder with their latest milestones.

    Args:
        runs_dir: Folder that contains all runs.
    """
    found = list_runs(_existing(runs_dir))
    Console().print(runs_table(found) if found else Text(f"there are no runs in {runs_dir}"))
    return 0


def show_run(id: str, runs_dir: Path = _RUNS) -> int:
    """Show one run with all its milestones.

    Args:
        id: Run id or folder.
        runs_dir: Folder that contains all runs.
    """
    run = find_run(_existing(runs_dir), id)
    console = Console()
    console.print(run_table(run))
    console.print(milestones_table(run.milestones) if run.milestones else "no milestones")
    return 0


def compare_runs(
    ids: Sequence[str], metrics: Sequence[str] = (), output: Path | None = None, runs_dir: Path = _RUNS
) -> int:
    """Plot the curves of several runs as a PNG file and in the terminal.

    Args:
        ids: Run ids or folders, two or more.
        metrics: Names of metrics, or patterns such as 'ppo/*'. Default: returns, touches, goals and entropy.
        output: PNG file. Default: compare.png in the folder of all runs.
        runs_dir: Folder that contains all runs.
    """
    folders = list(dict.fromkeys(find_run(_existing(runs_dir), run_id).folder.resolve() for run_id in ids))
    if len(folders) < 2:
        raise ValueError("compare: name two or more different runs")
    names = [folder.name for folder in folders]
    labels = [name if names.count(name) == 1 else str(folder) for name, folder in zip(names, folders, strict=True)]
    curves = {label: read_metrics(folder / "metrics.csv") for label, folder in zip(labels, folders, strict=True)}
    chosen = choose_metrics(curves, metrics, USUAL_METRICS)
    picture = output or runs_dir / "compare.png"
    if picture.suffix != ".png":
        raise ValueError(f"--output {picture} must end in .png")
    check_file(picture, "--output")
    console = Console()
    console.print(comparison_table(curves, chosen))
    missing = []
    try:
        for metric in chosen:
            drawing = draw_text(curves, metric, width=min(console.width, 100) - 1)
            encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
            print(drawing.encode(encoding, "replace").decode(encoding))
    except ImportError:
        missing.append("plotext")
    try:
        draw_png(picture, curves, chosen)
        print(f"curves: {picture}")
    except ImportError:
        missing.append("matplotlib")
    if missing:
        verb = "is" if len(missing) == 1 else "are"
        raise ImportError(f"{' and '.join(missing)} {verb} not installed; pip install {' '.join(missing)}")
    return 0


def _existing(runs_dir: Path) -> Path:
    if not runs_dir.is_dir():
        raise ValueError(f"--runs_dir {runs_dir}: there is no such folder")
    return runs_dir
