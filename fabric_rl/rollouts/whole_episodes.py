"""play_episodes(): whole episodes of an agent, to measure its performance."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from gymnasium.vector import VectorEnv
from numpy.typing import NDArray

from fabric_rl.types import HasEpisodeFigures, HasSeeds


class Episodes(NamedTuple):
    """`E` independent episodes."""

    returns: NDArray[np.float64]
    """`[E]`, undiscounted."""
    lengths: NDArray[np.float64]
    """`[E]`, steps."""
    figures: Mapping[str, NDArray[np.float64]] = MappingProxyType({})
    """`[F]` for each figure that the environment reports, such as `success`: its values in episodes that have it."""


def play_episodes(envs: VectorEnv, choose: Callable[..., NDArray[Any]], episodes: int, seed: int) -> Episodes:
    """Play rounds with different seeds, and return the first episode of every sub-environment in each round.

    Short episodes are thus not overrepresented, and values that an environment keeps for several episodes, such as
    sampled parameters, are sampled again. Sub-environments that share a seed (the cars of one game) count as one
    episode, with their mean.

    Args:
        envs: Environment with SAME_STEP autoreset.
        choose: Policy, see `fabric_rl.runs.trained.policy`.
        episodes: Minimum number of episodes, over all sub-environments.
        seed: Seed; neighboring seeds share no episodes with each other or with a training that uses the same seed.
    """
    n = envs.num_envs
    worlds = envs.num_seeds if isinstance(envs, HasSeeds) and n % envs.num_seeds == 0 else n
    seeds = np.random.SeedSequence(seed, spawn_key=(1,)).generate_state(-(-episodes // worlds)).tolist()
    rounds = [_one_episode_each(envs, choose, each) for each in seeds]
    table = np.stack([played for played, _ in rounds], axis=1)  # [n, rounds, 2]
    table = table.reshape(worlds, n // worlds, -1, 2).mean(axis=1).reshape(-1, 2)
    figures: dict[str, list[float]] = {}
    for name, value in (item for _, found in rounds for each in found for item in each.items()):
        figures.setdefault(name, []).append(value)
    return Episodes(table[:, 0], table[:, 1], {name: np.array(values) for name, values in figures.items()})


def _one_episode_each(
    envs: VectorEnv, choose: Callable[..., NDArray[Any]], seed: int
) -> tuple[NDArray[np.float64], list[Mapping[str, float]]]:
    """Return `[N, 2]`, return and length of the first episode of every sub-environment, and figures of episodes."""
    n, figures = envs.num_envs, list[Mapping[str, float]]()
    played, over, begins = np.zeros((n, 2)), np.zeros(n, np.bool_), np.ones(n, np.bool_)
    obs, infos = envs.reset(seed=seed)
    while not over.all():
        obs = obs if obs.dtype == np.uint8 else np.asarray(obs, np.float32)
        obs, rewards, terminated, truncated, infos = envs.step(choose(obs, begins, infos.get("action_mask")))
        played[~over] += np.stack((rewards, np.ones(n)), axis=1)[~over]
        begins = terminated | truncated
        if isinstance(envs, HasEpisodeFigures):
            figures += [envs.episode_figures(int(i)) for i in np.flatnonzero(begins & ~over)]
        over |= begins
    return played, figures
