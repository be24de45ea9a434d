"""Statistics of matches: by hand on states from numbers, and in real play beside sums made in another way."""

import numpy as np
import pytest
from rlgym.rocket_league.common_values import BOOST_LOCATIONS

from envs import GameState, GoalCondition, RocketSimPool
from envs.bots import BallChaser, IdleBot, KickoffThenShoot, TeamBots
from envs.loggers import StateLogger
from envs.matches.matches import play_matches
from envs.matches.statistics import STATISTICS, GameStatistics, get_count, pair_totals, ratio_samples
from fabric_rl.selfplay.ratings.intervals import mean_interval

BOTH = np.ones(2, bool)
NEVER = np.zeros(2, bool)
STEP = 120
"""Ticks of a step by hand: 1 s."""


class Game:
    """Two arenas alike of two blue cars and an orange one; `step` writes what there is after another second."""

    def __init__(self):
        self.logger, self.ticks = GameStatistics(), 0
        self.cars = [(0, -4000, 17), (0, 0, 17), (0, 2000, 17)]
        self.logger.reset(BOTH, self.state())

    def state(self, **seen):
        cars = np.array([self.cars, self.cars])
        return GameState.from_numbers(cars, num_blue=2, episode_ticks=self.ticks, **seen)

    def step(self, done=NEVER, counters=(), **seen):
        self.ticks += STEP
        state = self.state(**seen)
        for name, car in counters:
            getattr(state, name)[:, car] = 1
        self.logger.update(state, done)

    def figures(self):
        """Of one match: name -> (blue, orange)."""
        one = self.logger.counts[:, :1]
        assert (one == self.logger.counts[:, 1:]).all()
        return {name: tuple(ratios(values)[0]) for name, values in pair_totals(one[:, :, None]).items()}


def ratios(values):
    """`[P, 2]` of `pair_totals`."""
    with np.errstate(invalid="ignore"):
        return values[..., 0] / values[..., 1]


def test_cars_by_hand():
    game = Game()
    game.step(boost=[0.5, 20, 33.4], on_ground=[True, False, True], counters=[("shots", 0), ("saves", 2)])
    game.step(
        boost=[0, 10, 33.4], touched=[False, True, True], ball_pos=(0, 0, 310), ball_vel=(300, 400, 0),
        demo_respawn_timer=[0, 0, 3], counters=[("shots", 0), ("saves", 2), ("demos", 1)],
    )  # fmt: skip
    game.step(boost=[0, 10, 33.4], touched=[True, True, False], ball_pos=(0, 0, 100), demo_respawn_timer=[0, 0, 2])
    used = 100 / 3 - 0.5 + 100 / 3 - 20 + 0.5 + 10
    expected = {
        "shots": (1, 0),
        "saves": (0, 1),
        "demos": (1, 0),
        "touch_height": ((310 + 100) / 2, 310),  # the second car's contact goes on
        "high_touches": (1 / 2, 1),
        "touch_speed": ((500 + 0) / 2, 500),
        "boost_used": (used / 2 / (3 / 60), 0),
        "boost_empty": (3 / 6, 0),
        "air_time": (1 / 6, 0),
        "field_position": (-2000, -2000),  # both half the field's half behind; the orange one only while it was alive
        "own_third": (1 / 2, 1),
        "opponent_third": (0, 0),
        "shots_on_goal": (0, 0),  # the ball rolls along y at 400 uu/s, too slow
        "expected_goals": (0, 0),
        "boost_collected": (0, 0),
        "boost_stolen": (0, 0),
        "boost_wasted": (0, 0),
    }
    found = game.figures()
    assert {name: found[name] for name in expected} == {name: pytest.approx(two) for name, two in expected.items()}
    assert set(found) == set(STATISTICS)


def test_the_ball_is_whose_side_touched_it_last():
    game = Game()
    game.step()  # nobody's
    assert np.isnan(game.figures()["possession"]).all() and np.isnan(game.figures()["touch_height"]).all()
    game.step(touched=[False, True, False])
    game.step()
    game.step(touched=[True, False, True])  # both: nobody's
    game.step(touched=[False, False, True])
    assert game.figures()["possession"] == pytest.approx((2 / 3, 1 / 3))
    game.logger.reset(BOTH, game.state())
    game.step()
    assert game.figures()["possession"] == pytest.approx((2 / 3, 1 / 3))


