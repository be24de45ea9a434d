"""State setters: how an episode begins."""

from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from rlgym.rocket_league.common_values import BALL_RADIUS, BALL_RESTING_HEIGHT

from envs.game_state import Bool, GameState

Double = NDArray[np.float64]

CAR_REST_HEIGHT = 17.0
KICKOFF_BOOST = 33.3


class StateSetter(ABC):
    """Writes the first state of an episode."""

    @abstractmethod
    def apply(self, state: GameState, mask: Bool, rng: np.random.Generator) -> None:
        """Writes `state.world` and the car fields of the arenas in `mask [A]`.

        The rows are in a base state before (all zero, cars upright with wheels down), so only what differs needs to be
        written. All randomness comes from `rng`. The pool calls this for one arena at a time with that arena's own
        generator, so an arena's episodes do not depend on how many others there are.
        """


class Kickoff(StateSetter):
    """The five mirrored kickoff spawns with boost 33.3, in random order; at most five cars a team."""

    BLUE_POS = np.array(
        [[-2048, -2560, 17], [2048, -2560, 17], [-256, -3840, 17], [256, -3840, 17], [0, -4608, 17]], np.float32
    )
    BLUE_YAW = np.array([0.25, 0.75, 0.5, 0.5, 0.5], np.float64) * np.pi
    ORANGE_YAW = np.array([-0.75, -0.25, -0.5, -0.5, -0.5], np.float64) * np.pi

    def apply(self, state: GameState, mask: Bool, rng: np.random.Generator) -> None:
        """See `StateSetter.apply`."""
        if max(state.num_blue, state.num_orange) > len(self.BLUE_POS):
            raise ValueError(f"Kickoff: there are only {len(self.BLUE_POS)} spawns a team")
        rotated = np.array([-1, -1, 1], np.float32)
        for arena in np.flatnonzero(mask):
            spawns = rng.permutation(len(self.BLUE_POS))
            blue, orange = spawns[: state.num_blue], spawns[: state.num_orange]
            state.world.ball_pos[arena] = (0, 0, BALL_RESTING_HEIGHT)
            state.world.car_pos[arena] = np.concatenate((self.BLUE_POS[blue], self.BLUE_POS[orange] * rotated))
            yaw = np.concatenate((self.BLUE_YAW[blue], self.ORANGE_YAW[orange])).astype(np.float32)
            level = np.zeros_like(yaw)
            state.set_car_rotation(int(arena), level, yaw, level)
            state.boost[arena] = KICKOFF_BOOST


