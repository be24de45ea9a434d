"""Loggers: by hand on states from numbers, and in real play beside sums that are worked out another way."""

import numpy as np
import pytest

from envs.actions import LookupTable
from envs.dones import GoalCondition, TimeoutCondition
from envs.loggers import EpisodeRatios, GameMetrics, TurtleRecoveryLogger
from envs.pool.rocket_pool import RocketSimPool
from envs.processes.process_pool import ProcessPool
from envs.resets import Kickoff, RandomState, TurtledStart
from envs.state.game_state import GameState
from tests.envs.fakes import Dropped, Shot

TABLE = LookupTable().table
IDLE = int(np.flatnonzero(~TABLE.any(axis=1))[0])
JUMP = int(np.flatnonzero((TABLE == [0, 0, 0, 0, 0, 1, 0, 0]).all(axis=1))[0])
RATE, TICKS, STARTED = "turtle/recovery_rate", "turtle/recovery_ticks", "turtle/started"
EVERY, NEVER = np.ones(1, bool), np.zeros(1, bool)
CARS = [(0, 0, 17), (1000, 0, 500)]


# ---------------------------------------------------------------- GameMetrics


def means(logger):
    return {name: total / count if count else None for name, (total, count) in logger.drain_metrics().items()}


def test_by_hand():
    """Two steps of 12 ticks: one car drives and boosts, the other falls; then a touch, a shot, and a demolition."""
    logger = GameMetrics()
    logger.reset(EVERY, GameState.from_numbers(CARS, boost=[50, 80]))
    first = GameState.from_numbers(CARS, car_vel=[(600, 800, 0), (0, 0, -200)], boost=[46, 100], episode_ticks=12)
    logger.update(first, NEVER)
    second = GameState.from_numbers(
        CARS, boost=[42, 0], touched=[True, False], ball_pos=(0, 0, 300), demo_respawn_timer=[0, 3], episode_ticks=24
    )
    second.shots[0, 0], second.demos[0, 0], second.saves[0, 1] = 2, 1, 1
    logger.update(second, EVERY)
    minutes = 2 * 24 / 120 / 60
    assert means(logger) == pytest.approx(
        {
            "game/speed": (1000 + 200 + 0) / 3,  # of the demolished car nothing counts
            "game/boost": (46 + 100 + 42) / 3,
            "game/air_share": 1 / 3,
            "game/boost_used_per_minute": (4 + 4) / minutes,
            "game/touch_height": 300,
            "game/shots_per_minute": 2 / minutes,
            "game/demos_per_minute": 1 / minutes,
            "game/saves_per_minute": 1 / minutes,
        }
    )
    assert set(means(logger).values()) == {None}
    logger.update(GameState.from_numbers(CARS, touched=[True, False], episode_ticks=36), NEVER)
    assert logger.drain_metrics()["game/touch_height"] == (0, 0)  # the same contact
    logger.reset(EVERY, GameState.from_numbers(CARS, boost=100))
    logger.update(GameState.from_numbers(CARS, boost=33, touched=[True, True], episode_ticks=12), NEVER)
    again = logger.drain_metrics()
    assert again["game/boost_used_per_minute"][0] == 134 and again["game/touch_height"][1] == 2


def factory(seed=0, num_arenas=4, first_arena=0, num_threads=1):
    sizes, done = [(1, 1), (2, 1)], TimeoutCondition(0.5)
    parts = {"state_setter": Dropped(), "done": done, "loggers": [GameMetrics()], "first_arena": first_arena}
    return RocketSimPool(num_arenas, sizes, seed=seed, num_threads=num_threads, **parts)


def play(pool, steps, seed=1):
    rng = np.random.default_rng(seed)
    for _ in range(steps):
        pool.step(rng.integers(90, size=pool.num_envs))
        yield pool


