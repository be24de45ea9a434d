"""Cars on their roofs, to learn how to get up."""

import numpy as np
from rlgym.rocket_league.common_values import BALL_RESTING_HEIGHT, CAR_MAX_ANG_VEL, CAR_MAX_SPEED

from envs.resets.base import CAR_REST_HEIGHT, SpreadOut, check_share
from envs.state.game_state import GameState

ROOF_REST_HEIGHT = 39.65
"""uu, an Octane's centre when it lies on its roof."""


class TurtledStart(SpreadOut):
    """Cars lie on their roofs anywhere on the flat ground, facing anywhere; the ball rests, everybody has random boost.

    Nobody lies on a ramp, nor in a corner of the field (|x| + |y| above 7500 uu).
    Left alone they stay there. Pressing jump rolls a car over (the game's auto-flip).
    """

    def __init__(self, turtled_share: float = 1.0, max_speed: float = 0.0, max_spin: float = 0.0) -> None:
        """Creates the setter.

        Args:
            turtled_share: Probability, 0..1, that a car starts on its roof; else it stands on its wheels.
            max_speed: Turtled cars slide in a random direction with up to this speed, 0..2300 uu/s.
            max_spin: Turtled cars spin about the vertical with up to this speed either way, 0..5.5 rad/s.
        """
        self.turtled_share = check_share("TurtledStart", "turtled_share", turtled_share)
        self.max_speed = check_share("TurtledStart", "max_speed", max_speed, CAR_MAX_SPEED)
        self.max_spin = check_share("TurtledStart", "max_spin", max_spin, CAR_MAX_ANG_VEL)

    def _apply_one(self, state: GameState, arena: int, rng: np.random.Generator) -> None:
        world, cars = state.world, state.num_cars
        turtled = rng.random(cars) < self.turtled_share
        heights = np.where(turtled, ROOF_REST_HEIGHT, CAR_REST_HEIGHT)
        self._spread(state, arena, np.append(heights, BALL_RESTING_HEIGHT), rng)
        yaw = rng.uniform(-np.pi, np.pi, cars).astype(np.float32)
        roll = np.where(turtled, np.pi, 0).astype(np.float32)
        state.set_car_rotation(arena, np.zeros_like(yaw), yaw, roll)
        heading, speed = rng.uniform(-np.pi, np.pi, cars), turtled * rng.uniform(0, self.max_speed, cars)
        world.car_vel[arena, :, 0], world.car_vel[arena, :, 1] = np.cos(heading) * speed, np.sin(heading) * speed
        world.car_ang_vel[arena, :, 2] = turtled * rng.uniform(-self.max_spin, self.max_spin, cars)
        state.set_on_ground(arena, ~turtled)
        state.boost[arena] = rng.uniform(0, 100, cars)
