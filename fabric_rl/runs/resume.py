"""Finds what a run goes on from: a checkpoint that is asked for, chosen by hand, or the newest one that fits."""

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from pathlib import Path
from pkgutil import resolve_name
from typing import Annotated, Any, cast

from gymnasium.vector import VectorEnv
from lightning import Fabric
from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from fabric_rl.args import MOST_THREADS
from fabric_rl.base.settings import Between, changed, check_value
from fabric_rl.base.state_schema import check_like
from fabric_rl.base.tables import figure_text, table, when_text
from fabric_rl.base.text import did_you_mean
from fabric_rl.import_names import class_path
from fabric_rl.metrics.log import EventLog, is_terminal, logger
from fabric_rl.ranks.sharding import class_of
from fabric_rl.runs import checkpoint
from fabric_rl.runs.folder import Run
from fabric_rl.runs.provenance import EXPORTED, INITIAL, METADATA, Weights, read_initial
from fabric_rl.runs.records import BEST, Milestone, RunRecord, checkpoints, list_runs, load_run, names_of_runs, steps_of
from fabric_rl.types import ActorCritic, AgentFactory, CheckpointError, EnvFactory

PRETRAINED = Path(__file__).parents[1] / "pretrained"
"""Agents that come with fabric-rl."""
_NAMED = 3
"""How many runs or milestones a message names."""
_EXAMPLE: dict[str, Any] = {
    **{name: {} for name in ("agent", "fingerprint", "metrics", "optimizer", "precision", "seconds")},
    **{name: [] for name in ("callback_names", "callbacks", "ranks")},
    **{name: 0 for name in ("iteration", "steps", "world_size")},
    "exact": True,
    "kl_adaptive": None,
}
"""What the checkpoint of any run holds. Older ones lack what has been added since."""
MOST_SHOWN = 20
"""Milestones that are offered by number."""


def fingerprint(envs: VectorEnv, agent: ActorCritic) -> dict[str, str]:
    """What a run's environment and agent are for a checkpoint: name -> text."""
    weights, kind = agent.state_dict(), class_of(agent)
    shapes = ", ".join(f"{name} {list(tensor.shape)}" for name, tensor in weights.items())
    return {
        "observations": str(envs.single_observation_space),
        "actions": str(envs.single_action_space),
        "agent": class_path(kind),
        "networks": f"{sum(t.numel() for t in weights.values()):,} numbers, {sha256(shapes.encode()).hexdigest()[:8]}",
    } | {name: str(text) for name, text in getattr(envs, "layout", {}).items()}


def fingerprint_of(env: EnvFactory, agent: AgentFactory, seed: int) -> dict[str, str]:
    """The fingerprint of an environment and an agent that are built for it and thrown away."""
    envs = env(seed=seed)
    try:
        module = agent(envs.single_observation_space, envs.single_action_space)
        return fingerprint(envs, cast(ActorCritic, module))
    finally:
        envs.close()


def check_fits(theirs: Mapping[str, str], own: Mapping[str, str]) -> None:
    """Raises CheckpointError where fingerprints differ, but for the networks: of those `check_weights` says more."""
    differ = changed(theirs, own, "nothing")
    differ.pop("networks", None)
    if differ:
        lines = (f"{name} {there} there, {here} here" for name, (there, here) in differ.items())
        raise CheckpointError(f"the checkpoint does not fit --env and --agent: {'; '.join(lines)}")


def other_world(theirs: Mapping[str, Any], own: Mapping[str, Any]) -> str:
    """Settings on which the spaces depend where they differ, as `--flag theirs (yours: own), ...`; empty if none does.

    Args:
        theirs: Settings of another run, see `provenance.flat_settings`.
        own: Of this one.
    """
    (there, kind), (here, own_kind) = _world(theirs), _world(own)
    apart = {}
    if kind != own_kind:
        apart["--env_id" if theirs.get("env_id") else "--env"] = (kind, own_kind)
    else:
        names: tuple[str, ...] = ()
        with suppress(AttributeError, ImportError, ValueError):  # an env_id; a class that is nowhere to be found
            names = getattr(resolve_name(str(kind)), "gives_spaces", ())
        for name in (name for name in there if name in here and name.split(".")[0] in names):
            inside = any(f"--env.{name}".startswith(f"{other}.") for other in apart)  # settings of another class
            if there[name] != here[name] and not inside:
                apart[f"--env.{name}"] = (there[name], here[name])
    said = (
        f"{flag} {'null' if x is None else x} (yours: {'the default' if y is None else y})"
        for flag, (x, y) in apart.items()
    )
    return ", ".join(said)


