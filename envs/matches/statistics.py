"""GameStatistics: statistics of both sides in matches; and MatchKickoffs, which both matches of a pair share."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from rlgym.rocket_league import common_values as game
from rlgym.rocket_league.common_values import BACK_WALL_Y, BALL_RADIUS, TICKS_PER_SECOND

from envs.loggers import COUNTED, StateLogger, StepDifference
from envs.resets.simple import KICKOFF_BOOST, Kickoff
from envs.state.game_state import GameState
from envs.state.layout import BLUE, ORANGE, Bool, Float

if TYPE_CHECKING:
    from envs.pool.rocket_pool import RocketSimPool

Counts = NDArray[np.float64]

EMPTY_BELOW = 1.0
"""Boost (0..100) below this is shown as 0 by the game."""
OWN_GOAL_SECONDS = 3.0
"""A goal counts as an own goal if no opponent has touched the ball for this long."""
HIGH = 300.0
"""A touch is high if the center of the ball is above this height, in uu."""
KICKOFF_SECONDS = 2.0
"""Time from the first touch of a kickoff until the ball's position decides it."""
KICKOFF_GOAL_SECONDS = 10.0
"""A goal within this time after the first touch counts as a kickoff goal."""
SHOT_SECONDS = 3.0
"""Time within which a shot on goal would enter the goal."""
CELLS = (24, 36)
"""Cells of a map across the field and along it, goals included; about 340 uu each."""
MAPS = ("car_ticks", "touches", "expected_goals")
"""Maps of a side, which attacks upward: the time of its cars, its touches, and its shots by their value."""
_THIRD = BACK_WALL_Y / 3
_PADS = np.array(game.BOOST_LOCATIONS)
_FIELD = np.array([game.SIDE_WALL_X, game.BACK_NET_Y])

_OF_CARS = (
    *("alive", "air", "empty", "y", "own_third", "opponent_third", "boost_used", "car_minutes"),
    *("touches", "touch_height", "high_touches", "touch_speed", *COUNTED),
)
_OF_PADS = ("boost_collected", "boost_stolen", "boost_wasted")
_OF_SIDES = (
    *_OF_PADS,
    *("shots_on_goal", "expected_goals"),
    *("matches", "goals", "own_goals", "possession", "possessed"),
    *("kickoffs", "kickoffs_won", "kickoffs_over", "kickoff_goals"),
)
_ROW = {name: row for row, name in enumerate((*_OF_CARS, *_OF_SIDES))}


class Statistic(NamedTuple):
    """A statistic of each side: the ratio of two summed counts."""

    label: str
    """Label with unit, for tables."""
    counter: str
    per: str
    is_share: bool = False
    """True for a share, 0..1; else the unit is in the label."""


STATISTICS: Mapping[str, Statistic] = {
    "possession": Statistic("possession", "possession", "possessed", True),
    "shots": Statistic("hard shots per match", "shots", "matches"),
    "shots_on_goal": Statistic("shots on goal per match", "shots_on_goal", "matches"),
    "expected_goals": Statistic("expected goals per match", "expected_goals", "matches"),
    "saves": Statistic("saves per match", "saves", "matches"),
    "demos": Statistic("demolitions per match", "demos", "matches"),
    "own_goals": Statistic("own goals per match", "own_goals", "matches"),
    "kickoffs_won": Statistic("kickoffs won", "kickoffs_won", "kickoffs", True),
    "kickoff_goals": Statistic("kickoffs that end in a goal", "kickoff_goals", "kickoffs_over", True),
    "touch_height": Statistic("touch height, uu", "touch_height", "touches"),
    "high_touches": Statistic("touches above 300 uu", "high_touches", "touches", True),
    "touch_speed": Statistic("ball speed after a touch, uu/s", "touch_speed", "touches"),
    "boost_used": Statistic("boost used per car and minute", "boost_used", "car_minutes"),
    "boost_collected": Statistic("boost collected per car and minute", "boost_collected", "car_minutes"),
    "boost_stolen": Statistic("boost stolen per car and minute", "boost_stolen", "car_minutes"),
    "boost_wasted": Statistic("boost wasted per car and minute", "boost_wasted", "car_minutes"),
    "boost_empty": Statistic("time without boost", "empty", "alive", True),
    "air_time": Statistic("time in the air", "air", "alive", True),
    "field_position": Statistic("field position, uu", "y", "alive"),
    "own_third": Statistic("time in the own third", "own_third", "alive", True),
    "opponent_third": Statistic("time in the opponent's third", "opponent_third", "alive", True),
}
"""Defined one by one in docs/evaluation_statistics.md."""


