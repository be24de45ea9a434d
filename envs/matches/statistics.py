"""GameStatistics: what both sides do in matches, besides goals; and the kickoffs that both matches of a pair share."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from rlgym.rocket_league.common_values import BACK_WALL_Y, BALL_RADIUS, TICKS_PER_SECOND

from envs.loggers import COUNTED, CarSteps, StateLogger
from envs.resets.simple import KICKOFF_BOOST, Kickoff
from envs.state.game_state import GameState
from envs.state.layout import BLUE, ORANGE, Bool

if TYPE_CHECKING:
    from envs.pool.rocket_pool import RocketSimPool

Counts = NDArray[np.float64]

EMPTY_BELOW = 1.0
"""Boost, of 100, that the game shows as 0."""
OWN_GOAL_SECONDS = 3.0
"""How long no opponent has touched the ball that makes an own goal."""
KICKOFF_SECONDS = 2.0
"""After its first touch a kickoff is won or lost."""
KICKOFF_GOAL_SECONDS = 10.0
"""A goal that falls so soon after a kickoff's first touch comes from the kickoff, which is over then."""
_THIRD = BACK_WALL_Y / 3

_OF_CARS = (
    *("alive", "air", "empty", "y", "own_third", "opponent_third", "boost_used", "car_minutes"),
    *("touches", "touch_height", "touch_speed", *COUNTED),
)
_OF_SIDES = (
    *("matches", "goals", "own_goals", "possession", "possessed"),
    *("kickoffs", "kickoffs_won", "kickoffs_over", "kickoff_goals"),
)
_ROW = {name: row for row, name in enumerate((*_OF_CARS, *_OF_SIDES))}


class Statistic(NamedTuple):
    """A figure of each side: the sum of one count over that of another."""

    label: str
    """With its unit, for tables."""
    counter: str
    per: str
    is_share: bool = False
    """Of something, 0..1; else a number with the unit in the label."""


STATISTICS: Mapping[str, Statistic] = {
    "possession": Statistic("possession", "possession", "possessed", True),
    "shots": Statistic("shots per match", "shots", "matches"),
    "saves": Statistic("saves per match", "saves", "matches"),
    "demos": Statistic("demolitions per match", "demos", "matches"),
    "own_goals": Statistic("own goals per match", "own_goals", "matches"),
    "kickoffs_won": Statistic("kickoffs won", "kickoffs_won", "kickoffs", True),
    "kickoff_goals": Statistic("kickoffs that end in a goal", "kickoff_goals", "kickoffs_over", True),
    "touch_height": Statistic("touch height, uu", "touch_height", "touches"),
    "touch_speed": Statistic("ball speed after a touch, uu/s", "touch_speed", "touches"),
    "boost_used": Statistic("boost used per car and minute", "boost_used", "car_minutes"),
    "boost_empty": Statistic("time without boost", "empty", "alive", True),
    "air_time": Statistic("time in the air", "air", "alive", True),
    "field_position": Statistic("field position, uu", "y", "alive"),
    "own_third": Statistic("time in the own third", "own_third", "alive", True),
    "opponent_third": Statistic("time in the opponent's third", "opponent_third", "alive", True),
}
"""Defined one by one in docs/evaluation_statistics.md."""


