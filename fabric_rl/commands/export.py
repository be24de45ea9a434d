"""`fabric-rl export`: a trained agent to keep, to hand on, or to run in other programs."""

import shutil
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal

from gymnasium.vector import VectorEnv

from agents import AttentionPPOAgent, RolesAgent
from envs.matches.recipe import PoolRecipe
from envs.pool.rocket_pool import RocketSimPool
from envs.pool.settings import layout_in_numbers
from fabric_rl.commands.entrants import name_and_role
from fabric_rl.commands.rlbot_folder import BOT_FILES, check_rlbot, write_bot
from fabric_rl.export.loaded import CHECK, METADATA, MODELS, ExportedAgent
from fabric_rl.export.write import check_packages, write_policy
from fabric_rl.ranks.threads import one_thread
from fabric_rl.runs import trained
from fabric_rl.runs.json_files import write_text
from fabric_rl.runs.provenance import CONFIG, EXPORTED
from fabric_rl.types import ActorCritic

_ARENAS = 8
"""Of a pool that the agent plays in for the self-test."""
_FILES = (CONFIG, EXPORTED, METADATA, CHECK, "play.py", *MODELS.values(), *BOT_FILES)
"""What an export may consist of."""


def export(
    name: str,
    folder: Path,
    format: Literal["onnx", "torchscript", "weights", "rlbot"] = "weights",
    force: bool = False,
    runs_dir: Path = Path("runs"),
) -> int:
    """Writes an agent without its run into a small folder (docs/export.md).

    As weights fabric-rl plays it and trains it further. As onnx or torchscript any program runs it: with the statistics
    of its observations, masks, memory, what every column and action means, a play.py, and states to check it with.
    As rlbot it is a bot for the real game (docs/rlbot.md), and all that onnx is.

    Args:
        name: Run id, path of a run, milestone or checkpoint, school_1v1; of an agent with roles NAME#ROLE.
        folder: A new or empty folder.
        format: What is written.
        force: Write over an export that is in the folder.
        runs_dir: Folder of the run ids.

    Raises:
        ValueError: There is no such agent, or the format cannot hold it.
        OSError: There is something in the folder, or it cannot be written.
        ImportError: An exporter is not installed.
    """
    if folder.exists() and not (folder.is_dir() and (force or not any(folder.iterdir()))):
        raise FileExistsError(f"{folder} is not empty; choose a new folder, or --force to write over an export")
    check_packages(format)
    if format == "rlbot":
        check_rlbot("--format rlbot")
    with TemporaryDirectory() as made:  # what fails leaves nothing, and what is there stays
        new = Path(made, "export")
        if format == "weights":
            trained.export(name, new, runs_dir)
        else:
            new.mkdir()
            _write(name, new, format, runs_dir, folder.resolve().name)
        folder.mkdir(parents=True, exist_ok=True)
        for file in _FILES:
            (folder / file).unlink(missing_ok=True)
        shutil.copytree(new, folder, dirs_exist_ok=True)
    size = sum(file.stat().st_size for file in folder.rglob("*")) / 1e6
    print(f"written: {folder} ({size:.1f} MB)")
    if format != "weights":
        print(f"check it anywhere: python {folder / 'play.py'} --check")
    if format == "rlbot":
        print(f"fly it without the game: fabric-rl flight {folder}")
    return 0


def _write(name: str, folder: Path, form: str, runs_dir: Path, bot: str) -> None:
    """Writes all files of an exported policy, and of a bot for the real game its own."""
    path, role = name_and_role(name)
    found = trained.load_trained(path, runs_dir)
    settings = trained.settings_to_play(found.path)
    write_text(folder / CONFIG, settings)
    run = trained.config_of(found.path).parent
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
            about |= {"team_sizes": PoolRecipe(found.env).team_sizes, "tick_skip": env.tick_skip}
            about["action_delay_ticks"] = env.action_delay_ticks
            about["layout"] = layout_in_numbers(env.obs_builder, env.action_parser, blue, orange)
        elif form == "rlbot":
            raise ValueError(f"--format rlbot: {name} does not play Rocket League in an envs.RocketSimPool")
        model = "onnx" if form == "rlbot" else form
        write_policy(agent, env, model, folder, about, columns, 2 if isinstance(agent, AttentionPPOAgent) else 1)
        if form == "rlbot" and isinstance(env, RocketSimPool):
            write_bot(folder, bot, settings, env, run.name)


def _env(found: trained.Trained) -> VectorEnv:
    """What the agent was trained in, small."""
    try:
        recipe = PoolRecipe(found.env)
    except TypeError:
        return found.env(seed=0)
    return recipe.build(num_arenas=max(_ARENAS, len(recipe.team_sizes)))
