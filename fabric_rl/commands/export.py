"""`fabric-rl export`: writes a trained agent to keep, to share, or to run in other programs."""

import re
import shutil
from collections.abc import Iterable, Mapping
from contextlib import closing
from pathlib import Path
from shlex import quote
from tempfile import TemporaryDirectory
from typing import Any, Literal

import gymnasium
import numpy as np
import torch
import yaml
from lightning.pytorch.utilities.seed import isolate_rng
from numpy.typing import NDArray
from torch import Tensor

from agents import AttentionPPOAgent, RolesAgent
from envs.obs import ObsBuilder
from envs.pool.rocket_pool import RocketSimPool
from envs.pool.settings import layout_as_json
from fabric_rl.base.files import read_json, read_text, write_text
from fabric_rl.base.messages import one_line
from fabric_rl.base.text import escape_control_characters
from fabric_rl.evaluation.players import pool_factory_or_none, split_role
from fabric_rl.export.policy import check_packages, write_policy
from fabric_rl.metrics.log import logger
from fabric_rl.ranks.devices import single_thread
from fabric_rl.rlbot.bot_files import BOT_FILES, check_rlbot, write_bot
from fabric_rl.runs import checkpoint, trained
from fabric_rl.runs.folder import Run
from fabric_rl.runs.provenance import CONFIG, ENVIRONMENT, EXPORTED, METADATA, find_config
from fabric_rl.runs.records import FINAL
from fabric_rl.runs.trained import CHECK, MODELS, ExportedAgent
from fabric_rl.types import ActorCritic, CheckpointError, OffPolicyAgent

CARD = "README.md"
"""Model card of a final model."""
_CARD = """# {name}

{agent}, trained in {how}.

## What was measured

During training, with sampled actions:

{measured}

Measure how well it plays: `fabric-rl evaluate {path}`.

## Files

- `config.yaml`, `weights.ckpt`: for fabric-rl
- {model}

## Versions

{versions}
"""
_ARENAS = 8
"""Number of arenas of the self-test."""
_FILES = {
    EXPORTED: (CONFIG, EXPORTED),
    METADATA: (CONFIG, METADATA, CHECK, "play.py", *MODELS.values()),
    "bot.json": (*BOT_FILES, "lib"),
}
"""File that an export contains -> all files of such an export."""
_CAR = re.compile(r"((?:.*/)?(?:other|car)_)(\d+)")
"""Groups of columns of cars: allies, then opponents."""


def export(
    name: str,
    folder: Path,
    format: Literal["onnx", "torchscript", "weights", "rlbot"] = "weights",
    force: bool = False,
    team_size: int | None = None,
    runs_dir: Path = Path("runs"),
) -> int:
    """Export an agent to a small folder, without its run (docs/export.md).

    With `--format weights`, fabric-rl can play the agent and train it further. With `onnx` or `torchscript`, any
    program can run it: the folder also contains the observation statistics, masks, memory, the meaning of every column
    and action, a play.py, and states for a check. With `rlbot`, it is a bot for the real game (docs/rlbot.md), and the
    folder also contains everything of `onnx`.

    Args:
        name: Run id, path of a run, milestone or checkpoint, or an included agent such as school_1v1; NAME#ROLE for one
            role of an agent with roles (not with weights).
        folder: New or empty folder.
        format: Format of the export.
        force: Overwrite an earlier export in the folder.
        team_size: New number of cars per team, for weights only; for example, to start a 2v2 training from a 1v1 bot.
        runs_dir: Folder that contains all runs.
    """
    old = _exported(folder)
    if folder.exists() and not (folder.is_dir() and (force or not any(folder.iterdir()))):
        raise FileExistsError(f"{folder} exists; choose a new folder, or add --force to overwrite an export")
    if not old and folder.exists() and any(folder.iterdir()):
        raise FileExistsError(f"{folder} contains files, but not an export to overwrite; choose a new folder")
    if team_size is not None and format != "weights":
        raise ValueError(
            f"--team_size needs --format weights; export the weights first, then their folder with --format {format}"
        )
    if format == "weights" and (role := split_role(name, runs_dir)[1]):
        raise ValueError(f"one role ({role}) needs --format onnx, torchscript or rlbot; weights are those of all roles")
    check_packages(format)
    if format == "rlbot":
        check_rlbot("--format rlbot")
    with TemporaryDirectory() as made:  # a failure leaves nothing behind and changes nothing
        new = Path(made, "export")
        if format == "weights":
            if team_size is None:
                trained.export(name, new, runs_dir)
            else:
                export_for_teams(name, new, team_size, runs_dir)
        else:
            new.mkdir()
            _write(name, new, format, runs_dir, folder.resolve().name)
        _replace(new, folder, old)
    size = sum(file.stat().st_size for file in folder.rglob("*")) / 1e6
    print(f"written: {folder} ({size:.1f} MB)")
    if format != "weights":
        print(f"check it anywhere: python {quote((folder / 'play.py').as_posix())} --check")
    if format == "rlbot":
        print(f"test it without the game: fabric-rl flight {quote(folder.as_posix())}")
        print(f"play it in the game: see {quote((folder / 'README.txt').as_posix())}")
    return 0


