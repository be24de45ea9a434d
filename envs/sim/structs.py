"""RocketSim's structs, filled from a GameState, or read and filled attribute by attribute for snapshots."""

import functools
import operator
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import RocketSim
from numpy.typing import NDArray

from envs.state.game_state import GameState
from envs.state.layout import CAR_DETAIL_ATTRIBUTES, CAR_FLAGS, CAR_TIMERS, CONTROL_NAMES

# The attributes that a snapshot has of a car's controls, the ball, a car and a pad.

_BASIS = ("rot_mat.forward", "rot_mat.right", "rot_mat.up")
BALL_SNAPSHOT = ("pos", "vel", "ang_vel", *_BASIS)
CAR_SNAPSHOT = (
    *("pos", "vel", "ang_vel", *_BASIS, "flip_rel_torque", "world_contact_normal"),
    *("is_on_ground", "has_jumped", "has_double_jumped", "has_flipped", "is_flipping", "is_jumping", "is_supersonic"),
    *("is_auto_flipping", "is_demoed", "has_world_contact"),
    *("jump_time", "flip_time", "air_time", "air_time_since_jump"),
    *("boost", "time_spent_boosting", "supersonic_time", "handbrake_val", "auto_flip_timer"),
    *("auto_flip_torque_scale", "car_contact_cooldown_timer", "demo_respawn_timer", "wheels_with_contact"),
    *(f"last_controls.{name}" for name in CONTROL_NAMES),
)
PAD_SNAPSHOT = ("is_active", "cooldown")


_ROTATION, _LARGEST = 1.001, 1e7
_LIMITS = {
    **dict.fromkeys(("forward", "right", "up", "world_contact_normal"), (-_ROTATION, _ROTATION)),
    **dict.fromkeys(("pos", "vel", "ang_vel", "flip_rel_torque", *CONTROL_NAMES[:5]), (-_LARGEST, _LARGEST)),
    "auto_flip_torque_scale": (-_LARGEST, _LARGEST),
    "boost": (0, 100),
}
"""Between which numbers an attribute lies; of others, which are times and shares, see `snapshot_limits`."""


@functools.cache
def snapshot_limits(num_cars: int, num_pads: int) -> NDArray[np.float64]:
    """`[3, n]`: the least and the greatest value of each number in the snapshot of an arena, and 1 for whole ones."""
    index = (-1.0, num_cars - 1.0, 1.0)
    car = [*_limits(RocketSim.CarState(), CAR_SNAPSHOT), *_limits(RocketSim.CarControls(), CONTROL_NAMES)]
    pad = [*_limits(RocketSim.BoostPadState(), PAD_SNAPSHOT), index]
    columns = [*_limits(RocketSim.BallState(), BALL_SNAPSHOT), index]
    columns += num_cars * [*car, index, (0.0, 1.0, 1.0)] + num_pads * pad
    return np.array(columns).T


def _limits(struct: Any, names: Sequence[str]) -> Iterator[tuple[float, float, float]]:  # noqa: ANN401
    for name in names:
        value = operator.attrgetter(name)(struct)
        several = isinstance(value, (RocketSim.Vec, tuple))
        flag = isinstance(value[0] if isinstance(value, tuple) else value, bool)
        low, high = (0, 1) if flag else _LIMITS.get(name.rpartition(".")[2], (-1, _LARGEST))
        for _ in value if several else (value,):
            yield low, high, float(flag)


def flat(struct: Any, names: Sequence[str]) -> list[float]:  # noqa: ANN401 - any of RocketSim's structs
    """The named attributes as numbers, vectors and tuples flattened."""
    numbers: list[float] = []
    for value in operator.attrgetter(*names)(struct):
        numbers += value if isinstance(value, (RocketSim.Vec, tuple)) else (value,)
    return numbers


def fill(struct: Any, names: Sequence[str], numbers: Iterator[float]) -> None:  # noqa: ANN401 - any of RocketSim's structs
    """Sets the named attributes from what `flat` gave."""
    for name in names:
        *path, last = name.split(".")
        owner = functools.reduce(getattr, path, struct)
        old = getattr(owner, last)
        value: Any
        if isinstance(old, RocketSim.Vec):
            value = RocketSim.Vec(next(numbers), next(numbers), next(numbers))
        elif isinstance(old, tuple):
            value = tuple(bool(next(numbers)) for _ in old)
        else:
            value = type(old)(next(numbers))
        setattr(owner, last, value)


def vec(xyz: NDArray[np.float32]) -> RocketSim.Vec:
    """`[3]` as a vector of RocketSim."""
    return RocketSim.Vec(*xyz.tolist())


def car_state(state: GameState, index: int, slot: int) -> RocketSim.CarState:
    """A car as row `index` of `state` and its column `slot` describe it (world view)."""
    world = state.world
    at = (index, slot)
    car = RocketSim.CarState()
    car.pos = vec(world.car_pos[at])
    car.vel = vec(world.car_vel[at])
    car.ang_vel = vec(world.car_ang_vel[at])
    car.rot_mat = RocketSim.RotMat(vec(world.car_forward[at]), vec(world.car_right[at]), vec(world.car_up[at]))
    car.boost = float(state.boost[at])
    wheels = tuple(state.details["wheels"][at].tolist())
    car.wheels_with_contact = wheels
    car.is_on_ground = sum(wheels) >= 3
    fill(car, CAR_TIMERS, iter(state.car_timers[at].tolist()))
    fill(car, CAR_FLAGS[1:], iter(state.car_flags[at].tolist()[1:]))  # the first is a button, which controls press
    car.is_demoed = car.demo_respawn_timer > 0
    car.is_flipping = bool(state.is_flipping[at])
    details = state.details[at]
    car.flip_rel_torque = vec(details["flip_torque"])
    for name in ("jump_time", "air_time", "is_auto_flipping", "auto_flip_timer", "auto_flip_direction"):
        setattr(car, CAR_DETAIL_ATTRIBUTES[name], details[name].item())
    return car
