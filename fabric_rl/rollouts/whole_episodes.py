"""play_episodes(): whole episodes of an agent that learns nothing from them."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from gymnasium.vector import VectorEnv
from numpy.typing import NDArray

from fabric_rl.types import HasSeeds


class Episodes(NamedTuple):
    """`E` episodes that know nothing of one another."""

    returns: NDArray[np.float64]
    """`[E]`, undiscounted."""
    lengths: NDArray[np.float64]
    """`[E]`, steps."""


def play_episodes(envs: VectorEnv, choose: Callable[..., NDArray[Any]], episodes: int, seed: int) -> Episodes:
    """Plays in rounds, each from a seed of its own: of every sub-environment the first episode counts.

    So short episodes count no more than long ones, and what an environment keeps for several episodes, as drawn
    parameters, is drawn anew. Sub-environments that share a seed (the cars of one game) are one: their mean counts.

    Args:
        envs: With SAME_STEP autoreset.
        choose: The agent, see `fabric_rl.runs.trained.policy`.
        episodes: How many at least, over all sub-environments.
        seed: Neighbours have no episodes in common, nor has a training with that seed.
    """
    n = envs.num_envs
    worlds = envs.num_seeds if isinstance(envs, HasSeeds) and n % envs.num_seeds == 0 else n
    rounds = [_one_episode_each(envs, choose, seed) for seed in _seeds(seed, -(-episodes // worlds))]
    table = np.stack(rounds, axis=1)  # [n, rounds, 2]
    table = table.reshape(worlds, n // worlds, -1, 2).mean(axis=1).reshape(-1, 2)
    return Episodes(table[:, 0], table[:, 1])


def _one_episode_each(envs: VectorEnv, choose: Callable[..., NDArray[Any]], seed: int) -> NDArray[np.float64]:
    """`[N, 2]` return and length of the first episode of every sub-environment."""
    n = envs.num_envs
    played, over, begins = np.zeros((n, 2)), np.zeros(n, np.bool_), np.ones(n, np.bool_)
    obs, infos = envs.reset(seed=seed)
    while not over.all():
        obs = obs if obs.dtype == np.uint8 else np.asarray(obs, np.float32)
        obs, rewards, terminated, truncated, infos = envs.step(choose(obs, begins, infos.get("action_mask")))
        played[~over] += np.stack((rewards, np.ones(n)), axis=1)[~over]
        begins = terminated | truncated
        over |= begins
    return played


def _seeds(seed: int, rounds: int) -> list[int]:
    return [int(number) for number in np.random.SeedSequence(seed, spawn_key=(1,)).generate_state(rounds)]
