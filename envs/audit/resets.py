"""Initial states of a configuration.

In a notebook: `rows = reset_rows(partial(RocketSimPool, state_setter=...))`, then `pandas.DataFrame(rows)`.
"""

from collections.abc import Callable
from typing import Any

from envs.checks import check_seed
from envs.matches.matches import PoolFactory
from envs.resets.initial_states import ResetRow, initial_state_rows
from fabric_rl.base.settings import Count, check_value

MOST_ARENAS = 16


def reset_rows(
    factory: Callable[..., Any], episodes: int = 100, seed: int = 0, phase: str | None = None
) -> list[ResetRow]:
    """Return the initial states of many episodes.

    Args:
        factory: `RocketSimPool`, or a `functools.partial` of it with settings.
        episodes: Number of episodes.
        seed: Seed of the first arena; arena `i` uses `seed + i`.
        phase: Phase of training, for a pool with phases; default: the first.

    Returns:
        A row for the ball and for each car of each episode, see `envs.resets.initial_states.initial_state_rows`.

    Raises:
        ValueError: `episodes` is out of range, or an initial state is invalid.
        TypeError: The factory does not build a `RocketSimPool`.
    """
    owner = "show-resets"
    check_value(f"{owner}: --episodes", episodes, Count)
    check_seed(owner, seed, "--seed")
    recipe = PoolFactory(factory, owner, phase)
    arenas = min(episodes, max(MOST_ARENAS, len(recipe.team_sizes)))
    pool = recipe.build(num_arenas=arenas, seed=seed, obs=None)
    rows: list[ResetRow] = []
    try:
        for first in range(0, episodes, arenas):
            pool.reset()
            for arena in range(min(arenas, episodes - first)):
                rows += initial_state_rows(pool.state, arena, first + arena)
    finally:
        pool.close()
    return rows
