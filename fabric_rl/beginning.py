"""How a run begins: new, with another one's weights, or where it was left."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from fabric_rl import choose, launch
from fabric_rl.args import TrainArgs
from fabric_rl.callbacks import Callback, TrainState
from fabric_rl.checkpoint import CheckpointError
from fabric_rl.flags import value_of
from fabric_rl.live import fingerprint_of
from fabric_rl.log import say
from fabric_rl.run import Run
from fabric_rl.types import AgentFactory, EnvFactory


@dataclass(frozen=True)
class Start:
    """How a run begins."""

    run: Run
    saved: dict[str, Any] | None = None
    """The checkpoint to go on from, or to take weights from."""
    path: Path | None = None
    """Its file."""
    going_on: bool = False
    """Whether the run of this folder goes on."""

    @property
    def steps(self) -> int | None:
        """Agent-steps after which the run goes on; None for a new one."""
        return (self.saved["steps"] if self.saved else 0) if self.going_on else None


def check_start(
    run_id: str | None, resume: bool | str, force: bool, initialize_from: str | None, inference: bool
) -> None:
    """Raises ValueError for flags that exclude each other."""
    if force and resume:
        raise ValueError("--force deletes the run that --resume goes on with; leave one of them out")
    if force and run_id is None:
        raise ValueError("--force needs --run_id, the run to delete and start again")
    if resume and initialize_from:
        raise ValueError("--resume takes weights, optimizer and counters, --initialize_from weights only; choose one")
    if isinstance(resume, str) and run_id is not None:
        raise ValueError(f"--resume {resume} says which run goes on; leave --run_id out")
    if inference and not (resume or initialize_from):
        raise ValueError("--inference needs weights: add --run_id NAME --resume, or --initialize_from RUN_OR_PATH")


def start_run(
    env: EnvFactory,
    agent: AgentFactory,
    args: TrainArgs,
    runs_dir: str,
    run_id: str | None,
    resume: bool | str,
    force: bool,
    initialize_from: str | None,
    inference: bool,
) -> Start:
    """Finds or makes the run folder, and reads the checkpoint that it begins with."""
    if initialize_from is not None:
        path, saved = choose.load(choose.locate("--initialize_from", runs_dir, initialize_from))
        run = Run.create(runs_dir, run_id, force)
        run.remember_weights(path, inference)
        return Start(run, saved, path)
    if not resume:
        return Start(Run.create(runs_dir, run_id, force))
    own = partial(fingerprint_of, env, agent, args.seed)
    choice = choose.resume_choice(runs_dir, run_id, resume, own)
    if choice is None:
        say(f"--resume: {runs_dir} holds no run that fits; a new one begins")
        return Start(Run.create(runs_dir, run_id))
    if inference:
        if choice.state is None:
            raise CheckpointError(f"--inference: {choice.run.dir} holds no checkpoints to play with")
        run = Run.create(runs_dir)
        run.remember_weights(choice.path, inference)
        return Start(run, choice.state, choice.path)
    if choice.state is None:
        choice.run.refuse_to_begin_again()
    return Start(choice.run, choice.state, choice.path, going_on=True)


def start_again(runs_dir: str, initialize_from: str | None) -> Start | None:
    """The run that this launch has begun before torchrun started its ranks again; None at first."""
    folder = launch.remembered_run()
    if folder is None:
        return None
    choice = choose.newest_of(Run(folder))
    say(f"torchrun has started the ranks of run {choice.run.name} again (restart {launch.restarts()})")
    if choice.state is None and initialize_from is not None:
        path, saved = choose.load(choose.locate("--initialize_from", runs_dir, initialize_from))
        return Start(choice.run, saved, path)
    return Start(choice.run, choice.state, choice.path, going_on=True)


def _beginning(start: Start, args: TrainArgs, config: str | None) -> list[str]:
    """Where the run goes on or comes from, and which settings have changed."""
    if not start.going_on:
        return [f"run {start.run.name} begins with the weights of {start.path}"] if start.saved else []
    steps = start.steps or 0
    if start.saved is None:
        lines = [f"run {start.run.name} has no checkpoint yet: it begins again"]
    else:
        exact = start.saved["exact"]
        how = "" if exact else " (saved on demand: equivalent to a run without the break, not bit-identical)"
        lines = [f"going on with run {start.run.name} after {steps:,} steps, from {start.path}{how}"]
    if config is not None:
        lines += [f"changed: {line}" for line in start.run.changed_settings(config)]
    if steps >= args.total_timesteps:
        lines.append(f"nothing to do: it has done its {args.total_timesteps:,} steps; raise --total_timesteps to go on")
    return lines


def config_of_run(given: Sequence[str]) -> Path | None:
    """The configuration of the run that `--resume` goes on with, if the flags name it and it has one."""
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
    config = run.dir / "config.yaml" if run else None
    return config if config is not None and config.exists() else None


def config_everywhere(given: Sequence[str]) -> Path | str | None:
    """The same on all machines: the text that rank 0 has found, where there are several."""
    own = config_of_run(given)
    if launch.machines() == 1:
        return own
    return launch.share_text(own.read_text(encoding="utf-8") if own else None)


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
                if start.going_on and start.saved is not None and start.path is not None:
                    moved = run.go_on_from(start.path, start.saved)
                    if moved:
                        lines.append(f"newer checkpoints: {moved} moved to {run.checkpoints / 'set_aside'}")
                run.write_origin(self.config)
                run.replace()
            for line in lines:
                say(line)
                logging.getLogger("fabric_rl").info(line)
