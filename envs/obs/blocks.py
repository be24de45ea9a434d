"""Blocks of columns that several builders share: cars in order, vectors in a car's frame, pads, status, jumps."""

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from rlgym.rocket_league.common_values import BACK_WALL_Y, BOOST_LOCATIONS, GOAL_HEIGHT

from envs.obs.base import AXES, FLAG, LOCAL_AXES, UNIT_VECTOR, Meaning, ObsBuilder
from envs.state.game_state import GameState
from envs.state.layout import CAR_BASIS, CAR_COLUMNS, CONTROL_NAMES, Bool, Float
from fabric_rl.base.settings import Finite, check_value

PAD_POS = np.array(BOOST_LOCATIONS, np.float32)
"""`[34, 3]` uu, the same from both sides (RLGym's table; one small pad is 2 uu off its mirror image there)."""
PAD_IS_BIG = PAD_POS[:, 2] > 71.5
GOALS = np.array([[0, y, GOAL_HEIGHT / 2] for y in (BACK_WALL_Y, -BACK_WALL_Y)], np.float32)
"""`[2, 3]` uu, centers of the mouths of the opponents' goal and of the car's own goal, as every car sees them."""

# ---------------------------------------------------------------- tables of columns

BALL = (
    Meaning("ball_pos", "", 3, f"the ball's position: {AXES}", "uu", "pos_coef"),
    Meaning("ball_vel", "", 3, f"the ball's velocity: {AXES}", "uu/s", "lin_vel_coef"),
    Meaning("ball_ang_vel", "", 3, f"the ball's spin: {AXES}", "rad/s", "ang_vel_coef"),
)
PREVIOUS_ACTION = (
    *(Meaning("previous_action", name, 1, "in the last step", "-1..1") for name in CONTROL_NAMES[:5]),
    *(Meaning("previous_action", name, 1, "pressed in the last step", FLAG) for name in CONTROL_NAMES[5:]),
)
"""`GameState.controls`."""
STATUS = (
    Meaning("status", "boost", 1, "boost left", "0..100", "boost_coef"),
    Meaning("status", "timer", 1, "until a demolished car is back, 0 when alive", "s", "timer_coef"),
    Meaning("status", "on_ground", 1, "at least three wheels touch something", FLAG),
    Meaning("status", "has_flip", 1, "the flip is unspent", FLAG),
    Meaning("status", "boosting", 1, "boost is burning", FLAG),
    Meaning("status", "supersonic", 1, "faster than 2200 uu/s, or was a moment ago", FLAG),
)
"""Status of a car, which other cars may also see; see `car_status`."""
JUMPS = (
    Meaning("jumps", "is_holding_jump", 1, "jump was pressed on the last tick", FLAG),
    Meaning("jumps", "handbrake", 1, "rises and falls while the button is held and released", "0..1"),
    Meaning("jumps", "has_jumped", 1, "after a jump until the car lands", FLAG),
    Meaning("jumps", "is_jumping", 1, "the jump button still lifts the car", FLAG),
    Meaning("jumps", "has_flipped", 1, "after a flip until the car lands", FLAG),
    Meaning("jumps", "is_flipping", 1, "flipped less than 0.65 s ago", FLAG),
    Meaning("jumps", "has_double_jumped", 1, "after a double jump until the car lands", FLAG),
    Meaning("jumps", "can_flip", 1, "in the air, jump released, flip unspent", FLAG),
    Meaning("jumps", "air_time_since_jump", 1, "since the jump ended, 0 on the ground", "s"),
)
"""Columns that only concern the car itself, see `car_jumps`."""
PAD = (
    Meaning("offset", "", 3, f"from the {{}} to the pad, nearest first: {LOCAL_AXES}", "uu", "pos_coef"),
    Meaning("big", "", 1, "it gives 100 boost, else 12", FLAG),
    Meaning("available", "", 1, "it can be taken now", FLAG),
    Meaning("timer", "", 1, "until it is back", "s", "timer_coef"),
)
"""One pad of `nearest_pads`."""
STATUS_WIDTH, PAD_WIDTH = 6, 6


