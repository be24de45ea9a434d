"""The table of the fields in the documentation is that of the code."""

from operator import attrgetter
from pathlib import Path

import numpy as np
import pytest

from envs import EventReward, GoalReward, SpeedTowardBallReward, TouchReward
from envs.pool.rocket_pool import RocketSimPool
from envs.resets import ExplicitState, RandomState
from envs.state.__main__ import fields, fields_table
from envs.state.game_state import GameState

PAGE = Path(__file__).resolve().parents[3] / "docs" / "game_state.md"


def fields_of(state):
    """(name, array) of everything public, from all three sides."""
    names = [field.name for field in fields()]
    sides = [name.replace("world.", side) for side in ("mirrored.", "own.") for name in names if "." in name]
    return [(name, attrgetter(name)(state)) for name in (*names, *sides)]


def test_the_documentation_has_the_table():
    assert fields_table() in PAGE.read_text(encoding="utf-8"), "run python -m envs.state"


@pytest.mark.slow
def test_every_array_has_its_shape_and_says_what_it_is():
    found = {field.name: field for field in fields()}
    assert found["world.car_vel"][1:4] == ("[A, C, 3]", "float32", "uu/s")
    assert found["controls"][1:4] == ("[A, C, 8]", "float32", "-1..1")
    assert found["episode_ticks"][1:4] == ("[A]", "int64", "ticks")
    assert found["is_supersonic"][1:4] == ("[A, C]", "bool", "")
    assert all(len(field.meaning) > 5 for field in found.values())
    public = {name for name in dir(GameState) if not name.startswith("_")}
    state = GameState(1, 1, 1)
    arrays = {name for name in public if isinstance(getattr(state, name), np.ndarray)}
    assert arrays <= found.keys(), "an array without a docstring"


def test_every_number_has_a_unit_or_none_to_have():
    plain = (
        "quaternion",
        "forward",
        "right",
        "up",
        "index",
        "team",
        "torque",
        "direction",
        "victim",
        "normal",
        "touch",
    )
    counters = ("goals", "shots", "saves", "demos", "boost_pickups")
    for field in fields():
        if field.dtype != "bool" and not field.unit:
            assert field.name.endswith((*plain, *counters)), field


def reach(column):
    """The address up to which NumPy before 2.0.2 takes a column to reach, whichever axis it goes along in one go."""
    last = sum(stride * (size - 1) for stride, size in zip(column.strides, column.shape, strict=True))
    return column.ctypes.data + last + max(column.strides)


def end_of_memory(array):
    while array.base is not None:
        array = array.base
    return array.ctypes.data + array.nbytes


def test_no_result_can_lie_where_numpy_takes_a_column_to_reach():
    """Else `arctan2` of a column would be one thing or, where the heap happened to put its result, another."""
    whole = GameState(5, 1, 2)
    for state in (whole, whole.select(np.array([4, 0])), whole.copy()):
        arrays = [state.car_rows, state.ball_rows, state.car_timers, state.controls]
        for view in (state.world, state.mirrored, state.own):
            arrays += [view.ball, view.cars, view.pad_timers]
        for array in arrays:
            for column in range(array.shape[-1]):
                assert reach(array[..., column]) <= end_of_memory(array)


QUATERNIONS = {"car_quaternion", "ball_quaternion"}
FIRST_TICK = {"supersonic_time", "is_supersonic"}
"""Told by the speed; the game finds out in the first tick."""


def numbers_of(state):
    """What `from_numbers` takes of a state."""
    world = state.world
    cars = {name: getattr(world, name) for name in ("car_pos", "car_vel", "car_ang_vel")}
    ball = {name: getattr(world, name) for name in ("ball_pos", "ball_vel", "ball_ang_vel", "pad_timers")}
    own = {name: getattr(state, name) for name in ("boost", "on_ground", "touched")}
    return cars | ball | own | {"car_rotation": world.car_pitch_yaw_roll, "num_blue": state.num_blue}


@pytest.mark.slow
def test_it_is_what_the_pool_reads_of_the_same_numbers():
    pool = RocketSimPool(40, (2, 1), state_setter=RandomState(), num_threads=1)
    pool.reset(seed=3)
    pool.state.read_stale_details()
    made = GameState.from_numbers(**numbers_of(pool.state))
    assert made.is_supersonic.any()
    for (name, ours), (_, theirs) in zip(fields_of(made), fields_of(pool.state), strict=True):
        assert ours.shape == theirs.shape and ours.dtype == theirs.dtype, name
        if name.rpartition(".")[2] in QUATERNIONS:  # q and -q are one rotation
            ours = ours * np.sign(np.einsum("...i,...i", ours, theirs))[..., None]
        if name not in FIRST_TICK:
            np.testing.assert_allclose(ours, theirs, atol=2e-5, rtol=1e-5, err_msg=name)


