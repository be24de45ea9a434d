"""Train an agent: `python train_fabric.py --config configs/rocket_1v1.yaml`, or under `fabric run`.

The signature of `main()` is the command line (`--help`). The same function works from a notebook:
`main(env=partial(RocketSimPool, num_arenas=16), agent=MyAgent, args=TrainArgs(total_timesteps=50_000))`.
"""

import fabric_rl  # noqa: F401 - before torch: it settles how OpenMP's threads wait

# isort: split
import logging
import os
import sys
import time
import traceback
import warnings
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import fields
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any, cast

import gymnasium
import torch
from jsonargparse import ArgumentError, set_parsing_settings
from lightning import Fabric
from lightning.fabric.loggers import TensorBoardLogger
from lightning.fabric.loggers.logger import Logger
from lightning.fabric.strategies import STRATEGY_REGISTRY
from lightning.fabric.utilities.exceptions import MisconfigurationException

from agents import PPOLightningAgent
from envs import GymnasiumEnvs, RocketSimPool
from fabric_rl import Callback, Hardware, Run, Saving, StartArgs, TrainArgs, TrainState, train
from fabric_rl.callbacks import Profiler, VideoLogger
from fabric_rl.cli.culprit import INSTANTIATORS, blamed, explained, told_by_flag
from fabric_rl.cli.report import next_steps, report, unsaved
from fabric_rl.flags.messages import did_you_mean, one_line
from fabric_rl.flags.parser import FlagParser, names_of, normalise, value_of, with_classes_of_help
from fabric_rl.learning.update import TooLittleMemoryError
from fabric_rl.metrics.csv_file import MetricsFile
from fabric_rl.metrics.log import say
from fabric_rl.ranks import launch
from fabric_rl.ranks.lost import LostRankError, end_with_parent, lost_rank, orphaned
from fabric_rl.ranks.players_strategy import OF_FABRIC_RUN, DecoupledStrategy, fabric_arguments
from fabric_rl.ranks.sharding import ShardedStrategy
from fabric_rl.runs.start import (
    Announcement,
    Start,
    check_start_flags,
    config_of_run,
    everywhere,
    remembered,
    start_again,
    start_run,
)
from fabric_rl.types import AgentFactory, EnvFactory, NonFiniteError

_USER_ERRORS = (ArgumentError, ValueError, TypeError, OSError, ImportError, gymnasium.error.Error)
DEFAULT_CONFIG = Path(__file__).parent / "configs" / "rocket_1v1.yaml"
_SWITCHES = ("--capture_video", "--plain", "--resume", "--force", "--inference", "--profile", "--compile", "--overlap")
_ABOUT = """Trains an actor-critic agent with PPO on Lightning Fabric. Without --config, --env and --env_id it plays the
preset configs/rocket_1v1.yaml. A class is chosen by its path (--agent agents.RecurrentPPOAgent) and its settings follow
(--agent.actor_lr 1e-3); --agent.help and --env.help list those of the chosen class, --agent.help CLASS another's.
"""
_EXPLAINED = {"--agent": "agents.PPOLightningAgent", "--env": "envs.RocketSimPool"}
_GROUPS: dict[str, type[Any]] = {"args": TrainArgs, "start": StartArgs, "saving": Saving, "hardware": Hardware}
RANK_0_SECONDS = 10
"""How long a failing rank leaves the word to rank 0: once one rank has ended, a launcher ends all the others."""


