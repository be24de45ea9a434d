"""The start of a run: new, with the weights of another one, or where it was left; and the end of one that fails."""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium
import torch
import yaml
from lightning.fabric.loggers.logger import Logger
from lightning.fabric.loggers.tensorboard import TensorBoardLogger

from fabric_rl.args import StartArgs, TrainArgs
from fabric_rl.base.config_files import read_yaml
from fabric_rl.base.messages import MISTAKES
from fabric_rl.callback import Callback, TrainState
from fabric_rl.metrics.log import EventLog, logger, warnings_are_events
from fabric_rl.metrics.loggers import Loggers, MetricsFile, wait_for_a_later_name
from fabric_rl.ranks import launch
from fabric_rl.ranks.processes import LostRankError, lost_rank
from fabric_rl.runs.folder import Run
from fabric_rl.runs.provenance import Weights, flat_settings
from fabric_rl.runs.resume import Start, fingerprint_of, load_weights, locate, newest_of, other_world, resume_choice
from fabric_rl.runs.trained import config_of
from fabric_rl.types import AgentFactory, CheckpointError, EnvFactory, HasSeeds, SettingError

_THREADS = re.compile(r"^num_threads:", re.MULTILINE)
_FAR_BEYOND = 1.05


@contextmanager
def open_run(
    env: EnvFactory, agent: AgentFactory, args: TrainArgs, start: StartArgs, config: str | None
) -> Iterator[Start]:
    """Choose or make the folder of a run, on rank 0, and hold it while the block trains.

    Environment and agent are built where a run that fits them is looked for; `config` has all settings as YAML.

    Raises:
        LostRankError: Another rank is gone.
        RuntimeError: In place of what would be a user's mistake before training.
        BaseException: What the block raises; a new run that it has not begun leaves no folder.
    """
    opened, first = Start(), launch.is_rank_0()
    try:
        with warnings_are_events(), EventLog() as log:
            if first:
                opened = _choose(env, agent, args, start, config)
                opened.log = log
            yield opened
    except BaseException as error:
        if first:
            _clean_up(opened)
        meant = _as_told(error, opened)
        if meant is error:
            raise
        raise meant from error
    finally:
        if first and opened.run is not None:
            opened.run.release()


def _clean_up(failed: Start) -> None:
    """Removes the folder of a new run that has not begun; a restart by torchrun makes another one then."""
    if failed.run is None or failed.going_on:
        return
    if not failed.training:
        failed.run.discard_if_empty()
    if not failed.training or not failed.run.dir.exists():
        launch.forget_run()


def _as_told(error: BaseException, failed: Start) -> BaseException:
    """Returns the error itself, or one that says what it means to the user."""
    training, run = failed.training, failed.run
    if lost := lost_rank(error):
        what_next = "start again"
        if launch.detect().restarts < launch.detect().most_restarts:
            what_next = "torchrun starts all ranks again"
        elif training and run is not None:
            what_next = f"go on from the last checkpoint with --run_id {run.name} --resume"
        return LostRankError(f"{lost}; {what_next}")
    if training and isinstance(error, SystemExit) and not error.code:  # of a part, as if all were well
        return RuntimeError("training stopped: something in it has called sys.exit()")
    mistake = isinstance(error, (*MISTAKES, gymnasium.error.Error)) and not isinstance(error, SettingError)
    # Once it trains no flag is at fault, and the traceback matters.
    return RuntimeError(f"training stopped: {error}") if training and mistake else error


def loggers_of(start: Start, given: Logger | list[Logger] | None) -> list[Logger]:
    """Return the user's loggers or TensorBoard's, and the one that writes `metrics.csv`; none on other ranks than 0.

    The last two forget what a run that goes on had logged after its checkpoint.
    """
    if start.run is None:
        return []
    folder, steps = start.run.dir, start.steps
    if steps and (start.state or {}).get("unpublished"):  # what its last row had will be in a later one
        steps -= 1
    table = MetricsFile(folder, until=steps)
    if given is not None:
        return [*(given if isinstance(given, list) else [given]), table]
    purge: dict[str, Any] = {} if steps is None else {"purge_step": steps + 1}
    wait_for_a_later_name(folder / "tensorboard")
    return [TensorBoardLogger(folder, name="tensorboard", version="", **purge), table]


