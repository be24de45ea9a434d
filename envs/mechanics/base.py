"""Base class of mechanics lanes: initial state of one car and the ball, a success criterion, and a time limit."""

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from rlgym.rocket_league.common_values import TICKS_PER_SECOND

from envs.component import Component
from envs.resets.base import BALL_RELEASE_VEL, CAR_REST_HEIGHT, Double
from envs.resets.mixtures import MIRROR_X
from envs.state.game_state import GameState
from envs.state.layout import MIRROR, ORANGE, Bool, Float
from envs.state.view import Derived
from fabric_rl.base.settings import Positive, check_value

SPENT_FLIP_SECONDS = 1.5
"""More than the 1.25 s after a jump in which a car can flip, and than the 0.65 s of a flip."""
_VECTORS = ("car_pos", "ball_pos", "car_vel", "car_forward", "car_up", "ball_vel")


@dataclass(frozen=True)
class SetUp:
    """Initial state of one car and the ball, seen from the car's own side (attacking +y), in uu, uu/s and rad/s."""

    car_pos: ArrayLike
    ball_pos: ArrayLike
    car_vel: ArrayLike = (0.0, 0.0, 0.0)
    car_forward: ArrayLike = (0.0, 1.0, 0.0)
    """Unit vector out of the car's nose."""
    car_up: ArrayLike = (0.0, 0.0, 1.0)
    """Unit vector out of the car's roof, at right angles to `car_forward`."""
    ball_vel: ArrayLike = BALL_RELEASE_VEL
    boost: float = 50.0
    """0..100."""
    on_wheels: bool = True
    """All four wheels touch a surface."""
    flip_spent: bool = False
    """The car has jumped and flipped a while ago, and has no flip until it lands or wins one back."""

    def mirrored(self) -> "SetUp":
        """Return a copy with left and right exchanged."""
        return replace(self, **{name: np.multiply(getattr(self, name), MIRROR_X) for name in _VECTORS})  # type: ignore[arg-type]


def _own(name: str) -> Derived[Float]:
    return Derived(lambda seen: getattr(seen.state.own, name)[seen.at])


def _of_car(name: str) -> Derived[Bool]:
    return Derived(lambda seen: getattr(seen.state, name)[seen.at])


class Seen:
    """State of `n` arenas for a lane's success criterion, each from the side of the lane's car (attacking +y).

    Positions `[n, 3]` in uu, velocities `[n, 3]` in uu/s; every array is read from the state on access.

    Attributes:
        state: State of all arenas.
        at: Row `[n]` and slot `[n]` of each car in it.
        seconds: `[n]` float64, since the episode began.
    """

    def __init__(self, state: GameState, arenas: NDArray[np.int64], actors: NDArray[np.int64]) -> None:
        """View some arenas of `state` (`[n]` rows) from the cars in the slots `actors [n]`."""
        self.state, self._arenas, self._actors, self.at = state, arenas, actors, (arenas, actors)
        self.seconds: Double = state.episode_ticks[arenas] / TICKS_PER_SECOND

    ball_pos = _own("ball_pos")
    """`[n, 3]`."""
    ball_vel = _own("ball_vel")
    """`[n, 3]`."""
    car_pos = _own("car_pos")
    """`[n, 3]`."""
    car_vel = _own("car_vel")
    """`[n, 3]`."""
    car_forward = _own("car_forward")
    """`[n, 3]` unit vectors out of the nose."""
    car_up = _own("car_up")
    """`[n, 3]` unit vectors out of the roof."""
    on_ground = _of_car("on_ground")
    """`[n]` at least three wheels have contact, with any surface."""
    has_flip = _of_car("has_flip")
    """`[n]` see `GameState.has_flip`."""
    has_jumped = _of_car("has_jumped")
    """`[n]` after a jump until the car lands."""
    touched = _of_car("touched")
    """`[n]` the car hit the ball in this step."""

    @property
    def own_team_touched(self) -> Bool:
        """`[n]` bool, True if the car or a teammate hit the ball in this step."""
        return self._touches(own=True)

    @property
    def opponents_touched(self) -> Bool:
        """`[n]` bool, True if an opponent hit the ball in this step."""
        return self._touches(own=False)

    @property
    def scored(self) -> Bool:
        """`[n]` bool, True if the ball is in the opponents' goal."""
        return self.state.goal_scored[self._arenas] & (self.ball_pos[:, 1] > 0)

    def _touches(self, own: bool) -> Bool:
        state = self.state
        counted = (state.team[self._actors][:, None] == state.team) == own
        hit: Bool = (state.touched[self._arenas] & state.present[self._arenas] & counted).any(axis=1)
        return hit


