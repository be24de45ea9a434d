"""Train an agent: `python train_fabric.py --config configs/rocket_1v1.yaml`, or under `fabric run`.

The signature of `main()` is the command line (`--help`). The same function works from a notebook:
`main(env=partial(RocketSimPool, num_arenas=16), agent=MyAgent, args=TrainArgs(total_timesteps=50_000))`.
"""

import os

# Before torch is loaded: OpenMP's waiting threads sleep instead of spinning on cores that the physics threads, or other
# programs, could use. On two busy cores training was 16 times slower without it. Your own setting wins.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

import logging
import shlex
import sys
import time
import warnings
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, fields
from functools import partial
from pathlib import Path
from typing import Any, Literal, cast

import gymnasium
import torch
from jsonargparse import ArgumentError
from lightning import Fabric
from lightning.fabric.loggers import TensorBoardLogger
from lightning.fabric.loggers.logger import Logger
from lightning.fabric.utilities.exceptions import MisconfigurationException

from agents import PPOLightningAgent
from envs import GymnasiumEnvs, RocketSimPool
from fabric_rl import Callback, Run, Saving, TrainArgs, TrainState, choose, train
from fabric_rl.callbacks import Profiler, VideoLogger
from fabric_rl.checkpoint import CheckpointError
from fabric_rl.flags import FlagParser, names_of, normalise, one_line, value_of, without
from fabric_rl.live import fingerprint_of
from fabric_rl.log import say
from fabric_rl.metrics_file import MetricsFile
from fabric_rl.orphans import end_with_parent
from fabric_rl.precision import avoid_illegal_instructions
from fabric_rl.types import AgentFactory, EnvFactory, NonFiniteError

_USER_ERRORS = (ArgumentError, ValueError, TypeError, OSError, ImportError, gymnasium.error.Error)
DEFAULT_CONFIG = Path(__file__).parent / "configs" / "rocket_1v1.yaml"
RANK_0_SECONDS = 10
"""How long a failing rank leaves the word to rank 0: once one rank has ended, a launcher ends all the others."""


