"""AdvancedObs: the observation of RLGym 1 and rlgym-sim that most of their bots were trained on."""

import math
from collections.abc import Sequence

import gymnasium
import numpy as np

from envs.game_state import CAR_ANG_VEL as STATE_ANG_VEL
from envs.game_state import CAR_FORWARD as STATE_FORWARD
from envs.game_state import CAR_POS as STATE_POS
from envs.game_state import CAR_UP as STATE_UP
from envs.game_state import CAR_VEL as STATE_VEL
from envs.game_state import Float, GameState
from envs.obs.base import ObsBuilder
from envs.obs.blocks import (
    clear_absent_observers,
    coefficient,
    num_slots,
    pos_coefficient,
    repeated,
    room_for_cars,
    seen_cars,
)


class AdvancedObs(ObsBuilder):
    """76 floats about the world and the car itself, then 31 per other car, allies first: 107 in 1v1.

    Orange sees the mirrored world. A car's block has the ball relative to the car; the blocks of other cars end with
    that car relative to the observer. Units before the coefficients: uu, uu/s, rad/s, boost 0..100; flags are 0 or 1.
    """

    BALL_POS, BALL_VEL, BALL_ANG_VEL = slice(0, 3), slice(3, 6), slice(6, 9)
    PREVIOUS_ACTION = slice(9, 17)
    """throttle, steer, pitch, yaw, roll, jump, boost, handbrake of the step that led here."""
    PADS = slice(17, 51)
    """1 for each pad that can be taken now, in the order of RLGym's BOOST_LOCATIONS."""
    SELF = slice(51, 76)
    """`CAR_WIDTH` floats, see the CAR_* columns, relative to a car's block."""
    OTHERS = slice(76, None)
    """`OTHER_WIDTH` floats per other car: the CAR_* columns and the OTHER_* columns."""
    CAR_WIDTH, OTHER_WIDTH = 25, 31
    CAR_TO_BALL, CAR_BALL_VEL, CAR_POS, CAR_FORWARD, CAR_UP, CAR_VEL, CAR_ANG_VEL = (
        slice(i, i + 3) for i in range(0, 21, 3)
    )
    """CAR_TO_BALL and CAR_BALL_VEL are the ball's position and velocity minus the car's."""
    CAR_BOOST, CAR_ON_GROUND, CAR_HAS_FLIP, CAR_DEMOED = range(21, 25)
    OTHER_OFFSET, OTHER_REL_VEL = slice(25, 28), slice(28, 31)
    """The other car's position and velocity minus the observer's."""

    def __init__(
        self,
        zero_padding: int | None = None,
        pos_coef: float | Sequence[float] = 1 / 2300,
        lin_vel_coef: float = 1 / 2300,
        ang_vel_coef: float = 1 / math.pi,
        boost_coef: float = 1 / 100,
    ) -> None:
        """Creates the builder.

        Args:
            zero_padding: Cars per team that the observation has room for, or None for exactly those in the arena.
            pos_coef: Factor on positions (uu), one number or one per axis.
            lin_vel_coef: Factor on linear velocities (uu/s).
            ang_vel_coef: Factor on angular velocities (rad/s).
            boost_coef: Factor on the boost amount (0..100).
        """
        self.zero_padding = room_for_cars("AdvancedObs", "zero_padding", zero_padding)
        self.pos_coef = pos_coefficient("AdvancedObs", pos_coef)
        self.lin_vel_coef = coefficient("AdvancedObs", "lin_vel_coef", lin_vel_coef)
        self.ang_vel_coef = coefficient("AdvancedObs", "ang_vel_coef", ang_vel_coef)
        self.boost_coef = coefficient("AdvancedObs", "boost_coef", boost_coef)

    def space(self, num_blue: int, num_orange: int) -> gymnasium.spaces.Box:
        """Box of `76 + 31 * others`; see `ObsBuilder.space`."""
        others = num_slots("AdvancedObs", "zero_padding", self.zero_padding, num_blue, num_orange) - 1
        return gymnasium.spaces.Box(-np.inf, np.inf, (self.OTHERS.start + self.OTHER_WIDTH * others,), np.float32)

    def columns(self, num_blue: int, num_orange: int) -> dict[str, slice]:
        """`other_0`, `other_1`... are the other cars' blocks; see `ObsBuilder.columns`."""
        named = {
            "ball_pos": self.BALL_POS,
            "ball_vel": self.BALL_VEL,
            "ball_ang_vel": self.BALL_ANG_VEL,
            "previous_action": self.PREVIOUS_ACTION,
            "pads": self.PADS,
            "self": self.SELF,
        }
        width = self.space(num_blue, num_orange).shape[0]
        return named | repeated("other", self.OTHERS.start, self.OTHER_WIDTH, width)

    def build(self, state: GameState, out: Float) -> None:
        """See `ObsBuilder.build`."""
        own = state.own
        out[..., self.BALL_POS] = own.ball_pos * self.pos_coef
        out[..., self.BALL_VEL] = own.ball_vel * self.lin_vel_coef
        out[..., self.BALL_ANG_VEL] = own.ball_ang_vel * self.ang_vel_coef
        out[..., self.PREVIOUS_ACTION] = state.controls
        out[..., self.PADS] = own.pad_timers == 0
        blocks = self._car_blocks(state)
        out[..., self.SELF] = blocks[:, :, 0, : self.CAR_WIDTH]
        out[..., self.OTHERS] = blocks[:, :, 1:].reshape(state.num_arenas, state.num_cars, -1)
        clear_absent_observers(state, out)

    def _car_blocks(self, state: GameState) -> Float:
        """`[A, C, slots, 31]`: every car as each car sees it, itself first."""
        seen = seen_cars(state, self.zero_padding)
        ball, rows = state.own, seen.rows
        pos, vel = rows[..., STATE_POS], rows[..., STATE_VEL]
        blocks = np.empty((*seen.present.shape, self.OTHER_WIDTH), np.float32)
        blocks[..., self.CAR_TO_BALL] = (ball.ball_pos[:, :, None] - pos) * self.pos_coef
        blocks[..., self.CAR_BALL_VEL] = (ball.ball_vel[:, :, None] - vel) * self.lin_vel_coef
        blocks[..., self.CAR_POS] = pos * self.pos_coef
        blocks[..., self.CAR_FORWARD] = rows[..., STATE_FORWARD]
        blocks[..., self.CAR_UP] = rows[..., STATE_UP]
        blocks[..., self.CAR_VEL] = vel * self.lin_vel_coef
        blocks[..., self.CAR_ANG_VEL] = rows[..., STATE_ANG_VEL] * self.ang_vel_coef
        status = (state.boost * self.boost_coef, state.on_ground, state.has_flip, state.is_demoed)
        blocks[..., self.CAR_BOOST : self.CAR_WIDTH] = seen.pick(np.stack(status, axis=-1, dtype=np.float32))
        blocks[..., self.OTHER_OFFSET] = (pos - pos[:, :, :1]) * self.pos_coef
        blocks[..., self.OTHER_REL_VEL] = (vel - vel[:, :, :1]) * self.lin_vel_coef
        seen.hide_padding(blocks)
        return blocks
