"""The rules for first states: what a pool refuses, what an audit lists, and how both say it."""

import re

import numpy as np
import pytest

from envs import GameState, Kickoff, RandomState, RocketSimPool
from envs.resets import check_start
from envs.resets.first_states import describe_problems, inside_field, problems, wall_distance
from tests.envs.resets.written import written

BALL_IN_WALL, CAR_IN_WALL, GOAL = "a ball inside a wall", "a car inside a wall", "a ball behind a goal line"
IN_CAR, IN_BALL, ROOF = "a car inside another car", "a car inside the ball", "a car on its roof"
BALL, CAR = "a ball faster than the game allows", "a car faster than the game allows"


def start(**changes):
    """A possible state of two cars, changed: name -> value of the ball or of all, or (slot, value)."""
    state = GameState.from_numbers([(0, -2000, 17), (0, 2000, 17)])
    for name, value in changes.items():
        target = getattr(state, name) if hasattr(state, name) else getattr(state.world, name)
        slot, value = value if isinstance(value, tuple) and isinstance(value[1], list | float) else (None, value)
        target[(0,) if slot is None else (0, slot)] = value
    return state


PROBLEMS = [
    ({}, [], None),
    ({"ball_pos": [0, 0, 30]}, [BALL_IN_WALL], None),
    ({"ball_pos": [0, 5300, 200]}, [GOAL], None),
    (
        {"ball_pos": [0, 6100, 9]},
        [BALL_IN_WALL, GOAL],
        "the ball would start outside the field, at (0.0, 6100",
    ),
    ({"car_pos": (0, [0, 40, 80])}, [IN_BALL], "the ball and car 0 would start in one place, at (0.0, 40.0, 80.0) uu"),
    ({"car_pos": (0, [0, 80, 60])}, [IN_BALL], None),
    ({"car_pos": (0, [29, 2000, 17])}, [IN_CAR], "car 0 and car 1 would start in one place, at (0.0, 2000.0, 17.0) uu"),
    ({"car_pos": (0, [31, 2000, 17])}, [IN_CAR], None),
    ({"car_pos": (0, [0, 2000, 53])}, [], None),  # one on top of the other
    ({"car_pos": (0, [4090, 0, 500])}, [CAR_IN_WALL], None),
    ({"car_pos": (0, [3700, 4600, 17])}, [CAR_IN_WALL], "car 0 would start outside the field"),
    ({"car_pos": (0, [4200, 0, 17])}, [CAR_IN_WALL], "car 0 would start outside the field, at (4200.0, 0.0, 17.0) uu"),
    ({"car_pos": (1, [500, 9, -1])}, [CAR_IN_WALL], "car 1 would start outside the field, at (500.0, 9.0, -1.0) uu"),
    ({"car_pos": (0, [0, 5500, 17])}, [], None),  # in the goal
    ({"car_pos": (0, [0, 5500, 680])}, [CAR_IN_WALL], None),  # above it
    ({"car_up": (0, [0, 0, -1.0])}, [ROOF], None),
    ({"car_up": (0, [1, 0, 0.0])}, [], None),
    ({"car_up": (0, [0, 0, -1.0]), "car_pos": (0, [0, -2000, 400])}, [], None),
    ({"ball_vel": [6000, 0, 0], "car_vel": (1, [0, 2300, 0]), "boost": 100}, [], None),
    ({"ball_vel": [1e5, 0, 0]}, [BALL], "the ball would start with velocity 100000 uu/s, at most 6000 is possible"),
    ({"ball_ang_vel": [0, 5, 5]}, [BALL], "the ball would start with angular velocity 7.07107 rad/s, at most 6 is"),
    ({"car_vel": (1, [0, 2400, 0])}, [CAR], "car 1 would start with velocity 2400 uu/s, at most 2300 is possible"),
    ({"car_ang_vel": (0, [4, 4, 0])}, [CAR], "car 0 would start with angular velocity 5.65685 rad/s, at most 5.5 is"),
    ({"boost": (1, 500.0)}, ["a boost out of range"], "car 1 would start with boost 500, it must be 0 to 100"),
    ({"boost": (0, -1.0)}, ["a boost out of range"], "car 0 would start with boost -1"),
    ({"pad_timers": (7, 11.0)}, ["a pad timer out of range"], "pad 7 would start with pad timer 11, it must be 0"),
    (
        {"demo_respawn_timer": (1, -2.0)},
        ["a demo_respawn_timer out of range"],
        "car 1 would start with demo_respawn_",
    ),
    ({"demo_respawn_timer": (0, 1.0), "car_pos": (0, [9000, 0, 17])}, [], None),
]