def main(
    env: EnvFactory = RocketSimPool,
    agent: AgentFactory = PPOLightningAgent,
    args: TrainArgs = TrainArgs(),  # noqa: B008 - frozen
    env_id: str | None = None,
    num_envs: int | None = None,
    capture_video: bool = False,
    run_id: str | None = None,
    runs_dir: str = "runs",
    resume: bool | str = False,
    force: bool = False,
    initialize_from: str | None = None,
    inference: bool = False,
    saving: Saving = Saving(),  # noqa: B008 - frozen
    logger: Logger | list[Logger] | None = None,
    profile: bool = False,
    plain: bool | None = None,
    accelerator: Literal["auto", "cpu", "gpu", "cuda", "mps"] = "auto",
    devices: int | str = 1,
    num_nodes: int = 1,
    strategy: str = "auto",
    precision: Literal["32-true", "bf16-mixed", "16-mixed"] = "32-true",
    callbacks: Sequence[Callback] = (),
    resolved_config: str | None = None,
) -> dict[str, Any]:
    """Trains an actor-critic agent with PPO on Lightning Fabric.

    Args:
        env: Environment class (a Gymnasium VectorEnv) with its settings, built on every rank.
        agent: Agent class with its settings; it gets the environment's spaces.
        args: Settings of the training loop.
        env_id: A Gymnasium id such as CartPole-v1, instead of `env`.
        num_envs: Copies of `env_id` on every rank.
        capture_video: Record mp4 videos of rank 0's first sub-environment into the run folder and TensorBoard.
        run_id: Name of the run's folder; default: date and time.
        runs_dir: Folder that holds all runs.
        resume: Go on with a run: the one of `run_id`; or give a run id, or the path of a checkpoint, milestone or run.
            Without any: on a terminal a choice of milestones, else the newest run that fits, else a new one.
        force: Delete a run of that `run_id` and start again.
        initialize_from: A run, milestone or checkpoint whose weights a new run begins with, at step 0.
        inference: Play without learning, with the weights of `resume` or `initialize_from`, as a run of its own.
        saving: When the run saves itself.
        logger: Fabric logger (or several) in place of TensorBoard's; `metrics.csv` is always written.
        profile: Write a torch profiler trace of a few iterations into the run folder, for TensorBoard or Perfetto.
        plain: Print lines instead of the live table. Default: when standard output is no terminal.
        accelerator: Hardware to train on. `fabric run` decides this and the next three itself.
        devices: How many (or which) devices; more than one trains with DDP, one process each.
        num_nodes: Machines.
        strategy: Fabric strategy, for example ddp.
        precision: Floating-point precision of the networks; losses always are float32. 16-mixed needs a GPU.
        callbacks: Hooks into the training loop.
        resolved_config: All settings as YAML, kept in the run folder; the command line fills it in.

    Returns:
        The summary that `runs/<run_id>/summary.json` holds.
    """
    hardware: dict[str, Any] = {
        "accelerator": accelerator,
        "devices": devices,
        "num_nodes": num_nodes,
        "strategy": strategy,
        "precision": precision,
    }
    if num_envs is not None and env_id is None:
        raise ValueError("--num_envs goes with --env_id; other environments have their own flag, e.g. --env.num_arenas")
    if env_id is not None:
        env = partial(GymnasiumEnvs, env_id, 4 if num_envs is None else num_envs)
    _check_start(run_id, resume, force, initialize_from, inference)
    launched = _is_launched()
    start = (
        _start(env, agent, args, runs_dir, run_id, resume, force, initialize_from, inference) if _rank() == 0 else None
    )
    run = start.run if start else None
    announcement: _Announcement | None = None
    try:
        loggers = _loggers(start, logger) if start else []
        fabric = _fabric(loggers, _hardware_flags(hardware) if launched else hardware)
        if not launched:
            fabric.launch()
        if launched:
            end_with_parent(seconds=60)
        elif os.environ.get("LOCAL_RANK", "0") != "0" and "SLURM_NTASKS" not in os.environ:
            end_with_parent(seconds=5)  # rank 0 has started this one, and without it there is nobody who saves
        run = Run(Path(fabric.broadcast(str(run.dir) if run else "")))
        saved = fabric.broadcast(start.saved if start else None)
        going_on = fabric.broadcast(start.going_on if start else False)
        announcement = _Announcement(_share_cores(fabric), start, args, resolved_config)
        hooks: list[Callback] = [announcement]
        if profile:
            hooks.append(Profiler(run.dir / "profile"))
        if capture_video:
            env = _with_video(env, run, fabric)
            hooks += [_NoTrialVideo(run.videos), VideoLogger(run.videos)]
        with run.open_log() if fabric.is_global_zero else nullcontext():
            summary = train(
                fabric,
                env,
                agent,
                args,
                run,
                [*callbacks, *hooks],
                plain,
                saving,
                resume=saved if going_on else None,
                weights=None if going_on else saved,
                inference=inference,
            )
    except BaseException as error:
        training = announcement is not None and announcement.made
        if run is not None and _rank() == 0 and not (start and start.going_on):
            if not training:
                _remove_videos(run.videos)
            run.discard_if_empty()
        if training and isinstance(error, _USER_ERRORS):
            raise RuntimeError(f"training stopped: {error}") from error  # no flag's fault: the traceback matters
        raise
    if fabric.is_global_zero:
        say(_report(run, summary))
    return summary


def cli(argv: Sequence[str] | None = None) -> None:
    """The command line of `main()`: any mistake of the user is one line on standard error and exit status 2."""
    parser = FlagParser(prog="train_fabric.py", description=main.__doc__, exit_on_error=False)
    parser.add_argument("--config", action="config", help="YAML file with any of the settings below.")
    parser.add_class_arguments(TrainArgs)
    parser.add_class_arguments(Saving)
    parser.add_function_arguments(main, skip={"args", "saving", "resolved_config"})
    switches = ("--capture_video", "--plain", "--resume", "--force", "--inference", "--profile", "--compile")
    given = normalise(sys.argv[1:] if argv is None else argv, switches)
    names = names_of(given)
    complete = {"--config", "--env", "--env_id", "--help", "-h"}.intersection(names)
    logging.getLogger("lightning.fabric").setLevel(logging.WARNING)
    warnings.formatwarning = lambda message, *_args, **_settings: f"train_fabric.py: warning: {message}\n"
    try:
        if "--env_id" in names:
            _refuse_env_flags(names, "--env_id")
        base = DEFAULT_CONFIG if not complete else None
        if "--resume" in names and not complete:
            base = _config_of_run(given) or base
        config = parser.parse_args([f"--config={base}", *given] if base else given)
        if config.env_id is not None:
            _refuse_env_flags(names, f"env_id: {config.env_id} in the config file")
        again = config.clone()
        for name in ("run_id", "initialize_from"):
            again[name] = None
        for name in ("resume", "force", "inference"):
            again[name] = False
        again.pop("config")
        resolved = parser.dump(again, skip_validation=True)
        settings = vars(parser.instantiate(config))
        settings.pop("config")
        args = TrainArgs(**{field.name: settings.pop(field.name) for field in fields(TrainArgs)})
        saving = Saving(**{field.name: settings.pop(field.name) for field in fields(Saving)})
        summary = main(args=args, saving=saving, resolved_config=resolved, **settings)
        if _rank() == 0 and "checkpoint" in summary:
            own = ["--config", str(base)] if base not in (None, DEFAULT_CONFIG) else []  # of the run that went on
            say(_next_steps([*own, *given], args, summary, settings["runs_dir"]))
    except _USER_ERRORS as error:
        _fail(error, 2)
    except MisconfigurationException as error:
        _fail(f"{error} Change --devices, --accelerator, --strategy or --precision.", 2)
    except NonFiniteError as error:  # may have happened on one rank only
        _fail(error, 1, every_rank=True)
    except KeyboardInterrupt:
        sys.exit(130)