def test_boost_of_pads_by_hand():
    """The first blue car takes a big pad of its own half, then the second one a small pad of the other half."""
    game, pads = Game(), np.array(BOOST_LOCATIONS)
    big = int(np.argwhere((pads == (-3072, -4096, 73)).all(axis=1))[0, 0])
    small = int(np.argwhere((pads == (0, 1024, 70)).all(axis=1))[0, 0])
    game.cars = [(-3072, -4096, 17), (0, 0, 17), (0, 2000, 17)]
    timers = np.zeros(34)
    timers[big] = 10
    game.step(boost=[100, 95, 33.4], pad_timers=timers)
    game.step(boost=[100, 95, 33.4], pad_timers=timers - 1)  # nothing new
    game.cars[1] = (0, 1000, 17)
    timers[small] = 4
    game.step(boost=[100, 100, 33.4], pad_timers=timers)
    found, minutes = game.figures(), 2 * 3 / 60
    assert found["boost_collected"] == pytest.approx(((200 / 3 + 5) / minutes, 0))
    assert found["boost_stolen"] == pytest.approx((5 / minutes, 0))
    assert found["boost_wasted"] == pytest.approx(((100 / 3 + 7) / minutes, 0))


def test_a_pad_that_is_taken_again_as_soon_as_it_returns():
    """Its timer was 0.03 s before the step, and jumps back to 4 s within it."""
    game, pads = Game(), np.array(BOOST_LOCATIONS)
    small = int(np.argwhere((pads == (0, 1024, 70)).all(axis=1))[0, 0])
    game.cars = [(-3072, -4096, 17), (0, 1000, 17), (0, 2000, 17)]
    timers = np.zeros(34)
    for boost, timer in ((12, 4), (12, 0.03), (24, 4)):
        timers[small] = timer
        game.step(boost=[0, boost, 0], pad_timers=timers.copy())
    minutes = 2 * 3 / 60
    assert game.figures()["boost_collected"] == pytest.approx((24 / minutes, 0))


@pytest.mark.parametrize(
    ("side", "pos", "vel", "value"),
    [
        (0, (0, 4120, 100), (0, 1000, 0), 1 / (1 + 2.12 * 1.1**1.72)),  # 1 s away
        (1, (0, -4120, 100), (0, -1000, 0), 1 / (1 + 2.12 * 1.1**1.72)),
        (1, (0, 4120, 100), (0, 1000, 0), 0),  # at its own goal
        (0, (0, 4120, 100), (790, 1000, 0), 1 / (1 + 2.12 * 1.1**1.72)),
        (0, (0, 4120, 100), (-810, 1000, 0), 0),  # past the post, 893 uu away less the ball's radius
        (0, (0, 4120, 100), (0, 1000, 750), 1 / (1 + 2.12 * 1.1**1.72)),  # 100 + 750 - 325 uu high
        (0, (0, 4120, 100), (0, 1000, 800), 0),  # above the bar
        (0, (0, 0, 100), (0, 1700, 0), 0),  # more than 3 s away
        (0, (0, 4120, 100), (0, 0, 0), 0),
    ],
)
def test_shots_on_goal_by_hand(side, pos, vel, value):
    game = Game()
    game.step(touched=[side == 0, False, side == 1], ball_pos=pos, ball_vel=vel)
    game.step(touched=[side == 0, False, side == 1], ball_pos=pos, ball_vel=vel)  # the same contact
    expected = np.zeros(2)
    expected[side] = value
    assert game.figures()["expected_goals"] == pytest.approx(tuple(expected))
    assert game.figures()["shots_on_goal"] == tuple(expected > 0)
    assert game.logger.maps[2, 0].sum(axis=(1, 2)) == pytest.approx(expected)
    across, along = np.argwhere(game.logger.maps[1, 0, side])[0]
    assert (across, along) == (12, int((pos[1] * (1, -1)[side] + 6000) / 12000 * 36))


