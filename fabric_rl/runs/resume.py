"""Which run or checkpoint to go on from: an explicit one, one chosen by hand, or the newest that fits."""

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lightning import Fabric
from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from fabric_rl.base.settings import changed
from fabric_rl.base.state_schema import check_like
from fabric_rl.base.text import did_you_mean
from fabric_rl.metrics.log import EventLog, is_terminal, logger
from fabric_rl.runs import checkpoint, milestone_menu
from fabric_rl.runs.checkpoint_names import checkpoints, steps_of
from fabric_rl.runs.folder import Run
from fabric_rl.runs.provenance import EXPORTED, INITIAL, METADATA, Weights, read_initial
from fabric_rl.runs.records import BEST, list_runs, load_run, names_of_runs
from fabric_rl.types import CheckpointError

PRETRAINED = Path(__file__).parents[1] / "pretrained"
"""Agents that come with fabric-rl."""
_NAMED = 3
"""How many runs or milestones a message names."""


@dataclass
class Start:
    """A run that starts, and what it starts from: nothing, the weights of another run, or a checkpoint of its own.

    Until `share` only that of rank 0 says anything.
    """

    run: Run | None = None
    """The folder; none on a rank that a later call of `main` has started."""
    path: Path | None = None
    """The checkpoint file that it goes on from."""
    state: dict[str, Any] | None = None
    """The content of that file."""
    weights: Weights | None = None
    """The weights of another run to begin with."""
    trained_with: str = ""
    """The first words if they do not fit: settings of that run on which its spaces depend, and that differ."""
    going_on: bool = False
    """The run of this folder goes on; without a checkpoint it begins again."""
    training: bool = False
    """All was well until the first rollout."""
    log: EventLog | None = None
    """The events so far, for `log.txt`."""

    @property
    def steps(self) -> int | None:
        """Agent-steps after which the run goes on; None for a new one."""
        return (self.state["steps"] if self.state else 0) if self.going_on else None

    def share(self, fabric: Fabric) -> None:
        """Tell all ranks what rank 0 knows, and open the log; every rank calls it."""
        if self.run is not None and self.log is not None:
            self.log.open(self.run.dir / "log.txt")
        folder = None if self.run is None else self.run.dir
        known = fabric.broadcast((folder, self.state, self.weights, self.trained_with))
        folder, self.state, self.weights, self.trained_with = known
        if self.run is None and folder is not None:
            self.run = Run(folder)

    def weights_to_load(self) -> dict[str, Any] | None:
        """Return the weights as `train` takes them."""
        if self.weights is None:
            return None
        return {"agent": self.weights.agent, "trained_with": self.trained_with}


_EXAMPLE: dict[str, Any] = {
    **{name: {} for name in ("agent", "fingerprint", "metrics", "optimizer", "precision", "seconds")},
    **{name: [] for name in ("callback_names", "callbacks", "ranks")},
    **{name: 0 for name in ("iteration", "steps", "world_size")},
    "exact": True,
    "kl_adaptive": None,
}
"""What the checkpoint of any run holds. Older ones lack what has been added since."""


def check_run_state(state: Mapping[str, Any]) -> None:
    """Raises ValueError, one line, unless this is the state of a run, whatever its environment and agent are."""
    if missing := [name for name in _EXAMPLE if name not in state]:
        raise ValueError(f"it lacks {', '.join(missing[:3])}")
    for name, example in _EXAMPLE.items():
        check_like(state[name], example, name)
    if len(state["ranks"]) != state["world_size"] or not 0 <= state["iteration"] <= state["steps"]:
        raise ValueError(
            f"{state['iteration']} iterations of {state['steps']} steps on {len(state['ranks'])} ranks cannot be"
        )


def load_checkpoint(path: str | Path) -> tuple[Path, dict[str, Any]]:
    """Read a checkpoint file, or the newest valid one of a run or milestone folder.

    Returns:
        The path of the file and its content.

    Raises:
        CheckpointError: There is no valid checkpoint.
    """
    path = Path(path)
    if not path.exists():
        raise CheckpointError(f"{path}: no such checkpoint, run or milestone")
    if path.is_file():
        return path, _read(path)
    try:
        found = checkpoint.newest_good(path / "checkpoints" if (path / "checkpoints").is_dir() else path, _read_named)
    except CheckpointError as error:
        raise CheckpointError(f"{error}; {_instead(path) or 'start a new run'}") from error
    if found is None:
        raise CheckpointError("; ".join(filter(None, (f"{path}: holds no checkpoints", _instead(path)))))
    return found


def _instead(path: Path) -> str:
    """What a run has where its checkpoints are lost; empty without milestones."""
    folders = [m.folder for m in load_run(path).milestones if checkpoints(m.folder)]
    if not folders:
        return ""
    folders.sort(key=lambda folder: int(folder.name))
    names = ", ".join(f"{folder.parent.name}/{folder.name}" for folder in folders[-_NAMED:])
    few = f"milestones are {names}" if len(folders) <= _NAMED else f"{len(folders)} milestones end with {names}"
    return f"its {few}: --resume {folders[-1]}"


def load_weights(path: str | Path, inference: bool = False) -> Weights:
    """The weights of a checkpoint, of the newest good one of a run or milestone, or those that a run began with.

    Raises:
        CheckpointError: There are none, or they cannot be read.
    """
    path = Path(path)
    if (path / EXPORTED).is_file():
        path /= EXPORTED
    if path.name in (INITIAL, EXPORTED):
        return Weights(path, read_initial(path), inference)
    path, state = load_checkpoint(path)
    return Weights(path, state["agent"], inference)