class GameStatistics(StateLogger):
    """Counts what `STATISTICS` are made of, of blue and orange in every arena, where every episode is a kickoff.

    Attributes:
        counts: `[K, A, 2]` float64 of blue and orange, over all episodes; see `counted` and `of_pairs`.
    """

    def __init__(self) -> None:
        self.counts: Counts = np.zeros((len(_ROW), 0, 2))
        self._cars = CarSteps()
        self._since_touch = np.zeros((0, 2))  # ticks since each side's last touch
        self._kickoff = np.zeros(0)  # ticks since its first touch, negative before
        self._judged: Bool = np.zeros(0, np.bool_)
        self._over: Bool = np.zeros(0, np.bool_)

    def update(self, state: GameState, done: Bool) -> None:
        step, world = self._cars.update(state), state.world
        sides = (state.team[:, None] == (BLUE, ORANGE)).astype(np.float32)
        alive, touches = step.alive, step.touches
        y = world.car_pos[..., 1] * (sides[:, 0] - sides[:, 1])
        ball_speed = np.sqrt(np.einsum("ai,ai->a", world.ball_vel, world.ball_vel))
        of_cars = (
            *(alive, alive * (1 - step.on_ground), alive * (step.boost < EMPTY_BELOW)),
            *(alive * y, alive * (y < -_THIRD), alive * (y > _THIRD)),
            *(step.boost_used, state.present * (step.ticks / np.float32(TICKS_PER_SECOND * 60))[:, None]),
            *(touches, touches * world.ball_pos[:, None, 2], touches * ball_speed[:, None]),
            *np.moveaxis(step.counted, 2, 0),
        )
        self.counts[: len(_OF_CARS)] += np.stack(of_cars) @ sides
        self._follow_the_ball(state, (state.touched @ sides) > 0, step.ticks[:, None])
        self._judge_kickoffs(state, done, step.ticks)

    def _follow_the_ball(self, state: GameState, touched: Bool, ticks: NDArray[np.int64]) -> None:
        """Whose the ball is, and who has scored; `touched [A, 2]`, `ticks [A, 1]`."""
        since = self._since_touch = np.where(touched, 0, self._since_touch + ticks)
        holds = since < since[:, ::-1]
        self._row("possession")[:] += holds
        self._row("possessed")[:] += holds.any(axis=1, keepdims=True)
        if state.goal_scored.any():
            scored = state.scoring_team[:, None] == (BLUE, ORANGE)
            self._row("goals")[:] += scored
            unaided = since[:, ::-1] >= OWN_GOAL_SECONDS * TICKS_PER_SECOND
            self._row("own_goals")[:] += scored[:, ::-1] & holds & unaided

    def _judge_kickoffs(self, state: GameState, done: Bool, ticks: NDArray[np.int64]) -> None:
        begun = self._kickoff >= 0
        self._kickoff[begun] += ticks[begun]
        self._kickoff[~begun & state.touched.any(axis=1)] = 0
        begun = self._kickoff >= 0
        over = begun & ~self._judged & (done | (self._kickoff >= KICKOFF_SECONDS * TICKS_PER_SECOND))
        if over.any():
            y = state.world.ball_pos[over, 1]
            self._row("kickoffs")[over] += 1
            self._row("kickoffs_won")[over] += np.stack((y > BALL_RADIUS, y < -BALL_RADIUS), axis=1)
            self._judged |= over
        limit = KICKOFF_GOAL_SECONDS * TICKS_PER_SECOND
        over = begun & ~self._over & (done | (self._kickoff >= limit))
        if over.any():
            self._row("kickoffs_over")[over] += 1
            self._over |= over
        soon = state.goal_scored & begun & (self._kickoff <= limit)
        if soon.any():
            self._row("kickoff_goals")[:] += soon[:, None] & (state.scoring_team[:, None] == (BLUE, ORANGE))

    def reset(self, mask: Bool, state: GameState) -> None:
        if len(self._kickoff) != len(mask):
            self.counts = np.zeros((len(_ROW), len(mask), 2))
            self._row("matches")[:] = 1
            self._since_touch, self._kickoff = np.zeros((len(mask), 2)), np.zeros(len(mask))
            self._judged, self._over = np.zeros(len(mask), np.bool_), np.zeros(len(mask), np.bool_)
        self._cars.reset(mask, state)
        self._since_touch[mask], self._kickoff[mask] = np.inf, -1
        self._judged[mask] = self._over[mask] = False

    def drain_metrics(self) -> dict[str, tuple[float, float]]:
        """None: it is asked for `counts`."""
        return {}

    def _row(self, name: str) -> Counts:
        row: Counts = self.counts[_ROW[name]]
        return row


def counted(counts: Counts, name: str) -> NDArray[np.int64]:
    """The `goals` or `touches` in `counts [K, ...]`, as `[...]` int64."""
    whole: NDArray[np.int64] = counts[_ROW[name]].astype(np.int64)
    return whole