class Lane(Component, ABC):
    """Base class of drills: one mechanic to practice, alone with the ball; other cars are far away in their own halves.

    A lane itself only stores the settings of its constructor. Its memory of an episode is a row of `notes`, which
    `MechanicsLanes` stores, so one object serves all arenas.

    Attributes:
        name: Name in the metrics `lane/<name>_success` and `lane/<name>_episodes`.
        num_notes: Number of values that the lane remembers about an episode.
        time_limit_seconds: Game seconds after which an episode in this lane is truncated.
    """

    name: ClassVar[str]
    num_notes: ClassVar[int] = 0

    CLEARANCE: ClassVar[float] = 1200.0
    """Minimum distance in uu from the other cars to the ball and to the lane's car."""
    BETWEEN: ClassVar[float] = 300.0
    """Minimum distance in uu between two of the other cars."""
    MAX_X: ClassVar[float] = 3500.0
    MIN_Y: ClassVar[float] = 1000.0
    MAX_Y: ClassVar[float] = 4500.0
    MAX_SUM: ClassVar[float] = 7500.0
    """Limits in uu of the area in which the other cars stand, in their own half: |x|, |y|, and |x| + |y|."""

    _below_limit: ClassVar[str] = ""
    """The setting, in seconds, that has to be below the time limit."""

    def __init__(self, time_limit_seconds: float) -> None:
        where = f"{type(self).__name__}: time_limit_seconds"
        self.time_limit_seconds: float = check_value(where, time_limit_seconds, Positive)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self._below_limit and getattr(self, self._below_limit) >= self.time_limit_seconds:
            raise ValueError(
                f"{type(self).__name__}: {self._below_limit} must be below "
                f"time_limit_seconds={self.time_limit_seconds:g}, got {getattr(self, self._below_limit):g}"
            )

    @abstractmethod
    def set_up(self, rng: np.random.Generator) -> SetUp:
        """Draw an initial state, on the right-hand side (x >= 0) if the sides differ; `place` may mirror it."""

    @abstractmethod
    def judge(self, seen: Seen, notes: Double) -> Bool:
        """Judge the arenas after a step.

        Args:
            seen: View of the `n` arenas that are in this lane.
            notes: `[n, num_notes]` memory of the lane, zero when an episode begins; write it in place.

        Returns:
            `[n]` bool, True if the mechanic succeeds. Once per episode is enough.
        """

    def begin(self, seen: Seen, notes: Double) -> None:
        """Store values of an episode's initial state in `notes`; for the arguments, see `judge`."""

    def place(self, state: GameState, arena: int, actor: int, rng: np.random.Generator) -> None:
        """Write the initial state of an episode into row `arena` of `state`, for the car in slot `actor`."""
        setup = self.set_up(rng)
        if rng.random() < 0.5:
            setup = setup.mirrored()
        write_setup(state, arena, actor, setup)
        self._place_others(state, arena, actor, rng)

    def _place_others(self, state: GameState, arena: int, actor: int, rng: np.random.Generator) -> None:
        world = state.world
        far: list[Float] = [world.ball_pos[arena], world.car_pos[arena, actor]]
        near: list[Float] = []
        for slot in np.flatnonzero(state.present[arena]).tolist():
            if slot == actor:
                continue
            side = 1 if state.team[slot] == ORANGE else -1
            spot = self._free_place(far, near, side, rng)
            near.append(spot)
            world.car_pos[arena, slot] = spot
            x, y, _ = (world.ball_pos[arena] - spot).tolist()
            size = float(np.hypot(x, y)) or 1.0
            forward, up = (x / size, y / size, 0), (0, 0, 1)
            world.car_forward[arena, slot], world.car_up[arena, slot] = forward, up
            world.car_right[arena, slot] = np.cross(up, forward)
            state.boost[arena, slot] = rng.uniform(0, 100)

    def _free_place(self, far: list[Float], near: list[Float], side: int, rng: np.random.Generator) -> Float:
        while True:
            x, y = rng.uniform(-self.MAX_X, self.MAX_X), rng.uniform(self.MIN_Y, self.MAX_Y)
            spot = np.array((side * x, side * y, CAR_REST_HEIGHT), np.float32)
            clear = abs(x) + y <= self.MAX_SUM
            clear &= all(np.linalg.norm((spot - other)[:2]) > self.CLEARANCE for other in far)
            if clear and all(np.linalg.norm(spot - other) > self.BETWEEN for other in near):
                return spot


def write_setup(state: GameState, arena: int, actor: int, setup: SetUp) -> None:
    """Write a set-up into row `arena` of `state` for the car in slot `actor`, rotated if that car is orange."""
    turned = MIRROR if state.team[actor] == ORANGE else np.ones(3, np.float32)
    vectors = {name: np.multiply(getattr(setup, name), turned) for name in _VECTORS}
    for name, numbers in vectors.items():
        getattr(state.world, name)[(arena,) if name.startswith("ball") else (arena, actor)] = numbers
    state.world.car_right[arena, actor] = np.cross(vectors["car_up"], vectors["car_forward"])
    state.boost[arena, actor] = setup.boost
    grounded = np.ones(state.num_cars, np.bool_)
    grounded[actor] = setup.on_wheels
    state.set_on_ground(arena, grounded)
    if setup.flip_spent:
        state.has_jumped[arena, actor] = state.has_flipped[arena, actor] = True
        state.flip_time[arena, actor] = state.air_time_since_jump[arena, actor] = SPENT_FLIP_SECONDS


def heading(yaw: float, pitch: float = 0.0) -> tuple[Double, Double]:
    """Return forward and up of a car without roll.

    Args:
        yaw: Radians from +y toward +x.
        pitch: Radians, positive lifts the nose.
    """
    sy, cy, sp, cp = float(np.sin(yaw)), float(np.cos(yaw)), float(np.sin(pitch)), float(np.cos(pitch))
    return np.array((cp * sy, cp * cy, sp)), np.array((-sp * sy, -sp * cy, cp))


def rewind_flight(pos: Double, vel: Double, seconds: float, gravity: float) -> tuple[Double, Double]:
    """Return position and velocity of a body in free flight (no drag) `seconds` before it is at `pos` with `vel`."""
    down = np.array((0.0, 0.0, -gravity))
    return pos - vel * seconds + down * (seconds**2 / 2), vel - down * seconds
