"""Start of a run: `open_run` chooses new weights, another run's weights, or a checkpoint, and cleans up after failure.

The path of `--resume`: `resume_choice` finds the checkpoint, `fabric_rl.runs.checkpoint` reads it, and `Session.begin`
restores it.
"""

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from hashlib import sha256
from pathlib import Path
from pkgutil import resolve_name
from typing import Any, cast

import gymnasium
import yaml
from gymnasium.vector import VectorEnv
from lightning import Fabric
from rich.console import Console

from fabric_rl.args import StartArgs, TrainArgs
from fabric_rl.base.argv import PRETRAINED
from fabric_rl.base.config_files import read_yaml
from fabric_rl.base.messages import USER_ERRORS
from fabric_rl.base.settings import changed
from fabric_rl.base.tables import format_number, format_time, table
from fabric_rl.base.text import did_you_mean
from fabric_rl.import_names import class_path
from fabric_rl.metrics.log import BufferedLog, is_terminal, log_warnings, logger
from fabric_rl.ranks import launched_by
from fabric_rl.ranks.processes import LostRankError, describe_lost_rank
from fabric_rl.ranks.sharding import unsharded_class
from fabric_rl.runs import checkpoint
from fabric_rl.runs.checkpoint import load_checkpoint
from fabric_rl.runs.folder import Run
from fabric_rl.runs.provenance import EXPORTED, INITIAL, METADATA, Weights, find_config, read_initial
from fabric_rl.runs.records import (
    BEST,
    Milestone,
    RunRecord,
    flat_settings,
    list_checkpoints,
    list_runs,
    load_run,
    run_names,
)
from fabric_rl.types import ActorCritic, AgentFactory, CheckpointError, EnvFactory, SettingError

MOST_SHOWN = 20
"""Maximum number of milestones in the menu."""
OF_NETWORKS = (
    *("actor_hidden_sizes", "critic_hidden_sizes", "hidden_sizes", "entry_sizes", "shared_trunk", "activation"),
    *("layer_norm", "normalize_obs", "clip_obs", "state_dependent_std", "squash", "encoder", "channels_first"),
    *("memory_size", "cell", "embed_size", "num_heads", "num_layers", "present_column"),
)
"""Settings of agents that determine their networks."""
_NAMED = 3
"""Maximum number of runs named in a message."""


@dataclass
class Start:
    """A starting run, and what it starts from: new weights, another run's weights, or its own checkpoint.

    On ranks other than 0, it is empty until `share` is called.
    """

    run: Run | None = None
    """The run folder; None on a rank that was started by a later call of `main`."""
    path: Path | None = None
    """The checkpoint file to resume from."""
    state: dict[str, Any] | None = None
    """The content of the checkpoint file."""
    weights: Weights | None = None
    """The weights of another run to begin with."""
    trained_with: str = ""
    """First words of the error if those weights do not fit: settings of the other run that differ and that shape its
    spaces."""
    how: str = ""
    """How a run without learning acts, for messages."""
    going_on: bool = False
    """True if the run in this folder is resumed; if it has no checkpoint, it starts again."""
    training: bool = False
    """True once everything is built and restored, right before the first rollout."""
    log: BufferedLog | None = None
    """The log messages so far, for `log.txt`."""

    @property
    def steps(self) -> int | None:
        """Agent-steps done by a resumed run; None for a new one."""
        return (self.state["steps"] if self.state else 0) if self.going_on else None

    def share(self, fabric: Fabric) -> None:
        """Send the values of rank 0 to all ranks, and open the log; every rank calls it."""
        if self.run is not None and self.log is not None:
            self.log.open(self.run.dir / "log.txt")
        folder = None if self.run is None else self.run.dir
        known = fabric.broadcast((folder, self.state, self.weights, self.trained_with))
        folder, self.state, self.weights, self.trained_with = known
        if self.run is None and folder is not None:
            self.run = Run(folder)

    def weights_to_load(self) -> dict[str, Any] | None:
        """Return the weights in the form that `train` expects; None for new ones."""
        if self.weights is None:
            return None
        return {"agent": self.weights.agent, "trained_with": self.trained_with}