def of_pairs(counts: Counts) -> dict[str, NDArray[np.float64]]:
    """`STATISTICS` of every pair of matches.

    Args:
        counts: `[K, P, 2, 2]`: pair; its two matches; the player and its opponent.

    Returns:
        Name -> `[P, 2, 2]`, of both matches together: pair; the player, its opponent; the count, and that over which it
        is told, 0 where there was nothing to measure, as of the height of touches without a touch.
    """
    sums = counts.sum(axis=2)
    return {
        name: np.stack((sums[_ROW[statistic.counter]], sums[_ROW[statistic.per]]), axis=-1)
        for name, statistic in STATISTICS.items()
    }


def ratio_samples(pairs: NDArray[np.float64]) -> NDArray[np.float64]:
    r"""One number per pair, whose mean is the ratio of the sums, and whose standard error is that of this ratio.

    :math:`z_i = R + (c_i - R p_i) / \bar p` with :math:`R = \sum c / \sum p`, the linearised ratio estimator
    (Cochran, Sampling Techniques, 3rd ed., eq. 6.13). The mean of the pairs' own ratios would lean toward pairs with a
    small p: few goals make few kickoffs.

    Args:
        pairs: `[P, 2]`, of one side: counts c, and that over which they are told, p.

    Returns:
        `[P']`, of the pairs in which there was something to measure (p > 0).
    """
    measured = pairs[pairs[:, 1] > 0]
    count, per = measured[:, 0], measured[:, 1]
    if not len(measured):
        return per
    ratio = count.sum() / per.sum()
    samples: NDArray[np.float64] = ratio + (count - ratio * per) / per.mean()
    return samples


class MatchKickoffs(Kickoff):
    """One of the five kickoffs, a little off the spot; both teams begin alike, rotated by 180 degrees.

    Players and physics are deterministic: from five kickoffs there would be five games. So places are moved by up to
    `MAX_SHIFT` uu in x and y, cars turned by up to `MAX_TURN` rad, boost is within `MAX_BOOST` of 33.3, and every car's
    first controls come up to `MAX_DELAY` ticks late. Only these delays may differ between the teams; who has the sooner
    ones changes with the sides.

    It draws from generators of its own: an arena's also says where demolished cars return, so after a demolition the
    two matches of a pair would get different kickoffs.

    Attributes:
        delay_ticks: `[A, C]` int64, how late each car's first controls come, counted from its last kickoff.
    """

    MAX_SHIFT, MAX_TURN, MAX_BOOST, MAX_DELAY = 50.0, 0.05, 10.0, 16

    def __init__(self, seeds: Sequence[np.random.SeedSequence], num_cars: int) -> None:
        """Makes the generators.

        Args:
            seeds: Arena `i` draws from number `i`; with the same seed two arenas get the same kickoffs.
            num_cars: In an arena.
        """
        self._rngs = [np.random.default_rng(seed) for seed in seeds]
        self.delay_ticks: NDArray[np.int64] = np.zeros((len(self._rngs), num_cars), np.int64)

    def apply(self, state: GameState, mask: Bool, rng: np.random.Generator) -> None:
        for arena in np.flatnonzero(mask).tolist():
            own = self._rngs[arena]
            spawns = self.spawns(state, own)
            shift = own.uniform(-self.MAX_SHIFT, self.MAX_SHIFT, (len(spawns), 2))
            turn = own.uniform(-self.MAX_TURN, self.MAX_TURN, len(spawns))
            boost = KICKOFF_BOOST + own.uniform(-self.MAX_BOOST, self.MAX_BOOST, len(spawns))
            self.place(state, arena, spawns, shift, turn, boost)
            self.delay_ticks[arena] = own.integers(self.MAX_DELAY, size=state.num_cars)

    def delayed(self, pool: "RocketSimPool") -> Callable[[NDArray[Any]], NDArray[Any]]:
        """Return a function that zeroes those of the pool's actions `[A * C, ...]` that come too early."""

        def zeroed(actions: NDArray[Any]) -> NDArray[Any]:
            late = self.delay_ticks >= pool.state.episode_ticks[:, None] + pool.tick_skip
            return np.where(late.reshape(-1, 1), 0, actions)

        return zeroed
