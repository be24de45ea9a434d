"""Demonstrations as the agents of some environment would have played them: what `--cloning.demos` and the like name."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from gymnasium.spaces import flatdim

from envs.adapters.gymnasium_envs import GymnasiumEnvs
from envs.bots import BOTS
from envs.demonstrations.file import Demonstration
from envs.demonstrations.record import columns_of
from envs.demonstrations.trajectories import Trajectory, of_observations, trajectories
from envs.factories import to_config, unwrap_partial
from envs.matches.matches import PoolFactory
from fabric_rl.base.presets import file_of
from fabric_rl.runs.trained import Trained, load_trained
from fabric_rl.types import EnvFactory


def trained_elsewhere(name: str, runs_dir: str) -> Trained | None:
    """The agent of that name, if there is one and it was trained in another environment than a pool."""
    if name in BOTS:
        return None
    try:
        trained = load_trained(name, runs_dir)
    except ValueError:
        return None  # a bot's class, or said in its turn
    try:
        PoolFactory(trained.env)
    except TypeError:
        return trained
    return None


def name_of_env(env: EnvFactory) -> str:
    """What a demonstration calls an environment that is no pool: the Gymnasium id, or the class."""
    call = unwrap_partial(env)
    if call.function is GymnasiumEnvs:
        return str(to_config(call.named()["env_id"]))
    return getattr(call.function, "__name__", type(call.function).__name__)


def trajectories_of(
    paths: Sequence[str | Path],
    env: EnvFactory,
    flag: str = "--cloning.demos",
    soft: bool = False,
    rewards: bool = False,
) -> list[Trajectory]:
    """What the demonstrators of some files saw and did, as the agents of `env` would have.

    Args:
        paths: Demonstrations (.frd).
        env: Builds the environment, for which the agents learn.
        flag: What named the files, for messages.
        soft: Give `Trajectory.soft`, too, in pools whose actions are a table.
        rewards: Give `Trajectory.reward` in pools, too: what the reward of `env` pays (in its first phase).

    Returns:
        All trajectories of all files, in order.

    Raises:
        ValueError: A file that is damaged, empty, or of another environment; one line that names the flag and the file.
        OSError: It cannot be read.
    """
    if not paths:
        raise ValueError(f"{flag}: name at least one demonstration (fabric-rl demos record makes them)")
    found: list[Trajectory] = []
    try:
        recipe: PoolFactory | None = PoolFactory(env)
    except TypeError:
        recipe = None
    for path in map(file_of, paths):
        try:
            demonstration = Demonstration(path)
            before = len(found)
            found += _of_pool(demonstration, recipe, soft, rewards) if recipe else _of_env(demonstration, env)
            if len(found) == before:
                raise ValueError(f"{path}: there is no step in it")
        except (OSError, ValueError) as error:
            raise type(error)(f"{flag} {error}") from error
    return found


def _of_pool(demonstration: Demonstration, recipe: PoolFactory, soft: bool, rewards: bool) -> Iterator[Trajectory]:
    path, about = demonstration.path, demonstration.about
    if not demonstration.of_states:
        raise ValueError(f"{path}: observations of {about.get('env')}, not states of Rocket League")
    if about["tick_skip"] != recipe.tick_skip:
        raise ValueError(
            f"{path}: a frame every {about['tick_skip']} ticks, the environment decides every {recipe.tick_skip}; "
            f"record it with --tick_skip {recipe.tick_skip}"
        )
    blue, orange = about["teams"].count(0), about["teams"].count(1)
    pool = recipe.build(num_arenas=1)
    try:
        obs, action, space = pool.obs_builder, pool.action_parser, pool.single_observation_space
    finally:
        pool.close()
    try:
        shape: Any = obs.space(blue, orange).shape
    except ValueError as error:
        raise ValueError(
            f"{path}: {blue}v{orange}, which the environment's observations cannot be of ({error})"
        ) from error
    if shape != space.shape:
        sizes = " and ".join(f"{a}v{b}" for a, b in recipe.team_sizes)
        raise ValueError(f"{path}: {blue}v{orange}, the environment has {sizes}, with other observations")
    return trajectories(demonstration, blue, obs, action, soft, recipe.reward() if rewards else None)


def _of_env(demonstration: Demonstration, env: EnvFactory) -> Iterator[Trajectory]:
    path, about = demonstration.path, demonstration.about
    if demonstration.of_states:
        raise ValueError(f"{path}: states of Rocket League, not observations of {name_of_env(env)}")
    envs = env(seed=0)
    try:
        spaces = envs.single_observation_space, envs.single_action_space
    finally:
        envs.close()
    mine = {"env": name_of_env(env), "observation_space": str(spaces[0]), "action_space": str(spaces[1])}
    for name, own in mine.items():
        if about.get(name) != own:
            raise ValueError(f"{path}: its {name.replace('_', ' ')} is {about.get(name)}, not {own}")
    shapes = {column.name: column.shape for column in columns_of(*spaces)} | {"action_mask": (flatdim(spaces[1]),)}
    for column in demonstration.columns:
        if column.shape != (here := shapes.get(column.name, column.shape)):
            raise ValueError(f"{path}: its column {column.name} holds {list(column.shape)} a frame, not {list(here)}")
    return of_observations(demonstration, *spaces)