@pytest.mark.parametrize(
    ("touches", "own"),
    [
        (([0], [], [], []), (1, 0)),  # the opponent never had it
        (([2], [0], [], []), (1, 0)),  # it had it 3 s ago
        (([], [2], [0], []), (0, 0)),  # a shot that was turned into the goal
        (([0], [2], [], []), (0, 0)),
        (([0], [], [], [0, 2]), (0, 0)),
    ],
)
def test_own_goals(touches, own):
    game = Game()
    for index, cars in enumerate(touches):
        scored = index == len(touches) - 1
        game.step(BOTH & scored, touched=np.isin(range(3), cars), ball_pos=(0, -5300 if scored else 0, 100))
    assert game.figures()["own_goals"] == own
    assert get_count(game.logger.counts, "goals").tolist() == [[0, 1], [0, 1]]


@pytest.mark.parametrize(
    ("way", "goal", "won"),
    [
        ([0, 0, 0, 92], False, (1, 0)),
        ([0, 900, 900, -92], False, (0, 1)),  # 2 s after the first touch
        ([0, 0, 0, -91], False, (0, 0)),
        ([0, 0, 5300], True, (1, 0)),  # earlier, by a goal
    ],
)
def test_kickoffs_are_won_by_where_the_ball_is_soon_after_the_first_touch(way, goal, won):
    game = Game()
    for index, y in enumerate(way):
        done = BOTH & (goal and index == len(way) - 1)
        game.step(done, ball_pos=(0, y, 100), touched=[index == 1, index == 2, False])
    if not goal:
        assert game.figures()["kickoffs_won"] == won
        game.step(ball_pos=(0, 3000, 100))  # decided once and for all
    assert game.figures()["kickoffs_won"] == won
    game.logger.reset(BOTH, game.state())
    game.step(touched=[True, False, False])  # the match ends before the next one is decided
    assert game.figures()["kickoffs_won"] == won


@pytest.mark.parametrize(("seconds", "share"), [(1, 0.5), (10, 0.5), (11, 0)])
def test_goals_soon_after_a_kickoff(seconds, share):
    game = Game()
    game.step(touched=[True, False, False])
    for second in range(1, seconds + 1):
        scored = BOTH & (second == seconds)
        game.step(scored, ball_pos=(0, 5300 if scored.any() else 0, 100))
    game.logger.reset(BOTH, game.state())
    for _ in range(4):  # a kickoff without a goal
        game.step(touched=[True, False, False])
    assert (
        game.figures()["kickoff_goals"] == (1, 0) if share else (0, 0)
    )  # the match may end before a second one is over
    for _ in range(10 - 3):
        game.step()
    assert game.figures()["kickoff_goals"] == (share, 0)


def test_the_mean_of_a_share_is_of_all_kickoffs_and_its_interval_holds():
    """Kickoffs that end in a goal are soon followed by others, so the pairs' own shares are too low on average."""
    dice, truth, held, own = np.random.default_rng(0), 0.27, 0, []
    for _ in range(400):
        pairs = np.zeros((100, 2))
        for pair in pairs:
            time = 0.0
            while time < 60:
                goal = dice.random() < truth
                pair += (goal, 1)
                time += dice.uniform(3, 10) if goal else 10 + dice.exponential(20)
        samples = ratio_samples(pairs)
        assert samples.mean() == pytest.approx(pairs[:, 0].sum() / pairs[:, 1].sum())
        low, high = mean_interval(samples)
        held += low < truth < high
        own.append((pairs[:, 0] / pairs[:, 1]).mean())
    assert np.mean(own) < truth - 0.02
    assert 0.92 < held / 400 < 0.98


def test_contacts_and_goals_of_all_episodes():
    game = Game()
    game.step(touched=[True, False, True])
    game.step(touched=[True, True, False])  # the second blue car's contact is new, the first one's is not
    game.step(BOTH, ball_pos=(0, 5300, 300), touched=[False, False, True])
    game.logger.reset(np.array([True, False]), game.state())
    game.step(BOTH, ball_pos=(0, -5300, 300), touched=[False, False, True])  # a new contact where an episode has begun
    assert get_count(game.logger.counts, "goals").tolist() == [[1, 1], [1, 1]]
    assert get_count(game.logger.counts, "touches").tolist() == [[2, 3], [2, 2]]


