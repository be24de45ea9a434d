"""Matches between two bots on real physics."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from rlgym.rocket_league.common_values import TICKS_PER_SECOND

from envs.actions import ContinuousAction
from envs.bots.base import Bot, TeamBots
from envs.checks import positive
from envs.dones import GoalCondition
from envs.loggers.base import StateLogger
from envs.pool.rocket_pool import RocketSimPool
from envs.resets import Kickoff
from envs.state.game_state import GameState
from envs.state.layout import BLUE, Bool

ARENAS_AT_ONCE = 100
SIDES = 2


@dataclass(frozen=True)
class Matches:
    """Results, match by match.

    Attributes:
        goals: `[M, 2]` int64, of the bot and of its opponent.
        touches: `[M, 2]` int64, contacts with the ball, each once however long it lasts.
        minutes: Game time of each match.
        cars: In each team.
    """

    goals: NDArray[np.int64]
    touches: NDArray[np.int64]
    minutes: float
    cars: int

    @property
    def wins(self) -> int:
        """Matches that the bot won."""
        return int((self.goals[:, 0] > self.goals[:, 1]).sum())

    @property
    def losses(self) -> int:
        """Matches that its opponent won."""
        return int((self.goals[:, 0] < self.goals[:, 1]).sum())

    @property
    def draws(self) -> int:
        """Matches without a winner."""
        return len(self.goals) - self.wins - self.losses


def play_matches(
    bot: Bot,
    opponent: Bot,
    num_matches: int = 200,
    minutes: float = 5.0,
    team_size: int = 1,
    seed: int = 0,
    tick_skip: int = 8,
    action_delay_ticks: int = 1,
    num_threads: int | None = None,
) -> Matches:
    """Lets two bots play matches that begin, and after each goal go on, with a kickoff.

    Half of them (rounded up) the bot plays as blue, the others, from the same kickoffs, as orange. A match lasts
    `minutes` of play; there is no overtime. The same arguments give the same results on the same processor. Played from
    the other side a game begins alike, but not to the bit: it is another one after the first touches.

    Args:
        bot: Plays for one side, all of its cars.
        opponent: Plays for the other.
        num_matches: How many.
        minutes: Game time of each.
        team_size: Cars in each team.
        seed: Of the kickoffs; match `i` of each half draws from `seed + i`.
        tick_skip: Physics ticks (1/120 s) between decisions.
        action_delay_ticks: Ticks at the start of a step that still run the previous action.
        num_threads: See `RocketSimPool`.

    Raises:
        ValueError: No match, no time or no car.
    """
    for name, number in (("num_matches", num_matches), ("minutes", minutes), ("team_size", team_size)):
        positive("play_matches", name, number)
    found: list[NDArray[np.int64]] = []
    blue = (num_matches + 1) // SIDES
    for first_seat, count in ((0, blue), (1, num_matches - blue)):
        for begin in range(0, count, ARENAS_AT_ONCE):
            score = _Score()
            pool = RocketSimPool(
                num_arenas=min(ARENAS_AT_ONCE, count - begin),
                team_size=team_size,
                action=ContinuousAction(),
                state_setter=Kickoff(),
                done=GoalCondition(),
                tick_skip=tick_skip,
                action_delay_ticks=action_delay_ticks,
                num_threads=num_threads,
                seed=seed + begin,
                loggers=[score],
            )
            seats = (bot, opponent) if first_seat == 0 else (opponent, bot)
            try:
                _play(pool, TeamBots(*seats), score, max(1, round(minutes * 60 * TICKS_PER_SECOND / tick_skip)))
            finally:
                pool.close()
            found.append(score.counts if first_seat == 0 else score.counts[..., ::-1])
    goals, touches = np.concatenate(found, axis=1)
    return Matches(goals, touches, minutes, team_size)


def _play(pool: RocketSimPool, bots: TeamBots, score: "_Score", steps: int) -> None:
    pool.reset()
    for _ in range(steps):
        if score.begun.any():
            bots.reset(score.begun, pool.state)
            score.begun[:] = False
        pool.step(bots.actions(pool.state, pool.action_parser))


class _Score(StateLogger):
    """Counts goals and touches of blue and orange in every arena, over all episodes.

    Attributes:
        counts: `[2, A, 2]` int64: goals and touches, of blue and orange.
        begun: `[A]` bool, arenas with a new episode; whoever reads it clears it.
    """

    def __init__(self) -> None:
        self.counts = np.zeros((2, 0, SIDES), np.int64)
        self.begun = np.zeros(0, np.bool_)
        self._touching = np.zeros((0, 0), np.bool_)

    def update(self, state: GameState, done: Bool) -> None:
        """See `StateLogger.update`."""
        for team in range(SIDES):
            self.counts[0, :, team] += state.scoring_team == team
        new = state.touched & ~self._touching
        blue = np.broadcast_to(state.team == BLUE, new.shape)
        self.counts[1, :, 0] += (new & blue).sum(axis=1)
        self.counts[1, :, 1] += (new & ~blue).sum(axis=1)
        self._touching = state.touched.copy()

    def reset(self, mask: Bool, state: GameState) -> None:
        """See `StateLogger.reset`."""
        if len(self.begun) != len(mask):
            self.counts = np.zeros((2, len(mask), SIDES), np.int64)
            self.begun = np.zeros(len(mask), np.bool_)
            self._touching = np.zeros((len(mask), state.num_cars), np.bool_)
        self.begun |= mask
        self._touching[mask] = False

    def drain_metrics(self) -> dict[str, tuple[float, float]]:
        """None: it is asked for `counts`."""
        return {}
