"""How a run starts: new, with another one's weights, or where it was left; and what is left of one that never does."""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium
import torch
import yaml
from lightning import Fabric
from lightning.fabric.loggers.logger import Logger
from lightning.fabric.loggers.tensorboard import TensorBoardLogger

from fabric_rl.args import StartArgs, TrainArgs
from fabric_rl.base.config_files import read_yaml
from fabric_rl.base.messages import MISTAKES
from fabric_rl.callback import Callback, TrainState
from fabric_rl.metrics.log import EventLog, logger, warnings_are_events
from fabric_rl.metrics.loggers import wait_for_a_later_name
from fabric_rl.metrics.metrics_csv import MetricsFile
from fabric_rl.metrics.settings import log_outcome, log_settings
from fabric_rl.ranks import launch
from fabric_rl.ranks.lost import LostRankError, lost_rank
from fabric_rl.runs.fingerprint import fingerprint_of, other_world
from fabric_rl.runs.folder import Run
from fabric_rl.runs.provenance import Weights, flat_settings
from fabric_rl.runs.resume import Choice, load_weights, locate, newest_of, resume_choice
from fabric_rl.runs.trained import config_of
from fabric_rl.types import AgentFactory, CheckpointError, EnvFactory, HasSeeds, SettingError

_THREADS = re.compile(r"^num_threads:", re.MULTILINE)
_FAR_BEYOND = 1.05


@dataclass(frozen=True)
class Start:
    """How a run starts."""

    run: Run
    resume: dict[str, Any] | None = None
    """The checkpoint to go on from."""
    path: Path | None = None
    """Its file."""
    weights: Weights | None = None
    """Those of another run to begin with."""
    trained_with: str = ""
    """What is said if they do not fit: settings of that run on which its spaces depend, and that differ."""
    going_on: bool = False
    """Whether the run of this folder goes on; without a checkpoint it begins again."""

    @property
    def steps(self) -> int | None:
        """Agent-steps after which the run goes on; None for a new one."""
        return (self.resume["steps"] if self.resume else 0) if self.going_on else None


