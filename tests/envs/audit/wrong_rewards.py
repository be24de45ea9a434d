"""Rewards that pay for the wrong thing, each in its own way, and one honest one beside them."""

import numpy as np

from envs import Reward


def ones(state):
    return np.ones((state.num_arenas, state.num_cars), np.float32)


class AnyGoal(Reward):
    """1 for everybody when anybody scores: pays own goals."""

    unit = "per event"

    def compute(self, state):
        return ones(state) * state.goal_scored[:, None]


class BluesGoal(Reward):
    """The ball's speed toward the goal that blue attacks, whoever plays: pays orange for its own goals."""

    def compute(self, state):
        return ones(state) * np.maximum(0, state.world.ball_vel[:, 1] / 6000)[:, None]


class RightHalf(Reward):
    """1 a step while the ball is on the side of positive x, which is blue's right and orange's left."""

    def compute(self, state):
        return ones(state) * (state.world.ball_pos[:, 0] > 0)[:, None]


class FirstCar(Reward):
    """Pays each team's first car for a touch of any of its cars."""

    unit = "per touching step"

    def compute(self, state):
        paid = np.zeros((state.num_arenas, state.num_cars), np.float32)
        for first, stop in ((0, state.num_blue), (state.num_blue, state.num_cars)):
            paid[:, first] = state.touched[:, first:stop].any(axis=1)
        return paid


class SaysPerSecond(Reward):
    """Says that it is paid per second, and pays the speed of the car on every step."""

    unit = "per second"

    def compute(self, state):
        return np.linalg.norm(state.world.car_vel, axis=-1) / 2300


class NearBall(Reward):
    """1 a step within 1,000 uu of the ball: hovering there is worth more than many goals."""

    def compute(self, state):
        return np.linalg.norm(state.own.ball_pos - state.own.car_pos, axis=-1) < 1000