class Announcement(Callback):
    """Says how a run starts once everything is built and restored, and makes the folder that of this run.

    `config` has all settings as YAML, `hardware` says which ranks and cores the run has.
    """

    def __init__(self, start: Start, args: TrainArgs, config: str | None, hardware: str) -> None:
        self._start, self._args, self._config, self._hardware = start, args, config, hardware
        self._settings = flat_settings(yaml.safe_load(config)) if config else {}
        self._has_steps_left = True

    def on_train_start(self, state: TrainState) -> None:
        start = self._start
        start.training = True
        if start.run is None or not launch.is_rank_0():
            return
        if self._config is not None and not _THREADS.search(self._config):
            self._config += f"num_threads: {torch.get_num_threads()}\n"  # a default that depends on the machine
            self._settings["num_threads"] = torch.get_num_threads()
        config, provenance = self._config, start.run.provenance
        changes = provenance.changed_settings(config) if config is not None and start.going_on else []
        lines = [*_how_it_starts(start.run.name, start, self._args, changes), self._hardware, *_rounded_up(state)]
        self._has_steps_left = start.steps is None or start.steps < self._args.total_timesteps
        if self._has_steps_left:
            if start.state is not None and start.path is not None:
                moved = start.run.go_on_from(start.path, start.state)
                if moved:
                    lines.append(f"newer checkpoints: {moved} moved to {start.run.checkpoints / 'set_aside'}")
            provenance.write(config, _ranks_and_seeds(state))
            start.run.replace()
            Loggers(state.fabric.loggers).log_settings(self._settings, changes, state.steps)
        for line in lines:
            logger.info("%s", line)

    def on_train_end(self, state: TrainState) -> None:
        run = self._start.run
        if run is not None and launch.is_rank_0() and self._has_steps_left:
            Loggers(state.fabric.loggers).log_outcome(self._settings, run.read_summary(), state.steps)


def _choose(env: EnvFactory, agent: AgentFactory, args: TrainArgs, start: StartArgs, config: str | None) -> Start:
    """Finds or makes the run folder, and reads the checkpoint or weights that it begins with.

    `initialize_from` only counts where no run goes on.
    """
    if not start.inference and (before := _started_before()):
        return _go_on(before)
    if start.resume:
        own = partial(fingerprint_of, env, agent, args.seed)
        chosen = resume_choice(start.runs_dir, start.run_id, start.resume, own)
        if chosen is not None:
            return _play(chosen, start.runs_dir, config) if start.inference else _go_on(chosen)
        if start.inference and start.initialize_from is None:
            raise CheckpointError(f"--inference: {start.runs_dir} holds no run that fits")
        logger.info("--resume: %s holds no run that fits; a new one begins", start.runs_dir)
    weights, trained_with = None, ""
    if start.initialize_from is not None:
        path = locate("--initialize_from", start.runs_dir, start.initialize_from)
        weights = load_weights(path, start.inference)
        trained_with = _trained_with(start.initialize_from, weights.path, config)
    run = Run.create(start.runs_dir, start.run_id, start.force, weights, config)
    if not start.inference:
        launch.remember_run(run.dir)
    return Start(run, weights=weights, trained_with=trained_with)


def _trained_with(name: str, weights: Path, config: str | None) -> str:
    """Says which settings of another run may be why its weights do not fit; empty if none, or not known."""
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
    launched = launch.detect()
    counts = (launched.restarts, launched.most_restarts)
    logger.info("torchrun has started the ranks of run %s again (restart %s of at most %s)", folder.name, *counts)
    return newest_of(Run(folder))


def _go_on(start: Start) -> Start:
    run = start.run
    assert run is not None
    run.check_writable()
    run.claim()
    if start.state is None:
        start.weights = run.provenance.weights()
    launch.remember_run(run.dir)
    return start


def _play(other: Start, runs_dir: str, config: str | None) -> Start:
    """A run of its own that plays with the weights of another."""
    assert other.run is not None
    if other.state is None or other.path is None:
        other.run.provenance.weights()  # says more of a run that itself only plays
        raise CheckpointError(f"--inference: {other.run.dir} holds no checkpoints to play with")
    weights = Weights(other.path, other.state["agent"], inference=True)
    return Start(Run.create(runs_dir, weights=weights, config=config), weights=weights)


def _how_it_starts(name: str, start: Start, args: TrainArgs, changes: Sequence[str]) -> list[str]:
    whose = f" with the weights of {start.weights.path}" if start.weights else ""
    if not start.going_on:
        return [f"run {name} begins{whose}"] if whose else []
    steps = start.steps or 0
    if start.state is None:
        lines = [f"run {name} has no checkpoint yet: it begins again{whose}"]
    else:
        how = "" if start.state["exact"] else " (equivalent to a run without breaks, not bit-identical)"
        lines = [f"resuming run {name} after {steps:,} steps, from {start.path}{how}"]
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