def direction_and_distance_columns(group: str, text: str, axes: str) -> tuple[Meaning, Meaning]:
    """Return the columns of `direction_and_distance`; the vector is `text`, its direction in `axes`."""
    return (
        Meaning(group, "direction", 3, f"{text}: {axes}", UNIT_VECTOR),
        Meaning(group, "distance", 1, f"{text}: length", "uu", "pos_coef"),
    )


# ---------------------------------------------------------------- cars


class CarsBySlot(NamedTuple):
    """Cars as every car sees them from its own side, `S` slots each: itself, allies, enemies, padding in between.

    Attributes:
        rows: `[A, C, S, 36]` rows of the gym state; the row of an arbitrary car for padding.
        present: `[A, C, S]` bool, True if there is a car in the slot.
        slots: `[C, S]` car in each slot; an arbitrary car for padding.
    """

    rows: Float
    present: Bool
    slots: NDArray[np.intp]

    def gather(self, values: Float) -> Float:
        """Gather `values [A, C, K]` into the slots of each car, `[A, C, S, K]`."""
        arenas, _, width = values.shape
        return values.take(self.slots.reshape(-1), axis=1).reshape(arenas, *self.slots.shape, width)

    def zero_padding_(self, blocks: Float) -> None:
        """Set `blocks [A, C, S, K]` to zero in slots without a car."""
        if not self.present.all():
            blocks[~self.present] = 0


def cars_by_slot(state: GameState, zero_padding: int | None) -> CarsBySlot:
    """Return the cars that every car sees; `zero_padding`: room for cars per team, None for exactly those present."""
    order = car_order(state.num_blue, state.num_orange, zero_padding)
    real = order < state.num_cars
    slots = np.where(real, order, 0)
    rows = state.car_rows.reshape(state.num_arenas, -1, CAR_COLUMNS)
    rows = rows.take((2 * slots + state.team[:, None]).reshape(-1), axis=1)
    return CarsBySlot(rows.reshape(state.num_arenas, *slots.shape, -1), state.present[:, slots] & real, slots)


@lru_cache(maxsize=32)
def car_order(num_blue: int, num_orange: int, zero_padding: int | None) -> NDArray[np.intp]:
    """Return `[C, slots]`: the car in each slot (itself, allies, enemies) of each car; `C` is padding."""
    num_cars = num_blue + num_orange
    order = []
    for car in range(num_cars):
        blue, orange = list(range(num_blue)), list(range(num_blue, num_cars))
        own, other = (blue, orange) if car < num_blue else (orange, blue)
        allies = [c for c in own if c != car]
        if zero_padding is not None:
            allies += [num_cars] * (zero_padding - 1 - len(allies))
            other = other + [num_cars] * (zero_padding - len(other))
        order.append([car, *allies, *other])
    return np.array(order, dtype=np.intp)


def num_observed_cars(builder: ObsBuilder, setting: str, num_blue: int, num_orange: int) -> int:
    """Return the number of cars in an observation; raise a ValueError if a team has more than `setting` allows."""
    room = getattr(builder, setting)
    if room is None:
        return num_blue + num_orange
    if max(num_blue, num_orange) > room:
        where = f"{type(builder).__name__}: {setting}={room}"
        raise ValueError(f"{where} is too small for {max(num_blue, num_orange)} cars a team")
    return 2 * int(room)


def write_parts(parts: Sequence[NDArray[Any]], out: Float) -> None:
    """Write parts `[A, C, ...]` side by side into `out [A, C, D]`, in the order of the builder's table."""
    np.concatenate([part.reshape(*part.shape[:2], math.prod(part.shape[2:])) for part in parts], axis=-1, out=out)


def clear_absent_observers(state: GameState, out: Float) -> None:
    """Zero the observations `out [A, C, ...]` of cars that are not present."""
    if not state.all_present:
        out[~state.present] = 0


def own_basis(state: GameState) -> Float:
    """Return the forward, right and up axes of every car, `[A, C, 3, 3]`, seen from its own side."""
    return state.own.cars[..., CAR_BASIS].reshape(state.num_arenas, state.num_cars, 3, 3)