def main(
    env: EnvFactory = RocketSimPool,
    agent: AgentFactory = PPOLightningAgent,
    args: TrainArgs = TrainArgs(),  # noqa: B008 - frozen
    start: StartArgs = StartArgs(),  # noqa: B008 - frozen
    saving: Saving = Saving(),  # noqa: B008 - frozen
    hardware: Hardware = Hardware(),  # noqa: B008 - frozen
    env_id: str | None = None,
    num_envs: int | None = None,
    capture_video: bool = False,
    callbacks: Callback | Sequence[Callback] = (),
    logger: Logger | list[Logger] | None = None,
    profile: bool = False,
    plain: bool | None = None,
    resolved_config: str | None = None,
) -> dict[str, Any]:
    """Trains an actor-critic agent with PPO on Lightning Fabric.

    Args:
        env: Environment class (a Gymnasium VectorEnv) with its settings, built on every rank.
        agent: Agent class with its settings; it gets the environment's spaces.
        args: Settings of the training loop.
        start: How the run starts.
        saving: When the run saves itself.
        hardware: What it runs on.
        env_id: A Gymnasium id such as CartPole-v1, instead of `env`.
        num_envs: Copies of `env_id` on every rank.
        capture_video: Record mp4 videos of rank 0's first sub-environment into the run folder and TensorBoard.
        callbacks: Hooks into the training loop.
        logger: Fabric logger (or several) in place of TensorBoard's; `metrics.csv` is always written.
        profile: Write a torch profiler trace of a few iterations into the run folder, for TensorBoard or Perfetto.
        plain: Print lines instead of the live table. Default: when standard output is no terminal.
        resolved_config: All settings as YAML, kept in the run folder; the command line fills it in.

    Returns:
        The summary that `runs/<run_id>/summary.json` holds.
    """
    if num_envs is not None and env_id is None:
        raise ValueError("--num_envs goes with --env_id; other environments have their own flag, e.g. --env.num_arenas")
    if env_id is not None:
        env = partial(GymnasiumEnvs, env_id, 4 if num_envs is None else num_envs)
    if capture_video and args.num_players:
        raise ValueError("--capture_video needs an environment on rank 0, which has none with --num_players")
    if launch.in_notebook() and str(hardware.devices) != "1":
        raise ValueError(
            f"devices={hardware.devices}: main() cannot start processes from a notebook; give a function that calls "
            "fabric_rl.train() to Fabric(...).launch(), as notebooks/03_rewards_and_states.ipynb does"
        )
    flags: dict[str, Any] = {
        "accelerator": hardware.accelerator,
        "strategy": hardware.strategy,
        "precision": hardware.precision,
    }
    flags |= launch.devices_and_nodes(hardware.devices, hardware.num_nodes)
    launched = launch.used_fabric_run()
    chosen: Start | None = None
    warned: list[str] = []
    if launch.is_rank_0():
        with remembered(warned):
            chosen = None if start.inference else start_again()
            chosen = chosen or start_run(env, agent, args, start)
        if not start.inference:
            launch.remember_run(chosen.run.dir)
    run = chosen.run if chosen else None
    announcement: Announcement | None = None
    try:
        loggers = _loggers(chosen, logger) if chosen else []
        launch.connect_freshly()
        flags = _hardware_flags(flags) if launched else flags
        if args.num_players:
            patience = timedelta(minutes=hardware.timeout_minutes)
            flags = fabric_arguments(args.num_players, flags, patience)
        fabric = _fabric(loggers, flags)
        if not launched:
            fabric.launch()
        launch.set_timeout(fabric, hardware.timeout_minutes)
        if launch.used_torchrun():
            end_with_parent(seconds=60)
        elif os.environ.get("LOCAL_RANK", "0") != "0" and not launch.used_srun():
            end_with_parent(seconds=5)  # rank 0 has started this one, and without it there is nobody who saves
        launch.check_same_settings(fabric, resolved_config)
        folder = fabric.broadcast(str(run.dir) if run else "")
        if not folder:  # a later call of main() has started this process, which goes through the script again
            return train(fabric, env, agent, args)
        run = run or Run(Path(folder))
        saved, weights = fabric.broadcast(chosen.states if chosen else (None, None))
        announcement = Announcement(_share_cores(fabric), chosen, args, resolved_config)
        hooks: list[Callback] = [announcement]
        if profile:
            hooks.append(Profiler(run.dir / "profile"))
        if capture_video:
            env = _with_video(env, run, fabric)
            hooks += [_NoTrialVideo(run.videos), VideoLogger(run.videos)]
        with run.open_log() if fabric.is_global_zero else nullcontext():
            for text in warned:
                logging.getLogger("fabric_rl").warning(text)
            summary = train(
                fabric,
                env,
                agent,
                args,
                run,
                [*([callbacks] if isinstance(callbacks, Callback) else callbacks), *hooks],
                plain,
                saving,
                resume=saved,
                weights=weights,
                inference=start.inference,
            )
    except BaseException as error:
        training = announcement is not None and announcement.made
        if run is not None and launch.is_rank_0() and not (chosen and chosen.going_on):
            if not training:
                _remove_videos(run.videos)
                run.discard_if_empty()
            if not (training and run.dir.exists()):
                launch.forget_run()
        if lost := lost_rank(error):
            what_next = "start again"
            if launch.restarts_left():
                what_next = "torchrun starts all ranks again"
            elif training and run is not None:
                what_next = f"go on from the last checkpoint with --run_id {run.name} --resume"
            raise LostRankError(f"{lost}; {what_next}") from error
        if training and isinstance(error, _USER_ERRORS):
            raise RuntimeError(f"training stopped: {error}") from error  # no flag's fault: the traceback matters
        raise
    finally:
        if chosen is not None:
            chosen.run.release()
    if fabric.is_global_zero:
        say(report(run, summary))
    return summary