class GameStatistics(StateLogger):
    """Logger of the counts of `STATISTICS`, for both teams in every arena. Every episode must begin with a kickoff.

    Attributes:
        counts: `[K, A, 2]` float64 of blue and orange, over all episodes; see `get_count` and `pair_totals`.
        maps: `[3, A, 2, *CELLS]` float32, the `MAPS` of blue and orange, over all episodes.
    """

    def __init__(self) -> None:
        self.counts: Counts = np.zeros((len(_ROW), 0, 2))
        self.maps: Float = np.zeros((len(MAPS), 0, 2, *CELLS), np.float32)
        self._before: tuple[Float, Float] = (np.zeros((0, 0), np.float32), np.zeros((0, 0), np.float32))  # boost, pads
        self._cars = StepDifference()
        self._since_touch = np.zeros((0, 2))  # ticks since each side's last touch
        self._kickoff = np.zeros(0)  # ticks since the first touch after the kickoff, negative before it
        self._judged: Bool = np.zeros(0, np.bool_)
        self._over: Bool = np.zeros(0, np.bool_)

    def update(self, state: GameState, done: Bool) -> None:
        step, world = self._cars.update(state), state.world
        sides = (state.team[:, None] == (BLUE, ORANGE)).astype(np.float32)
        alive, touches = step.alive, step.touches
        y = world.car_pos[..., 1] * (sides[:, 0] - sides[:, 1])
        height = world.ball_pos[:, None, 2]
        ball_speed = np.sqrt(np.einsum("ai,ai->a", world.ball_vel, world.ball_vel))
        of_cars = (
            *(alive, alive * (1 - step.on_ground), alive * (step.boost < EMPTY_BELOW)),
            *(alive * y, alive * (y < -_THIRD), alive * (y > _THIRD)),
            *(step.boost_used, state.present * (step.ticks / np.float32(TICKS_PER_SECOND * 60))[:, None]),
            *(touches, touches * height, touches * (height > HIGH), touches * ball_speed[:, None]),
            *np.moveaxis(step.new_counts, 2, 0),
        )
        self.counts[: len(_OF_CARS)] += np.stack(of_cars) @ sides
        self._add_to_map(0, world.car_pos, alive * step.ticks[:, None], sides)
        self._take_pads(state, sides, step.ticks[:, None])
        if touches.any():
            self._shoot(state, touches @ sides)
        self._follow_the_ball(state, (state.touched @ sides) > 0, step.ticks[:, None])
        self._judge_kickoffs(state, done, step.ticks)

    def _add_to_map(self, name: int, places: Float, weights: Float, sides: Float) -> None:
        """Add `weights [A, C]` of cars at `places [A, C, 3]` to the map of each car's side, which attacks upward."""
        arenas, cars = weights.nonzero()
        team = sides[cars, 1].astype(np.int64)
        shares = (places[arenas, cars, :2].astype(np.float64) * (1 - 2 * team[:, None]) + _FIELD) / (2 * _FIELD)
        cells = np.clip(shares * CELLS, 0, np.array(CELLS) - 1).astype(np.int64).T
        np.add.at(self.maps, (name, arenas, team, *cells), weights[arenas, cars])

    def _take_pads(self, state: GameState, sides: Float, ticks: NDArray[np.int64]) -> None:
        """Count the boost of the pads that were taken, each by the nearest car whose boost rose or was full."""
        boost, timers = self._before
        self._before = state.boost.copy(), state.pad_timers.copy()
        back = timers <= ticks / TICKS_PER_SECOND  # at the latest within this step
        for arena, pad in np.argwhere(back & (state.pad_timers > np.maximum(timers, 0))).tolist():
            away = np.linalg.norm(state.world.car_pos[arena, :, :2] - _PADS[pad, :2], axis=1)
            away += 1e5 * ((state.boost[arena] <= boost[arena]) & (boost[arena] < 100)) + 1e9 * ~state.present[arena]
            car = int(away.argmin())
            side, content = int(sides[car, 1]), 100 if _PADS[pad, 2] > 71 else 12
            room = min(content, 100 - boost[arena, car])
            stolen = room * (_PADS[pad, 1] * (1 - 2 * side) > 1)
            for name, amount in zip(_OF_PADS, (room, stolen, content - room), strict=True):
                self._row(name)[arena, side] += amount

    def _shoot(self, state: GameState, touches: Float) -> None:
        """Add the touches of both sides, `[A, 2]`, to the maps, and count shots on goal."""
        mirror = np.array([[1, 1, 1], [-1, -1, 1]], np.float32)
        ball, velocity = (each[:, None] * mirror for each in (state.world.ball_pos, state.world.ball_vel))
        values = expected_goals(ball, velocity) * (touches > 0)
        self._row("shots_on_goal")[:] += values > 0
        self._row("expected_goals")[:] += values
        places, sides = state.world.ball_pos[:, None].repeat(2, axis=1), np.eye(2, dtype=np.float32)
        self._add_to_map(1, places, touches, sides)
        self._add_to_map(2, places, values, sides)

    def _follow_the_ball(self, state: GameState, touched: Bool, ticks: NDArray[np.int64]) -> None:
        """Update possession and goals; `touched [A, 2]`, `ticks [A, 1]`."""
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
            self.maps = np.zeros((len(MAPS), len(mask), 2, *CELLS), np.float32)
            self._before = state.boost.copy(), state.pad_timers.copy()
            self._since_touch, self._kickoff = np.zeros((len(mask), 2)), np.zeros(len(mask))
            self._judged, self._over = np.zeros(len(mask), np.bool_), np.zeros(len(mask), np.bool_)
        self._cars.reset(mask, state)
        for before, now in zip(self._before, (state.boost, state.pad_timers), strict=True):
            before[mask] = now[mask]
        self._since_touch[mask], self._kickoff[mask] = np.inf, -1
        self._judged[mask] = self._over[mask] = False

    def _row(self, name: str) -> Counts:
        row: Counts = self.counts[_ROW[name]]
        return row


