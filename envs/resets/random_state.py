"""Random states of ball and cars."""

import numpy as np
from rlgym.rocket_league.common_values import BALL_RADIUS, BALL_RESTING_HEIGHT

from envs.resets.base import CAR_REST_HEIGHT, LET_GO, SpreadOut, check_share, random_directions
from envs.state.game_state import GameState


class RandomState(SpreadOut):
    """Ball and cars anywhere in the field, clear of each other, of walls and of all ramps; cars with random boost."""

    def __init__(
        self,
        random_ball_speed: bool = True,
        random_car_speed: bool = True,
        grounded_share: float = 0.5,
        ball_on_ground_share: float = 0.0,
    ) -> None:
        """Creates the setter.

        Args:
            random_ball_speed: Give the ball a random velocity (up to 3000 uu/s) and spin; else it rests or falls.
            random_car_speed: Give each car a random velocity (up to 2300 uu/s; along its nose on the ground).
            grounded_share: Probability, 0..1, that a car starts on its wheels; else in the air in any orientation.
            ball_on_ground_share: Probability, 0..1, that the ball starts on the ground.
        """
        self.random_ball_speed, self.random_car_speed = random_ball_speed, random_car_speed
        self.grounded_share = check_share("RandomState", "grounded_share", grounded_share)
        self.ball_on_ground_share = check_share("RandomState", "ball_on_ground_share", ball_on_ground_share)

    MAX_Z = 1800.0
    """uu; clear of the ramps to the ceiling."""
    BALL_SPEED, CAR_SPEED = 3000.0, 2300.0
    """uu/s, largest initial speeds."""

    def _apply_one(self, state: GameState, arena: int, rng: np.random.Generator) -> None:
        world, cars = state.world, state.num_cars
        grounded = rng.random(cars) < self.grounded_share
        ball_grounded = rng.random() < self.ball_on_ground_share
        heights = np.where(grounded, CAR_REST_HEIGHT, rng.uniform(300, self.MAX_Z, cars))
        ball_height = BALL_RESTING_HEIGHT if ball_grounded else rng.uniform(BALL_RADIUS + 10, self.MAX_Z)
        self._spread(state, arena, np.append(heights, ball_height), rng)
        if self.random_ball_speed:
            velocity = random_directions(rng, 1)[0] * rng.uniform(0, self.BALL_SPEED)
            world.ball_vel[arena] = velocity * ((1, 1, 0) if ball_grounded else (1, 1, 1))
            world.ball_ang_vel[arena] = random_directions(rng, 1)[0] * rng.uniform(0, 6)
        elif not ball_grounded:
            world.ball_vel[arena] = LET_GO
        yaw = rng.uniform(-np.pi, np.pi, cars)
        pitch = np.where(grounded, 0, rng.uniform(-np.pi / 2, np.pi / 2, cars))
        roll = np.where(grounded, 0, rng.uniform(-np.pi, np.pi, cars))
        state.set_car_rotation(arena, *(x.astype(np.float32) for x in (pitch, yaw, roll)))
        if self.random_car_speed:
            speed = rng.uniform(0, self.CAR_SPEED, (cars, 1))
            heading = np.where(grounded[:, None], world.car_forward[arena], random_directions(rng, cars))
            world.car_vel[arena] = heading * speed
            spin = random_directions(rng, cars) * rng.uniform(0, 5.5, (cars, 1))
            world.car_ang_vel[arena] = np.where(grounded[:, None], 0, spin)
        state.set_on_ground(arena, grounded)
        state.boost[arena] = rng.uniform(0, 100, cars)
