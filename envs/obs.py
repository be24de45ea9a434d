"""Observation builders: GameState -> one row of floats per car."""

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence

import gymnasium
import numpy as np
from numpy.typing import NDArray
from rlgym.rocket_league.common_values import BACK_NET_Y, CAR_MAX_ANG_VEL, CAR_MAX_SPEED, CEILING_Z, SIDE_WALL_X

from envs.game_state import Bool, Float, GameState, View


class ObsBuilder(ABC):
    """Builds the observations of all cars at once."""

    @abstractmethod
    def space(self, num_blue: int, num_orange: int) -> gymnasium.spaces.Box:
        """The observation space of one car, float32 `[D]`.

        Raises:
            ValueError: The builder cannot describe that many cars.
        """

    @abstractmethod
    def build(self, state: GameState, out: Float) -> None:
        """Writes the observation of every car into `out [A, C, D]` float32 (every element must be written).

        `state` may hold a few of the pool's arenas only; `state.arena_index` says which.
        """

    def reset(self, mask: Bool, state: GameState) -> None:  # noqa: B027 - most builders keep nothing
        """Called for the arenas (`mask [A]`) that begin a new episode in `state`."""


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
        self.lin_vel_coef = np.float32(lin_vel_coef)
        self.ang_vel_coef = np.float32(ang_vel_coef)
        self.pad_timer_coef = np.float32(pad_timer_coef)
        self.boost_coef = np.float32(boost_coef)

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
        if self.zero_padding is not None and max(num_blue, num_orange) > self.zero_padding:
            raise ValueError(
                f"DefaultObs: zero_padding={self.zero_padding} is too small for {max(num_blue, num_orange)} cars a team"
            )
        cars = num_blue + num_orange if self.zero_padding is None else 2 * self.zero_padding
        width = self.CARS.start + self.CAR_WIDTH * cars
        return gymnasium.spaces.Box(-np.inf, np.inf, (width,), np.float32)

    def build(self, state: GameState, out: Float) -> None:
        """See `ObsBuilder.build`."""
        for view, cars in ((state.world, slice(None, state.num_blue)), (state.mirrored, slice(state.num_blue, None))):
            rows = out[:, cars]
            rows[..., self.BALL_POS] = (view.ball_pos * self.pos_coef)[:, None]
            rows[..., self.BALL_VEL] = (view.ball_vel * self.lin_vel_coef)[:, None]
            rows[..., self.BALL_ANG_VEL] = (view.ball_ang_vel * self.ang_vel_coef)[:, None]
            rows[..., self.PAD_TIMERS] = (view.pad_timers * self.pad_timer_coef)[:, None]
        flags = out[..., self.SELF_FLAGS]
        on_ground, holding_jump, has_flip = state.on_ground, state.is_holding_jump, state.has_flip
        flags[..., 0] = holding_jump
        flags[..., 1] = state.handbrake
        flags[..., 2] = state.has_jumped
        flags[..., 3] = state.is_jumping
        flags[..., 4] = state.has_flipped
        flags[..., 5] = state.is_flipping
        flags[..., 6] = state.has_double_jumped
        flags[..., 7] = ~on_ground & ~holding_jump & has_flip
        flags[..., 8] = state.air_time_since_jump

        num_arenas, num_cars = state.num_arenas, state.num_cars
        blocks = np.zeros((num_arenas, num_cars + 1, 2, self.CAR_WIDTH), np.float32)  # the last one pads
        for side, view in enumerate((state.world, state.mirrored)):
            self._write_car_blocks(state, view, on_ground, blocks[:, :num_cars, side])
        order = _car_order(state.num_blue, state.num_orange, self.zero_padding)
        seen = blocks[:, order, state.team.astype(np.intp)[:, None]]  # [A, C, slots, 20]
        out[..., self.CARS] = seen.reshape(num_arenas, num_cars, -1)

    def _write_car_blocks(self, state: GameState, view: View, on_ground: Bool, blocks: Float) -> None:
        blocks[..., self.CAR_POS] = view.car_pos * self.pos_coef
        blocks[..., self.CAR_FORWARD] = view.car_forward
        blocks[..., self.CAR_UP] = view.car_up
        blocks[..., self.CAR_VEL] = view.car_vel * self.lin_vel_coef
        blocks[..., self.CAR_ANG_VEL] = view.car_ang_vel * self.ang_vel_coef
        blocks[..., self.CAR_BOOST] = state.boost * self.boost_coef
        blocks[..., self.CAR_DEMO_TIMER] = state.demo_respawn_timer
        blocks[..., self.CAR_ON_GROUND] = on_ground
        blocks[..., self.CAR_BOOSTING] = state.boost_active_time > 0
        blocks[..., self.CAR_SUPERSONIC] = state.supersonic_time > 0


def _car_order(num_blue: int, num_orange: int, zero_padding: int | None) -> NDArray[np.intp]:
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