class RandomState(StateSetter):
    """Ball and cars anywhere in the field, clear of each other; each car with random boost."""

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
        for name, share in (("grounded_share", grounded_share), ("ball_on_ground_share", ball_on_ground_share)):
            if not 0 <= share <= 1:
                raise ValueError(f"RandomState: {name} must be between 0 and 1, got {share}")
        self.random_ball_speed, self.random_car_speed = random_ball_speed, random_car_speed
        self.grounded_share, self.ball_on_ground_share = grounded_share, ball_on_ground_share

    MAX_X, MAX_Y, MAX_Z = 3500.0, 4500.0, 1800.0
    """uu; inside the walls and clear of the ramps and corners."""
    CLEARANCE = 400.0
    """uu between any two centres at the start."""
    BALL_SPEED, CAR_SPEED = 3000.0, 2300.0
    """uu/s, largest initial speeds."""

    def apply(self, state: GameState, mask: Bool, rng: np.random.Generator) -> None:
        """See `StateSetter.apply`."""
        for arena in np.flatnonzero(mask):
            self._apply_one(state, int(arena), rng)

    def _apply_one(self, state: GameState, arena: int, rng: np.random.Generator) -> None:
        world, cars = state.world, state.num_cars
        grounded = rng.random(cars) < self.grounded_share
        ball_grounded = rng.random() < self.ball_on_ground_share
        heights = np.where(grounded, CAR_REST_HEIGHT, rng.uniform(300, self.MAX_Z, cars))
        ball_height = BALL_RESTING_HEIGHT if ball_grounded else rng.uniform(BALL_RADIUS + 10, self.MAX_Z)
        heights = np.append(heights, ball_height)
        spots = self._spread(heights, rng)
        world.car_pos[arena], world.ball_pos[arena] = spots[:-1], spots[-1]
        if self.random_ball_speed:
            velocity = _direction(rng, 1)[0] * rng.uniform(0, self.BALL_SPEED)
            world.ball_vel[arena] = velocity * ((1, 1, 0) if ball_grounded else (1, 1, 1))
            world.ball_ang_vel[arena] = _direction(rng, 1)[0] * rng.uniform(0, 6)
        yaw = rng.uniform(-np.pi, np.pi, cars)
        pitch = np.where(grounded, 0, rng.uniform(-np.pi / 2, np.pi / 2, cars))
        roll = np.where(grounded, 0, rng.uniform(-np.pi, np.pi, cars))
        state.set_car_rotation(arena, *(x.astype(np.float32) for x in (pitch, yaw, roll)))
        if self.random_car_speed:
            speed = rng.uniform(0, self.CAR_SPEED, (cars, 1))
            heading = np.where(grounded[:, None], world.car_forward[arena], _direction(rng, cars))
            world.car_vel[arena] = heading * speed
            spin = _direction(rng, cars) * rng.uniform(0, 5.5, (cars, 1))
            world.car_ang_vel[arena] = np.where(grounded[:, None], 0, spin)
        state.set_on_ground(arena, grounded)
        state.boost[arena] = rng.uniform(0, 100, cars)

    def _spread(self, heights: Double, rng: np.random.Generator) -> Double:
        """`[len(heights), 3]` positions at the given heights, drawn until all keep their distance."""
        while True:
            count = len(heights)
            xy = rng.uniform(-1, 1, (count, 2)) * (self.MAX_X, self.MAX_Y)
            spots: Double = np.concatenate((xy, heights[:, None]), axis=1)
            apart = np.linalg.norm(spots[:, None] - spots[None], axis=-1) + np.eye(count) * 1e9
            if apart.min() > self.CLEARANCE:
                return spots


class MixedStates(StateSetter):
    """Draws one of several setters for each episode."""

    def __init__(self, setters: Sequence[StateSetter], weights: Sequence[float]) -> None:
        """Creates the mixture.

        Args:
            setters: What to draw from.
            weights: One number >= 0 per setter; they need not sum to one.

        Raises:
            ValueError: The weights do not fit.
            TypeError: Not a state setter.
        """
        if len(setters) == 0 or len(setters) != len(weights) or min(weights) < 0 or sum(weights) <= 0:
            raise ValueError(
                f"MixedStates: needs one weight >= 0 for each setter and a positive sum, got {len(setters)} setters "
                f"and weights {list(weights)}"
            )
        wrong = [getattr(s, "__name__", type(s).__name__) for s in setters if not isinstance(s, StateSetter)]
        if wrong:
            raise TypeError(f"MixedStates: setters must be envs StateSetter objects, got {', '.join(wrong)}")
        self.setters = tuple(setters)
        self.shares = np.asarray(weights, np.float64) / sum(weights)

    def apply(self, state: GameState, mask: Bool, rng: np.random.Generator) -> None:
        """See `StateSetter.apply`."""
        for arena in np.flatnonzero(mask):
            one = np.zeros_like(mask)
            one[arena] = True
            self.setters[rng.choice(len(self.setters), p=self.shares)].apply(state, one, rng)


def _direction(rng: np.random.Generator, count: int) -> Double:
    """`[count, 3]` unit vectors, uniform over the sphere."""
    vectors = rng.normal(size=(count, 3))
    unit: Double = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return unit
