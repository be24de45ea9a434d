"""PoolInspector: what the callback `fabric_rl.callbacks.Debug` is told about a pool while a run trains in it."""

import copy
from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from rlgym.rocket_league.common_values import TICKS_PER_SECOND

from envs.actions.base import unwrapped
from envs.actions.description import coverage
from envs.actions.lookup import ActionTable
from envs.bots.policy import Choose
from envs.dones import TimeoutCondition
from envs.loggers import TurtleRecoveryLogger
from envs.replays.replay import SUFFIX, Sink
from envs.replays.spare import Tell, play_spare
from envs.resets import TurtledStart
from envs.resets.first_states import ResetRow, problems_of, ranges_of, rows_of

if TYPE_CHECKING:
    from envs.pool.rocket_pool import RocketSimPool

PROBED_ARENAS, PROBE_SECONDS = 8, 3.0


class PoolInspector:
    """Looks at an action table, at the first states of episodes, and at what a policy does on its roof."""

    def __init__(self, pool: "RocketSimPool") -> None:
        """Takes the pool, whose state changes under way."""
        self._pool, self._parser, self._state = pool, pool.action_parser, pool.state
        self._rows, self._episodes = list[ResetRow](), 0

    def describe_actions(self) -> list[str]:
        """What the action table covers."""
        innermost = unwrapped(self._parser)[-1]
        if isinstance(innermost, ActionTable):
            return coverage(innermost)
        return [f"{type(innermost).__name__} has no table"]

    def first_states(self) -> int:
        """Takes down the arenas whose episode has just begun; returns how many."""
        fresh = np.flatnonzero(self._state.episode_ticks == 0).tolist()
        for arena in fresh:
            self._rows += rows_of(self._state, arena, self._episodes)
            self._episodes += 1
        return len(fresh)

    def describe_resets(self) -> list[str]:
        """The ranges of the first states taken down."""
        if not self._rows:
            return ["no episode has begun just now (a resumed run goes on in the middle of its episodes)"]
        lines: dict[str, list[str]] = {}
        for what, quantity, least, _, greatest in ranges_of(self._rows):
            lines.setdefault(what, []).append(f"{quantity} {least:.0f}..{greatest:.0f}")
        return [
            f"first states of {self._episodes} episodes",
            *(f"{what}: {', '.join(numbers)}" for what, numbers in lines.items()),
        ]

    def reset_rows(self) -> list[ResetRow]:
        """The first states taken down, see `envs.resets.first_states.rows_of`."""
        return self._rows

    def reset_problems(self) -> list[str]:
        """What is impossible in the first states taken down."""
        return problems_of(self._rows)

    game_suffix = SUFFIX

    def record_game(
        self, policy: Callable[[Tell], Choose], sink: Sink, title: str, seconds: float, seed: int
    ) -> Generator[float, None, None]:
        """See `envs.replays.spare.play_spare`."""
        return play_spare(self._pool, policy, sink, title, seconds, seed)

    def probe(self, choose: Callable[..., NDArray[Any]]) -> list[str]:
        """Lets a policy play a few cars that lie on their roofs, in a pool of its own, and says how many get up.

        The same first states every time. The inspected pool is not touched.

        Args:
            choose: See `envs.bots.policy.Choose`.
        """
        pool, blue = self._pool, self._pool.state.num_blue
        sizes = {(int(row[:blue].sum()), int(row[blue:].sum())) for row in pool.state.present}
        probed = type(pool)(
            max(PROBED_ARENAS, len(sizes)),
            sorted(sizes),
            copy.deepcopy(pool.obs_builder),
            copy.deepcopy(pool.action_parser),
            state_setter=TurtledStart(),
            done=TimeoutCondition(2 * PROBE_SECONDS),
            tick_skip=pool.tick_skip,
            action_delay_ticks=pool.action_delay_ticks,
            num_threads=1,
        )
        obs, infos = probed.reset()
        state, begins = probed.state, np.ones(probed.num_envs, np.bool_)
        took = np.full(state.present.shape, np.inf)
        while (ticks := int(state.episode_ticks[0])) < PROBE_SECONDS * TICKS_PER_SECOND:
            obs, *_, infos = probed.step(choose(obs, begins, infos.get("action_mask")))
            begins[:] = False
            stands = state.on_ground & (state.world.car_up[..., 2] > TurtleRecoveryLogger.UPRIGHT) & state.present
            took[stands] = np.minimum(took[stands], ticks + pool.tick_skip)
        probed.close()
        up = took[np.isfinite(took)]
        after = f", after {up.mean() / TICKS_PER_SECOND:.1f} s on average" if len(up) else ""
        return [
            f"{len(up)} of {probed.num_envs} cars that lay on their roofs stood up within {PROBE_SECONDS:g} s{after}"
        ]