def write_final(
    run: Run, summary: Mapping[str, Any], form: Literal["onnx", "weights", "none"], before: int | None = None
) -> None:
    """Write the final model of a run to `final/` in its folder: weights, configuration, ONNX and a model card.

    A run that only played, or that could not save its last steps, gets none. A failure only causes a warning.

    Args:
        run: The run, which has ended.
        summary: Its results.
        form: `weights` for no ONNX, `none` for no model.
        before: Agent-steps at which the run was resumed. If nothing was left to do, a model of that step stays.
    """
    if form == "none" or summary.get("inference") or "unsaved_steps" in summary or "checkpoint" not in summary:
        return
    checkpoint, final = str(summary["checkpoint"]), run.dir / FINAL
    try:
        steps = f" {summary['total_steps']:,} agent-steps"
        if before == summary["total_steps"] and (final / CARD).is_file() and steps in read_text(final / CARD):
            return
        with TemporaryDirectory(prefix=f".{FINAL}", dir=run.dir) as beside, isolate_rng():
            new, old, model = (Path(beside, name) for name in ("new", "old", "model"))
            trained.export(checkpoint, new)
            lacks = "" if form == "onnx" else "--final_model weights"
            try:
                check_packages("onnx")
                model.mkdir()
                if not lacks:
                    _write(checkpoint, model, "onnx", run.dir.parent, run.name)
                    shutil.copytree(model, new, dirs_exist_ok=True)
            except Exception as error:  # a user's environment may raise anything
                lacks = one_line(str(error))
            write_text(new / CARD, _card(run, summary, lacks))
            if final.exists():
                final.rename(old)
            new.rename(final)
    except (CheckpointError, OSError, ValueError) as error:
        logger.warning("the final model of run %s is not written: %s", run.name, error)


def _card(run: Run, summary: Mapping[str, Any], lacks: str) -> str:
    """Return the model card of a run; `lacks` says why there is no ONNX model, if there is none."""
    settings = yaml.safe_load(run.provenance.config.read_text(encoding="utf-8"))
    trained_in = settings.get("env_id") or (settings.get("env") or {}).get("class_path")
    end = f"stopped early by {summary.get('stopped_by')}" if summary["stopped_early"] else "to the end of its run"
    measured = (
        {} if summary["mean_return"] is None else {"mean return in the last 10 %": f"{summary['mean_return']:.4g}"}
    )
    for name, found in summary.items():
        if isinstance(found, dict):  # a headline of the environment
            measured[name.replace("_", " ")] = f"{found['start']:.4g} at first, {found['end']:.4g} at the end"
    packages = read_json(run.dir / ENVIRONMENT).get("packages", {})
    text = _CARD.format(
        name=run.name,
        agent=settings["agent"]["class_path"],
        how=f"{trained_in}: {summary['total_steps']:,} agent-steps with seed {settings['seed']}, {end}",
        measured="\n".join(f"- {name}: {value}" for name, value in measured.items()),
        path=quote((run.dir / FINAL).as_posix()),
        model=f"no ONNX model: {lacks}" if lacks else "`policy.onnx` and others: for any program (`play.py --check`)",
        versions=", ".join(f"{name} {version}" for name, version in packages.items()),
    )
    return escape_control_characters(text, "\n")


def _exported(folder: Path) -> list[str]:
    """Return the names of the files that an earlier export wrote to a folder."""
    if not (folder / CONFIG).is_file() or not any((folder / mark).is_file() for mark in (EXPORTED, METADATA)):
        return []
    files = {file for mark, files in _FILES.items() if (folder / mark).is_file() for file in files}
    return [file for file in sorted(files) if (folder / file).is_file() or (file == "lib" and (folder / file).is_dir())]


