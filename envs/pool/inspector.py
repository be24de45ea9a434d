"""PoolInspector: information about a pool in training for `fabric_rl.callbacks.Debug`, and games alongside training."""

import copy
from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from rlgym.rocket_league.common_values import TICKS_PER_SECOND

from envs.actions import ContinuousAction
from envs.actions.base import nested_parsers
from envs.actions.tables import ActionTable
from envs.dones import PastGoal, TimeoutCondition
from envs.loggers import TurtleRecoveryLogger
from envs.pool.players import Diagnostics, PolicyBot, PolicyFn, TeamBots, play
from envs.pool.recorder import ReplayRecorder
from envs.pool.replay_format import SUFFIX, Sink
from envs.resets import TurtledStart
from envs.resets.initial_states import ResetRow, describe_problems, find_problems, initial_state_rows, summarize_ranges
from envs.rewards.parts import reward_terms
from envs.state.layout import Float

if TYPE_CHECKING:
    from envs.pool.rocket_pool import RocketSimPool

PROBED_ARENAS, PROBE_SECONDS = 8, 3.0

ProbeSink = Callable[[Float, Float | None], None]
"""Function that receives a policy's values and probabilities, see `Diagnostics.tell`."""


class PoolInspector:
    """Describes the action table and initial states of a pool, and tests how a policy recovers cars on their roofs."""

    def __init__(self, pool: "RocketSimPool") -> None:
        """Inspect `pool`; its state may change in the meantime."""
        self._pool, self._parser, self._state = pool, pool.action_parser, pool.state
        self._rows, self._problems = list[ResetRow](), list[list[str]]()

    def describe_actions(self) -> list[str]:
        """Return lines about the coverage of the action table."""
        innermost = nested_parsers(self._parser)[-1]
        if isinstance(innermost, ActionTable):
            return innermost.coverage()
        return [f"{type(innermost).__name__} has no table"]

    def first_states(self) -> int:
        """Record the initial states of arenas whose episode has just begun; return their number."""
        fresh = np.flatnonzero(self._state.episode_ticks == 0).tolist()
        for arena in fresh:
            self._rows += initial_state_rows(self._state, arena, len(self._problems))
            self._problems.append([problem.kind for problem in find_problems(self._state, arena)])
        return len(fresh)

    def describe_resets(self) -> list[str]:
        """Return lines with the ranges of the recorded initial states."""
        if not self._rows:
            return ["no episode has begun just now (a resumed run continues in the middle of its episodes)"]
        lines: dict[str, list[str]] = {}
        for what, quantity, least, _, greatest in summarize_ranges(self._rows):
            lines.setdefault(what, []).append(f"{quantity} {least:.0f}..{greatest:.0f}")
        return [
            f"first states of {len(self._problems)} episodes",
            *(f"{what}: {', '.join(numbers)}" for what, numbers in lines.items()),
        ]

    def reset_rows(self) -> list[ResetRow]:
        """Return the recorded initial states, see `envs.resets.initial_states.initial_state_rows`."""
        return self._rows

    def reset_problems(self) -> list[str]:
        """Return the problems in the recorded initial states: impossible, or usually unintended."""
        return describe_problems(self._problems)

    game_suffix = SUFFIX

    def record_game(
        self, policy: Callable[[ProbeSink], PolicyFn], sink: Sink, title: str, seconds: float, seed: int
    ) -> Generator[float, None, None]:
        """Record a game alongside training, with copies of the pool's resets, dones, phase, obs and actions.

        The physics parameters have their defaults, whatever the pool samples. Yields the seconds played. If the
        generator is closed early, the game ends there; the replay stores the planned length.

        Args:
            policy: Builds the policy of all cars from a function that receives its values and probabilities.
            sink: Receives the replay.
            title: Title of the replay.
            seconds: Game time.
            seed: Seed of the resets; if the pool's team sizes differ, it also selects one of them.
        """
        pool = self._pool
        parts = (pool.state_setter, pool.given_dones, pool.obs_builder, pool.action_parser)
        setter, own, obs, action = copy.deepcopy(parts)  # the new pool adds the setter's dones again
        mind = Diagnostics()
        bot = PolicyBot(policy(mind.tell), obs, action, pool.tick_skip, pool.action_delay_ticks, mind)
        about = {"names": ("blue", "orange"), "title": title, "seconds": seconds, "seed": seed}
        about |= {"tick_skip": pool.tick_skip}
        holds = [PastGoal(condition) for condition in own]
        recorder = ReplayRecorder(sink, TeamBots(bot, bot), about, reward_terms(pool.reward), holds=holds)
        sizes = self._team_sizes()
        settings: dict[str, Any] = {"seed": seed, "first_arena": seed % len(sizes), "loggers": [recorder]}
        spare = spare_pool(pool, 1, sizes, action=ContinuousAction(), state_setter=setter, done=holds, **settings)
        try:
            steps = play(spare, bot)
            next(steps)
            while recorder.seconds < seconds:
                next(steps)
                yield recorder.seconds
        finally:
            recorder.end_game()
            spare.close()

    def probe(self, choose: Callable[..., NDArray[Any]]) -> list[str]:
        """Let a policy play a few cars that lie on their roofs, in a separate pool, and report how many get up.

        The initial states are always the same. The inspected pool is not changed.

        Args:
            choose: Policy, see `envs.pool.players.PolicyFn`.
        """
        pool, sizes = self._pool, self._team_sizes()
        parts = copy.deepcopy(pool.obs_builder), copy.deepcopy(pool.action_parser), None, TurtledStart()
        probed = spare_pool(pool, max(PROBED_ARENAS, len(sizes)), sizes, *parts, TimeoutCondition(2 * PROBE_SECONDS))
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

    def _team_sizes(self) -> list[tuple[int, int]]:
        """Return the team sizes (blue, orange) that occur in the pool's arenas, sorted."""
        blue = self._state.num_blue
        return sorted({(int(row[:blue].sum()), int(row[blue:].sum())) for row in self._state.present})


def spare_pool(pool: "RocketSimPool", *settings: Any, **others: Any) -> "RocketSimPool":  # noqa: ANN401
    """Return another pool of the same class with one thread, and with as many ticks in a step."""
    others |= {"tick_skip": pool.tick_skip, "action_delay_ticks": pool.action_delay_ticks, "num_threads": 1}
    return type(pool)(*settings, **others)
