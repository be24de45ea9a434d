"""TurtleRecoveryLogger: situations made by hand, and cars that really lie on their roofs."""

import numpy as np
import pytest

from envs import (
    GameState,
    Kickoff,
    LookupTable,
    RandomState,
    RocketSimPool,
    TimeoutCondition,
    TurtledStart,
    TurtleRecoveryLogger,
)

TABLE = LookupTable().table
IDLE = int(np.flatnonzero(~TABLE.any(axis=1))[0])
JUMP = int(np.flatnonzero((TABLE == [0, 0, 0, 0, 0, 1, 0, 0]).all(axis=1))[0])
RATE, TICKS, STARTED = "turtle/recovery_rate", "turtle/recovery_ticks", "turtle/started"


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
        self.pose(**({"height": 39.65, "roll": 180.0, "wheels": False} | changes))

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


def test_a_recovery_is_timed_from_the_step_that_found_it():
    arena = Arena()
    arena.look()
    arena.turtle()
    assert arena.look(3) == {STARTED: (1, 1), RATE: (0, 0), TICKS: (0, 0)}
    arena.pose(height=60, roll=45, wheels=False)  # rolling over
    assert arena.look(4) == {STARTED: (0, 1), RATE: (0, 0), TICKS: (0, 0)}
    arena.pose()
    assert arena.look(5) == {STARTED: (0, 1), RATE: (1, 1), TICKS: (56, 1)}  # found at step 2, up at step 9


def test_standing_counts_only_upright():
    arena = Arena()
    arena.turtle()
    arena.look()
    arena.pose(height=80, roll=60)  # three wheels on a wall, say
    assert arena.look()[RATE] == (0, 0)
    arena.pose(roll=40)
    assert arena.look()[RATE] == (1, 1)


def test_a_car_that_stays_down_fails_once():
    arena = Arena(window_ticks=40)
    arena.turtle()
    assert arena.look(5)[RATE] == (0, 0)  # 32 ticks
    assert arena.look(1) == {STARTED: (0, 1), RATE: (0, 1), TICKS: (0, 0)}
    assert arena.look(20) == {STARTED: (0, 1), RATE: (0, 0), TICKS: (0, 0)}
    arena.pose()
    assert arena.look()[RATE] == (0, 0)  # too late
    arena.turtle()
    assert arena.look()[STARTED] == (1, 1)


def test_just_within_the_window():
    arena = Arena(window_ticks=40)
    arena.turtle()
    arena.look(5)
    arena.pose()
    assert arena.look() == {STARTED: (0, 1), RATE: (1, 1), TICKS: (40, 1)}


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


def test_a_demolition_ends_the_watch():
    arena = Arena(window_ticks=40)
    arena.turtle()
    arena.look()
    arena.turtle(demoed=True)
    arena.look()
    arena.pose()
    assert arena.look(9)[RATE] == (0, 0)


# ---------------------------------------------------------------- real physics


def real_pool(setter, seconds=20.0, **settings):
    pool = RocketSimPool(8, 1, state_setter=setter, done=TimeoutCondition(seconds), loggers=[TurtleRecoveryLogger()])
    pool.reset(seed=0)
    return pool


def play(pool, steps, jump_at=()):
    for step in range(steps):
        pool.step(np.full(16, JUMP if step in jump_at else IDLE))
    return pool.drain_metrics()


def test_cars_that_lie_still_fail():
    metrics = play(real_pool(TurtledStart()), 50)  # 400 ticks
    assert {name: metrics[name] for name in (STARTED, RATE)} == {STARTED: (16, 16), RATE: (0, 16)}


def test_cars_that_jump_get_up():
    pool = real_pool(TurtledStart())
    metrics = play(pool, 30, jump_at=(2,))
    assert metrics[STARTED] == (16, 16) and metrics[RATE] == (16, 16)
    assert pool.state.on_ground.all()
    assert 40 < metrics[TICKS][0] / 16 < 160


@pytest.mark.parametrize("setter", [Kickoff(), TurtledStart(0.0)])
def test_cars_on_their_wheels_never_count(setter):
    assert play(real_pool(setter), 40, jump_at=range(0, 40, 7))[STARTED] == (0, 16)


def test_every_car_that_falls_on_its_roof_is_found():
    """Idle cars fall in any orientation; those that end up with the roof down have been counted."""
    pool = real_pool(RandomState(random_car_speed=False, grounded_share=0.0))
    metrics = play(pool, 100)  # long at rest, unless a car bumped the ball's way
    down = (pool.state.world.car_up[..., 2] < -0.9) & (np.abs(pool.state.world.car_vel).max(axis=-1) < 20)
    assert 2 <= down.sum() <= metrics[STARTED][0] <= 16


def test_a_snapshot_goes_on_with_the_watch():
    pool, other = real_pool(TurtledStart()), real_pool(TurtledStart())
    for step in range(4):
        pool.step(np.full(16, JUMP if step == 2 else IDLE))
    other.load_state_dict(pool.state_dict())
    assert play(pool, 30) == (metrics := play(other, 30))
    assert metrics[STARTED] == (16, 16) and metrics[RATE] == (16, 16)


def test_an_episode_that_ends_leaves_the_cars_of_other_arenas_watched():
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
