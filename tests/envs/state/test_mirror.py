"""In any situation whatsoever blue and orange see the same, are paid the same and end at the same time."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from envs import GoalCondition, NoTouchCondition, TimeoutCondition
from envs.obs import AdvancedObs, AdvancedObsPlus, DefaultObs, EntityObs, RelativeObs
from envs.state.layout import MIRROR
from tests.envs.fakes import Scene, build, from_the_other_side, replay
from tests.envs.rewards.test_rewards_properties import BUILD

FLAGS = ("on_ground", "demoed", "has_jumped", "has_double_jumped", "has_flipped")
BALL = np.array([[4096, 6000, 1000], [3000, 3000, 3000], [3, 3, 3]])
"""Position, velocity, angular velocity; the height is 0 to twice that."""
CAR = np.array([[4000, 5000, 1000], [1300, 1300, 1300], [3, 3, 3]])


def numbers(*shape):
    """`shape` float32 in -1..1 with few digits, so that failures can be read."""
    return arrays(np.float32, shape, elements=st.integers(-64, 64).map(lambda n: n / 64))


def directions(rows):
    """`[..., 3, 3]`: forward, right and up of cars, from any two vectors."""
    forward, other = rows[..., 0, :] + np.float32([2, 0, 0]), rows[..., 1, :] + np.float32([0, 2, 0])
    forward = forward / np.linalg.norm(forward, axis=-1, keepdims=True)
    up = np.cross(forward, other)
    up = up / np.linalg.norm(up, axis=-1, keepdims=True)
    return np.stack([forward, np.cross(up, forward), up], axis=-2)


@st.composite
def plays(draw, steps=2, most_cars=3):
    """Steps of one arena each with the same cars, as `fakes.record` gives them: its first state begins."""
    blue, orange = draw(st.integers(0, most_cars)), draw(st.integers(0, most_cars))
    blue += not blue + orange
    cars = blue + orange
    frames = []
    for _ in range(steps):
        scene = Scene(blue, orange)
        state, world = scene.state, scene.state.world
        ball, moving = draw(numbers(3, 3)) * BALL, draw(numbers(cars, 3, 3)) * CAR
        for values in (ball, moving):
            values[..., 0, 2] = np.abs(values[..., 0, 2]) * 2
        world.ball_pos[:], world.ball_vel[:], world.ball_ang_vel[:] = ball
        world.car_pos[0], world.car_vel[0], world.car_ang_vel[0] = moving.swapaxes(0, 1)
        axes = directions(draw(numbers(cars, 2, 3)))
        world.car_forward[0], world.car_right[0], world.car_up[0] = axes.swapaxes(0, 1)
        state.boost[0] = np.abs(draw(numbers(cars))) * 100
        state.pad_timers[0, :34:7] = np.abs(draw(numbers(5))) * 10
        state.ticks_since_touch[:] = draw(st.integers(0, 5000))
        state.episode_ticks[:] = 8 * len(frames)
        flags = {name: draw(arrays(bool, cars)) for name in FLAGS}
        scene.put(touched=draw(arrays(bool, cars)), **flags)
        frames.append((None if frames else np.ones(1, bool), state))
    return frames


BUILDERS = [DefaultObs(), AdvancedObs(), AdvancedObsPlus(), RelativeObs(), EntityObs(6)]


def turned(frames):
    """The same play from the other side, and where its cars were."""
    seen = [from_the_other_side(state) for _, state in frames]
    return [(mask, other) for (mask, _), (other, _) in zip(frames, seen, strict=True)], seen[0][1]


@pytest.mark.slow
@given(plays(steps=1))
def test_the_other_side_of_the_field_is_its_rotation(frames):
    [(_, state)], ([(_, other)], order) = frames, turned(frames)
    for name in ("pos", "vel", "ang_vel"):
        ours, theirs = getattr(state.world, f"ball_{name}"), getattr(state.mirrored, f"ball_{name}")
        np.testing.assert_array_equal(theirs, ours * MIRROR)
        np.testing.assert_array_equal(getattr(other.own, f"car_{name}"), getattr(state.own, f"car_{name}")[:, order])
        np.testing.assert_array_equal(getattr(other.own, f"ball_{name}"), getattr(state.own, f"ball_{name}")[:, order])
    np.testing.assert_array_equal(other.own.pad_timers, state.own.pad_timers[:, order])


@pytest.mark.parametrize("builder", BUILDERS, ids=lambda builder: type(builder).__name__)
@given(frames=plays(steps=1))
def test_blue_and_orange_see_the_same(builder, frames):
    [(_, state)], ([(_, other)], order) = frames, turned(frames)
    seen = build(builder, state)
    assert np.isfinite(seen).all()
    np.testing.assert_array_equal(build(builder, other), seen[:, order])


@pytest.mark.slow
@given(plays())
def test_blue_and_orange_are_paid_the_same(frames):
    swapped, order = turned(frames)
    for name, reward in BUILD.items():
        paid = replay(reward(), frames)
        assert np.isfinite(paid).all(), name
        np.testing.assert_allclose(
            replay(reward(), swapped), paid[:, :, order], rtol=1e-4, atol=1e-4, err_msg=f"{name} on both sides"
        )


@given(plays(steps=1))
def test_games_end_alike_for_both(frames):
    [(_, state)], ([(_, other)], _) = frames, turned(frames)
    for condition in (GoalCondition(), NoTouchCondition(10), TimeoutCondition(5)):
        assert condition.check(state).tolist() == condition.check(other).tolist()
    assert other.scoring_team.tolist() == [{0: 1, 1: 0, -1: -1}[int(team)] for team in state.scoring_team]