def _world(settings: Mapping[str, Any]) -> tuple[dict[str, Any], Any]:
    """Settings of the environment, or of the one that it is a factory's copies of, by their names in it; its class."""
    prefix = "env."
    while f"{prefix}factory.class_path" in settings:
        prefix += "factory."
    names = [name for name in settings if name.startswith(prefix)]
    inner = {name.removeprefix(prefix).removesuffix(".class_path"): settings[name] for name in names}
    return inner, settings.get("env_id") or inner.get("class_path")


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


def check_run_state(state: Mapping[str, Any]) -> None:
    """Raises ValueError, one line, unless this is the state of a run, whatever its environment and agent are."""
    if missing := [name for name in _EXAMPLE if name not in state]:
        raise ValueError(f"it lacks {', '.join(missing[:3])}")
    for name, example in _EXAMPLE.items():
        check_like(state[name], example, name)
    check_value("num_threads", state.get("num_threads", 1), Annotated[int, Between(1, MOST_THREADS)])  # torch crashes
    check_value("num_players", state.get("num_players", 0), Annotated[int, Between(0, state["world_size"])])
    if len(state["callbacks"]) != len(state["callback_names"]):
        raise ValueError(f"{len(state['callback_names'])} callbacks with {len(state['callbacks'])} states cannot be")
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
    """Names the milestones of a run whose checkpoints are lost; empty without any."""
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
        offers, left_out = milestones_that_fit(records, own)
        milestone = ask_for_milestone(offers, left_out) if offers else None
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


@dataclass(frozen=True)
class Offer:
    """A milestone that fits."""

    run: str
    milestone: Milestone
    written: datetime
    """Local time."""


def milestones_that_fit(records: Sequence[RunRecord], own: dict[str, str]) -> tuple[list[Offer], int]:
    """The milestones of all runs that fit an environment and an agent.

    Args:
        records: The runs.
        own: The fingerprint of environment and agent, see `fabric_rl.runs.resume.fingerprint`.

    Returns:
        Those that fit, the newest first, and how many do not (or cannot be read).
    """
    offers, left_out = [], 0
    for record in records:
        for milestone, fingerprint in _fingerprints(record):
            if fingerprint == own:
                time = milestone.timestamp or datetime.fromtimestamp(milestone.folder.stat().st_mtime)
                offers.append(Offer(record.name, milestone, time))
            else:
                left_out += 1
    return sorted(offers, key=lambda offer: (offer.written, offer.milestone.steps), reverse=True), left_out


def ask_for_milestone(offers: Sequence[Offer], left_out: int) -> Milestone | None:
    """Shows the newest milestones and asks for one; None for the latest checkpoint instead.

    Raises:
        KeyboardInterrupt: Ctrl+C or Ctrl+D: nothing is to be started.
    """
    console = Console()
    shown = offers[:MOST_SHOWN]
    console.print(_menu(shown))
    if len(offers) > len(shown):
        console.print(f"and {len(offers) - len(shown)} older ones: --resume RUNS_DIR/RUN/milestones/PHASE/STEPS")
    if left_out:
        console.print(f"{left_out} of other environments or agents are left out")
    try:
        while True:
            answer = console.input("Go on from which milestone? Enter for the latest checkpoint: ").strip()
            if not answer:
                return None
            if answer.isdecimal() and 1 <= int(answer) <= len(shown):
                return shown[int(answer) - 1].milestone
            console.print(f"a number from 1 to {len(shown)}, please")
    except (EOFError, KeyboardInterrupt):
        console.print("\nnothing is started")
        raise KeyboardInterrupt from None


def _menu(offers: Sequence[Offer]) -> Table:
    rated = any(offer.milestone.rating is not None for offer in offers)
    rows = []
    for number, offer in enumerate(offers, start=1):
        milestone = offer.milestone
        figures = map(figure_text, [milestone.mean_reward, *[milestone.rating] * rated])
        about = [str(number), offer.run, milestone.phase, f"{milestone.steps:,}"]
        rows.append([*about, *figures, when_text(offer.written)])
    return table("", [">", "run", "phase", ">steps", ">return", *[">rating"] * rated, "date"], rows)


def _fingerprints(record: RunRecord) -> Iterator[tuple[Milestone, dict[str, str] | None]]:
    """The milestones of a run that hold a checkpoint, the newest first, with their fingerprints.

    Old ones do not tell theirs in `meta.json`. All of a run are the same, so that one of its files, which may be
    large, is enough.
    """
    of_run: dict[str, str] | None = None
    for milestone in sorted(record.milestones, key=lambda milestone: milestone.steps, reverse=True):
        files = checkpoints(milestone.folder)
        if not files:
            continue
        fingerprint = milestone.fingerprint
        if fingerprint is None:
            if of_run is None:
                try:
                    of_run = checkpoint.read(files[-1]).get("fingerprint")
                except CheckpointError:
                    of_run = None  # damaged; the next one may be good
            fingerprint = of_run
        yield milestone, fingerprint