class StartedRun(Callback):
    """A run from the choice of its folder to the end of its training, on every rank.

    As a callback it says how the run starts once everything is built and restored, and keeps its settings.

    Attributes:
        run: Its folder; None on other ranks than 0 before `share`, and on a rank that a later call has started.
        resume: The checkpoint to go on from, as `train` takes it; after `share`.
        weights: Likewise the weights to begin with.
        training: Whether all was well until the first rollout.
        hardware: What the run has, to be said at its start.
    """

    def __init__(self, start: Start | None, args: TrainArgs, config: str | None, log: EventLog) -> None:
        """Keeps what is to be said on rank 0.

        Args:
            start: How the run starts; None on other ranks.
            args: Its settings.
            config: All settings as YAML.
            log: What happens, for the run's folder.
        """
        self.run = start.run if start else None
        self.resume: dict[str, Any] | None = None
        self.weights: dict[str, Any] | None = None
        self.training, self.hardware, self._has_steps_left = False, "", True
        self._start, self._args, self._config, self._log = start, args, config, log
        self._settings = flat_settings(yaml.safe_load(config)) if config else {}

    def loggers(self, given: Logger | list[Logger] | None) -> list[Logger]:
        """The user's loggers or TensorBoard's, and the one that writes `metrics.csv`; none on other ranks than 0.

        The last two forget what a run that goes on had logged after its checkpoint.
        """
        if self._start is None:
            return []
        folder, steps = self._start.run.dir, self._start.steps
        if steps and (self._start.resume or {}).get("unpublished"):  # what its last row had will be in a later one
            steps -= 1
        table = MetricsFile(folder, until=steps)
        if given is not None:
            return [*(given if isinstance(given, list) else [given]), table]
        purge: dict[str, Any] = {} if steps is None else {"purge_step": steps + 1}
        wait_for_a_later_name(folder / "tensorboard")
        return [TensorBoardLogger(folder, name="tensorboard", version="", **purge), table]

    def share(self, fabric: Fabric) -> None:
        """Tells all ranks what rank 0 knows, and opens the log; every rank calls it."""
        start = self._start
        if start is not None:
            self._log.open(start.run.dir / "log.txt")
        resume = start.resume if start else None
        weights = None
        if start and start.weights:
            weights = {"agent": start.weights.agent, "trained_with": start.trained_with}
        folder = fabric.broadcast(str(self.run.dir) if self.run else "")
        self.run = self.run or (Run(Path(folder)) if folder else None)
        self.resume, self.weights = fabric.broadcast((resume, weights))

    def on_train_start(self, state: TrainState) -> None:
        """Says it, and makes the folder that of this run."""
        self.training = True
        start = self._start
        if start is None:
            return
        if self._config is not None and not _THREADS.search(self._config):
            self._config += f"num_threads: {torch.get_num_threads()}\n"  # a default that depends on the machine
            self._settings["num_threads"] = torch.get_num_threads()
        config, provenance = self._config, start.run.provenance
        changes = provenance.changed_settings(config) if config is not None and start.going_on else []
        lines = [*_how_it_starts(start, self._args, changes), self.hardware, *_rounded_up(state)]
        self._has_steps_left = start.steps is None or start.steps < self._args.total_timesteps
        if self._has_steps_left:
            if start.resume is not None and start.path is not None:
                moved = start.run.go_on_from(start.path, start.resume)
                if moved:
                    lines.append(f"newer checkpoints: {moved} moved to {start.run.checkpoints / 'set_aside'}")
            provenance.write(config, _ranks_and_seeds(state))
            start.run.replace()
            log_settings(state.fabric.loggers, self._settings, changes, state.steps)
        for line in lines:
            logger.info("%s", line)

    def on_train_end(self, state: TrainState) -> None:
        """Tells the loggers what has become of the settings."""
        if self._start is not None and self._has_steps_left:
            log_outcome(state.fabric.loggers, self._settings, self._start.run.read_summary(), state.steps)

    def give_up(self, error: BaseException) -> BaseException:
        """Removes a new run that has not begun; returns what is to be raised for the error that has ended it."""
        run = self.run
        if run is not None and self._start is not None and not self._start.going_on:
            if not self.training:
                run.discard_if_empty()
            if not (self.training and run.dir.exists()):
                launch.forget_run()
        if lost := lost_rank(error):
            what_next = "start again"
            if launch.restarts_left():
                what_next = "torchrun starts all ranks again"
            elif self.training and run is not None:
                what_next = f"go on from the last checkpoint with --run_id {run.name} --resume"
            return LostRankError(f"{lost}; {what_next}")
        if self.training and isinstance(error, SystemExit) and not error.code:  # of a part, as if all were well
            return RuntimeError("training stopped: something in it has called sys.exit()")
        of_a_flag = isinstance(error, SettingError)
        if self.training and not of_a_flag and isinstance(error, (*MISTAKES, gymnasium.error.Error)):
            return RuntimeError(f"training stopped: {error}")  # no flag's fault: the traceback matters
        return error


@contextmanager
def started_run(
    env: EnvFactory, agent: AgentFactory, args: TrainArgs, start: StartArgs, config: str | None
) -> Iterator[StartedRun]:
    """Chooses or makes the folder of a run, on rank 0, and holds it while the block trains.

    Args:
        env: Builds the environment, for the choice of a run that fits.
        agent: Builds the agent, likewise.
        args: Settings of the training loop.
        start: How the run starts.
        config: All settings as YAML.

    Raises:
        LostRankError: Another rank is gone.
        RuntimeError: In place of what would be a user's mistake before training.
        BaseException: What the block raises; a new run that it has not begun leaves no folder.
    """
    started: StartedRun | None = None
    try:
        with warnings_are_events(), EventLog() as log:
            chosen = _choose(env, agent, args, start, config) if launch.is_rank_0() else None
            started = StartedRun(chosen, args, config, log)
            yield started
    except BaseException as error:
        meant = error if started is None else started.give_up(error)
        if meant is error:
            raise
        raise meant from error
    finally:
        if started is not None and launch.is_rank_0() and started.run is not None:
            started.run.release()


def _choose(env: EnvFactory, agent: AgentFactory, args: TrainArgs, start: StartArgs, config: str | None) -> Start:
    """Finds or makes the run folder, and reads the checkpoint or weights that it begins with.

    `initialize_from` only counts where no run goes on.
    """
    chosen = None if start.inference else _started_before()
    if chosen is None and start.resume:
        own = partial(fingerprint_of, env, agent, args.seed)
        choice = resume_choice(start.runs_dir, start.run_id, start.resume, own)
        if choice is not None:
            chosen = _play(choice, start.runs_dir, config) if start.inference else _go_on(choice)
        elif start.inference and start.initialize_from is None:
            raise CheckpointError(f"--inference: {start.runs_dir} holds no run that fits")
        else:
            logger.info("--resume: %s holds no run that fits; a new one begins", start.runs_dir)
    if chosen is None:
        weights: Weights | None = None
        trained_with = ""
        if start.initialize_from is not None:
            path = locate("--initialize_from", start.runs_dir, start.initialize_from)
            weights = load_weights(path, start.inference)
            trained_with = _trained_with(start.initialize_from, weights.path, config)
        run = Run.create(start.runs_dir, start.run_id, start.force, weights, config)
        chosen = Start(run, weights=weights, trained_with=trained_with)
    if not start.inference:
        launch.remember_run(chosen.run.dir)
    return chosen