def test_the_numbers_of_an_explicit_state_make_the_same_state():
    numbers = {"car_pos": [(0, -1000, 17), (500, 900, 400)], "ball_vel": (100.0, 0, 0), "boost": [12, 100]}
    rotation = [(0, np.pi / 2, 0), (0.3, -2, 0.4)]
    pool = RocketSimPool(1, 1, state_setter=ExplicitState(**numbers, car_rotation=rotation), num_threads=1)
    pool.reset()
    made = GameState.from_numbers(**numbers, car_rotation=rotation)
    np.testing.assert_array_equal(made.mirrored.ball_vel, pool.state.mirrored.ball_vel)
    np.testing.assert_allclose(made.own.car_forward, pool.state.own.car_forward, atol=1e-6)
    assert made.on_ground.tolist() == pool.state.on_ground.tolist() == [[True, False]]
    pool.close()


def test_what_follows_from_the_numbers():
    state = GameState.from_numbers(
        [(400 * car, 0, 17) for car in range(4)],
        1,
        car_vel=[(2250, 0, 0), (0, 0, 0), (0, -2199, 0), (0, 0, 0)],
        touched=[False, False, True, True],
        demo_respawn_timer=[0, 2, 0, 0],
        episode_ticks=80,
    )
    assert state.team.tolist() == [0, 1, 1, 1]
    assert state.is_supersonic.tolist() == [[True, False, False, False]]
    assert state.is_demoed.tolist() == [[False, True, False, False]]
    assert state.last_touch.tolist() == [2] and state.ticks_since_touch.tolist() == [0]
    assert state.own.car_pos[0, 2].tolist() == [-800, 0, 17]  # orange sees the field turned around
    state.world.car_pos[0, 2] = (1, 2, 3)
    state.complete()
    assert state.mirrored.car_pos[0, 2].tolist() == state.own.car_pos[0, 2].tolist() == [-1, -2, 3]
    # Three frames of a replay, in which only the ball moves.
    balls = [(0, 0, 93), (0, 2000, 93), (0, 5300, 93)]
    state = GameState.from_numbers([[(0, -500, 17)]] * 3, ball_pos=balls, boost=50, episode_ticks=[0, 8, 16])
    assert state.num_arenas == 3 and (state.num_blue, state.num_orange) == (1, 0)
    assert state.goal_scored.tolist() == [False, False, True] and state.scoring_team.tolist() == [-1, -1, 0]
    assert state.ticks_since_touch.tolist() == [0, 8, 16] and (state.boost == 50).all()


def test_rewards_are_paid_for_it():
    cars = [(0, -1000, 17), (0, 2000, 17)]
    driving = GameState.from_numbers(cars, car_vel=[(0, 1150, 0), (0, 0, 0)], ball_pos=(0, 0, 17))
    assert SpeedTowardBallReward().compute(driving).tolist() == [[0.5, 0]]
    goal = GameState.from_numbers(cars, ball_pos=(0, -5300, 100), touched=[False, True])
    assert GoalReward().compute(goal).tolist() == [[-1, 1]] and TouchReward().compute(goal).tolist() == [[0, 1]]
    event = EventReward(goal=10, concede=-3, shot=1)
    event.reset(np.ones(1, bool), driving)
    goal.shots[0, 1] = 1
    assert event.compute(goal).tolist() == [[-3, 11]]


@pytest.mark.parametrize(
    ("numbers", "message"),
    [
        ({"car_pos": [1, 2, 3]}, r"car_pos must be \[C, 3\] or \[A, C, 3\], got \[3\]"),
        ({"car_pos": [[1, 2, 3], [4, 5]]}, r"car_pos must be \[C, 3\] or \[A, C, 3\], got \[\]"),
        ({"num_blue": 0.5}, "num_blue must be between 0 and the 2 cars of car_pos, got 0.5"),
        ({"num_blue": 3}, "num_blue must be between 0 and the 2 cars of car_pos, got 3"),
        ({"car_vel": [1, 2]}, r"car_vel must be numbers that fit \[1, 2, 3\], got \[1, 2\]"),
        ({"boost": ["full", "empty"]}, r"boost must be numbers that fit \[1, 2\]"),
        ({"ball_pos": (0, np.nan, 0)}, "ball_pos contains NaN or infinity"),
    ],
)
def test_numbers_that_do_not_fit_are_named(numbers, message):
    with pytest.raises(ValueError, match=f"^GameState: {message}"):
        GameState.from_numbers(**{"car_pos": np.zeros((2, 3))} | numbers)