def to_local_frame(basis: Float, vectors: Float) -> Float:
    """Return `vectors [A, C, 3]` or `[A, C, S, 3]` in the axes of `basis [A, C, 3, 3]`."""
    axes = basis if vectors.ndim == 3 else basis[:, :, None]
    # written out: a matrix product may round differently when other arenas are in the batch
    along: Float = vectors[..., 0:1] * axes[..., 0]
    along += vectors[..., 1:2] * axes[..., 1]
    along += vectors[..., 2:3] * axes[..., 2]
    return along


def lengths(vectors: Float) -> Float:
    """Return the Euclidean norms `[...]` of `vectors [..., 3]`."""
    x, y, z = vectors[..., 0], vectors[..., 1], vectors[..., 2]
    return np.sqrt(x * x + y * y + z * z)


def direction_and_distance(vectors: Float, distance_coef: float) -> Float:
    """Return `[..., 4]`, the unit vector (zero for the zero vector) and scaled length of `vectors [..., 3]`."""
    norms = lengths(vectors)[..., None]
    return np.concatenate((vectors / np.maximum(norms, np.float32(1e-6)), norms * distance_coef), axis=-1)


def nearest_pads(points: Float, timers: Float, basis: Float, count: int, pos_coef: float, timer_coef: float) -> Float:
    """Return the pads nearest to a point, the nearest first.

    Args:
        points: `[A, C, 3]` uu, from each car's own side.
        timers: `[A, C, 34]` seconds until each pad is back, from each car's own side.
        basis: `[A, C, 3, 3]` of the cars.
        count: Number of pads.
        pos_coef: Factor on offsets (uu).
        timer_coef: Factor on timers (seconds).

    Returns:
        `[A, C, count, 6]` float32, the columns `PAD`.
    """
    to_pads = PAD_POS - points[:, :, None]
    nearest = np.argsort(lengths(to_pads), axis=-1, kind="stable")[..., :count]
    left = np.take_along_axis(timers, nearest, axis=-1)
    pads = np.empty((*nearest.shape, PAD_WIDTH), np.float32)
    pads[..., :3] = to_local_frame(basis, np.take_along_axis(to_pads, nearest[..., None], axis=2)) * pos_coef
    pads[..., 3] = PAD_IS_BIG[nearest]
    pads[..., 4] = left == 0
    pads[..., 5] = left * timer_coef
    return pads


def car_status(state: GameState, boost_coef: float, timer_coef: float) -> Float:
    """Return the columns `STATUS` of every car, `[A, C, 6]`."""
    status = np.empty((*state.present.shape, STATUS_WIDTH), np.float32)
    status[..., 0] = state.boost * boost_coef
    status[..., 1] = state.demo_respawn_timer * timer_coef
    for column, flag in enumerate((state.on_ground, state.has_flip, state.is_boosting, state.is_supersonic), 2):
        status[..., column] = flag
    return status


def car_jumps(state: GameState, on_ground: Bool) -> Float:
    """Return the columns `JUMPS` of every car, `[A, C, 9]`."""
    held, jumped, jumping, flipped, double_jumped = np.moveaxis(state.car_flags, -1, 0)
    can_flip = ~on_ground & ~held & state.has_flip
    columns = (held, state.handbrake, jumped, jumping, flipped, state.is_flipping, double_jumped, can_flip)
    return np.stack((*columns, state.air_time_since_jump), axis=-1, dtype=np.float32)


def per_axis(builder: ObsBuilder, factor: float | Sequence[float]) -> Float:
    """Return `factor`, the setting `pos_coef`, as `[3]` float32; raise a ValueError unless it is 1 or 3 numbers."""
    where = f"{type(builder).__name__}: pos_coef"
    if not isinstance(factor, Sequence | np.ndarray):
        factor = [check_value(where, factor, Finite)] * 3
    factors = check_value(where, factor, Sequence[Finite])
    if len(factors) != 3:
        raise ValueError(f"{where} must be one number or three, got {factor!r}")
    return np.array(factors, np.float32)
