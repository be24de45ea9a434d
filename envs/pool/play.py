"""play: the loop in which bots play a pool, for matches, exams, replays, demonstrations and audits."""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from envs.bots.base import Bot
from envs.state.game_state import GameState

if TYPE_CHECKING:
    from envs.pool.rocket_pool import RocketSimPool


def play(
    pool: "RocketSimPool",
    bot: Bot,
    seed: int | None = None,
    change: Callable[[NDArray[Any]], NDArray[Any]] = lambda actions: actions,
) -> Iterator[GameState]:
    """Reset `pool` and let `bot` play all of its cars, without end. Components of the pool record the game.

    Args:
        pool: Stepped when the next state is requested.
        bot: Plays all cars; reset whenever an episode begins.
        seed: Seed of the reset.
        change: Transforms the bot's actions `[N, ...]` before they are applied.

    Yields:
        `pool.state`, first after the reset, then after every step.
    """
    pool.reset(seed=seed)
    begun = np.ones(pool.num_arenas, np.bool_)
    while True:
        yield pool.state
        if begun.any():
            bot.reset(begun, pool.state)
        pool.step(change(bot.actions(pool.state, pool.action_parser)))
        begun = pool.state.episode_ticks == 0