@contextmanager
def open_run(
    env: EnvFactory, agent: AgentFactory, args: TrainArgs, start: StartArgs, config: str | None
) -> Iterator[Start]:
    """Choose or create the folder of a run, on rank 0, and lock it while the block trains.

    To find a run that fits, the environment and the agent are built once. `config` contains all settings as YAML.

    Raises:
        LostRankError: Another rank has died.
        RuntimeError: Training stopped with an exception that, before training, would count as a mistake of the user.
        BaseException: Any other exception of the block. The folder of a new run that has not begun is deleted.
    """
    opened, first = Start(), launched_by.is_rank_0()
    try:
        with log_warnings(), BufferedLog() as log:
            if first:
                opened = _choose(env, agent, args, start, config)
                opened.log = log
                sampled = "sampled actions (--deterministic takes the most probable ones)"
                kind = "the most probable actions" if start.deterministic else sampled
                opened.how = f", without learning, with {kind}" if start.inference else ""
            yield opened
    except BaseException as error:
        if first:
            _clean_up(opened)
        meant = _as_user_error(error, opened)
        if meant is error:
            raise
        raise meant from error
    finally:
        if first and opened.run is not None:
            opened.run.release()


def _choose(env: EnvFactory, agent: AgentFactory, args: TrainArgs, start: StartArgs, config: str | None) -> Start:
    """Find or create the run folder, and read the checkpoint or the weights to begin with.

    `initialize_from` is only used if no run is resumed.
    """
    if not start.inference and (folder := launched_by.run_before_restart()) is not None:
        launched = launched_by.detect_launcher()
        counts = (launched.restarts, launched.most_restarts)
        logger.info("torchrun has restarted the ranks of run %s (restart %s of at most %s)", folder.name, *counts)
        return _claim(latest_start(Run(folder)))
    if start.resume:
        own = partial(build_fingerprint, env, agent, args.seed)
        chosen = resume_choice(start.runs_dir, start.run_id, start.resume, own)
        if chosen is not None:
            return _play(chosen, start, config) if start.inference else _claim(chosen)
        if start.inference and start.initialize_from is None:
            raise CheckpointError(f"--inference: {start.runs_dir} contains no run that fits --env and --agent")
        logger.info("--resume: %s contains no run that fits --env and --agent; starting a new one", start.runs_dir)
    weights, trained_with = None, ""
    if start.initialize_from is not None:
        path = resolve_checkpoint_path("--initialize_from", start.runs_dir, start.initialize_from)
        weights = replace(load_weights(path), inference=start.inference, deterministic=start.deterministic)
        if config is not None:
            trained_with = _trained_with(start.initialize_from, weights.path, config)
    run = Run.create(start.runs_dir, start.run_id, start.force, weights, config)
    if not start.inference:
        launched_by.remember_run(run.dir)
    return Start(run, weights=weights, trained_with=trained_with)


def _claim(start: Start) -> Start:
    """Lock the run to resume; if it has no checkpoint, it starts again with the same weights."""
    run = start.run
    assert run is not None
    run.check_writable()
    run.claim()
    if start.state is None:
        start.weights = run.provenance.weights()
    launched_by.remember_run(run.dir)
    return start


def _play(other: Start, start: StartArgs, config: str | None) -> Start:
    """Create a new run that plays with the weights of another run."""
    assert other.run is not None
    if other.state is None or other.path is None:
        other.run.provenance.weights()  # raises a better message if that run only played, too
        raise CheckpointError(f"--inference: {other.run.dir} contains no checkpoints to play with")
    weights = Weights(other.path, other.state["agent"], inference=True, deterministic=start.deterministic)
    return Start(Run.create(start.runs_dir, weights=weights, config=config), weights=weights)


def _trained_with(name: str, weights: Path, config: str) -> str:
    """Return an explanation of why another run's weights may not fit; empty if its settings give none."""
    try:
        theirs = flat_settings(read_yaml(find_config(weights)))
    except (OSError, ValueError):
        return ""
    own = flat_settings(yaml.safe_load(config))
    networks = [each for each in theirs if each.removeprefix("agent.") in OF_NETWORKS and each in own]
    unlike = [f"--{each} {theirs[each]} (yours: {own[each]})" for each in networks if theirs[each] != own[each]]
    differ = ", ".join(filter(None, [describe_env_differences(theirs, own), *unlike]))
    return f"--initialize_from {name} was trained with {differ}; set these, or omit the flag" if differ else ""


def _clean_up(failed: Start) -> None:
    """Remove the folder of a new run that has not begun; after a restart by torchrun, another one is created."""
    if failed.run is None or failed.going_on:
        return
    if not failed.training:
        failed.run.discard_if_empty()
    if not failed.training or not failed.run.dir.exists():
        launched_by.forget_run()


