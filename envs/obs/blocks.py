"""What several builders share: who sees whom, rotation into a car's frame, pads, named columns, checks."""

import math
from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from rlgym.rocket_league.common_values import BACK_WALL_Y, BOOST_LOCATIONS, GOAL_HEIGHT

from envs.checks import whole_number
from envs.obs.meanings import FLAG, LOCAL_AXES, UNIT_VECTOR, Meaning
from envs.state.game_state import GameState
from envs.state.layout import CAR_BASIS, CAR_COLUMNS, CONTROL_NAMES, Bool, Float
from fabric_rl.base.settings import is_number

PAD_POS = np.array(BOOST_LOCATIONS, np.float32)
"""`[34, 3]` uu, the same from both sides (RLGym's table; one small pad is 2 uu off its mirror image there)."""
PAD_IS_BIG = PAD_POS[:, 2] > 71.5
GOALS = np.array([[0, y, GOAL_HEIGHT / 2] for y in (BACK_WALL_Y, -BACK_WALL_Y)], np.float32)
"""`[2, 3]` uu, middle of the opponents' goal's mouth and of the own one's, as every car sees them from its own side."""

# A car as others may see it, see `car_status`.
STATUS_WIDTH = 6
STATUS_BOOST, STATUS_TIMER, STATUS_ON_GROUND, STATUS_HAS_FLIP, STATUS_BOOSTING, STATUS_SUPERSONIC = range(STATUS_WIDTH)
# What only concerns the car itself, see `write_jumps`.
JUMP_WIDTH = 9
# One pad in `nearest_pads`.
PAD_WIDTH = 6
PAD_OFFSET, PAD_BIG, PAD_AVAILABLE, PAD_TIMER = slice(0, 3), 3, 4, 5


class SeenCars(NamedTuple):
    """The cars as every car sees them from its own side, `S` slots each: itself, allies, enemies, padding in between.

    Attributes:
        rows: `[A, C, S, 36]` rows of the gym state; of padding the row of some car.
        present: `[A, C, S]` whether a car is in the slot.
        slots: `[C, S]` which car is in the slot; of padding some car.
    """

    rows: Float
    present: Bool
    slots: NDArray[np.intp]

    def pick(self, values: Float) -> Float:
        """`[A, C, S, K]` of `values [A, C, K]`: what each car sees in its slots."""
        arenas, _, width = values.shape
        return values.take(self.slots.reshape(-1), axis=1).reshape(arenas, *self.slots.shape, width)

    def hide_padding(self, blocks: Float) -> None:
        """Zeroes what `blocks [A, C, S, K]` holds of slots without a car."""
        if not self.present.all():
            blocks[~self.present] = 0


def seen_cars(state: GameState, zero_padding: int | None) -> SeenCars:
    """Who sees whom; `zero_padding` is the room for cars per team, None for those in the arena."""
    order = car_order(state.num_blue, state.num_orange, zero_padding)
    real = order < state.num_cars
    slots = np.where(real, order, 0)
    rows = state.car_rows.reshape(state.num_arenas, -1, CAR_COLUMNS)
    rows = rows.take((2 * slots + state.team[:, None]).reshape(-1), axis=1)
    return SeenCars(rows.reshape(state.num_arenas, *slots.shape, -1), state.present[:, slots] & real, slots)


@lru_cache(maxsize=32)
def car_order(num_blue: int, num_orange: int, zero_padding: int | None) -> NDArray[np.intp]:
    """`[C, slots]`: which car each car sees in each slot (itself, allies, enemies); `C` stands for padding."""
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


def num_slots(owner: str, argument: str, room: int | None, num_blue: int, num_orange: int) -> int:
    """Cars in an observation with room for `room` a team (None: those in the arena).

    Raises:
        ValueError: There is no room for so many cars.
    """
    if room is None:
        return num_blue + num_orange
    if max(num_blue, num_orange) > room:
        raise ValueError(f"{owner}: {argument}={room} is too small for {max(num_blue, num_orange)} cars a team")
    return 2 * room


def clear_absent_observers(state: GameState, out: Float) -> None:
    """Zeroes the observations `out [A, C, ...]` of cars that are not there."""
    if not state.all_present:
        out[~state.present] = 0


def own_basis(state: GameState) -> Float:
    """`[A, C, 3, 3]` forward, right and up of every car, seen from its own side."""
    return state.own.cars[..., CAR_BASIS].reshape(state.num_arenas, state.num_cars, 3, 3)


