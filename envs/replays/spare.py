"""play_spare: a policy plays a game in an arena of its own with the parts of a pool, for the replay of it."""

import copy
from collections.abc import Callable, Generator
from typing import TYPE_CHECKING

from envs.actions import ContinuousAction
from envs.audit.parts import parts_of
from envs.bots.base import TeamBots
from envs.bots.policy import Choose, Mind, PolicyBot
from envs.replays.recorder import ReplayRecorder
from envs.replays.replay import Sink
from envs.state.layout import Float

if TYPE_CHECKING:
    from envs.pool.rocket_pool import RocketSimPool

Tell = Callable[[Float, Float | None], None]
"""Is told what a policy thinks, see `Mind.tell`."""


def play_spare(
    pool: "RocketSimPool", policy: Callable[[Tell], Choose], sink: Sink, title: str, seconds: float, seed: int
) -> Generator[float, None, None]:
    """Plays as `pool` does now: the same resets, ends of episodes, phase, cars, delay, observations and actions.

    The physics is the usual one, whatever parameters the pool draws. The pool is not touched: its parts are copied.
    Yields the seconds played. Closed before its end, the game is over there; the replay says how many were wanted.

    Args:
        pool: Where its arenas have other numbers of cars, the seed chooses one of these.
        policy: Makes the policy of all cars, with what it is to tell of its thoughts.
        sink: Takes the replay.
        title: Its name.
        seconds: Game time.
        seed: Of the resets.
    """
    setter, conditions = pool.state_setter, pool.done_conditions
    own = conditions[: len(conditions) - len(setter.conditions())]  # those of the setter come with it again
    setter, own, obs, action = copy.deepcopy((setter, own, pool.obs_builder, pool.action_parser))
    mind = Mind()
    bot = PolicyBot(policy(mind.tell), obs, action, pool.tick_skip, pool.action_delay_ticks, mind)
    about = {"names": ("blue", "orange"), "title": title, "seconds": seconds, "seed": seed, "tick_skip": pool.tick_skip}
    recorder = ReplayRecorder(sink, TeamBots(bot, bot), about, parts_of(pool.reward))
    blue = pool.state.num_blue
    sizes = sorted({(int(row[:blue].sum()), int(row[blue:].sum())) for row in pool.state.present})
    spare = type(pool)(
        1,
        sizes,
        action=ContinuousAction(),
        state_setter=setter,
        done=own,
        tick_skip=pool.tick_skip,
        action_delay_ticks=pool.action_delay_ticks,
        num_threads=1,
        seed=seed,
        first_arena=seed % len(sizes),
        loggers=[recorder],
    )
    try:
        spare.reset()
        while recorder.seconds < seconds:
            if recorder.begun:
                bot.reset(spare.state.episode_ticks == 0, spare.state)
                recorder.begun = False
            spare.step(bot.actions(spare.state, spare.action_parser))
            yield recorder.seconds
    finally:
        recorder.end_game()
        spare.close()