def _replace(new: Path, folder: Path, old: list[str]) -> None:
    """Replace the `old` files of a folder with the files of `new`, or leave everything as it was."""
    taken = [file.name for file in sorted(new.iterdir()) if file.name not in old and (folder / file.name).exists()]
    if taken:
        raise FileExistsError(
            f"{folder} contains files that are not of an export: {', '.join(taken)}; choose a new folder"
        )
    folder.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(prefix=".export", dir=folder) as beside:
        fresh, kept = Path(shutil.copytree(new, Path(beside, "new"))), Path(beside, "old")
        kept.mkdir()
        moves = [(folder / file, kept / file) for file in old]
        moves += [(file, folder / file.name) for file in fresh.iterdir()]
        done = []
        try:
            for source, target in moves:
                done.append((target, source))
                source.rename(target)
        except BaseException:  # also Ctrl+C: move everything back before the temporary folder is deleted
            for source, target in reversed(done):
                if source.exists():
                    source.rename(target)
            raise


def _write(name: str, folder: Path, form: str, runs_dir: Path, bot: str) -> None:
    path, role = split_role(name, runs_dir)
    found = trained.load_trained(path, runs_dir)
    settings = trained.inference_config(found.path)
    write_text(folder / CONFIG, settings)
    run = find_config(found.path).parent
    about: dict[str, Any] = {"run": run.name, "checkpoint": found.path.absolute().relative_to(run).as_posix()}
    recipe = pool_factory_or_none(found.env)
    made = recipe.build(num_arenas=max(_ARENAS, len(recipe.team_sizes))) if recipe else found.env(seed=0)
    with closing(made) as env, single_thread():
        agent: ActorCritic = found.agent(env.single_observation_space, env.single_action_space)
        columns = None
        if isinstance(agent, ExportedAgent):
            raise ValueError(f"{name} has already been exported; name the run that it comes from")
        if isinstance(agent, RolesAgent):
            if role not in agent.roles:
                raise ValueError(f"{name}: export one role at a time: {path}#ROLE with one of {', '.join(agent.roles)}")
            agent, columns = agent.agents[list(agent.roles).index(role)], -1
        elif role:
            raise ValueError(f"{name}: the agent has no roles")
        about |= {"role": role or None, "layout": {}}
        if recipe and isinstance(env, RocketSimPool):
            blue, orange = env.state.num_blue, env.state.num_orange
            sizes = recipe.playable_sizes()
            if form == "rlbot" and not sizes:
                raise ValueError(
                    f"--format rlbot: {name} sees {blue}v{orange}, which is none of the team sizes of its training; "
                    "train it with observations that have zero_padding"
                )
            about |= {"team_sizes": sizes or recipe.team_sizes, "tick_skip": env.tick_skip}
            about["action_delay_ticks"] = env.action_delay_ticks
            about["layout"] = layout_as_json(env.obs_builder, env.action_parser, blue, orange)
        elif form == "rlbot":
            raise ValueError(f"--format rlbot: {name} does not play Rocket League in an envs.RocketSimPool")
        model = "onnx" if form == "rlbot" else form
        write_policy(agent, env, model, folder, about, columns, 2 if isinstance(agent, AttentionPPOAgent) else 1)
        if form == "rlbot" and isinstance(env, RocketSimPool):
            write_bot(folder, bot, settings, env, run.name, about["team_sizes"])


