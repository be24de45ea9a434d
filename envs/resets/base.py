"""The state setter, and what setters share: checks of a first state, of arguments, and random places."""

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray
from rlgym.rocket_league import common_values as game

from envs.checks import finite_numbers
from envs.component import Component
from envs.dones import DoneCondition
from envs.loggers import StateLogger
from envs.state.game_state import GameState
from envs.state.layout import Bool
from fabric_rl.base.settings import is_number

Double = NDArray[np.float64]

CAR_REST_HEIGHT = 17.0
"""uu, a car's centre when it stands on its wheels."""
MIN_CAR_DISTANCE = 30.0
"""uu between the centres of two cars; two cars stacked flat are 36 apart, less only happens inside one another."""
MIN_BALL_DISTANCE = 50.0
"""uu between the centres of ball and car; a ball lying on a roof is 130 away."""
FIELD_MARGIN = 50.0
"""uu that a centre may be beyond a wall: less than any hitbox, more than a fast car sinks into one for a tick."""

BALL_MAX_ANG_VEL = 6.0
"""rad/s"""
LIMIT_MARGIN = 1.001
"""How far over a limit a speed, an amount or a timer may be: rounding, and what RocketSim itself lets through."""

LET_GO = (0.0, 0.0, -0.01)
"""uu/s for a ball that is let fall: in RocketSim one without any velocity and spin hangs in the air until touched."""


class StateSetter(Component, ABC):
    """Writes the first state of an episode."""

    @abstractmethod
    def apply(self, state: GameState, mask: Bool, rng: np.random.Generator) -> None:
        """Writes `state.world` and the car fields of the arenas in `mask [A]`.

        The rows are in a base state before (all zero, cars upright with wheels down), so only what differs needs to be
        written. What is written into slots without a car (`state.present`) is dropped. All randomness comes from `rng`.
        The pool calls this for one arena at a time with that arena's own generator, so an arena's episodes do not
        depend on how many others there are.
        """

    def conditions(self) -> Sequence[DoneCondition]:
        """Return the done conditions of its states, which a pool adds to its own; by default those inside."""
        return [each for setter in self._inside() for each in setter.conditions()]

    def loggers(self) -> Sequence[StateLogger]:
        """Return the state loggers of its states, which a pool adds to its own; by default those inside."""
        return [each for setter in self._inside() for each in setter.loggers()]

    def _inside(self) -> "Iterator[StateSetter]":
        return (child for child in self.children() if isinstance(child, StateSetter))

    def author(self) -> str:
        """Return the class that wrote the last state, for messages; combinators add that of the setter inside."""
        return type(self).__name__


class EachArena(StateSetter):
    """A setter that writes one arena after the other."""

    def apply(self, state: GameState, mask: Bool, rng: np.random.Generator) -> None:
        for arena in np.flatnonzero(mask).tolist():
            self._apply_one(state, arena, rng)

    @abstractmethod
    def _apply_one(self, state: GameState, arena: int, rng: np.random.Generator) -> None:
        """Writes row `arena` of `state`."""


class SpreadOut(EachArena):
    """A setter that begins with the ball and all cars anywhere in the field, clear of walls and of one another."""

    MAX_X, MAX_Y = 3500.0, 4500.0
    """uu; inside the walls and clear of the ramps."""
    MAX_SUM = 7500.0
    """uu, largest |x| + |y|: 400 from the walls that cut the corners, and clear of their ramps."""
    CLEARANCE = 400.0
    """uu between any two centres at the start."""

    def _spread(self, state: GameState, arena: int, heights: Double, rng: np.random.Generator) -> None:
        """Places the cars and last the ball at `heights [C + 1]` (uu), drawn again until all keep their distance."""
        while True:
            count = len(heights)
            xy = rng.uniform(-1, 1, (count, 2)) * (self.MAX_X, self.MAX_Y)
            spots = np.concatenate((xy, heights[:, None]), axis=1)
            apart = np.linalg.norm(spots[:, None] - spots[None], axis=-1) + np.eye(count) * 1e9
            if apart.min() > self.CLEARANCE and np.abs(xy).sum(axis=1).max() <= self.MAX_SUM:
                break
        state.world.car_pos[arena], state.world.ball_pos[arena] = spots[:-1], spots[-1]


def inside_field(x: float, y: float, z: float) -> bool:
    """Whether a point (uu) lies in the soccar field or in a goal, give or take `FIELD_MARGIN`; False for NaN."""
    across, along = abs(x), abs(y)
    if not (across <= game.SIDE_WALL_X + FIELD_MARGIN and 0 <= z <= game.CEILING_Z + FIELD_MARGIN):
        return False
    if along <= game.BACK_WALL_Y + FIELD_MARGIN:
        corner = game.SIDE_WALL_X + game.BACK_WALL_Y - game.CORNER_CATHETUS_LENGTH
        return bool(across + along <= corner + FIELD_MARGIN * math.sqrt(2))
    in_mouth = across <= game.GOAL_CENTER_TO_POST + FIELD_MARGIN and z <= game.GOAL_HEIGHT + FIELD_MARGIN
    return bool(in_mouth and along <= game.BACK_NET_Y + FIELD_MARGIN)