def expected_goals(ball_pos: Float, ball_vel: Float) -> Float:
    r"""Return the expected goals of a touch by the side that attacks +y; 0 unless it is a shot on goal.

    A touch is a shot on goal if the ball, flying freely, enters the goal after at most `SHOT_SECONDS`: neither drag nor
    bounces are simulated. Its value is the share of such shots that scored, :math:`1 / (1 + 2.12 (t + 0.1)^{1.72})` for
    t seconds to the goal line (docs/evaluation_statistics.md).

    Args:
        ball_pos: `[..., 3]` uu, after the touch.
        ball_vel: `[..., 3]` uu/s, after the touch.

    Returns:
        `[...]`, 0..1.
    """
    seconds = (BACK_WALL_Y - ball_pos[..., 1]) / np.maximum(ball_vel[..., 1], 1e-6)
    across = np.abs(ball_pos[..., 0] + seconds * ball_vel[..., 0])
    height = ball_pos[..., 2] + seconds * ball_vel[..., 2] - game.GRAVITY / 2 * seconds**2
    in_goal = (across < game.GOAL_CENTER_TO_POST - BALL_RADIUS) & (height < game.GOAL_HEIGHT - BALL_RADIUS)
    value: Float = in_goal * (seconds >= 0) * (seconds <= SHOT_SECONDS) / (1 + 2.12 * (np.abs(seconds) + 0.1) ** 1.72)
    return value