def locate(flag: str, runs_dir: str | Path, name: str, bots: Sequence[str] = ()) -> Path:
    """The run of that name, or the path, or the agent of that name that comes with fabric-rl.

    Args:
        flag: What the message calls it.
        runs_dir: Folder that holds all runs.
        name: The name.
        bots: What else could have been meant.

    Raises:
        CheckpointError: There is none; the message names the flag, what there is, what is spelt alike, and where it
            looked. Or both a run and an exported agent in this folder have that name.
    """
    run, own = Path(runs_dir, name), Path(name)
    if run != own and run.is_dir() and any((own / file).is_file() for file in (EXPORTED, METADATA)):
        raise CheckpointError(
            f"{flag} {name}: {run} is a run and {own} an exported agent; say which: {run} or {own.absolute()}"
        )
    if run.is_dir():
        return run
    if own.exists():
        return own
    if own.name == name and (PRETRAINED / name / EXPORTED).is_file():
        return PRETRAINED / name
    said = f"{flag} {name}: no such checkpoint, run or milestone"
    run = own.parent if own.name == BEST else own
    if run != own and run.name and (Path(runs_dir, run).is_dir() or run.is_dir()):
        raise CheckpointError(
            f"{said}; {BEST}/ is kept by the callbacks Evaluation and MilestoneMatches once they play"
        )
    agents = sorted(file.parent.name for file in PRETRAINED.glob(f"*/{EXPORTED}"))
    near = did_you_mean(run.name, [*names_of_runs(runs_dir), *agents, *bots])
    known = [f"bots: {', '.join(bots)}"] if bots else []
    known += [f"agents that come along: {', '.join(agents)}", f"runs are looked for in {Path(runs_dir).absolute()}"]
    raise CheckpointError(f"{said}{near} ({'; '.join(known)})")


def _read(path: Path) -> dict[str, Any]:
    state = checkpoint.read(path)
    try:
        check_run_state(state)
    except ValueError as error:
        raise CheckpointError(f"checkpoint {path} is refused: it is not that of a run ({error})") from error
    return state


def _read_named(path: Path) -> dict[str, Any]:
    state = _read(path)
    if state["steps"] != steps_of(path):  # renamed: what is newest would be wrong
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
) -> Start | None:
    """Decides what `--resume` goes on from.

    In this order: the path or run id that was given (a run that was killed before its first checkpoint begins again);
    on a terminal, what the user chooses among the milestones that fit; the newest run whose newest good checkpoint fits
    (the newest one that does not is shown side by side, others are named); None (a new run).

    Args:
        runs_dir: Folder that holds all runs.
        run_id: `--run_id`.
        resume: `--resume`: True, or a path or run id.
        fingerprint: Makes the fingerprint of this environment and agent; only called if it is needed.

    Raises:
        CheckpointError: What was asked for cannot be read.
        FileNotFoundError: There is no such run.
        KeyboardInterrupt: The user wants to start nothing.
    """
    if isinstance(resume, str):
        path = locate("--resume", runs_dir, resume)
        return newest_of(Run(path)) if (path / "checkpoints").is_dir() else _going_back(path)
    if run_id is not None:
        return newest_of(Run.find(runs_dir, run_id))
    records = list_runs(runs_dir) if Path(runs_dir).is_dir() else []
    own = fingerprint() if records else {}
    if is_terminal(sys.stdin) and is_terminal(sys.stdout):
        offers, left_out = milestone_menu.fitting(records, own)
        milestone = milestone_menu.ask(offers, left_out) if offers else None
        if milestone is not None:
            return _going_back(milestone.folder)
    chosen: Start | None = None
    unfit: dict[str, dict[str, tuple[str, str]]] = {}
    for record in records:
        if not checkpoints(record.folder / "checkpoints"):
            continue  # has only played, or has failed
        try:
            path, state = load_checkpoint(record.folder)
        except CheckpointError as error:
            logger.info("--resume: run %s is left out: %s", record.name, error)
            continue
        problems = changed(state["fingerprint"], own, "nothing")
        if not problems:
            chosen = Start(Run(record.folder), path, state, going_on=True)
            break
        unfit[record.name] = problems
    _show_unfit(unfit)
    return chosen


def _show_unfit(unfit: dict[str, dict[str, tuple[str, str]]]) -> None:
    """Sets the first run, the newest, beside this one, and names others."""
    for name in list(unfit)[:1]:
        table = Table("", f"run {escape(name)}", "here", title=f"--resume: run {escape(name)} does not fit")
        for what, (there, here) in unfit[name].items():
            table.add_row(*map(Text, (what, there, here)))
        Console().print(table)
    if others := list(unfit)[1:]:
        names = ", ".join([*others[:_NAMED], *(["..."] if len(others) > _NAMED else [])])
        does = "more run does" if len(others) == 1 else "more runs do"
        logger.info("--resume: %s %s not fit: %s", len(others), does, names)


def newest_of(run: Run) -> Start:
    """Goes on from the run's newest good checkpoint, or from its beginning if it was killed before the first.

    Raises:
        CheckpointError: It has checkpoints, but none can be read.
    """
    if not checkpoints(run.checkpoints) and not any(run.milestones.glob("*/*")):
        return Start(run, going_on=True)
    return Start(run, *load_checkpoint(run.dir), going_on=True)


def _going_back(path: Path) -> Start:
    file, state = load_checkpoint(path)
    return Start(run_of(file), file, state, going_on=True)