def check_start(state: GameState, arena: int, name: str) -> None:
    """Checks what a setter has written for one arena.

    Args:
        state: The state after `apply`.
        arena: Row of `state`.
        name: The setter's `author()`, for the message.

    Raises:
        ValueError: NaN or infinity, the ball or a car outside the field or faster than the game lets them be, boost or
            a timer out of range, or two bodies in one place.
    """
    slots = np.flatnonzero(state.present[arena])
    ball, cars = state.ball_rows[arena, 0], state.car_rows[arena, slots, 0]
    timers = state.car_timers[arena, slots]
    where = f"{name}: in arena {int(state.arena_index[arena])}"
    if not math.isfinite(ball.sum() + cars.sum() + timers.sum() + state.pad_timers[arena].sum()):
        raise ValueError(f"{where} an episode would begin with NaN or infinity in {_not_finite(state, arena, slots)}")
    _check_limits(state, arena, slots, where)
    alive = ~state.is_demoed[arena, slots]  # a demolished car keeps its last position, which another may drive through
    names = ["the ball"] + [f"car {slot}" for slot in slots[alive].tolist()]
    spots = [state.world.ball_pos[arena].tolist(), *state.world.car_pos[arena, slots[alive]].tolist()]
    for i, (what, spot) in enumerate(zip(names, spots, strict=True)):
        if not inside_field(*spot):
            raise ValueError(f"{where} {what} would start outside the field, at {_rounded(spot)} uu")
        for j in range(i):
            least = MIN_CAR_DISTANCE if j else MIN_BALL_DISTANCE
            if math.dist(spot, spots[j]) < least:
                raise ValueError(f"{where} {names[j]} and {what} would start in one place, at {_rounded(spot)} uu")


def check_share(name: str, argument: str, value: float, most: float = 1) -> float:
    """`value`; a ValueError, with `name` and `argument` in it, unless it is from 0 to `most`: 1 for a probability."""
    if not is_number(value) or not 0 <= value <= most:
        raise ValueError(f"{name}: {argument} must be between 0 and {most}, got {value!r}")
    return value


def shares_of(name: str, what: str, count: int, weights: Sequence[float]) -> Double:
    """`[count]` float64, the weights over their sum; `name` and `what` is weighted go into the message.

    Raises:
        ValueError: Another number of weights, a negative one, or all zero.
    """
    numbers = finite_numbers(name, "the weights", weights)
    if not count == len(numbers) > 0 or min(numbers) < 0 or sum(numbers) <= 0:
        raise ValueError(
            f"{name}: needs one weight >= 0 for each {what} and a positive sum, got {count} {what}s and weights "
            f"{list(weights)}"
        )
    return np.array(numbers) / sum(numbers)


def only(mask: Bool, arena: int) -> Bool:
    """A mask like `mask` with just one arena in it."""
    one = np.zeros_like(mask)
    one[arena] = True
    return one


def random_directions(rng: np.random.Generator, count: int) -> Double:
    """`[count, 3]` unit vectors, uniform over the sphere."""
    vectors = rng.normal(size=(count, 3))
    unit: Double = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return unit


def _check_limits(state: GameState, arena: int, slots: NDArray[np.int64], where: str) -> None:
    """Speeds, spins, boost and timers; all finite."""
    world = state.world
    ball, cars = ["the ball"], [f"car {slot}" for slot in slots.tolist()]
    for names, what, unit, vectors, limit in (
        (ball, "velocity", "uu/s", world.ball_vel[arena, None], game.BALL_MAX_SPEED),
        (ball, "angular velocity", "rad/s", world.ball_ang_vel[arena, None], BALL_MAX_ANG_VEL),
        (cars, "velocity", "uu/s", world.car_vel[arena, slots], game.CAR_MAX_SPEED),
        (cars, "angular velocity", "rad/s", world.car_ang_vel[arena, slots], game.CAR_MAX_ANG_VEL),
    ):
        for name, vector in zip(names, vectors.tolist(), strict=True):
            if math.hypot(*vector) > limit * LIMIT_MARGIN:
                raise ValueError(
                    f"{where} {name} would start with {what} {math.hypot(*vector):g} {unit}, at most {limit:g} is "
                    "possible"
                )
    for what, values, limit in (
        ("boost", state.boost[arena, slots], 100.0),
        ("pad timer", state.pad_timers[arena], game.BIG_PAD_RECHARGE_SECONDS),
        ("demo_respawn_timer", state.demo_respawn_timer[arena, slots], np.inf),
    ):
        wrong = (values < 0) | (values > limit * LIMIT_MARGIN)
        if wrong.any():
            index = int(np.flatnonzero(wrong)[0])
            whose = f"pad {index}" if what == "pad timer" else f"car {slots[index]}"
            raise ValueError(f"{where} {whose} would start with {what} {values[index]:g}, it must be 0 to {limit:g}")


def _not_finite(state: GameState, arena: int, slots: NDArray[np.int64]) -> str:
    if not np.isfinite(state.ball_rows[arena, 0]).all():
        return "the ball's state"
    if not np.isfinite(state.pad_timers[arena]).all():
        return "the pad timers"
    fine = np.isfinite(state.car_rows[arena, :, 0]).all(axis=1) & np.isfinite(state.car_timers[arena]).all(axis=1)
    return f"the state of car {next(slot for slot in slots.tolist() if not fine[slot])}"


def _rounded(spot: list[float]) -> tuple[float, ...]:
    return tuple(round(x, 1) for x in spot)
