"""Which run or checkpoint to go on from: an explicit one, one chosen by hand, or the newest that fits."""

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from torch import Tensor

from fabric_rl import checkpoint
from fabric_rl.checkpoint import CheckpointError
from fabric_rl.live import differences
from fabric_rl.run import Run
from fabric_rl.runs import Milestone, RunRecord, list_runs

_PARTS = {
    "agent": dict,
    "callback_names": list,
    "callbacks": list,
    "exact": bool,
    "fingerprint": dict,
    "metrics": dict,
    "optimizer": dict,
    "precision": dict,
    "ranks": list,
    "seconds": dict,
    "steps": int,
    "trace": dict,
    "world_size": int,
}
"""What the checkpoint of a run holds, at least."""


@dataclass(frozen=True)
class Choice:
    """A run that goes on, and the checkpoint that it goes on from; None if it was killed before it had any."""

    run: Run
    path: Path | None
    state: dict[str, Any] | None


def load(path: str | Path) -> tuple[Path, dict[str, Any]]:
    """Reads a checkpoint file, or the newest good one of a run or milestone folder.

    Raises:
        CheckpointError: There is none, or it cannot be read.
    """
    path = Path(path)
    if not path.exists():
        raise CheckpointError(f"{path}: no such checkpoint, run or milestone")
    if path.is_file():
        return path, _read(path)
    found = checkpoint.newest_good(path / "checkpoints" if (path / "checkpoints").is_dir() else path, _read_named)
    if found is None:
        milestones = path / "milestones"
        hint = f"; its milestones are in {milestones}" if any(milestones.glob("*/*")) else ""
        raise CheckpointError(f"{path}: holds no checkpoints{hint}")
    return found


def locate(flag: str, runs_dir: str | Path, name: str) -> Path:
    """The run of that name, or the path.

    Raises:
        CheckpointError: There is neither; the message names the flag.
    """
    for path in (Path(runs_dir, name), Path(name)):
        if path.is_dir() if path != Path(name) else path.exists():
            return path
    raise CheckpointError(f"{flag} {name}: no such checkpoint, run or milestone")


def _read(path: Path) -> dict[str, Any]:
    state = checkpoint.read(path)
    wrong = [name for name, kind in _PARTS.items() if not isinstance(state.get(name), kind)]
    if wrong or not all(isinstance(tensor, Tensor) for tensor in state["agent"].values()):
        what = f"it lacks {', '.join(wrong[:3])}" if wrong else "its weights are no tensors"
        raise CheckpointError(f"checkpoint {path} is refused: it is not that of a run ({what})")
    return state


def _read_named(path: Path) -> dict[str, Any]:
    state = _read(path)
    if state["steps"] != checkpoint.steps_of(path):  # renamed: what is newest would be wrong
        raise CheckpointError(f"checkpoint {path} is refused: by its content it is after {state['steps']:,} steps")
    return state


def run_of(path: Path) -> Run:
    """The run that a checkpoint, milestone or run folder belongs to."""
    path = path.absolute()
    for folder in (path, *path.parents):
        if (folder / "checkpoints").is_dir():
            return Run(folder)
    raise CheckpointError(f"{path}: lies in no run folder; begin a new run from it with --initialize_from {path}")


def resume_choice(
    runs_dir: str | Path, run_id: str | None, resume: str | bool, fingerprint: Callable[[], dict[str, str]]
) -> Choice | None:
    """Decides what `--resume` goes on from.

    In this order: the path or run id that was given (a run that was killed before its first checkpoint begins again);
    on a terminal, what the user chooses among milestones; the newest run whose newest good checkpoint fits (what does
    not is shown side by side); None (a new run).

    Args:
        runs_dir: Folder that holds all runs.
        run_id: `--run_id`.
        resume: `--resume`: True, or a path or run id.
        fingerprint: Makes the fingerprint of this environment and agent; only called if it is needed.

    Raises:
        CheckpointError: What was asked for cannot be read.
        FileNotFoundError: There is no such run.
    """
    if isinstance(resume, str):
        path = locate("--resume", runs_dir, resume)
        return newest_of(Run(path)) if (path / "checkpoints").is_dir() else _going_back(path)
    if run_id is not None:
        return newest_of(Run.find(runs_dir, run_id))
    records = list_runs(runs_dir) if Path(runs_dir).is_dir() else []
    if sys.stdin.isatty() and sys.stdout.isatty():
        milestone = ask_for_milestone(records)
        if milestone is not None:
            return _going_back(milestone.folder)
    own = fingerprint() if records else {}
    for record in records:
        if not checkpoint.checkpoints(record.folder / "checkpoints"):
            continue  # has only played, or has failed
        try:
            path, state = load(record.folder)
        except CheckpointError as error:
            print(f"--resume: run {record.name} is left out: {error}", flush=True)
            continue
        problems = differences(state["fingerprint"], own)
        if not problems:
            return Choice(Run(record.folder), path, state)
        table = Table("", f"run {record.name}", "here", title=f"--resume: run {record.name} does not fit")
        for row in problems:
            table.add_row(*row)
        Console().print(table)
    return None


def newest_of(run: Run) -> Choice:
    """Goes on from the run's newest good checkpoint, or from its beginning if it was killed before the first.

    Raises:
        CheckpointError: It has checkpoints, but none can be read.
    """
    if not checkpoint.checkpoints(run.checkpoints) and not any(run.milestones.glob("*/*")):
        return Choice(run, None, None)
    return Choice(run, *load(run.dir))


def _going_back(path: Path) -> Choice:
    file, state = load(path)
    return Choice(run_of(file), file, state)


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
        try:
            answer = console.input("Go on from which milestone? Enter for the latest checkpoint: ").strip()
        except EOFError:  # Ctrl+D
            answer = ""
        if not answer:
            return None
        if answer.isdigit() and 1 <= int(answer) <= len(milestones):
            return milestones[int(answer) - 1][1]
        console.print(f"a number from 1 to {len(milestones)}, please")