@dataclass(frozen=True)
class _Start:
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


def _check_start(
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


def _start(
    env: EnvFactory,
    agent: AgentFactory,
    args: TrainArgs,
    runs_dir: str,
    run_id: str | None,
    resume: bool | str,
    force: bool,
    initialize_from: str | None,
    inference: bool,
) -> _Start:
    """Finds or makes the run folder, and reads the checkpoint that it begins with."""
    if initialize_from is not None:
        path, saved = choose.load(choose.locate("--initialize_from", runs_dir, initialize_from))
        return _Start(Run.create(runs_dir, run_id, force), saved, path)
    if not resume:
        return _Start(Run.create(runs_dir, run_id, force))
    own = partial(fingerprint_of, env, agent, args.seed)
    choice = choose.resume_choice(runs_dir, run_id, resume, own)
    if choice is None:
        say(f"--resume: {runs_dir} holds no run that fits; a new one begins")
        return _Start(Run.create(runs_dir, run_id))
    if inference:
        if choice.state is None:
            raise CheckpointError(f"--inference: {choice.run.dir} holds no checkpoints to play with")
        return _Start(Run.create(runs_dir), choice.state, choice.path)
    return _Start(choice.run, choice.state, choice.path, going_on=True)


def _beginning(start: _Start, args: TrainArgs, config: str | None) -> list[str]:
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


def _config_of_run(given: Sequence[str]) -> Path | None:
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


def _loggers(start: _Start, logger: Logger | list[Logger] | None) -> list[Logger]:
    """The user's loggers or TensorBoard's, and the one that writes `metrics.csv`.

    The last two forget what a run that goes on had logged after its checkpoint.
    """
    steps = start.steps
    table = MetricsFile(start.run.dir, until=steps)
    if logger is not None:
        return [*(logger if isinstance(logger, list) else [logger]), table]
    purge = {} if steps is None else {"purge_step": steps + 1}
    return [TensorBoardLogger(start.run.dir, name="tensorboard", version="", **purge), table]


def _refuse_env_flags(names: Sequence[str], env_id: str) -> None:
    """Rejects flags of `env` beside `env_id`, which would take the environment's place; a config file's env may."""
    env_flags = [name for name in names if name.partition(".")[0] == "--env"]
    if env_flags:
        raise ValueError(
            f"{', '.join(env_flags)} would have no effect beside {env_id}, which chooses another environment "
            "(its own flag is --num_envs); leave one of them out"
        )


def _is_launched() -> bool:
    """Whether `fabric run` has started this process; then it has decided about devices and precision."""
    return os.environ.get("LT_CLI_USED") == "1"


def _rank() -> int:
    return int(os.environ.get("RANK", os.environ.get("LOCAL_RANK", "0")))


def _hardware_flags(hardware: dict[str, Any]) -> dict[str, Any]:
    """What Fabric still takes under `fabric run`, which has fixed the rest: the precision, if not given there."""
    precision = os.environ.get("LT_PRECISION")
    if precision is None:
        return {"precision": hardware["precision"]}
    if precision not in ("32", "32-true", "bf16", "bf16-mixed", "16", "16-mixed"):
        raise ValueError(f"--precision {precision} is not supported; use 32-true, bf16-mixed or 16-mixed")
    return {}


def _fabric(loggers: list[Logger], hardware: dict[str, Any]) -> Fabric:
    wanted = hardware.get("precision", os.environ.get("LT_PRECISION"))
    accelerator = hardware.get("accelerator", os.environ.get("LT_ACCELERATOR", "auto"))
    if wanted in ("16", "16-mixed") and (accelerator == "cpu" or not torch.cuda.is_available()):
        raise ValueError(f"--precision {wanted} needs a GPU; use bf16-mixed or 32-true on the CPU")
    try:
        fabric = Fabric(loggers=loggers, **hardware)
    except (RuntimeError, TypeError, ValueError) as error:  # Lightning's, for hardware that is not there or unknown
        raise MisconfigurationException(str(error)) from error
    precision = fabric.strategy.precision.precision
    if fabric.device.type == "cpu" and precision == "bf16-mixed":
        avoid_illegal_instructions()
    return fabric


def _share_cores(fabric: Fabric) -> str:
    """Divides the cores between the ranks of this machine (pools read LOCAL_WORLD_SIZE) and describes it."""
    ranks = max(1, int(os.environ.get("LOCAL_WORLD_SIZE", fabric.world_size)))
    os.environ["LOCAL_WORLD_SIZE"] = str(ranks)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    threads = max(1, cores // ranks)
    torch.set_num_threads(threads)
    count = f"{fabric.world_size} rank{'s' if fabric.world_size > 1 else ''}"
    return f"{count} on {fabric.device.type}, {threads} of {cores} cores each"


class _Announcement(Callback):
    """Says how the run begins once everything is built and restored, and keeps its settings."""

    def __init__(self, line: str, start: _Start | None, args: TrainArgs, config: str | None) -> None:
        self.line, self.start, self.args, self.config = line, start, args, config
        self.made = False

    def on_train_start(self, state: TrainState) -> None:
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


class _NoTrialVideo(Callback):
    """Removes the video of the one step that every part is tried with before training."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def on_train_start(self, state: TrainState) -> None:
        if state.fabric.is_global_zero:
            _remove_videos(self.folder)


def _remove_videos(folder: Path) -> None:
    for path in folder.glob("*.mp4"):
        path.unlink()


def _with_video(env: EnvFactory, run: Run, fabric: Fabric) -> EnvFactory:
    """Adds `video_folder` to the environment of rank 0."""
    parts = (env, getattr(env, "func", None), *getattr(env, "args", ()))  # jsonargparse and functools hand out partials
    if RocketSimPool in parts:
        raise ValueError("--capture_video: RocketSimPool renders no frames; use it with --env_id")
    return partial(cast(Any, env), video_folder=run.videos) if fabric.is_global_zero else env


def _report(run: Run, summary: dict[str, Any]) -> str:
    lines = ["", f"Run {run.name}: {summary['total_steps']:,} steps in {summary['wall_seconds']:.0f} s"]
    for name, label in (("touches_per_minute", "touches per agent-minute"), ("goals_per_minute", "goals per minute")):
        if name in summary:
            lines.append(f"  {label}: {summary[name]['start']:.2f} at the start, {summary[name]['end']:.2f} at the end")
    if summary["mean_return"] is not None:
        lines.append(f"  mean return of the last episodes: {summary['mean_return']:.2f}")
    kinds = [kind for kind in ("collected", "consumed", "overall") if f"{kind}_steps_per_second" in summary]
    speeds = (f"{kind} {summary[f'{kind}_steps_per_second']:,.0f}" for kind in kinds)
    lines.append(f"  steps per second: {', '.join(speeds)}")
    if "checkpoint" in summary:
        lines.append(f"  checkpoint: {summary['checkpoint']}")
    return "\n".join(lines)


def _next_steps(given: Sequence[str], args: TrainArgs, summary: dict[str, Any], runs_dir: str) -> str:
    """Commands that fit this run: its curves, the same for longer, and on two devices where it had one."""
    launcher = ["python"]
    if _is_launched():
        options = {
            name: os.environ.get(f"LT_{name.upper()}") for name in ("accelerator", "strategy", "devices", "precision")
        }
        launcher = ["fabric", "run", *(f"--{name}={value}" for name, value in options.items() if value)]
    fresh = ["--run_id", "--resume", "--force", "--inference", "--initialize_from"]
    same = without(given, [*fresh, "--total_timesteps"])
    longer = [*launcher, "train_fabric.py", *same, "--run_id", str(summary["run_id"]), "--resume"]
    longer += ["--total_timesteps", f"{10 * args.total_timesteps:_}"]
    commands = [["tensorboard", "--logdir", runs_dir], longer]
    if summary["world_size"] == 1 and torch.cuda.device_count() != 1:
        same = without(given, [*fresh, "--devices"])
        commands.append(["python", "train_fabric.py", *same, "--devices", "2"])
    return "\n  ".join(["Next:", *map(shlex.join, commands)])


def _fail(error: BaseException | str, status: int, every_rank: bool = False) -> None:
    """Prints one line, on rank 0 or on every rank, and ends the process."""
    if os.environ.get("FABRIC_RL_TRACEBACK") == "1" and isinstance(error, BaseException):
        raise error
    speaks = every_rank or _rank() == 0
    if not speaks and _is_launched():
        time.sleep(RANK_0_SECONDS)
        speaks = True
    if speaks:
        print(f"train_fabric.py: error: {one_line(str(error))}", file=sys.stderr, flush=True)
    sys.exit(status)


if __name__ == "__main__":
    cli()
