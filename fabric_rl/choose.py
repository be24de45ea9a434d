"""Which run or checkpoint to go on from: an explicit one, one chosen by hand, or the newest that fits."""

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from fabric_rl import checkpoint
from fabric_rl.checkpoint import CheckpointError
from fabric_rl.live import differences
from fabric_rl.run import Run
from fabric_rl.runs import Milestone, RunRecord, list_runs


@dataclass(frozen=True)
class Choice:
    """A checkpoint and the run that goes on from it."""

    run: Run
    path: Path
    state: dict[str, Any]


def load(path: str | Path) -> tuple[Path, dict[str, Any]]:
    """Reads a checkpoint file, or the newest good one of a run or milestone folder.

    Raises:
        CheckpointError: There is none, or it cannot be read.
    """
    path = Path(path)
    if not path.exists():
        raise CheckpointError(f"{path}: no such checkpoint, run or milestone")
    if path.is_file():
        return path, checkpoint.read(path)
    found = checkpoint.newest_good(path / "checkpoints" if (path / "checkpoints").is_dir() else path)
    if found is None:
        raise CheckpointError(f"{path}: holds no checkpoints")
    return found


def run_of(path: Path) -> Run:
    """The run that a checkpoint, milestone or run folder belongs to."""
    for folder in (path, *path.parents):
        if (folder / "checkpoints").is_dir():
            return Run(folder)
    raise CheckpointError(f"{path}: lies in no run folder; begin a new run from it with --initialize_from {path}")


def resume_choice(
    runs_dir: str | Path, run_id: str | None, resume: str | bool, fingerprint: Callable[[], dict[str, str]]
) -> Choice | None:
    """Decides what `--resume` goes on from.

    In this order: the path or run id that was given; on a terminal, what the user chooses among milestones; the newest
    run whose newest good checkpoint fits (what does not is shown side by side); None (a new run).

    Args:
        runs_dir: Folder that holds all runs.
        run_id: `--run_id`.
        resume: `--resume`: True, or a path.
        fingerprint: Makes the fingerprint of this environment and agent; only called if it is needed.

    Raises:
        CheckpointError: What was asked for cannot be read.
        FileNotFoundError: There is no such run.
    """
    if isinstance(resume, str):
        path, state = load(resume)
        return Choice(run_of(path), path, state)
    if run_id is not None:
        run = Run.find(runs_dir, run_id)
        path, state = load(run.dir)
        return Choice(run, path, state)
    records = list_runs(runs_dir) if Path(runs_dir).is_dir() else []
    if sys.stdin.isatty() and sys.stdout.isatty():
        milestone = ask_for_milestone(records)
        if milestone is not None:
            path, state = load(milestone.folder)
            return Choice(run_of(path), path, state)
    own = fingerprint() if records else {}
    for record in records:
        try:
            path, state = load(record.folder)
        except CheckpointError:
            continue
        problems = differences(state["fingerprint"], own)
        if not problems:
            return Choice(Run(record.folder), path, state)
        table = Table("", f"run {record.name}", "here", title=f"--resume: run {record.name} does not fit")
        for row in problems:
            table.add_row(*row)
        Console().print(table)
    return None


def ask_for_milestone(records: Sequence[RunRecord]) -> Milestone | None:
    """Lets the user choose among the milestones of all runs; None for the latest checkpoint instead."""
    milestones = [(record.name, milestone) for record in records for milestone in record.milestones]
    if not milestones:
        return None
    table = Table("number", "run", "phase", "steps", "mean reward")
    for number, (name, milestone) in enumerate(milestones, start=1):
        reward = "-" if milestone.mean_reward is None else f"{milestone.mean_reward:.4g}"
        table.add_row(str(number), name, milestone.phase, f"{milestone.steps:,}", reward)
    console = Console()
    console.print(table)
    while True:
        answer = console.input("Go on from which milestone? Enter for the latest checkpoint: ").strip()
        if not answer:
            return None
        if answer.isdigit() and 1 <= int(answer) <= len(milestones):
            return milestones[int(answer) - 1][1]
        console.print(f"a number from 1 to {len(milestones)}, please")