def _as_user_error(error: BaseException, failed: Start) -> BaseException:
    """Return the error itself, or an error that tells the user what it means."""
    training, run = failed.training, failed.run
    if lost := describe_lost_rank(error):
        what_next = "start the run again"
        if launched_by.detect_launcher().restarts < launched_by.detect_launcher().most_restarts:
            what_next = "torchrun restarts all ranks"
        elif training and run is not None:
            what_next = f"continue from the last checkpoint with --run_id {run.name} --resume"
        return LostRankError(f"{lost}; {what_next}")
    if training and isinstance(error, SystemExit) and not error.code:  # would look like success
        return RuntimeError("training stopped: something called sys.exit()")
    mistake = isinstance(error, (*USER_ERRORS, gymnasium.error.Error)) and not isinstance(error, SettingError)
    # During training, no flag is at fault, and the traceback matters.
    return RuntimeError(f"training stopped: {error}") if training and mistake else error


# ---------------------------------------------------------------- the run or file of --resume and --initialize_from


def resume_choice(
    runs_dir: str | Path, run_id: str | None, resume: str | bool, fingerprint: Callable[[], dict[str, str]]
) -> Start | None:
    """Choose the checkpoint that `--resume` resumes.

    It is the first of these: the checkpoint of the given path or run id (a run that was killed before its first
    checkpoint starts again); on a terminal, the user's choice among the milestones that fit; the newest valid
    checkpoint, or else milestone, of the newest run for which it fits (of the runs that do not fit, the newest is
    compared side by side, and the others are named); None (a new run).

    Args:
        runs_dir: Folder that contains all runs.
        run_id: `--run_id`.
        resume: `--resume`: True, or a path or run id.
        fingerprint: Function that returns the fingerprint of this environment and agent; only called if needed.

    Raises:
        CheckpointError: The requested checkpoint cannot be read.
        FileNotFoundError: There is no such run.
        KeyboardInterrupt: The user cancelled the menu.
    """
    if isinstance(resume, str):
        path = resolve_checkpoint_path("--resume", runs_dir, resume)
        return latest_start(Run(path)) if (path / "checkpoints").is_dir() else _start_from(path)
    if run_id is not None:
        return latest_start(Run.find(runs_dir, run_id))
    records = list_runs(runs_dir) if Path(runs_dir).is_dir() else []
    own = fingerprint() if records else {}
    if is_terminal(sys.stdin) and is_terminal(sys.stdout):
        milestones, left_out = milestones_that_fit(records, own)
        milestone = ask_for_milestone(milestones, left_out) if milestones else None
        if milestone is not None:
            return _start_from(milestone.folder)
    chosen: Start | None = None
    unfit: dict[str, dict[str, tuple[str, str]]] = {}
    for record in records:
        try:
            start = latest_start(Run(record.folder))
        except CheckpointError as error:
            logger.info("--resume: skipping run %s: %s", record.name, error)
            continue
        if start.state is None:
            continue  # has only played, or has failed
        problems = changed(start.state["fingerprint"], own, "nothing")
        if not problems:
            chosen = start
            break
        unfit[record.name] = problems
    _show_unfit(unfit)
    return chosen


def _show_unfit(unfit: dict[str, dict[str, tuple[str, str]]]) -> None:
    """Compare the newest unfit run side by side with this one, and name the others."""
    for name in list(unfit)[:1]:
        rows = [(what, *both) for what, both in unfit[name].items()]
        Console().print(table(f"--resume: run {name} does not fit", ["", f"run {name}", "here"], rows))
    if others := list(unfit)[1:]:
        names = ", ".join([*others[:_NAMED], *(["..."] if len(others) > _NAMED else [])])
        does = "more run does" if len(others) == 1 else "more runs do"
        logger.info("--resume: %s %s not fit: %s", len(others), does, names)


def latest_start(run: Run) -> Start:
    """Return a start from the newest valid checkpoint of a run, else its newest milestone, else its beginning.

    Raises:
        CheckpointError: The run has checkpoints or milestones, but the newest cannot be read.
    """
    if list_checkpoints(run.checkpoints):
        return Start(run, *load_checkpoint(run.dir), going_on=True)
    milestones = load_run(run.dir).milestones
    if not milestones:
        return Start(run, going_on=True)
    newest = max(milestones, key=lambda milestone: milestone.steps)
    return Start(run, *load_checkpoint(newest.folder), going_on=True)