def test_turtles_are_counted_per_car_that_is_there():
    pool = RocketSimPool(
        3, [(1, 0), (1, 1), (3, 3)], num_threads=1, state_setter=TurtledStart(), loggers=[TurtleRecoveryLogger()]
    )
    pool.reset(seed=0)
    for _ in range(5):
        pool.step(np.zeros(pool.num_envs, np.int64))
    assert pool.drain_metrics()[STARTED] == (9, 9)
    pool.close()


def test_real_play_with_absent_cars_and_many_episodes():
    pool, speed, boost, air, cars = factory(), 0.0, 0.0, 0.0, 0
    pool.reset()
    for _ in play(pool, 5):  # before the first episode ends
        state = pool.state
        here = state.present & ~state.is_demoed
        speed += np.linalg.norm(state.world.car_vel[here].astype(float), axis=-1).sum()
        boost, air, cars = boost + state.boost[here].sum(), air + (~state.on_ground[here]).sum(), cars + here.sum()
    found = pool.drain_metrics()
    assert found["game/speed"] == pytest.approx((speed, cars)) and found["game/boost"] == pytest.approx((boost, cars))
    assert found["game/air_share"] == (air, cars)
    assert found["game/shots_per_minute"][1] == pytest.approx(found["game/touches_per_minute"][1])
    list(play(pool, 60))
    found = pool.drain_metrics()
    assert found["game/touch_height"][1] == found["game/touches_per_minute"][0] > 20
    assert found["game/shots_per_minute"][1] == pytest.approx(found["game/touches_per_minute"][1])
    pool.close()


def test_saved_in_the_middle_it_goes_on():
    whole, fresh = factory(), factory(seed=9)
    whole.reset()
    list(play(whole, 11))
    saved = whole.state_dict()
    fresh.reset()
    fresh.load_state_dict(saved)
    for pool in (whole, fresh):
        list(play(pool, 40, seed=2))
    assert whole.drain_metrics() == fresh.drain_metrics()


@pytest.mark.slow
def test_processes_report_the_same():
    alone, pool = factory(), ProcessPool(factory, num_workers=2, seed=0)
    try:
        for each in (alone, pool):
            each.reset(seed=3)
            list(play(each, 30))
        ours = alone.drain_metrics()
        for name, pair in pool.drain_metrics().items():
            assert pair == pytest.approx(ours.get(name, pair)), name
    finally:
        pool.close()


# ---------------------------------------------------------------- turtles


UP, DOWN = {}, {"height": 39.65, "roll": 180.0, "wheels": False}
WRECKED = DOWN | {"demoed": True}


class Arena:
    """One arena with one car, posed by hand; every `look` is a step of 8 ticks."""

    def __init__(self, **settings):
        self.logger = TurtleRecoveryLogger(**settings)
        self.state = GameState(1, 1, 0)
        self.begin()

    def begin(self):
        self.state.clear(np.array([0]))
        self.pose()
        self.logger.reset(np.array([True]), self.state)

    def pose(self, height=17.0, pitch=0.0, roll=0.0, speed=0.0, wheels=True, demoed=False):
        state = self.state
        state.world.car_pos[0, 0], state.world.car_vel[0, 0] = (100, 200, height), (speed, 0, 0)
        angles = (np.array([np.radians(angle)], np.float32) for angle in (pitch, 30.0, roll))
        state.set_car_rotation(0, *angles)
        state.set_on_ground(0, np.array([wheels]))
        state.demo_respawn_timer[0] = 2.0 if demoed else 0.0

    def turtle(self, **changes):
        self.pose(**DOWN | changes)

    def look(self, times=1, done=False):
        for _ in range(times):
            self.state.episode_ticks += 8
            self.logger.update(self.state, np.array([done]))
        return self.logger.drain_metrics()


