"""How a run begins: new, with another one's weights, or where it was left."""

import logging
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from fabric_rl.args import StartArgs, TrainArgs
from fabric_rl.callbacks import Callback, TrainState
from fabric_rl.flags.parser import names_of, value_of
from fabric_rl.metrics.log import say
from fabric_rl.ranks import launch
from fabric_rl.runs import find as choose
from fabric_rl.runs.checkpoint import CheckpointError
from fabric_rl.runs.folder import Run
from fabric_rl.runs.provenance import Weights
from fabric_rl.session.session import fingerprint_of
from fabric_rl.types import AgentFactory, EnvFactory


@dataclass(frozen=True)
class Start:
    """How a run begins."""

    run: Run
    resume: dict[str, Any] | None = None
    """The checkpoint to go on from."""
    path: Path | None = None
    """Its file."""
    weights: Weights | None = None
    """Those of another run to begin with."""
    going_on: bool = False
    """Whether the run of this folder goes on; without a checkpoint it begins again."""

    @property
    def steps(self) -> int | None:
        """Agent-steps after which the run goes on; None for a new one."""
        return (self.resume["steps"] if self.resume else 0) if self.going_on else None

    @property
    def states(self) -> tuple[dict[str, Any] | None, dict[str, Any] | None]:
        """`resume` and `weights` as `train` takes them."""
        return self.resume, {"agent": self.weights.agent} if self.weights else None


def check_start_flags(given: Sequence[str], resume: bool | str) -> None:
    """Raises ValueError for flags that exclude each other; in a configuration they may say how its run has begun."""
    if resume and "--initialize_from" in names_of(given):
        raise ValueError("--resume takes weights, optimizer and counters, --initialize_from weights only; choose one")


@contextmanager
def remembered(texts: list[str]) -> Iterator[None]:
    """Keeps the warnings of the block, for a log that is not open yet."""
    shown = warnings.showwarning

    def show(message: Any, category: Any, filename: Any, lineno: Any, file: Any = None, line: Any = None) -> None:  # noqa: ANN401
        texts.append(str(message))
        shown(message, category, filename, lineno, file, line)

    warnings.showwarning = show
    try:
        yield
    finally:
        warnings.showwarning = shown


def start_run(env: EnvFactory, agent: AgentFactory, args: TrainArgs, start: StartArgs) -> Start:
    """Finds or makes the run folder, and reads the checkpoint or weights that it begins with.

    `initialize_from` only counts where no run goes on.
    """
    runs_dir, whose = start.runs_dir, start.initialize_from
    if start.resume:
        own = partial(fingerprint_of, env, agent, args.seed)
        choice = choose.resume_choice(runs_dir, start.run_id, start.resume, own)
        if choice is not None:
            return _play(choice, runs_dir) if start.inference else _go_on(choice)
        if start.inference and whose is None:
            raise CheckpointError(f"--inference: {runs_dir} holds no run that fits")
        say(f"--resume: {runs_dir} holds no run that fits; a new one begins")
    weights: Weights | None = None
    if whose is not None:
        weights = choose.load_weights(choose.locate("--initialize_from", runs_dir, whose), start.inference)
    return Start(Run.create(runs_dir, start.run_id, start.force, weights), weights=weights)


def start_again() -> Start | None:
    """The run that this launch has begun before torchrun started its ranks again; None at first."""
    folder = launch.remembered_run()
    if folder is None:
        return None
    choice = choose.newest_of(Run(folder))
    say(f"torchrun has started the ranks of run {choice.run.name} again (restart {launch.restarts()})")
    return _go_on(choice)


def _go_on(choice: choose.Choice) -> Start:
    choice.run.claim()
    weights = choice.run.origin.weights() if choice.state is None else None
    return Start(choice.run, choice.state, choice.path, weights, going_on=True)


def _play(choice: choose.Choice, runs_dir: str) -> Start:
    """A run of its own that plays with the weights of another."""
    if choice.state is None or choice.path is None:
        choice.run.origin.weights()  # says more of a run that itself only plays
        raise CheckpointError(f"--inference: {choice.run.dir} holds no checkpoints to play with")
    weights = Weights(choice.path, choice.state["agent"], inference=True)
    return Start(Run.create(runs_dir, weights=weights), weights=weights)


def _beginning(start: Start, args: TrainArgs, config: str | None) -> list[str]:
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
        lines = [f"going on with run {start.run.name} after {steps:,} steps, from {start.path}{how}"]
    if config is not None:
        lines += [f"changed: {line}" for line in start.run.origin.changed_settings(config)]
    if steps >= args.total_timesteps:
        lines.append(f"nothing to do: it has done its {args.total_timesteps:,} steps; raise --total_timesteps to go on")
    return lines


def config_of_run(given: Sequence[str]) -> Path | None:
    """The configuration of the run that `--resume` goes on with, if the flags name it and it has one.

    Of a run without, rank 0 says so.
    """
    flags = value_of(given, "--resume"), value_of(given, "--run_id"), value_of(given, "--runs_dir") or "runs"
    path, run_id, runs_dir = flags
    word = (path or "true").lower()
    if word in ("false", "no", "off"):
        return None
    run: Run | None = None
    try:
        if word not in ("true", "yes", "on"):
            run = choose.run_of(choose.locate("--resume", runs_dir, str(path)))
        elif run_id:
            run = Run.find(runs_dir, run_id)
    except (CheckpointError, OSError, ValueError):
        return None  # said in one line later
    if run is None:
        return None
    if run.origin.config.exists():
        return run.origin.config
    if launch.is_rank_0():
        say(
            f"--resume: run {run.name} has no config.yaml, so its settings are not known: those of this command line "
            "are used, and of the default preset"
        )
    return None


def everywhere(config: Path | None) -> Path | str | None:
    """The same on all machines: the text of the configuration that rank 0 has found, where there are several."""
    if launch.machines() == 1:
        return config
    return launch.share_text(config.read_text(encoding="utf-8") if config else None)


class Announcement(Callback):
    """Says how the run begins once everything is built and restored, and keeps its settings."""

    def __init__(self, line: str, start: Start | None, args: TrainArgs, config: str | None) -> None:
        """Keeps what is to be said on rank 0; `start` is None on other ranks."""
        self.line, self.start, self.args, self.config = line, start, args, config
        self.made = False

    def on_train_start(self, state: TrainState) -> None:
        """Says it, and makes the folder that of this run."""
        self.made = True
        if self.start is not None:
            start, run = self.start, self.start.run
            lines = [*_beginning(start, self.args, self.config), self.line]
            if start.steps is None or start.steps < self.args.total_timesteps:
                if start.resume is not None and start.path is not None:
                    moved = run.go_on_from(start.path, start.resume)
                    if moved:
                        lines.append(f"newer checkpoints: {moved} moved to {run.checkpoints / 'set_aside'}")
                run.origin.write(self.config)
                run.replace()
            for line in lines:
                say(line)
                logging.getLogger("fabric_rl").info(line)
