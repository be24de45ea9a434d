"""RLGym's DefaultObs, batched."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from rlgym.rocket_league.common_values import BACK_NET_Y, CAR_MAX_ANG_VEL, CAR_MAX_SPEED, CEILING_Z, SIDE_WALL_X

from envs.obs.base import AXES, FLAG, UNIT_VECTOR, Meaning, TableObs, numbered_groups, regroup, slices
from envs.obs.blocks import BALL, JUMPS, car_jumps, car_order, clear_absent_observers, num_observed_cars, per_axis
from envs.state import layout
from envs.state.game_state import GameState
from envs.state.layout import ANG_VEL, BOOST, POS, VEL, Bool, Float
from fabric_rl.base.settings import Count, Finite

_OWN = (
    *BALL,
    Meaning("pad_timers", "", 34, "until each pad is back, RLGym's BOOST_LOCATIONS", "s", "pad_timer_coef"),
    *regroup("self_flags", JUMPS),
)
_CAR = (
    Meaning("pos", "", 3, f"{{}}, position: {AXES}", "uu", "pos_coef"),
    Meaning("forward", "", 3, f"out of the nose: {AXES}", UNIT_VECTOR),
    Meaning("up", "", 3, f"out of the roof: {AXES}", UNIT_VECTOR),
    Meaning("vel", "", 3, f"velocity: {AXES}", "uu/s", "lin_vel_coef"),
    Meaning("ang_vel", "", 3, f"angular velocity: {AXES}", "rad/s", "ang_vel_coef"),
    Meaning("boost", "", 1, "boost left", "0..100", "boost_coef"),
    Meaning("demo_timer", "", 1, "until a demolished car is back, 0 when alive", "s"),
    Meaning("on_ground", "", 1, "at least three wheels touch something", FLAG),
    Meaning("boosting", "", 1, "boost is burning", FLAG),
    Meaning("supersonic", "", 1, "faster than 2200 uu/s, or was a moment ago", FLAG),
)
_ITSELF = regroup("car_0", _CAR, "the car itself")


@dataclass(eq=False, repr=False)
class DefaultObs(TableObs):
    """RLGym's `DefaultObs`, number for number, with the same parameters and defaults.

    52 floats about the world and the car itself, then 20 per car: itself, allies, enemies. Orange sees the mirrored
    world. `rlgym_guide()` gives the coefficients of RLGym's training guide.
    `python -m envs.obs DefaultObs` lists all columns with their units.
    """

    *_, PAD_TIMERS, SELF_FLAGS = slices(_OWN).values()
    CARS = slice(52, None)
    """Columns of the blocks of cars."""
    CAR_WIDTH, CAR_DEMO_TIMER = 20, 16

    # Columns of GameState's rows in the order of the observation: one take instead of a copy per quantity.
    _BALL_COLUMNS = np.r_[POS, VEL, ANG_VEL]
    _CAR_COLUMNS = np.r_[layout.CAR_POS, layout.CAR_FORWARD, layout.CAR_UP, layout.CAR_VEL, layout.CAR_ANG_VEL, BOOST]

    zero_padding: Count | None = 3
    """Cars per team that the observation has room for, or None for exactly the cars in the arena."""
    pos_coef: float | Sequence[float] = 1 / 2300
    """Factor on positions (uu), one number or one per axis."""
    lin_vel_coef: Finite = 1 / 2300
    """Factor on linear velocities (uu/s)."""
    ang_vel_coef: Finite = 1 / math.pi
    """Factor on angular velocities (rad/s)."""
    pad_timer_coef: Finite = 1 / 10
    """Factor on pad timers (seconds)."""
    boost_coef: Finite = 1 / 100
    """Factor on the boost amount (0..100)."""
    ang_coef: Finite = 1 / math.pi
    """Accepted because RLGym's builder has it; neither observation contains an angle."""

    def __post_init__(self) -> None:
        super().__post_init__()
        pos, vel, ang_vel = per_axis(self, self.pos_coef), [self.lin_vel_coef] * 3, [self.ang_vel_coef] * 3
        self._ball_scale = np.concatenate((pos, vel, ang_vel), dtype=np.float32)
        self._car_scale = np.concatenate((pos, np.ones(6), vel, ang_vel, [self.boost_coef]), dtype=np.float32)

    @classmethod
    def rlgym_guide(cls) -> "DefaultObs":
        """Return the builder of RLGym's training guide: no padding, factors from field size and maximum speeds."""
        return cls(
            zero_padding=None,
            pos_coef=(1 / SIDE_WALL_X, 1 / BACK_NET_Y, 1 / CEILING_Z),
            lin_vel_coef=1 / CAR_MAX_SPEED,
            ang_vel_coef=1 / CAR_MAX_ANG_VEL,
        )

    def table(self, num_blue: int, num_orange: int) -> list[Meaning]:
        cars = num_observed_cars(self, "zero_padding", num_blue, num_orange)
        return [*_OWN, *_ITSELF, *numbered_groups("car", _CAR, cars, "another car")[len(_CAR) :]]

    def build(self, state: GameState, out: Float) -> None:
        ball = state.ball_rows.take(self._BALL_COLUMNS, axis=-1)
        ball *= self._ball_scale
        out[..., : self.PAD_TIMERS.start] = ball.take(state.team, axis=1)
        for view, cars in ((state.world, slice(None, state.num_blue)), (state.mirrored, slice(state.num_blue, None))):
            np.multiply(view.pad_timers[:, None], self.pad_timer_coef, out=out[:, cars, self.PAD_TIMERS])
        on_ground = state.on_ground
        out[..., self.SELF_FLAGS] = car_jumps(state, on_ground)
        blocks = self._car_blocks(state, on_ground)
        slots = _car_slots(state.num_blue, state.num_orange, self.zero_padding)
        # take copies whole blocks of 20 floats; fancy indexing is several times slower
        seen = blocks.reshape(state.num_arenas, -1, self.CAR_WIDTH).take(slots, axis=1)
        out[..., self.CARS] = seen.reshape(state.num_arenas, state.num_cars, -1)
        clear_absent_observers(state, out)

    def _car_blocks(self, state: GameState, on_ground: Bool) -> Float:
        """Return `[A, C + 1, 2, 20]`: every car in the world and in the mirrored view, then padding, all zero."""
        blocks = np.empty((state.num_arenas, state.num_cars + 1, 2, self.CAR_WIDTH), np.float32)
        blocks[:, -1] = 0
        cars = blocks[:, :-1]
        columns = state.car_rows.take(self._CAR_COLUMNS, axis=-1)
        np.multiply(columns, self._car_scale, out=cars[..., : self.CAR_DEMO_TIMER])
        rest = np.empty((*on_ground.shape, 4), np.float32)
        rest[..., 0] = state.demo_respawn_timer
        rest[..., 1] = on_ground
        rest[..., 2] = state.boost_active_time > 0
        rest[..., 3] = state.supersonic_time > 0
        cars[..., self.CAR_DEMO_TIMER :] = rest[:, :, None]
        return blocks


@lru_cache(maxsize=32)
def _car_slots(num_blue: int, num_orange: int, zero_padding: int | None) -> NDArray[np.intp]:
    """Return the car in each slot of each car, seen from its side: `[C * slots]` rows of the blocks `[C + 1, 2]`."""
    order = car_order(num_blue, num_orange, zero_padding)
    side = np.repeat([0, 1], [num_blue, num_orange])[:, None]
    slots: NDArray[np.intp] = (2 * order + side).reshape(-1)
    return slots
