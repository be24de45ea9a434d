"""Where balls will be, and how long ways take, with numbers by hand."""

import numpy as np

from envs.bots.driving import arrival_seconds, ball_after, bearing, landing_seconds
from tests.envs.rewards.reward_play import Scene


def close(found, expected):
    np.testing.assert_allclose(found[0], expected, rtol=1e-5, atol=1e-3)


def test_where_a_ball_will_be_that_flies_on():
    scene = Scene().put(ball=(100, 200, 1000), ball_vel=(300, -400, 500))
    seconds = np.full((1, 2), 2.0, np.float32)
    high = 1000 + 2 * 500 - 650 / 2 * 4
    close(ball_after(scene.state, seconds), [(700, -600, high), (-700, 600, high)])
    scene.put(ball=(4000, 200, 1000), ball_vel=(300, 6000, -500))  # into a corner, and down to the ground
    close(ball_after(scene.state, seconds), [(4004.75, 5028.75, 91.25), (-4004.75, -5028.75, 91.25)])


def test_when_a_ball_has_come_down():
    scene = Scene().put(ball=(0, 0, 525), ball_vel=(0, 0, 0))
    close(landing_seconds(scene.state), [1, 1])  # 325 uu under gravity
    close(landing_seconds(scene.put(ball=(0, 0, 200.001), ball_vel=(0, 0, 650)).state), [2, 2])
    close(landing_seconds(scene.put(ball=(0, 0, 199), ball_vel=(0, 0, 650)).state), [0, 0])


def test_how_long_a_straight_way_takes():
    scene = Scene().put(pos=[(0, 0, 17), (0, 0, 17)], vel=[(0, 2000, 0), (0, 100, 0)])
    target = np.array([[(1800, 2400, 900)] * 2], np.float32)
    close(arrival_seconds(scene.state, target), [1.5, 2.5])  # 3,000 uu on the ground, at 2,000 and at least 1,200


def test_where_a_place_lies_of_a_car():
    scene = Scene().put(pos=[(0, 0, 17), (0, 0, 17)], forward=[(0, 1, 0), (0, -1, 0)])
    scene.state.world.car_right[0] = [(1, 0, 0), (-1, 0, 0)]
    scene.state.complete()
    angle, distance = bearing(scene.state, np.array([[(300, 300, 17), (300, 0, 17)]], np.float32))
    close(angle, [np.pi / 4, np.pi / 2])  # to the right, from each car's own side
    close(distance, [300 * 2**0.5, 300])
