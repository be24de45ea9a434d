"""State setters that write a state themselves: kickoffs, random states, cars on their roofs, one given state."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np
from numpy.typing import NDArray
from rlgym.rocket_league import common_values as game
from rlgym.rocket_league.common_values import BALL_RADIUS, BALL_RESTING_HEIGHT

from envs.resets.base import (
    BALL_RELEASE_VEL,
    BALL_VECTORS,
    CAR_REST_HEIGHT,
    CAR_VECTORS,
    Double,
    PerArenaSetter,
    StateSetter,
)
from envs.resets.initial_states import TOUCHING, find_problems
from envs.state.game_state import GameState
from envs.state.layout import MIRROR, NUM_PADS, Bool
from fabric_rl.base.settings import Between, Finite, Share, annotations_of, check_value

KICKOFF_BOOST = 33.3
ROOF_REST_HEIGHT = 39.65
"""uu, an Octane's centre when it lies on its roof."""
Vector = tuple[Finite, Finite, Finite]


class Kickoff(PerArenaSetter):
    """Begin with a kickoff: the five mirrored spawns in random order, boost 33.3, at most five cars per team."""

    BLUE_POS = np.array(
        [[-2048, -2560, 17], [2048, -2560, 17], [-256, -3840, 17], [256, -3840, 17], [0, -4608, 17]], np.float32
    )
    BLUE_YAW = np.array([0.25, 0.75, 0.5, 0.5, 0.5], np.float64) * np.pi
    ORANGE_YAW = np.array([-0.75, -0.25, -0.5, -0.5, -0.5], np.float64) * np.pi

    def _apply_one(self, state: GameState, arena: int, rng: np.random.Generator) -> None:
        self.place(state, arena, self.spawns(state, rng))

    def spawns(self, state: GameState, rng: np.random.Generator) -> NDArray[np.int64]:
        """Draw `[S]` spawns, rows of `BLUE_POS`, for the cars of a team in their order; S is the larger team's size.

        Raises:
            ValueError: There are more cars than spawns.
        """
        most = max(state.num_blue, state.num_orange)
        if most > len(self.BLUE_POS):
            raise ValueError(f"Kickoff: there are only {len(self.BLUE_POS)} spawns per team")
        return rng.permutation(len(self.BLUE_POS))[:most]

    def place(
        self,
        state: GameState,
        arena: int,
        spawns: NDArray[np.int64],
        shift: float | Double = 0.0,
        turn: float | Double = 0.0,
        boost: float | Double = KICKOFF_BOOST,
    ) -> None:
        """Place the ball and the cars of one arena, both teams alike, rotated by 180 degrees.

        Args:
            state: State to write to.
            arena: Row of `state`.
            spawns: `[S]`, see `spawns`.
            shift: `[S, 2]` offset of blue cars from their spawns in x and y, uu.
            turn: `[S]` angle by which cars are turned to the left, rad.
            boost: `[S]` 0..100.
        """
        blue, orange = slice(state.num_blue), slice(state.num_orange)
        places = self.BLUE_POS[spawns]
        places[:, :2] += shift
        state.world.ball_pos[arena] = (0, 0, BALL_RESTING_HEIGHT)
        state.world.car_pos[arena] = np.concatenate((places[blue], places[orange] * MIRROR))
        blue_yaw, orange_yaw = self.BLUE_YAW[spawns] + turn, self.ORANGE_YAW[spawns] + turn
        yaw = np.concatenate((blue_yaw[blue], orange_yaw[orange])).astype(np.float32)
        level = np.zeros_like(yaw)
        state.set_car_rotation(arena, level, yaw, level)
        boosts = np.broadcast_to(np.asarray(boost, np.float32), len(spawns))
        state.boost[arena] = np.concatenate((boosts[blue], boosts[orange]))


class _SpreadOut(PerArenaSetter):
    """Base class of setters that place the ball and all cars anywhere in the field, clear of walls and each other."""

    MAX_X, MAX_Y = 3500.0, 4500.0
    """uu; inside the walls and clear of the ramps."""
    MAX_SUM = 7500.0
    """uu, largest |x| + |y|: 400 from the walls that cut the corners, and clear of their ramps."""
    CLEARANCE = 400.0
    """uu between any two centres at the start."""

    def _spread(self, state: GameState, arena: int, heights: Double, rng: np.random.Generator) -> None:
        """Place the cars, then the ball, at `heights [C + 1]` (uu), redrawing positions that are too close."""
        while True:
            count = len(heights)
            xy = rng.uniform(-1, 1, (count, 2)) * (self.MAX_X, self.MAX_Y)
            spots = np.concatenate((xy, heights[:, None]), axis=1)
            apart = np.linalg.norm(spots[:, None] - spots[None], axis=-1) + np.eye(count) * 1e9
            if apart.min() > self.CLEARANCE and np.abs(xy).sum(axis=1).max() <= self.MAX_SUM:
                break
        state.world.car_pos[arena], state.world.ball_pos[arena] = spots[:-1], spots[-1]