def cli(argv: Sequence[str] | None = None) -> None:
    """The command line of `main()`: any mistake of the user is one line on standard error and exit status 2."""
    set_parsing_settings(docstring_parse_attribute_docstrings=True)
    parser = FlagParser(prog="train_fabric.py", description=_ABOUT, exit_on_error=False)
    parser.add_argument("--config", action="config", help="YAML file with any of the settings below.")
    for group in _GROUPS.values():
        parser.add_class_arguments(group)
    parser.add_function_arguments(main, skip={*_GROUPS, "resolved_config"})
    given = with_classes_of_help(normalise(sys.argv[1:] if argv is None else argv, _SWITCHES), _EXPLAINED)
    names = names_of(given)
    complete = {"--config", "--env", "--env_id", "--help", "-h"}.intersection(names)
    logging.getLogger("lightning.fabric").setLevel(logging.WARNING)
    warnings.formatwarning = lambda message, *_args, **_settings: f"train_fabric.py: warning: {message}\n"
    try:
        if "--env_id" in names:
            _refuse_env_flags(names, "--env_id")
        base = DEFAULT_CONFIG if not complete else None
        source: Path | str | None = base
        if "--resume" in names and not complete:
            own_config = config_of_run(given)
            base, source = own_config or base, everywhere(own_config) or base
        config = parser.parse_args([f"--config={source}", *given] if source else given)
        if config.env_id is not None:
            _refuse_env_flags(names, f"env_id: {config.env_id} in the config file")
            _note_replaced_env(parser, given, config)
        check_start_flags(given, config.resume)
        again = config.clone()
        for name in ("run_id", "initialize_from"):
            again[name] = None
        for name in ("resume", "force", "inference"):
            again[name] = False
        again.pop("config")
        resolved = parser.dump(again, skip_validation=True)
        with told_by_flag(config):
            settings = vars(parser.instantiate(config, instantiators=INSTANTIATORS))
        settings.pop("config")
        for name, group in _GROUPS.items():
            settings[name] = group(**{field.name: settings.pop(field.name) for field in fields(group)})
        args, start = settings["args"], settings["start"]
        summary = main(resolved_config=resolved, **settings)
        if launch.is_rank_0() and "checkpoint" in summary:
            own = ["--config", str(base)] if base not in (None, DEFAULT_CONFIG) else []  # of the run that went on
            say(next_steps([*own, *given], args, summary, start.runs_dir))
        if launch.is_rank_0() and "unsaved_steps" in summary:
            _fail(f"{unsaved(summary)}; make room, then go on with --run_id {summary['run_id']} --resume", 1)
    except _USER_ERRORS as error:
        _fail(error, 2)
    except MisconfigurationException as error:
        _fail(f"{error} Change --devices, --accelerator, --strategy or --precision.", 2)
    except LostRankError as error:
        _fail(error, 1, speaks=launch.is_local_rank_0() or orphaned())
    except (NonFiniteError, TooLittleMemoryError) as error:  # may have happened on one rank only
        _fail(error, 1, speaks=True)
    except KeyboardInterrupt:
        sys.exit(130)
    except Exception as error:  # a programming error; in somebody's own part the last line says in which
        where = blamed(error)
        if where is None or os.environ.get("FABRIC_RL_TRACEBACK") == "1":
            raise
        traceback.print_exception(error)
        _fail(f"{where}: {type(error).__name__}: {error}", 1, speaks=True)


