"""`fabric-rl evaluate` of an agent that was trained in any other environment than a pool: whole episodes of it."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from gymnasium.vector import VectorEnv
from numpy.typing import NDArray

from fabric_rl.commands.entrants import check_positive
from fabric_rl.runs.trained import Trained
from fabric_rl.selfplay.ratings.intervals import mean_interval
from fabric_rl.types import HasSeeds


class Episodes(NamedTuple):
    """`E` episodes that know nothing of one another."""

    returns: NDArray[np.float64]
    """`[E]`, undiscounted."""
    lengths: NDArray[np.float64]
    """`[E]`, steps."""


def evaluate_episodes(trained: Trained, episodes: int, seed: int, sample: bool) -> dict[str, Any]:
    """Plays episodes and prints the means of their returns and lengths, with 95 % confidence intervals.

    Args:
        trained: The agent and its environment.
        episodes: How many are played, at least.
        seed: Of the environment.
        sample: The agent draws actions instead of taking the likeliest.

    Returns:
        The same as numbers.
    """
    check_positive(episodes=episodes)
    envs = trained.env(seed=seed)
    try:
        choose = trained.choose(envs.single_observation_space, envs.single_action_space, not sample, seed)
        played = play_episodes(envs, choose, episodes, seed)
    finally:
        envs.close()
    results: dict[str, Any] = {"player": trained.name, "seed": seed, "sample": sample, "episodes": len(played.returns)}
    how = "draws its actions" if sample else "takes its likeliest actions"
    print(f"{results['episodes']} episodes of {trained.name}, which {how}")
    for name, values in (("return", played.returns), ("length", played.lengths)):
        interval = mean_interval(values) if values.std() > 0 else None
        results |= {f"mean_{name}": float(values.mean()), f"{name}_interval_95": interval and list(interval)}
        known = (
            f"95 % {interval.low:,.5g} to {interval.high:,.5g}" if interval else "no interval: too few, or all alike"
        )
        print(f"  mean {name} {values.mean():,.5g} ({known})")
    return results


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