POSES = {
    "on its roof": ({}, True),
    "on its roof, tilted 20 degrees over its side": ({"roll": 160.0, "height": 52.5}, True),
    "on roof and nose, tilted 20 degrees": ({"pitch": 20.0, "height": 53.6}, True),
    "upside down in the air": ({"height": 60.0}, False),
    "flipping close above the floor": ({"roll": 160.0, "height": 60.0}, False),
    "on its side": ({"roll": 90.0, "height": 42.0}, False),
    "upright in the air": ({"roll": 0.0, "height": 25.0}, False),
    "sliding fast": ({"speed": 600.0}, False),
    "sliding": ({"speed": 400.0}, True),
    "driving on the ceiling": ({"height": 2027.0, "wheels": True}, False),
    "demolished": ({"demoed": True}, False),
}


@pytest.mark.parametrize("pose", POSES)
def test_what_a_turtle_is(pose):
    changes, expected = POSES[pose]
    arena = Arena()
    arena.turtle(**changes)
    assert arena.logger.lies_on_roof(arena.state)[0, 0] == expected
    assert arena.look()[STARTED] == (int(expected), 1)


STORIES = {  # window_ticks, then: pose, steps -> turtles found, recoveries, verdicts, ticks of the recoveries
    "a recovery is timed from the step that found it": (
        360,
        (UP, 1, (0, 0, 0, 0)),
        (DOWN, 3, (1, 0, 0, 0)),
        ({"height": 60, "roll": 45, "wheels": False}, 4, (0, 0, 0, 0)),  # rolling over
        (UP, 5, (0, 1, 1, 56)),  # found at step 2, up at step 9
    ),
    "standing counts only upright": (
        360,
        (DOWN, 1, (1, 0, 0, 0)),
        ({"height": 80, "roll": 60}, 1, (0, 0, 0, 0)),  # three wheels on a wall, say
        ({"roll": 40}, 1, (0, 1, 1, 16)),
    ),
    "a car that stays down fails once": (
        40,
        (DOWN, 5, (1, 0, 0, 0)),  # 32 ticks
        (DOWN, 1, (0, 0, 1, 0)),
        (DOWN, 20, (0, 0, 0, 0)),
        (UP, 1, (0, 0, 0, 0)),  # too late
        (DOWN, 1, (1, 0, 0, 0)),
    ),
    "just within the window": (40, (DOWN, 5, (1, 0, 0, 0)), (UP, 1, (0, 1, 1, 40))),
    "a demolition ends the watch": (40, (DOWN, 1, (1, 0, 0, 0)), (WRECKED, 1, (0, 0, 0, 0)), (UP, 9, (0, 0, 0, 0))),
}


@pytest.mark.parametrize("story", STORIES)
def test_recoveries(story):
    window_ticks, *scenes = STORIES[story]
    arena = Arena(window_ticks=window_ticks)
    for pose, steps, (found, recovered, judged, ticks) in scenes:
        arena.pose(**pose)
        assert arena.look(steps) == {STARTED: (found, 1), RATE: (recovered, judged), TICKS: (ticks, recovered)}


def test_the_end_of_an_episode_keeps_the_counts_and_forgets_the_car():
    arena = Arena(window_ticks=40)
    arena.turtle()
    arena.look()
    arena.pose()
    arena.logger.update(arena.state, np.array([True]))  # stands with the last step
    arena.begin()
    assert arena.look()[RATE] == (1, 1)
    arena.turtle()
    arena.look(2, done=True)
    arena.begin()
    assert arena.look(9) == {STARTED: (0, 1), RATE: (0, 0), TICKS: (0, 0)}  # neither up nor failed
    arena.turtle()
    assert arena.look()[STARTED] == (1, 1)


# ---------------------------------------------------------------- real physics


def real_pool(setter, seconds=20.0, **settings):
    pool = RocketSimPool(8, 1, state_setter=setter, done=TimeoutCondition(seconds), loggers=[TurtleRecoveryLogger()])
    pool.reset(seed=0)
    return pool


def hold_still(pool, steps, jump_at=()):
    for step in range(steps):
        pool.step(np.full(pool.num_envs, JUMP if step in jump_at else IDLE))
    return pool.drain_metrics()