def _loggers(start: Start, logger: Logger | list[Logger] | None) -> list[Logger]:
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


def _note_replaced_env(parser: FlagParser, given: Sequence[str], config: Any) -> None:  # noqa: ANN401 - jsonargparse's
    """Says that the `env` of a config file has no effect; that of the preset, or one that sets nothing, goes unsaid."""
    file = value_of(given, "--config")
    if file is None or Path(file).resolve() == DEFAULT_CONFIG.resolve() or not launch.is_rank_0():
        return
    if config.env != parser.parse_args([]).env:
        say(f"note: --env_id {config.env_id} takes the place of the env in {file}, which has no effect")


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
    strategy = hardware.get("strategy", os.environ.get("LT_STRATEGY"))
    contradicting: tuple[str, ...] = ()  # what `fabric run` has set
    if isinstance(strategy, DecoupledStrategy):
        contradicting = OF_FABRIC_RUN
    if strategy == "fsdp":  # Fabric's own of that name needs a GPU and an agent that was written for it
        if wanted in ("16", "16-mixed"):
            raise ValueError(f"--strategy fsdp: --precision {wanted} is not supported; use bf16-mixed or 32-true")
        hardware = hardware | {"strategy": ShardedStrategy()}
        contradicting = ("LT_STRATEGY",)
    elif isinstance(strategy, str) and strategy not in (known := ["auto", *STRATEGY_REGISTRY.available_strategies()]):
        hint = did_you_mean(strategy, known) or "; use auto, ddp or fsdp"
        raise ValueError(f"--strategy {strategy}: no such strategy{hint}")
    kept = {name: os.environ.pop(name) for name in contradicting if name in os.environ}
    try:
        fabric = Fabric(loggers=loggers, **hardware)
    except (RuntimeError, TypeError, ValueError) as error:  # Lightning's, for hardware that is not there or unknown
        if lost_rank(error):
            raise
        flag = next((name for name in ("devices", "num_nodes") if name in hardware and name in str(error)), None)
        named = f"--{flag} {hardware[flag]}: " if flag else ""
        raise MisconfigurationException(f"{named}{error}") from error
    finally:
        os.environ.update(kept)
    return fabric


def _share_cores(fabric: Fabric) -> str:
    """Divides the cores between the ranks of this machine (pools read LOCAL_WORLD_SIZE) and describes it."""
    ranks = launch.ranks_on_these_cores(fabric)
    os.environ["LOCAL_WORLD_SIZE"] = str(ranks)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    threads = max(1, cores // ranks)
    torch.set_num_threads(threads)
    count = f"{fabric.world_size} rank{'s' if fabric.world_size > 1 else ''}"
    nodes = int(getattr(fabric.strategy, "num_nodes", 1))
    where = f"{nodes} machines ({fabric.device.type})" if nodes > 1 else fabric.device.type
    roles = f"; {fabric.strategy.roles()}" if isinstance(fabric.strategy, DecoupledStrategy) else ""
    return f"{count} on {where}, {threads} of {cores} cores each{roles}"


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


def _fail(error: BaseException | str, status: int, speaks: bool | None = None) -> None:
    """Prints one line, on rank 0 or where `speaks` says so, and ends the process."""
    if os.environ.get("FABRIC_RL_TRACEBACK") == "1" and isinstance(error, BaseException):
        raise error
    speaks = launch.is_rank_0() if speaks is None else speaks
    if not speaks and launch.used_torchrun():
        time.sleep(RANK_0_SECONDS)
        speaks = True
    if speaks:
        message = error if isinstance(error, str) else explained(error)
        print(f"train_fabric.py: error: {one_line(message)}", file=sys.stderr, flush=True)
    sys.exit(status)


if __name__ == "__main__":
    cli()