def get_count(counts: Counts, name: str) -> NDArray[np.int64]:
    """Return the count `name` (`goals` or `touches`) of `counts [K, ...]` as `[...]` int64."""
    whole: NDArray[np.int64] = counts[_ROW[name]].astype(np.int64)
    return whole


def pair_totals(counts: Counts) -> dict[str, NDArray[np.float64]]:
    """Return the numerator and denominator of all `STATISTICS` for every pair of matches.

    Args:
        counts: `[K, P, 2, 2]`: pair; its two matches; the player and its opponent.

    Returns:
        Name -> `[P, 2, 2]`, over both matches: pair; the player, its opponent; numerator and denominator, which is 0 if
        there was nothing to measure, such as the height of touches without a touch.
    """
    sums = counts.sum(axis=2)
    return {
        name: np.stack((sums[_ROW[statistic.counter]], sums[_ROW[statistic.per]]), axis=-1)
        for name, statistic in STATISTICS.items()
    }


def ratio_samples(pairs: NDArray[np.float64]) -> NDArray[np.float64]:
    r"""Return one sample per pair; their mean is the ratio of the sums, with the standard error of this ratio.

    :math:`z_i = R + (c_i - R p_i) / \bar p` with :math:`R = \sum c / \sum p`, the linearised ratio estimator
    (Cochran, Sampling Techniques, 3rd ed., eq. 6.13). The mean of the pairs' ratios would be biased toward pairs with a
    small p.

    Args:
        pairs: `[P, 2]` of one side: numerators c and denominators p.

    Returns:
        `[P']` samples of the pairs with p > 0.
    """
    measured = pairs[pairs[:, 1] > 0]
    count, per = measured[:, 0], measured[:, 1]
    if not len(measured):
        return per
    ratio = count.sum() / per.sum()
    samples: NDArray[np.float64] = ratio + (count - ratio * per) / per.mean()
    return samples


class MatchKickoffs(Kickoff):
    """One of the five kickoffs with small offsets; both teams start alike, rotated by 180 degrees.

    Players and physics are deterministic, so five kickoffs would give only five games. Therefore positions are moved by
    up to `MAX_SHIFT` uu in x and y, cars turned by up to `MAX_TURN` rad, boost is within `MAX_BOOST` of 33.3, and every
    car's first controls come up to `MAX_DELAY` ticks late. Only these delays may differ between the teams; they are
    swapped with the sides.

    The setter has its own generators: an arena's generator also determines respawn positions, so after a demolition the
    two matches of a pair would get different kickoffs.

    Attributes:
        delay_ticks: `[A, C]` int64, delay of each car's first controls after its last kickoff.
    """

    MAX_SHIFT, MAX_TURN, MAX_BOOST, MAX_DELAY = 50.0, 0.05, 10.0, 16

    def __init__(self, seeds: Sequence[np.random.SeedSequence], num_cars: int) -> None:
        """Set the seed of each arena; arenas with the same seed get the same kickoffs."""
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

    def delay_actions(self, pool: "RocketSimPool") -> Callable[[NDArray[Any]], NDArray[Any]]:
        """Return a function that zeroes every action in the pool's actions `[A * C, ...]` that comes too early."""

        def zeroed(actions: NDArray[Any]) -> NDArray[Any]:
            late = self.delay_ticks >= pool.state.episode_ticks[:, None] + pool.tick_skip
            return np.where(late.reshape(-1, 1), 0, actions)

        return zeroed
