"""AdvancedObs: the observation of RLGym 1 and rlgym-sim that most of their bots were trained on."""

import math
from collections.abc import Sequence

import gymnasium
import numpy as np

from envs.obs.base import ObsBuilder
from envs.obs.blocks import (
    action_meanings,
    clear_absent_observers,
    coefficient,
    num_slots,
    pos_coefficient,
    room_for_cars,
    seen_cars,
)
from envs.obs.meanings import AXES, FLAG, UNIT_VECTOR, Meaning
from envs.state import layout
from envs.state.game_state import GameState
from envs.state.layout import Float


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

    def meanings(self, num_blue: int, num_orange: int) -> list[Meaning]:
        pos, vel, ang_vel = self.pos_coef, self.lin_vel_coef, self.ang_vel_coef
        meanings = [
            Meaning("ball_pos", "", 3, f"the ball's position: {AXES}", "uu", pos),
            Meaning("ball_vel", "", 3, f"the ball's velocity: {AXES}", "uu/s", vel),
            Meaning("ball_ang_vel", "", 3, f"the ball's spin: {AXES}", "rad/s", ang_vel),
            *action_meanings("previous_action"),
            Meaning("pads", "", 34, "each pad can be taken now, order of RLGym's BOOST_LOCATIONS", FLAG),
            *self._car_meanings("self", "the car"),
        ]
        others = (self.space(num_blue, num_orange).shape[0] - self.OTHERS.start) // self.OTHER_WIDTH
        for group in (f"other_{number}" for number in range(others)):
            meanings += [
                *self._car_meanings(group, "the other car"),
                Meaning(group, "offset", 3, f"the other car's position minus the own: {AXES}", "uu", pos),
                Meaning(group, "rel_vel", 3, f"the other car's velocity minus the own: {AXES}", "uu/s", vel),
            ]
        return meanings

    def _car_meanings(self, group: str, whose: str) -> list[Meaning]:
        """What `_car_blocks` writes for every car."""
        pos, vel, ang_vel = self.pos_coef, self.lin_vel_coef, self.ang_vel_coef
        return [
            Meaning(group, "to_ball", 3, f"the ball's position minus {whose}'s: {AXES}", "uu", pos),
            Meaning(group, "ball_vel", 3, f"the ball's velocity minus {whose}'s: {AXES}", "uu/s", vel),
            Meaning(group, "pos", 3, f"{whose}'s position: {AXES}", "uu", pos),
            Meaning(group, "forward", 3, f"out of the nose: {AXES}", UNIT_VECTOR),
            Meaning(group, "up", 3, f"out of the roof: {AXES}", UNIT_VECTOR),
            Meaning(group, "vel", 3, f"{whose}'s velocity: {AXES}", "uu/s", vel),
            Meaning(group, "ang_vel", 3, f"{whose}'s angular velocity: {AXES}", "rad/s", ang_vel),
            Meaning(group, "boost", 1, "boost left", "0..100", self.boost_coef),
            Meaning(group, "on_ground", 1, "at least three wheels touch something", FLAG),
            Meaning(group, "has_flip", 1, "the flip is unspent", FLAG),
            Meaning(group, "demoed", 1, "demolished and not back yet", FLAG),
        ]

    def build(self, state: GameState, out: Float) -> None:
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
        pos, vel = rows[..., layout.CAR_POS], rows[..., layout.CAR_VEL]
        blocks = np.empty((*seen.present.shape, self.OTHER_WIDTH), np.float32)
        blocks[..., self.CAR_TO_BALL] = (ball.ball_pos[:, :, None] - pos) * self.pos_coef
        blocks[..., self.CAR_BALL_VEL] = (ball.ball_vel[:, :, None] - vel) * self.lin_vel_coef
        blocks[..., self.CAR_POS] = pos * self.pos_coef
        blocks[..., self.CAR_FORWARD] = rows[..., layout.CAR_FORWARD]
        blocks[..., self.CAR_UP] = rows[..., layout.CAR_UP]
        blocks[..., self.CAR_VEL] = vel * self.lin_vel_coef
        blocks[..., self.CAR_ANG_VEL] = rows[..., layout.CAR_ANG_VEL] * self.ang_vel_coef
        status = (state.boost * self.boost_coef, state.on_ground, state.has_flip, state.is_demoed)
        blocks[..., self.CAR_BOOST : self.CAR_WIDTH] = seen.pick(np.stack(status, axis=-1, dtype=np.float32))
        blocks[..., self.OTHER_OFFSET] = (pos - pos[:, :, :1]) * self.pos_coef
        blocks[..., self.OTHER_REL_VEL] = (vel - vel[:, :, :1]) * self.lin_vel_coef
        seen.hide_padding(blocks)
        return blocks