@dataclass(eq=False, repr=False)
class RandomState(_SpreadOut):
    """Place ball and cars at random, away from each other and from walls and ramps; cars have random boost."""

    random_ball_speed: bool = True
    """Give the ball a random velocity (up to 3000 uu/s) and spin; else it rests or falls."""
    random_car_speed: bool = True
    """Give each car a random velocity (up to 2300 uu/s; along its nose on the ground)."""
    grounded_share: Share = 0.5
    """Probability, 0..1, that a car starts on its wheels; else in the air in any orientation."""
    ball_on_ground_share: Share = 0.0
    """Probability, 0..1, that the ball starts on the ground."""

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
            velocity = _directions(rng, 1)[0] * rng.uniform(0, self.BALL_SPEED)
            world.ball_vel[arena] = velocity * ((1, 1, 0) if ball_grounded else (1, 1, 1))
            world.ball_ang_vel[arena] = _directions(rng, 1)[0] * rng.uniform(0, 6)
        elif not ball_grounded:
            world.ball_vel[arena] = BALL_RELEASE_VEL
        yaw = rng.uniform(-np.pi, np.pi, cars)
        pitch = np.where(grounded, 0, rng.uniform(-np.pi / 2, np.pi / 2, cars))
        roll = np.where(grounded, 0, rng.uniform(-np.pi, np.pi, cars))
        state.set_car_rotation(arena, *(x.astype(np.float32) for x in (pitch, yaw, roll)))
        if self.random_car_speed:
            speed = rng.uniform(0, self.CAR_SPEED, (cars, 1))
            heading = np.where(grounded[:, None], world.car_forward[arena], _directions(rng, cars))
            world.car_vel[arena] = heading * speed
            spin = _directions(rng, cars) * rng.uniform(0, 5.5, (cars, 1))
            world.car_ang_vel[arena] = np.where(grounded[:, None], 0, spin)
        state.set_on_ground(arena, grounded)
        state.boost[arena] = rng.uniform(0, 100, cars)


def _directions(rng: np.random.Generator, count: int) -> Double:
    """Draw `[count, 3]` unit vectors, uniform over the sphere."""
    vectors = rng.normal(size=(count, 3))
    unit: Double = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return unit


@dataclass(eq=False, repr=False)
class TurtledStart(_SpreadOut):
    """Begin with cars on their roofs at random positions on the floor, with random boost; the ball is at rest.

    No car lies on a ramp or in a corner of the field (|x| + |y| above 7500 uu). Without controls, cars stay on their
    roofs; pressing jump rolls a car over (the game's auto-flip).
    """

    turtled_share: Share = 1.0
    """Probability, 0..1, that a car starts on its roof; else it stands on its wheels."""
    max_speed: Annotated[float, Between(0, game.CAR_MAX_SPEED)] = 0.0
    """Turtled cars slide in a random direction with up to this speed, 0..2300 uu/s."""
    max_spin: Annotated[float, Between(0, game.CAR_MAX_ANG_VEL)] = 0.0
    """Turtled cars spin about the vertical with up to this speed either way, 0..5.5 rad/s."""

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


