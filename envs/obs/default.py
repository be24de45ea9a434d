"""RLGym's DefaultObs, batched."""

import math
from collections.abc import Sequence
from functools import lru_cache

import gymnasium
import numpy as np
from numpy.typing import NDArray
from rlgym.rocket_league.common_values import BACK_NET_Y, CAR_MAX_ANG_VEL, CAR_MAX_SPEED, CEILING_Z, SIDE_WALL_X

from envs.obs.base import ObsBuilder
from envs.obs.blocks import car_order, clear_absent_observers, jump_meanings, num_slots, write_jumps
from envs.obs.meanings import AXES, FLAG, UNIT_VECTOR, Meaning
from envs.state import layout
from envs.state.game_state import GameState
from envs.state.layout import ANG_VEL, BOOST, POS, VEL, Bool, Float


class DefaultObs(ObsBuilder):
    """RLGym's `DefaultObs`, number for number, with the same parameters and defaults.

    52 floats about the world and the car itself, then 20 per car: itself, allies, enemies. Orange sees the mirrored
    world. `rlgym_guide()` gives the coefficients of RLGym's training guide.
    """

    BALL_POS, BALL_VEL, BALL_ANG_VEL = slice(0, 3), slice(3, 6), slice(6, 9)
    PAD_TIMERS = slice(9, 43)
    SELF_FLAGS = slice(43, 52)
    """is_holding_jump, handbrake, has_jumped, is_jumping, has_flipped, is_flipping, has_double_jumped, can_flip,
    air_time_since_jump (seconds)."""
    CARS = slice(52, None)
    """20 floats per car: see the CAR_* slices, relative to a car's block."""
    CAR_WIDTH = 20
    CAR_POS, CAR_FORWARD, CAR_UP, CAR_VEL, CAR_ANG_VEL = (slice(i, i + 3) for i in range(0, 15, 3))
    CAR_BOOST, CAR_DEMO_TIMER, CAR_ON_GROUND, CAR_BOOSTING, CAR_SUPERSONIC = range(15, 20)

    # Columns of GameState's rows in the order of the observation: one take instead of a copy per quantity.
    _BALL_COLUMNS = np.r_[POS, VEL, ANG_VEL]
    _CAR_COLUMNS = np.r_[layout.CAR_POS, layout.CAR_FORWARD, layout.CAR_UP, layout.CAR_VEL, layout.CAR_ANG_VEL, BOOST]

    def __init__(
        self,
        zero_padding: int | None = 3,
        pos_coef: float | Sequence[float] = 1 / 2300,
        lin_vel_coef: float = 1 / 2300,
        ang_vel_coef: float = 1 / math.pi,
        pad_timer_coef: float = 1 / 10,
        boost_coef: float = 1 / 100,
        ang_coef: float = 1 / math.pi,
    ) -> None:
        """Creates the builder.

        Args:
            zero_padding: Cars per team that the observation has room for, or None for exactly those in the arena.
            pos_coef: Factor on positions (uu), one number or one per axis.
            lin_vel_coef: Factor on linear velocities (uu/s).
            ang_vel_coef: Factor on angular velocities (rad/s).
            pad_timer_coef: Factor on pad timers (seconds).
            boost_coef: Factor on the boost amount (0..100).
            ang_coef: Accepted because RLGym's builder has it; no angle is in the observation, there or here.
        """
        self.zero_padding = zero_padding
        self.pos_coef = np.asarray(pos_coef, np.float32)
        if self.pos_coef.shape not in ((), (3,)):
            raise ValueError(f"DefaultObs: pos_coef must be one number or three, got {pos_coef!r}")
        self.pad_timer_coef = np.float32(pad_timer_coef)
        pos, vel, ang_vel = (np.full(3, c, np.float32) for c in (self.pos_coef, lin_vel_coef, ang_vel_coef))
        self._ball_scale = np.concatenate((pos, vel, ang_vel))
        unscaled = np.ones(6, np.float32)
        self._car_scale = np.concatenate((pos, unscaled, vel, ang_vel, np.full(1, boost_coef, np.float32)))

    @classmethod
    def rlgym_guide(cls) -> "DefaultObs":
        """The builder of RLGym's training guide: no padding, positions scaled by the field, spins by 5.5 rad/s."""
        return cls(
            zero_padding=None,
            pos_coef=(1 / SIDE_WALL_X, 1 / BACK_NET_Y, 1 / CEILING_Z),
            lin_vel_coef=1 / CAR_MAX_SPEED,
            ang_vel_coef=1 / CAR_MAX_ANG_VEL,
        )

    def space(self, num_blue: int, num_orange: int) -> gymnasium.spaces.Box:
        """Box of `52 + 20 * cars`; see `ObsBuilder.space`."""
        cars = num_slots("DefaultObs", "zero_padding", self.zero_padding, num_blue, num_orange)
        width = self.CARS.start + self.CAR_WIDTH * cars
        return gymnasium.spaces.Box(-np.inf, np.inf, (width,), np.float32)

    def build(self, state: GameState, out: Float) -> None:
        ball = state.ball_rows.take(self._BALL_COLUMNS, axis=-1)
        ball *= self._ball_scale
        out[..., : self.PAD_TIMERS.start] = ball.take(state.team, axis=1)
        for view, cars in ((state.world, slice(None, state.num_blue)), (state.mirrored, slice(state.num_blue, None))):
            np.multiply(view.pad_timers[:, None], self.pad_timer_coef, out=out[:, cars, self.PAD_TIMERS])
        on_ground = state.on_ground
        write_jumps(state, on_ground, out[..., self.SELF_FLAGS])
        blocks = self._car_blocks(state, on_ground)
        slots = _car_slots(state.num_blue, state.num_orange, self.zero_padding)
        # take copies whole blocks of 20 floats; the same by fancy indexing is several times slower
        seen = blocks.reshape(state.num_arenas, -1, self.CAR_WIDTH).take(slots, axis=1)
        out[..., self.CARS] = seen.reshape(state.num_arenas, state.num_cars, -1)
        clear_absent_observers(state, out)

    def meanings(self, num_blue: int, num_orange: int) -> list[Meaning]:
        pos, vel, ang_vel = self._ball_scale[:3], self._ball_scale[3:6], self._ball_scale[6:]
        meanings = [
            Meaning("ball_pos", "", 3, f"the ball's position: {AXES}", "uu", pos),
            Meaning("ball_vel", "", 3, f"the ball's velocity: {AXES}", "uu/s", vel),
            Meaning("ball_ang_vel", "", 3, f"the ball's spin: {AXES}", "rad/s", ang_vel),
            Meaning("pad_timers", "", 34, "until each pad is back, RLGym's BOOST_LOCATIONS", "s", self.pad_timer_coef),
            *jump_meanings("self_flags"),
        ]
        cars = (self.space(num_blue, num_orange).shape[0] - self.CARS.start) // self.CAR_WIDTH
        for group in (f"car_{number}" for number in range(cars)):
            whose = "the car itself" if group == "car_0" else "another car"
            meanings += [
                Meaning(group, "pos", 3, f"{whose}, position: {AXES}", "uu", pos),
                Meaning(group, "forward", 3, f"out of the nose: {AXES}", UNIT_VECTOR),
                Meaning(group, "up", 3, f"out of the roof: {AXES}", UNIT_VECTOR),
                Meaning(group, "vel", 3, f"velocity: {AXES}", "uu/s", vel),
                Meaning(group, "ang_vel", 3, f"angular velocity: {AXES}", "rad/s", ang_vel),
                Meaning(group, "boost", 1, "boost left", "0..100", self._car_scale[-1]),
                Meaning(group, "demo_timer", 1, "until a demolished car is back, 0 when alive", "s"),
                Meaning(group, "on_ground", 1, "at least three wheels touch something", FLAG),
                Meaning(group, "boosting", 1, "boost is burning", FLAG),
                Meaning(group, "supersonic", 1, "faster than 2200 uu/s, or was a moment ago", FLAG),
            ]
        return meanings

    def _car_blocks(self, state: GameState, on_ground: Bool) -> Float:
        """`[A, C + 1, 2, 20]`: every car in the world and in the mirrored view; the last car is padding, all zero."""
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
    """`[C * slots]` rows of the blocks `[C + 1, 2]`: which car each car sees in each slot, and from which side."""
    order = car_order(num_blue, num_orange, zero_padding)
    side = np.repeat([0, 1], [num_blue, num_orange])[:, None]
    slots: NDArray[np.intp] = (2 * order + side).reshape(-1)
    return slots