def to_frame(basis: Float, vectors: Float) -> Float:
    """Components of `vectors [A, C, 3]` or `[A, C, S, 3]` along forward, right and up of `basis [A, C, 3, 3]`."""
    axes = basis if vectors.ndim == 3 else basis[:, :, None]
    # written out: a matrix product may round differently when other arenas are in the batch
    along: Float = vectors[..., 0:1] * axes[..., 0]
    along += vectors[..., 1:2] * axes[..., 1]
    along += vectors[..., 2:3] * axes[..., 2]
    return along


def lengths(vectors: Float) -> Float:
    """Euclidean norms `[...]` of `vectors [..., 3]`."""
    x, y, z = vectors[..., 0], vectors[..., 1], vectors[..., 2]
    return np.sqrt(x * x + y * y + z * z)


def direction_and_distance(vectors: Float, distance_coef: np.float32) -> Float:
    """`[..., 4]` of `vectors [..., 3]`: the unit vector (zero for the zero vector) and the scaled length."""
    norms = lengths(vectors)[..., None]
    return np.concatenate((vectors / np.maximum(norms, np.float32(1e-6)), norms * distance_coef), axis=-1)


def direction_and_distance_meanings(group: str, text: str, axes: str, distance_coef: np.float32) -> list[Meaning]:
    """What `direction_and_distance` gives; the vector is `text`, its direction in `axes`."""
    return [
        Meaning(group, "direction", 3, f"{text}: {axes}", UNIT_VECTOR),
        Meaning(group, "distance", 1, f"{text}: length", "uu", distance_coef),
    ]


def nearest_pads(
    points: Float, timers: Float, basis: Float, count: int, pos_coef: np.float32, timer_coef: np.float32
) -> Float:
    """The pads nearest to a point, the nearest first.

    Args:
        points: `[A, C, 3]` uu, from each car's own side.
        timers: `[A, C, 34]` seconds until each pad is back, from each car's own side.
        basis: `[A, C, 3, 3]` of the cars.
        count: How many pads.
        pos_coef: Factor on offsets (uu).
        timer_coef: Factor on timers (seconds).

    Returns:
        `[A, C, count, 6]` float32: from the point to the pad in the car's frame, 1 for a big pad (100 boost, else 12),
        1 while it can be taken, seconds until it can again.
    """
    to_pads = PAD_POS - points[:, :, None]
    nearest = np.argsort(lengths(to_pads), axis=-1, kind="stable")[..., :count]
    left = np.take_along_axis(timers, nearest, axis=-1)
    pads = np.empty((*nearest.shape, PAD_WIDTH), np.float32)
    pads[..., PAD_OFFSET] = to_frame(basis, np.take_along_axis(to_pads, nearest[..., None], axis=2)) * pos_coef
    pads[..., PAD_BIG] = PAD_IS_BIG[nearest]
    pads[..., PAD_AVAILABLE] = left == 0
    pads[..., PAD_TIMER] = left * timer_coef
    return pads


def nearest_pads_meanings(
    group: str, count: int, point: str, pos_coef: np.float32, timer_coef: np.float32
) -> list[Meaning]:
    """What `nearest_pads` gives, as `group_0`, `group_1`..."""
    meanings = []
    for number in range(count):
        name = f"{group}_{number}"
        meanings += [
            Meaning(name, "offset", 3, f"from the {point} to the pad, nearest first: {LOCAL_AXES}", "uu", pos_coef),
            Meaning(name, "big", 1, "it gives 100 boost, else 12", FLAG),
            Meaning(name, "available", 1, "it can be taken now", FLAG),
            Meaning(name, "timer", 1, "until it is back", "s", timer_coef),
        ]
    return meanings


def car_status(state: GameState, boost_coef: np.float32, timer_coef: np.float32) -> Float:
    """`[A, C, 6]`: boost, seconds until a demolished car is back, on_ground, has_flip, boosting, supersonic."""
    status = np.empty((*state.present.shape, STATUS_WIDTH), np.float32)
    status[..., STATUS_BOOST] = state.boost * boost_coef
    status[..., STATUS_TIMER] = state.demo_respawn_timer * timer_coef
    status[..., STATUS_ON_GROUND] = state.on_ground
    status[..., STATUS_HAS_FLIP] = state.has_flip
    status[..., STATUS_BOOSTING] = state.is_boosting
    status[..., STATUS_SUPERSONIC] = state.is_supersonic
    return status