def export_for_teams(name: str, folder: Path, team_size: int, runs_dir: Path) -> None:
    """Write an agent for teams of `team_size` that plays as before and can be trained further.

    The agent sees its first allies and opponents as before. Weights of columns that are new or were always empty are 0,
    so it ignores additional cars until it has learned about them; weights of removed columns are dropped. Observation
    statistics of new columns are copied from the first opponent's. An agent that uses the same weights for all cars
    (`EntityObs`) keeps them and takes additional cars into account immediately.

    Raises:
        CheckpointError, ValueError: There is no such agent, it was not trained in even teams of a RocketSimPool, or its
            observations do not name the columns of each car.
    """
    found = trained.load_trained(name, runs_dir)
    recipe = pool_factory_or_none(found.env)
    if recipe is None:
        raise ValueError(f"--team_size: {name} was not trained in an envs.RocketSimPool")
    with (
        closing(recipe.build(num_arenas=len(recipe.team_sizes))) as old,
        closing(recipe.build(num_arenas=1, team_size=team_size)) as new,
    ):
        before = found.agent(old.single_observation_space, old.single_action_space).state_dict()
        agent = found.untrained(new.single_observation_space, new.single_action_space)
        if agent.memory_size and isinstance(agent, OffPolicyAgent):  # its networks read memory before observations
            raise ValueError(f"--team_size: {name} is an agent of SAC with memory, which cannot be resized")
        after = agent.state_dict()
        sizes = ((pool.state.num_blue, pool.state.num_orange) for pool in (old, new))
        columns, like = kept_columns(new.obs_builder, *sizes)
        space, wider = new.single_observation_space, after
        if isinstance(space, gymnasium.spaces.Box) and len(space.shape) == 1:  # otherwise, weights belong to no column
            wider_space = gymnasium.spaces.Box(-np.inf, np.inf, (space.shape[0] + 1,), np.float32)
            wider = found.untrained(wider_space, new.single_action_space).state_dict()
    weights = {
        key: _moved(value, after[key], columns, like) if wider[key].shape != after[key].shape else value
        for key, value in before.items()
    }
    if apart := [key for key, value in weights.items() if value.shape != after[key].shape]:
        raise ValueError(f"--team_size: {name} cannot be resized: not only columns of {apart[0]} depend on it")
    settings = yaml.safe_load(trained.inference_config(found.path))
    inner = settings["env"]
    while "factory" in (inner.get("init_args") or {}):
        inner = inner["init_args"]["factory"]
    inner.setdefault("init_args", {})["team_size"] = team_size
    folder.mkdir(parents=True)
    write_text(folder / CONFIG, yaml.safe_dump(settings, sort_keys=False, width=120, allow_unicode=True))
    checkpoint.write(folder / EXPORTED, {"agent": weights})


def kept_columns(
    builder: ObsBuilder, old: tuple[int, int], new: tuple[int, int]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Map each observation column for `new` cars (blue, orange) to its column for `old` cars.

    Returns:
        Two index arrays: the matching old columns, -1 for columns that are new or always empty; and the same, but with
        new cars mapped to the first opponent's columns.

    Raises:
        ValueError: The old teams are uneven, or the builder does not tell other cars apart.
    """
    before, after = builder.columns(*old), builder.columns(*new)
    length = max(place.stop for place in after.values())
    has_cars = any(_CAR.fullmatch(name) for name in after)
    if old == new or (before == after and not has_cars):
        return np.arange(length), np.arange(length)
    if old[0] != old[1]:
        raise ValueError(f"--team_size: the agent was trained in games of {old[0]} against {old[1]}, not in even teams")
    if not has_cars:
        raise ValueError(f"--team_size: {type(builder).__name__} does not say which columns belong to which car")
    found, like = np.full((2, length), -1)
    for name, place in after.items():
        source, opponent = _same_car(name, before, after, old[0])
        if source in before:
            found[place] = like[place] = np.r_[before[source]]
        elif opponent in before:
            like[place] = np.r_[before[opponent]]
    return found, like


def _same_car(name: str, before: Iterable[str], after: Iterable[str], team: int) -> tuple[str | None, str]:
    """Return the old names of a car's group of columns (None for a new car) and of the first opponent's group."""
    car = _CAR.fullmatch(name)
    if not car:
        return name, name
    stem, first = car[1], int(car[1].endswith("car_"))  # `car_0` is the observer
    had, has = ((sum(each.startswith(stem) for each in names) - first) // 2 for names in (before, after))  # of allies
    number = int(car[2]) - first
    if number < has:  # the observer or an ally
        source = name if number < team - 1 else None
    else:
        source = f"{stem}{number - has + had + first}" if number - has < team else None
    return source, f"{stem}{had + first}"


def _moved(old: Tensor, new: Tensor, columns: NDArray[np.int64], like: NDArray[np.int64]) -> Tensor:
    """Return `old` with the columns (last axis) of `new`; new weights are 0, new statistics (vectors) follow `like`."""
    source = torch.from_numpy(columns if old.ndim > 1 else like)
    if old.ndim > 1 and (actions := new.shape[-1] - len(source)) > 0:  # critics that read actions after observations
        return torch.cat((_moved(old[..., :-actions], new[..., :-actions], columns, like), old[..., -actions:]), dim=-1)
    moved = torch.zeros_like(new) if old.ndim > 1 else new.clone()
    moved[..., source >= 0] = old[..., source[source >= 0]]
    return moved