def _start_from(path: Path) -> Start:
    file, state = load_checkpoint(path)
    return Start(owning_run(file), file, state, going_on=True)


def owning_run(path: Path) -> Run:
    """Return the run that a checkpoint, milestone or run folder belongs to; raise a CheckpointError if it has none."""
    path = path.absolute()
    for folder in (path, *path.parents):
        if (folder / "checkpoints").is_dir():
            return Run(folder)
    raise CheckpointError(f"{path} is not in a run folder; start a new run from it with --initialize_from {path}")


def load_weights(path: str | Path) -> Weights:
    """Read the weights of a checkpoint, run, milestone or exported agent, or those that a run began with.

    Raises:
        CheckpointError: There are none, or they cannot be read.
    """
    path = Path(path)
    if (path / EXPORTED).is_file():
        path /= EXPORTED
    if path.name in (INITIAL, EXPORTED):
        return Weights(path, read_initial(path))
    path, state = load_checkpoint(path)
    return Weights(path, state["agent"])


def resolve_checkpoint_path(flag: str, runs_dir: str | Path, name: str, bots: Sequence[str] = ()) -> Path:
    """Return the path of a run (by name), of a file or folder (by path), or of an included agent (by name).

    Args:
        flag: Flag for error messages.
        runs_dir: Folder that contains all runs.
        name: Name or path.
        bots: Other valid names, for the hint in the error.

    Raises:
        CheckpointError: Nothing has that name (the message names the flag, similar names, and the folder that was
            searched), or both a run and an exported agent in the current folder have it.
    """
    run, own = Path(runs_dir, name), Path(name)
    if run != own and run.is_dir() and any((own / file).is_file() for file in (EXPORTED, METADATA)):
        raise CheckpointError(
            f"{flag} {name}: {run} is a run and {own} is an exported agent; pass the path: {run} or {own.absolute()}"
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
        raise CheckpointError(f"{said}; {BEST}/ exists once the callbacks Evaluation or MilestoneMatches have played")
    agents = sorted(file.parent.name for file in PRETRAINED.glob(f"*/{EXPORTED}"))
    near = did_you_mean(run.name, [*run_names(runs_dir), *agents, *bots])
    known = [f"bots: {', '.join(bots)}"] if bots else []
    known += [f"included agents: {', '.join(agents)}", f"runs are searched for in {Path(runs_dir).absolute()}"]
    raise CheckpointError(f"{said}{near} ({'; '.join(known)})")


# ---------------------------------------------------------------- does it fit this environment and agent?


def fingerprint(envs: VectorEnv, agent: ActorCritic) -> dict[str, str]:
    """Describe the environment and the agent, as far as a checkpoint depends on them, as name -> text."""
    weights, kind = agent.state_dict(), unsharded_class(agent)
    shapes = ", ".join(f"{name} {list(tensor.shape)}" for name, tensor in weights.items())
    return {
        "observations": str(envs.single_observation_space),
        "actions": str(envs.single_action_space),
        "agent": class_path(kind),
        "networks": f"{sum(t.numel() for t in weights.values()):,} numbers, {sha256(shapes.encode()).hexdigest()[:8]}",
    } | {name: str(text) for name, text in getattr(envs, "layout", {}).items()}


def build_fingerprint(env: EnvFactory, agent: AgentFactory, seed: int) -> dict[str, str]:
    """Return the fingerprint of an environment and an agent that are built only for it."""
    envs = env(seed=seed)
    try:
        module = agent(envs.single_observation_space, envs.single_action_space)
        return fingerprint(envs, cast(ActorCritic, module))
    finally:
        envs.close()


def check_fingerprint(theirs: Mapping[str, str], own: Mapping[str, str]) -> None:
    """Raise CheckpointError if fingerprints differ, except for the networks: `check_weights` says more about those."""
    differ = changed(theirs, own, "nothing")
    differ.pop("networks", None)
    if differ:
        lines = (f"{name} {there} in the checkpoint, {here} here" for name, (there, here) in differ.items())
        raise CheckpointError(f"the checkpoint does not fit --env and --agent: {'; '.join(lines)}")


def describe_env_differences(theirs: Mapping[str, Any], own: Mapping[str, Any]) -> str:
    """Return the differing settings that shape the spaces, as `--flag theirs (yours: own), ...`; empty if none differ.

    Args:
        theirs: Settings of another run, see `provenance.flat_settings`.
        own: Settings of this run.
    """
    (there, kind), (here, own_kind) = _env_settings(theirs), _env_settings(own)
    differ = {}
    if kind != own_kind:
        differ["--env_id" if theirs.get("env_id") else "--env"] = (kind, own_kind)
    else:
        names: tuple[str, ...] = ()
        with suppress(AttributeError, ImportError, ValueError):  # an env_id, or a class that is missing here
            names = getattr(resolve_name(str(kind)), "gives_spaces", ())
        for name in (name for name in there if name in here and name.split(".")[0] in names):
            inside = any(f"--env.{name}".startswith(f"{other}.") for other in differ)  # settings of another class
            if there[name] != here[name] and not inside:
                differ[f"--env.{name}"] = (there[name], here[name])
    return ", ".join(
        f"{flag} {'null' if x is None else x} (yours: {'the default' if y is None else y})"
        for flag, (x, y) in differ.items()
    )


def _env_settings(settings: Mapping[str, Any]) -> tuple[dict[str, Any], Any]:
    """Return the settings of the environment by name, inside any wrapping factories, and its class or id."""
    prefix = "env."
    while f"{prefix}factory.class_path" in settings:
        prefix += "factory."
    names = [name for name in settings if name.startswith(prefix)]
    inner = {name.removeprefix(prefix).removesuffix(".class_path"): settings[name] for name in names}
    return inner, settings.get("env_id") or inner.get("class_path")


# ---------------------------------------------------------------- the menu of milestones


def milestones_that_fit(records: Sequence[RunRecord], own: dict[str, str]) -> tuple[list[Milestone], int]:
    """Find the milestones of all runs with the fingerprint `own`.

    Returns:
        The milestones that fit, newest first, and the number of others, which do not fit or cannot be read.
    """
    known = [pair for record in records for pair in _fingerprints(record)]
    fitting = [milestone for milestone, fingerprint in known if fingerprint == own]
    fitting.sort(key=lambda milestone: (milestone.written, milestone.steps), reverse=True)
    return fitting, len(known) - len(fitting)


def _fingerprints(record: RunRecord) -> Iterator[tuple[Milestone, dict[str, str] | None]]:
    """Yield the milestones of a run that contain a checkpoint, newest first, with their fingerprints.

    Old milestones have no fingerprint in `meta.json`. All milestones of a run have the same one, so only one of their
    checkpoints, which may be large, is read.
    """
    of_run: dict[str, str] | None = None
    for milestone in sorted(record.milestones, key=lambda milestone: milestone.steps, reverse=True):
        files = list_checkpoints(milestone.folder)
        if files and milestone.fingerprint is None and of_run is None:
            with suppress(CheckpointError):  # damaged; the next one may be good
                of_run = checkpoint.read(files[-1]).get("fingerprint")
        if files:
            yield milestone, milestone.fingerprint or of_run


def ask_for_milestone(milestones: Sequence[Milestone], left_out: int) -> Milestone | None:
    """Show the newest milestones and ask for one; return None for the latest checkpoint instead.

    Raises:
        KeyboardInterrupt: The user pressed Ctrl+C or Ctrl+D, so nothing is started.
    """
    console = Console()
    shown = milestones[:MOST_SHOWN]
    rated = any(each.rating is not None for each in shown)
    rows = []
    for number, each in enumerate(shown, start=1):
        figures = map(format_number, [each.mean_reward, *[each.rating] * rated])
        rows.append([str(number), each.run_id, each.phase, f"{each.steps:,}", *figures, format_time(each.written)])
    console.print(table("", [">", "run", "phase", ">steps", ">return", *[">rating"] * rated, "date"], rows))
    if len(milestones) > len(shown):
        console.print(f"and {len(milestones) - len(shown)} older ones: --resume RUNS_DIR/RUN/milestones/PHASE/STEPS")
    if left_out:
        console.print(f"not shown: {left_out} of other environments or agents")
    try:
        while True:
            answer = console.input("Resume from which milestone? Press Enter for the latest checkpoint: ").strip()
            if not answer:
                return None
            if answer.isdecimal() and 1 <= int(answer) <= len(shown):
                return shown[int(answer) - 1]
            console.print(f"enter a number from 1 to {len(shown)}")
    except (EOFError, KeyboardInterrupt):
        console.print("\nnothing was started")
        raise KeyboardInterrupt from None
