"""Situations on the field as Hypothesis draws them: of all kinds, also those that play never shows."""

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from tests.envs.rewards.reward_play import Scene

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
    """Steps of one arena each with the same cars, as `reward_play.record` gives them: its first state begins."""
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