def _trained_with(name: str, weights: Path, config: str | None) -> str:
    """What the settings of another run have to do with it if its weights do not fit; empty if nothing, or not known."""
    if config is None:
        return ""
    try:
        theirs = flat_settings(read_yaml(config_of(weights)))
    except (OSError, ValueError):
        return ""
    apart = other_world(theirs, flat_settings(yaml.safe_load(config)))
    return f"--initialize_from {name}: it was trained with {apart}; set these, or begin without it" if apart else ""


def _started_before() -> Start | None:
    """The run that this launch has begun before torchrun started its ranks again; None at first."""
    folder = launch.run_before_restart()
    if folder is None:
        return None
    choice = newest_of(Run(folder))
    logger.info("torchrun has started the ranks of run %s again (restart %s)", choice.run.name, launch.restarts())
    return _go_on(choice)


def _go_on(choice: Choice) -> Start:
    choice.run.check_writable()
    choice.run.claim()
    weights = choice.run.provenance.weights() if choice.state is None else None
    return Start(choice.run, choice.state, choice.path, weights, going_on=True)


def _play(choice: Choice, runs_dir: str, config: str | None) -> Start:
    """A run of its own that plays with the weights of another."""
    if choice.state is None or choice.path is None:
        choice.run.provenance.weights()  # says more of a run that itself only plays
        raise CheckpointError(f"--inference: {choice.run.dir} holds no checkpoints to play with")
    weights = Weights(choice.path, choice.state["agent"], inference=True)
    return Start(Run.create(runs_dir, weights=weights, config=config), weights=weights)


def _how_it_starts(start: Start, args: TrainArgs, changes: Sequence[str]) -> list[str]:
    """Where the run goes on or comes from, and which settings have changed."""
    whose = f" with the weights of {start.weights.path}" if start.weights else ""
    if not start.going_on:
        return [f"run {start.run.name} begins{whose}"] if whose else []
    steps = start.steps or 0
    if start.resume is None:
        lines = [f"run {start.run.name} has no checkpoint yet: it begins again{whose}"]
    else:
        exact = start.resume["exact"]
        how = "" if exact else " (equivalent to a run without breaks, not bit-identical)"
        lines = [f"resuming run {start.run.name} after {steps:,} steps, from {start.path}{how}"]
    lines += [f"changed: {line}" for line in changes]
    if steps >= args.total_timesteps:
        lines.append(f"nothing to do: it has done its {args.total_timesteps:,} steps; raise --total_timesteps to go on")
    return lines


def _ranks_and_seeds(state: TrainState) -> dict[str, Any]:
    """For `environment.json`: what runs, and the seed of every stream; that of a rank's n-th world is n higher."""
    seed, players, ranks = state.args.seed, state.args.num_players, state.fabric.world_size
    playing, learning = players or ranks, ranks - players
    count = state.env.num_seeds if isinstance(state.env, HasSeeds) else state.env.num_envs
    first = None if players else [seed + rank * count for rank in range(playing)]  # rank 0 of those has no environment
    streams = {"weights": seed, "environments": first, "actions": [seed + rank for rank in range(playing)]}
    streams["minibatches"] = [seed + rank for rank in range(learning)]
    device = state.fabric.device
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else device.type
    return {"ranks": ranks, "device": name, "threads": torch.get_num_threads(), "seeds": streams}


def _rounded_up(state: TrainState) -> list[str]:
    """Says that the last iteration ends far beyond the steps that were asked for."""
    asked, each = state.args.total_timesteps, state.steps_per_iteration
    planned = state.steps + (state.iterations - state.iteration) * each
    if state.done or planned <= _FAR_BEYOND * asked:
        return []
    why = f"the last iteration is finished, and each has {each:,} steps"
    return [f"--total_timesteps {asked:,} becomes {planned:,}: {why}"]