def status_meanings(group: str, boost_coef: np.float32, timer_coef: np.float32, prefix: str = "") -> list[Meaning]:
    """What `car_status` gives."""
    return [
        Meaning(group, f"{prefix}boost", 1, "boost left", "0..100", boost_coef),
        Meaning(group, f"{prefix}timer", 1, "until a demolished car is back, 0 when alive", "s", timer_coef),
        Meaning(group, f"{prefix}on_ground", 1, "at least three wheels touch something", FLAG),
        Meaning(group, f"{prefix}has_flip", 1, "the flip is unspent", FLAG),
        Meaning(group, f"{prefix}boosting", 1, "boost is burning", FLAG),
        Meaning(group, f"{prefix}supersonic", 1, "faster than 2200 uu/s, or was a moment ago", FLAG),
    ]


def write_jumps(state: GameState, on_ground: Bool, out: Float) -> None:
    """Writes `out [A, C, 9]`, the order of DefaultObs.

    is_holding_jump, handbrake (0..1), has_jumped, is_jumping, has_flipped, is_flipping, has_double_jumped, can_flip,
    air_time_since_jump (seconds).
    """
    held_and_jumps = state.car_flags  # is_holding_jump, has_jumped, is_jumping, has_flipped, has_double_jumped
    out[..., 0] = held_and_jumps[..., 0]
    out[..., 1] = state.handbrake
    out[..., 2:5] = held_and_jumps[..., 1:4]
    out[..., 6] = held_and_jumps[..., 4]
    out[..., 5] = state.is_flipping
    out[..., 7] = ~on_ground & ~state.is_holding_jump & state.has_flip
    out[..., 8] = state.air_time_since_jump


def jump_meanings(group: str) -> list[Meaning]:
    """What `write_jumps` writes."""
    return [
        Meaning(group, "is_holding_jump", 1, "jump was pressed on the last tick", FLAG),
        Meaning(group, "handbrake", 1, "rises and falls while the button is held and released", "0..1"),
        Meaning(group, "has_jumped", 1, "after a jump until the car lands", FLAG),
        Meaning(group, "is_jumping", 1, "the jump button still lifts the car", FLAG),
        Meaning(group, "has_flipped", 1, "after a flip until the car lands", FLAG),
        Meaning(group, "is_flipping", 1, "flipped less than 0.65 s ago", FLAG),
        Meaning(group, "has_double_jumped", 1, "after a double jump until the car lands", FLAG),
        Meaning(group, "can_flip", 1, "in the air, jump released, flip unspent", FLAG),
        Meaning(group, "air_time_since_jump", 1, "since the jump ended, 0 on the ground", "s"),
    ]


def action_meanings(group: str) -> list[Meaning]:
    """What `GameState.controls` holds."""
    analogue = [Meaning(group, name, 1, "in the last step", "-1..1") for name in CONTROL_NAMES[:5]]
    return analogue + [Meaning(group, name, 1, "pressed in the last step", FLAG) for name in CONTROL_NAMES[5:]]


def spans(*widths: int, start: int = 0) -> list[slice]:
    """Slices of these widths, one after the other."""
    ends = np.cumsum((start, *widths)).tolist()
    return [slice(a, b) for a, b in pairwise(ends)]


def coefficient(owner: str, argument: str, value: float) -> np.float32:
    """A factor as float32; a ValueError unless it is a finite number."""
    if not is_number(value) or not math.isfinite(value):
        raise ValueError(f"{owner}: {argument} must be a finite number, got {value!r}")
    return np.float32(value)


def pos_coefficient(owner: str, value: float | Sequence[float]) -> Float:
    """A factor on positions as `[3]` float32, from one number or one per axis; else a ValueError."""
    values = list(value) if isinstance(value, Sequence | np.ndarray) else [value] * 3
    if len(values) != 3:
        raise ValueError(f"{owner}: pos_coef must be one number or three, got {value!r}")
    return np.array([coefficient(owner, "pos_coef", v) for v in values], np.float32)


def room_for_cars(owner: str, argument: str, value: int | None) -> int | None:
    """The room for cars per team; a ValueError unless it is a positive integer or None."""
    return None if value is None else whole_number(owner, argument, value)