class CarByCar(StateLogger):
    """The same of some figures in plain Python, with RocketSim's own word for who touched last."""

    def __init__(self):
        self.holds, self.steps, self.air, self.y, self.used, self.boost = (
            np.zeros(2),
            0,
            np.zeros(2),
            np.zeros(2),
            0.0,
            {},
        )

    def update(self, state, done):
        for arena in range(state.num_arenas):
            last = int(state.last_touch[arena])
            if last >= 0:
                self.holds[last] += 1
            for car in (0, 1):
                self.air[car] += not state.on_ground[arena, car]
                self.y[car] += state.world.car_pos[arena, car, 1] * (1, -1)[car]
            self.used += max(self.boost[arena] - float(state.boost[arena, 0]), 0)
            self.boost[arena] = float(state.boost[arena, 0])
            self.steps += 1

    def reset(self, mask, state):
        self.boost |= {arena: float(state.boost[arena, 0]) for arena in np.flatnonzero(mask).tolist()}

    def drain_metrics(self):
        return {}


class PadByPad(StateLogger):
    """Boost in the pads of each side, 12 or 100 each, by RocketSim's own counters of the cars."""

    def __init__(self):
        self.given, self.unclear, self.seen = np.zeros(2), 0, {}

    def update(self, state, done):
        for arena in range(state.num_arenas):
            counters, timers = self.seen[arena]
            new = state.boost_pickups[arena] - counters
            taken = [pad for pad in range(34) if timers[pad] <= 0 < state.pad_timers[arena, pad]]
            amounts = {12 if BOOST_LOCATIONS[pad][2] < 72 else 100 for pad in taken}
            assert new.sum() == len(taken)
            if len(amounts) > 1 and (new > 0).sum() > 1:
                self.unclear += 1
            for car in np.flatnonzero(new):
                self.given[state.team[car]] += new[car] * amounts.copy().pop()
            self.seen[arena] = state.boost_pickups[arena].copy(), state.pad_timers[arena].copy()

    def reset(self, mask, state):
        for arena in np.flatnonzero(mask).tolist():
            self.seen[arena] = state.boost_pickups[arena].copy(), state.pad_timers[arena].copy()

    def drain_metrics(self):
        return {}


@pytest.mark.slow
@pytest.mark.parametrize("tick_skip", [8, 24])
def test_pads_belong_to_whom_the_game_says(tick_skip):
    logger, other = GameStatistics(), PadByPad()
    pool = RocketSimPool(
        8, 2, done=GoalCondition(), num_threads=1, seed=9, tick_skip=tick_skip, loggers=[logger, other]
    )
    pool.reset()
    bot = TeamBots(KickoffThenShoot(), BallChaser())
    for _ in range(500):
        pool.step(bot.actions(pool.state, pool.action_parser))
    pool.close()
    one = pair_totals(logger.counts.sum(axis=1)[:, None, None])
    given = one["boost_collected"][0, :, 0] + one["boost_wasted"][0, :, 0]
    assert other.unclear == 0 and given == pytest.approx(other.given) and given.min() > 500


def test_real_play_beside_other_sums():
    logger, other = GameStatistics(), CarByCar()
    pool = RocketSimPool(4, 1, done=GoalCondition(), num_threads=1, seed=2, loggers=[logger, other])
    pool.reset()
    bot = TeamBots(KickoffThenShoot(), IdleBot())
    for _ in range(300):
        pool.step(bot.actions(pool.state, pool.action_parser))
    pool.close()
    one = pair_totals(logger.counts.sum(axis=1)[:, None, None])
    found = {name: ratios(values)[0] for name, values in one.items()}
    assert get_count(logger.counts, "goals").sum() > 2 and other.holds.min() > 0
    assert found["possession"] == pytest.approx(other.holds / other.holds.sum())
    assert found["air_time"] == pytest.approx(other.air / other.steps)
    assert found["field_position"] == pytest.approx(other.y / other.steps, rel=1e-4)
    assert found["boost_used"] == pytest.approx((other.used / (other.steps * 8 / 7200), 0), rel=1e-4)


@pytest.mark.slow
def test_matches_bring_them_for_player_and_opponent():
    matches = play_matches(lambda seed: IdleBot(), lambda seed: KickoffThenShoot(), num_pairs=2, minutes=0.25)
    assert all(values.shape == (2, 2, 2) for values in matches.statistics.values())
    means = {name: ratios(values).mean(axis=0) for name, values in matches.statistics.items()}
    assert means["possession"].sum() == pytest.approx(1)
    assert means["boost_used"][0] == 0 and means["boost_used"][1] > 100
    assert means["kickoffs_won"].tolist() == [0, 1]
    assert means["field_position"][0] < -2000 < means["field_position"][1]