def test_real_cars_that_lie_still_fail_and_jump_to_get_up():
    metrics = hold_still(real_pool(TurtledStart()), 50)  # 400 ticks
    assert {name: metrics[name] for name in (STARTED, RATE)} == {STARTED: (16, 16), RATE: (0, 16)}
    pool = real_pool(TurtledStart())
    metrics = hold_still(pool, 30, jump_at=(2,))
    assert metrics[STARTED] == (16, 16) and metrics[RATE] == (16, 16)
    assert pool.state.on_ground.all()
    assert 40 < metrics[TICKS][0] / 16 < 160


@pytest.mark.parametrize("setter", [Kickoff(), TurtledStart(0.0)])
def test_cars_on_their_wheels_never_count(setter):
    assert hold_still(real_pool(setter), 40, jump_at=range(0, 40, 7))[STARTED] == (0, 16)


def test_every_car_that_falls_on_its_roof_is_found():
    """Idle cars fall in any orientation; those that end up with the roof down have been counted."""
    pool = real_pool(RandomState(random_car_speed=False, grounded_share=0.0))
    metrics = hold_still(pool, 100)  # long at rest, unless a car bumped the ball's way
    down = (pool.state.world.car_up[..., 2] < -0.9) & (np.abs(pool.state.world.car_vel).max(axis=-1) < 20)
    assert 2 <= down.sum() <= metrics[STARTED][0] <= 16


def test_snapshots_and_other_arenas_keep_the_watch():
    pool, other = real_pool(TurtledStart()), real_pool(TurtledStart())
    for step in range(4):
        pool.step(np.full(16, JUMP if step == 2 else IDLE))
    other.load_state_dict(pool.state_dict())
    assert hold_still(pool, 30) == (metrics := hold_still(other, 30))
    assert metrics[STARTED] == (16, 16) and metrics[RATE] == (16, 16)
    logger, state, every = TurtleRecoveryLogger(window_ticks=400), GameState(2, 1, 0), np.array([True, True])
    state.clear(np.arange(2))
    state.world.car_pos[:, 0] = (100, 200, 39.65)
    for arena in range(2):
        state.set_car_rotation(arena, *(np.array([angle], np.float32) for angle in (0.0, 0.5, np.pi)))
        state.set_on_ground(arena, np.array([False]))
    logger.reset(every, state)
    for begun, reset in ((2, True), (1, False)):
        state.episode_ticks += 8
        logger.update(state, np.array([reset, False]))
        assert logger.drain_metrics()[STARTED][0] == begun
        if reset:
            logger.reset(np.array([True, False]), state)


# ---------------------------------------------------------------- EpisodeRatios


def test_episode_ratios_count_ended_episodes():
    """4 arenas: shots that score untouched, balls that fall on a car."""
    for setter, expected in ((Shot(), (0, 1)), (Dropped(), (1, 0))):
        pool = RocketSimPool(
            4, state_setter=setter, loggers=[EpisodeRatios()], done=[GoalCondition(), TimeoutCondition(1.0)]
        )
        pool.reset(seed=0)
        assert hold_still(pool, 2)["game/touch_ratio"] == (0, 0)
        metrics = hold_still(pool, 13)
        ended = metrics["game/episodes_per_minute"][0]
        assert ended >= 4
        assert (metrics["game/touch_ratio"], metrics["game/goal_ratio"]) == (
            (expected[0] * ended, ended),
            (expected[1] * ended, ended),
        )


def test_a_touch_belongs_to_its_own_episode():
    logger, state = EpisodeRatios(), GameState(2, 1, 1)
    both, none = np.ones(2, bool), np.zeros(2, bool)
    logger.reset(both, state)
    state.car_rows[0, 1, 0, 9] = 1
    logger.update(state, none)
    state.car_rows[0, 1, 0, 9] = 0
    other = EpisodeRatios()
    other.load_state_dict(logger.state_dict())
    for each in (logger, other):
        each.update(state, both)
        each.reset(both, state)
        each.update(state, both)
        assert each.drain_metrics() == {"game/touch_ratio": (1, 4), "game/goal_ratio": (0, 4)}