@pytest.mark.parametrize(("changes", "kinds", "refused"), PROBLEMS, ids=[str(changes) for changes, *_ in PROBLEMS])
def test_problems(changes, kinds, refused):
    state = start(**changes)
    assert [problem.kind for problem in problems(state, 0)] == kinds
    if refused is None:
        check_start(state, 0, "Mine")
    else:
        with pytest.raises(ValueError, match=re.escape(f"Mine: in arena 0 {refused}")) as caught:
            check_start(state, 0, "Mine")
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("spoil", "what"),
    [
        (lambda s: s.world.ball_vel, "the ball's state"),
        (lambda s: s.world.car_forward[:, 1], "the state of car 1"),
        (lambda s: s.car_timers[:, 1], "the state of car 1"),
        (lambda s: s.boost[:, 0:1], "the state of car 0"),
        (lambda s: s.pad_timers, "the pad timers"),
    ],
)
def test_the_check_finds_nan(spoil, what):
    state = start()
    spoil(state)[0, 0] = np.nan
    with pytest.raises(ValueError, match=f"Mine: in arena 0 .* NaN or infinity in {what}"):
        check_start(state, 0, "Mine")


def test_absent_cars_are_left_out_and_the_pools_arena_is_named():
    state = written(Kickoff(), 1, 2, present=np.array([[True, True, False]]))
    state.car_rows[0, 2] = np.nan
    check_start(state, 0, "Mine")
    state = GameState(3, 1, 1)
    state.clear(np.arange(3))
    with pytest.raises(ValueError, match="in arena 2 the ball and car 0"):
        check_start(state.select(np.array([2])), 0, "Mine")


def test_problems_are_counted_over_the_episodes():
    found = [["a"], [], ["b", "a", "a"], *[["a"]] * 4]
    assert describe_problems(found) == [
        "a in 6 of 7 first states (episode 0, 2, 3, 4, 5, ...)",
        "b in 1 of 7 first states (episode 2)",
    ]


@pytest.mark.parametrize(
    ("spot", "distance"),
    [
        ((0, 0, 93), 93),
        ((4096, 0, 1000), 0),
        ((4147, 0, 1000), -51),
        ((0, -5120, 1000), 0),
        ((0, -5171, 1000), -51),  # above the crossbar
        ((1500, 5300, 100), -180),  # beside the goal
        ((880, 5999, 600), 1),
        ((0, 6051, 100), -51),
        ((0, 0, 2095), -51),
        ((3500, 4500, 100), 45.3),
        ((3800, 4900, 100), -449.7),  # behind a corner: 8700 > 8064
    ],
)
def test_the_walls(spot, distance):
    assert wall_distance(*spot) == pytest.approx(distance, abs=0.1)
    assert inside_field(*spot) is (distance >= -50)
    for axis in range(3):
        assert not inside_field(*(float("nan") if axis == each else x for each, x in enumerate(spot)))
    assert not inside_field(*spot[:2], -0.1)


def test_every_place_of_a_real_game_is_inside():
    pool = RocketSimPool(8, 2, state_setter=RandomState(), num_threads=1, seed=3)
    pool.reset()
    rng = np.random.default_rng(0)
    for _ in range(150):
        pool.step(rng.integers(90, size=pool.num_envs))
        for spot in np.concatenate((pool.state.world.car_pos.reshape(-1, 3), pool.state.world.ball_pos)).tolist():
            assert inside_field(*spot)