@dataclass(eq=False, repr=False)
class ExplicitState(PerArenaSetter):
    """Begin every episode with the same given state, for a notebook, a test or a drill.

    List the cars in the order of the slots: blue, then orange. With mixed team sizes, list one car for every slot of
    the largest arena; cars that an arena does not have are ignored.
    """

    car_pos: Sequence[Vector]
    """`[C][3]` uu; a car that stands on its wheels has z = 17."""
    ball_pos: Vector = (0.0, 0.0, game.BALL_RESTING_HEIGHT)
    """uu. In the air, a ball without any velocity and spin hangs there until it is touched; to let it fall, set a small
    velocity, such as ball_vel (0, 0, -0.01)."""
    ball_vel: Vector = (0.0, 0.0, 0.0)
    """uu/s, at most 6000."""
    ball_ang_vel: Vector = (0.0, 0.0, 0.0)
    """rad/s, at most 6."""
    car_yaw: Sequence[Finite] | None = None
    """`[C]` radians for cars that are level, 0 faces +x, pi/2 faces +y. Default: everybody faces +x."""
    car_rotation: Sequence[Vector] | None = None
    """`[C][3]` pitch (positive lifts the nose), yaw, roll in radians, instead of `car_yaw`."""
    car_vel: Sequence[Vector] | None = None
    """`[C][3]` uu/s, at most 2300. Default: all at rest."""
    car_ang_vel: Sequence[Vector] | None = None
    """`[C][3]` rad/s, at most 5.5. Default: none."""
    boost: float | Sequence[float] = 100.0 / 3
    """0..100, one number for all or one per car."""
    on_ground: Sequence[bool] | None = None
    """`[C]` whether a car's wheels touch the ground. Default: where it is level and at most 20 uu high."""
    pad_timers: Sequence[Finite] | None = None
    """`[34]` seconds until each pad is back, 0..10, order of rlgym's BOOST_LOCATIONS. Default: all 0."""

    def __post_init__(self) -> None:
        super().__post_init__()
        cars = len(self.car_pos)
        boost = self.boost if isinstance(self.boost, Sequence | np.ndarray) else [self.boost] * cars
        boost = check_value("ExplicitState: boost", boost, Sequence[Finite])
        for name in ("car_pos", "car_yaw", "car_rotation", "car_vel", "car_ang_vel", "boost", "on_ground"):
            given = boost if name == "boost" else getattr(self, name)
            if given is not None and not len(given) == cars > 0:
                raise ValueError(f"ExplicitState: {name} must have one entry for each car of car_pos, got {given}")
        if self.on_ground is not None and not all(isinstance(each, bool | np.bool_) for each in self.on_ground):
            raise ValueError(f"ExplicitState: on_ground must be true or false for each car, got {self.on_ground}")
        if self.pad_timers is not None and len(self.pad_timers) != NUM_PADS:
            raise ValueError(f"ExplicitState: pad_timers must be {NUM_PADS} numbers, got {self.pad_timers}")
        if self.car_yaw is not None and self.car_rotation is not None:
            raise ValueError("ExplicitState: set car_yaw or car_rotation, not both")
        numbers = {name: getattr(self, name) for name in annotations_of(ExplicitState)} | {"boost": boost}
        numbers = {name: value for name, value in numbers.items() if value is not None}
        if yaws := numbers.pop("car_yaw", None):
            numbers["car_rotation"] = [(0.0, yaw, 0.0) for yaw in yaws]
        self._state = GameState.from_numbers(**numbers)
        for kind, refused in find_problems(self._state, 0):
            if refused and kind not in TOUCHING:  # only the pool knows which of them are in an arena together
                raise ValueError(f"ExplicitState: {refused}")

    def _apply_one(self, state: GameState, arena: int, rng: np.random.Generator) -> None:
        if state.num_cars != len(self.car_pos):
            raise ValueError(
                f"ExplicitState: car_pos has {len(self.car_pos)} cars, but the pool's arenas have {state.num_cars} "
                f"({state.num_blue} blue, {state.num_orange} orange)"
            )
        for name in (*BALL_VECTORS, *CAR_VECTORS):
            getattr(state.world, name)[arena] = getattr(self._state.world, name)[0]
        state.set_on_ground(arena, self._state.on_ground[0])
        state.boost[arena], state.pad_timers[arena] = self._state.boost[0], self._state.pad_timers[0]


class Scramble(StateSetter):
    """Let all cars fly or drive at the ball, which may be high or fly to a goal; for many touches and demolitions."""

    def apply(self, state: GameState, mask: Bool, rng: np.random.Generator) -> None:
        world = state.world
        for arena in np.flatnonzero(mask).tolist():
            height = float(rng.choice([BALL_RESTING_HEIGHT, 400, 900, 1500]))
            high = height > 100
            ball = np.array([rng.uniform(-800, 800), rng.uniform(-4500, 4500), height])
            world.ball_pos[arena] = ball
            world.ball_vel[arena] = (0, rng.choice([-1500, 0, 1500]), 150 if high else 0)
            turns = np.arange(state.num_cars) / state.num_cars + rng.uniform(0, 0.1, state.num_cars)
            yaw = (2 * np.pi * turns).astype(np.float32)
            level = np.zeros_like(yaw)
            state.set_car_rotation(arena, level, yaw, level)
            forward = world.car_forward[arena]
            away = rng.uniform(250, 500, (state.num_cars, 1))
            world.car_pos[arena] = ball - forward * away
            world.car_pos[arena, :, 2] = height - 60 if high else CAR_REST_HEIGHT
            world.car_vel[arena] = forward * rng.uniform(1200, 2250, (state.num_cars, 1)) + (0, 0, 150 if high else 0)
            state.set_on_ground(arena, np.full(state.num_cars, not high))
            state.has_jumped[arena] = high
            state.boost[arena] = 50
