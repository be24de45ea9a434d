"""`fabric-rl export`: a trained agent to keep, to hand on, or to run in other programs."""

import shutil
from contextlib import closing
from pathlib import Path
from shlex import quote
from tempfile import TemporaryDirectory
from typing import Any, Literal

from gymnasium.vector import VectorEnv

from agents import AttentionPPOAgent, RolesAgent
from envs.matches.matches import PoolFactory
from envs.pool.rocket_pool import RocketSimPool
from envs.pool.settings import layout_in_numbers
from fabric_rl.base.files import write_text
from fabric_rl.commands.adapt_team_size import export_for_teams
from fabric_rl.evaluation.players import name_and_role
from fabric_rl.export.write import check_packages, write_policy
from fabric_rl.ranks.devices import one_thread
from fabric_rl.rlbot.folder import BOT_FILES, check_rlbot, write_bot
from fabric_rl.runs import trained
from fabric_rl.runs.provenance import CONFIG, EXPORTED, METADATA, config_of
from fabric_rl.runs.trained import CHECK, MODELS, ExportedAgent
from fabric_rl.types import ActorCritic

_ARENAS = 8
"""Of a pool that the agent plays in for the self-test."""
_FILES = {
    EXPORTED: (CONFIG, EXPORTED),
    METADATA: (CONFIG, METADATA, CHECK, "play.py", *MODELS.values()),
    "bot.json": (*BOT_FILES, "lib"),
}
"""What exports consist of that have a file."""


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
        name: Run id, path of a run, milestone or checkpoint, or an included agent such as school_1v1; NAME#ROLE for an
            agent with roles.
        folder: New or empty folder.
        format: Format of the export.
        force: Overwrite an earlier export in the folder.
        team_size: New number of cars per team, for weights only; for example, to start a 2v2 training from a 1v1 bot.
        runs_dir: Folder that contains all runs.
    """
    old = _exported(folder)
    if folder.exists() and not (folder.is_dir() and (force or not any(folder.iterdir()))):
        raise FileExistsError(f"{folder} is not empty; choose a new folder, or --force to write over an export")
    if not old and folder.exists() and any(folder.iterdir()):
        raise FileExistsError(f"{folder} holds files, but no export that --force could write over; choose a new folder")
    if team_size is not None and format != "weights":
        raise ValueError(
            f"--team_size: only weights change their teams; leave out --format {format}, export the result"
        )
    check_packages(format)
    if format == "rlbot":
        check_rlbot("--format rlbot")
    with TemporaryDirectory() as made:  # what fails leaves nothing, and what is there stays
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
        print(f"fly it without the game: fabric-rl flight {quote(folder.as_posix())}")
        print(f"into the game: {quote((folder / 'README.txt').as_posix())} says how")
    return 0


def _exported(folder: Path) -> list[str]:
    """Return the names of all files of the export in a folder."""
    if not (folder / CONFIG).is_file() or not any((folder / mark).is_file() for mark in (EXPORTED, METADATA)):
        return []
    files = {file for mark, files in _FILES.items() if (folder / mark).is_file() for file in files}
    return [file for file in sorted(files) if (folder / file).is_file() or (file == "lib" and (folder / file).is_dir())]


def _replace(new: Path, folder: Path, old: list[str]) -> None:
    """Put the files of `new` in the place of `old` ones, which stay if that fails."""
    taken = [file.name for file in sorted(new.iterdir()) if file.name not in old and (folder / file.name).exists()]
    if taken:
        raise FileExistsError(f"{folder} has files that are of no export: {', '.join(taken)}; choose a new folder")
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
        except BaseException:  # Ctrl+C, too: the folder beside goes, and with it what is not back
            for source, target in reversed(done):
                if source.exists():
                    source.rename(target)
            raise


def _write(name: str, folder: Path, form: str, runs_dir: Path, bot: str) -> None:
    path, role = name_and_role(name, runs_dir)
    found = trained.load_trained(path, runs_dir)
    settings = trained.settings_to_play(found.path)
    write_text(folder / CONFIG, settings)
    run = config_of(found.path).parent
    about: dict[str, Any] = {"run": run.name, "checkpoint": found.path.absolute().relative_to(run).as_posix()}
    with closing(_env(found)) as env, one_thread():
        agent: ActorCritic = found.agent(env.single_observation_space, env.single_action_space)
        columns = None
        if isinstance(agent, ExportedAgent):
            raise ValueError(f"{name} is exported already; name the run that it comes from")
        if isinstance(agent, RolesAgent):
            if role not in agent.roles:
                raise ValueError(f"{name}: one role is exported at a time, {path}#ROLE of {', '.join(agent.roles)}")
            agent, columns = agent.agents[list(agent.roles).index(role)], -1
        elif role:
            raise ValueError(f"{name}: it has no roles")
        about |= {"role": role or None, "layout": {}}
        if isinstance(env, RocketSimPool):
            blue, orange = env.state.num_blue, env.state.num_orange
            about |= {"team_sizes": PoolFactory(found.env).team_sizes, "tick_skip": env.tick_skip}
            about["action_delay_ticks"] = env.action_delay_ticks
            about["layout"] = layout_in_numbers(env.obs_builder, env.action_parser, blue, orange)
        elif form == "rlbot":
            raise ValueError(f"--format rlbot: {name} does not play Rocket League in an envs.RocketSimPool")
        model = "onnx" if form == "rlbot" else form
        write_policy(agent, env, model, folder, about, columns, 2 if isinstance(agent, AttentionPPOAgent) else 1)
        if form == "rlbot" and isinstance(env, RocketSimPool):
            write_bot(folder, bot, settings, env, run.name, about["team_sizes"])


def _env(found: trained.Trained) -> VectorEnv:
    """Return the environment of the agent's training, with few arenas."""
    try:
        recipe = PoolFactory(found.env)
    except TypeError:
        return found.env(seed=0)
    return recipe.build(num_arenas=max(_ARENAS, len(recipe.team_sizes)))
