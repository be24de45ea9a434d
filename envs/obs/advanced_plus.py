"""AdvancedObsPlus: the field and the car's own frame side by side, goals, and the pads that matter."""

import math
from itertools import pairwise

import gymnasium
import numpy as np
from rlgym.rocket_league.common_values import TICKS_PER_SECOND

from envs.game_state import CAR_FORWARD, CAR_POS, CAR_UP, CAR_VEL, Float, GameState
from envs.obs.base import ObsBuilder
from envs.obs.blocks import (
    JUMP_WIDTH,
    OPPONENT_GOAL_POS,
    OWN_GOAL_POS,
    PAD_WIDTH,
    STATUS_WIDTH,
    car_status,
    clear_absent_observers,
    coefficient,
    direction_and_distance,
    jump_state,
    lengths,
    nearest_pads,
    num_slots,
    own_basis,
    pad_count,
    repeated,
    room_for_cars,
    seen_cars,
    spans,
    to_frame,
)


class AdvancedObsPlus(ObsBuilder):
    """77 floats about ball, car and goals, 6 per pad (near the car, then near the ball), then 27 per other car.

    Plain columns are in the field's axes as the car's team sees it (everybody attacks +y), `LOCAL_*` columns along the
    car's forward, right and up. Everything, pads included, is mirrored for orange. Other cars: allies first. Wrap it in
    `StackedObs` for more than one frame. Units before the coefficients: uu, uu/s, rad/s, boost 0..100, seconds; flags
    are 0 or 1.
    """

    BALL_POS, BALL_VEL, BALL_ANG_VEL, POS, FORWARD, UP, VEL, ANG_VEL = spans(*[3] * 8)
    STATUS, JUMPS, PREVIOUS_ACTION, TOUCH_TIME = spans(STATUS_WIDTH, JUMP_WIDTH, 8, 1, start=24)
    """STATUS: boost, seconds until a demolished car is back, on_ground, has_flip, boosting, supersonic. JUMPS:
    is_holding_jump, handbrake (0..1), has_jumped, is_jumping, has_flipped, is_flipping, has_double_jumped, can_flip,
    air_time_since_jump (seconds, unscaled). PREVIOUS_ACTION: throttle, steer, pitch, yaw, roll, jump, boost, handbrake.
    TOUCH_TIME: seconds since anybody touched the ball or the episode began, scaled, at most 1."""
    LOCAL_VEL, LOCAL_ANG_VEL, LOCAL_BALL_POS, LOCAL_BALL_VEL, BALL_DISTANCE = spans(3, 3, 3, 3, 1, start=48)
    """The ball's position and velocity minus the car's, and the distance (uu, scaled)."""
    LOCAL_OPPONENT_GOAL, LOCAL_OWN_GOAL, BALL_TO_OPPONENT_GOAL, BALL_TO_OWN_GOAL = spans(4, 4, 4, 4, start=61)
    """Unit direction and distance (uu, scaled) to the middle of the goal's mouth, from the car and from the ball."""
    PADS = slice(77, None)
    """`PAD_WIDTH` floats for each of `pads_near_car` and then `pads_near_ball` pads, the nearest first: offset from the
    car or from the ball along the car's axes, 1 for a big pad, 1 while it is there, seconds until it is back."""
    PAD_WIDTH = PAD_WIDTH
    OTHER_LOCAL_POS, OTHER_LOCAL_VEL, OTHER_LOCAL_FORWARD, OTHER_LOCAL_UP, OTHER_LOCAL_TO_BALL = spans(*[3] * 5)
    OTHER_POS, OTHER_VEL, OTHER_STATUS = spans(3, 3, STATUS_WIDTH, start=15)
    """Columns of another car's block. Local position and velocity are minus the observer's; OTHER_LOCAL_TO_BALL is
    from that car to the ball; OTHER_STATUS as STATUS."""
    OTHER_WIDTH = 27

    def __init__(
        self,
        zero_padding: int | None = None,
        pads_near_car: int = 4,
        pads_near_ball: int = 2,
        pos_coef: float = 1 / 2300,
        lin_vel_coef: float = 1 / 2300,
        ang_vel_coef: float = 1 / math.pi,
        boost_coef: float = 1 / 100,
        timer_coef: float = 1 / 10,
    ) -> None:
        """Creates the builder.

        Args:
            zero_padding: Cars per team that the observation has room for, or None for exactly those in the arena.
            pads_near_car: Pads next to the car, 0 to 34.
            pads_near_ball: Pads next to the ball, 0 to 34.
            pos_coef: Factor on positions and distances (uu).
            lin_vel_coef: Factor on linear velocities (uu/s).
            ang_vel_coef: Factor on angular velocities (rad/s).
            boost_coef: Factor on the boost amount (0..100).
            timer_coef: Factor on the timers of pads, demolished cars and touches (seconds).
        """
        name = "AdvancedObsPlus"
        self.zero_padding = room_for_cars(name, "zero_padding", zero_padding)
        self.pads_near_car = pad_count(name, "pads_near_car", pads_near_car)
        self.pads_near_ball = pad_count(name, "pads_near_ball", pads_near_ball)
        self.pos_coef = coefficient(name, "pos_coef", pos_coef)
        self.lin_vel_coef = coefficient(name, "lin_vel_coef", lin_vel_coef)
        self.ang_vel_coef = coefficient(name, "ang_vel_coef", ang_vel_coef)
        self.boost_coef = coefficient(name, "boost_coef", boost_coef)
        self.timer_coef = coefficient(name, "timer_coef", timer_coef)

    @property
    def others_start(self) -> int:
        """First column of the other cars' blocks."""
        start: int = self.PADS.start + PAD_WIDTH * (self.pads_near_car + self.pads_near_ball)
        return start

    def space(self, num_blue: int, num_orange: int) -> gymnasium.spaces.Box:
        """Box of `77 + 6 * pads + 27 * others`; see `ObsBuilder.space`."""
        others = num_slots("AdvancedObsPlus", "zero_padding", self.zero_padding, num_blue, num_orange) - 1
        return gymnasium.spaces.Box(-np.inf, np.inf, (self.others_start + self.OTHER_WIDTH * others,), np.float32)

    def columns(self, num_blue: int, num_orange: int) -> dict[str, slice]:
        """The class's slices by name, then `pad_near_car_0`, `pad_near_ball_0`, `other_0`...; see `ObsBuilder`."""
        named = {
            "ball_pos": self.BALL_POS,
            "ball_vel": self.BALL_VEL,
            "ball_ang_vel": self.BALL_ANG_VEL,
            "pos": self.POS,
            "forward": self.FORWARD,
            "up": self.UP,
            "vel": self.VEL,
            "ang_vel": self.ANG_VEL,
            "status": self.STATUS,
            "jumps": self.JUMPS,
            "previous_action": self.PREVIOUS_ACTION,
            "touch_time": self.TOUCH_TIME,
            "local_vel": self.LOCAL_VEL,
            "local_ang_vel": self.LOCAL_ANG_VEL,
            "local_ball_pos": self.LOCAL_BALL_POS,
            "local_ball_vel": self.LOCAL_BALL_VEL,
            "ball_distance": self.BALL_DISTANCE,
            "local_opponent_goal": self.LOCAL_OPPONENT_GOAL,
            "local_own_goal": self.LOCAL_OWN_GOAL,
            "ball_to_opponent_goal": self.BALL_TO_OPPONENT_GOAL,
            "ball_to_own_goal": self.BALL_TO_OWN_GOAL,
        }
        near_ball = self.PADS.start + PAD_WIDTH * self.pads_near_car
        named |= repeated("pad_near_car", self.PADS.start, PAD_WIDTH, near_ball)
        named |= repeated("pad_near_ball", near_ball, PAD_WIDTH, self.others_start)
        width = self.space(num_blue, num_orange).shape[0]
        return named | repeated("other", self.others_start, self.OTHER_WIDTH, width)

    def build(self, state: GameState, out: Float) -> None:
        """See `ObsBuilder.build`."""
        basis = own_basis(state)
        self._write_field(state, out)
        self._write_local(state, basis, out)
        self._write_pads(state, basis, out)
        status = car_status(state, self.boost_coef, self.timer_coef)
        out[..., self.STATUS] = status
        out[..., self.JUMPS] = jump_state(state)
        out[..., self.PREVIOUS_ACTION] = state.controls
        seconds = (state.ticks_since_touch / np.float32(TICKS_PER_SECOND)).astype(np.float32)
        out[..., self.TOUCH_TIME] = np.minimum(seconds * self.timer_coef, np.float32(1))[:, None, None]
        others = self._others(state, basis, status)
        out[..., self.others_start :] = others.reshape(state.num_arenas, state.num_cars, -1)
        clear_absent_observers(state, out)

    def _write_field(self, state: GameState, out: Float) -> None:
        own = state.own
        out[..., self.BALL_POS] = own.ball_pos * self.pos_coef
        out[..., self.BALL_VEL] = own.ball_vel * self.lin_vel_coef
        out[..., self.BALL_ANG_VEL] = own.ball_ang_vel * self.ang_vel_coef
        out[..., self.POS] = own.car_pos * self.pos_coef
        out[..., self.FORWARD] = own.car_forward
        out[..., self.UP] = own.car_up
        out[..., self.VEL] = own.car_vel * self.lin_vel_coef
        out[..., self.ANG_VEL] = own.car_ang_vel * self.ang_vel_coef
        for goal, columns in (
            (OPPONENT_GOAL_POS, self.BALL_TO_OPPONENT_GOAL),
            (OWN_GOAL_POS, self.BALL_TO_OWN_GOAL),
        ):
            out[..., columns] = direction_and_distance(goal - own.ball_pos, self.pos_coef)

    def _write_local(self, state: GameState, basis: Float, out: Float) -> None:
        own = state.own
        to_ball = own.ball_pos - own.car_pos
        out[..., self.LOCAL_VEL] = to_frame(basis, own.car_vel) * self.lin_vel_coef
        out[..., self.LOCAL_ANG_VEL] = to_frame(basis, own.car_ang_vel) * self.ang_vel_coef
        out[..., self.LOCAL_BALL_POS] = to_frame(basis, to_ball) * self.pos_coef
        out[..., self.LOCAL_BALL_VEL] = to_frame(basis, own.ball_vel - own.car_vel) * self.lin_vel_coef
        out[..., self.BALL_DISTANCE] = lengths(to_ball)[..., None] * self.pos_coef
        for goal, columns in ((OPPONENT_GOAL_POS, self.LOCAL_OPPONENT_GOAL), (OWN_GOAL_POS, self.LOCAL_OWN_GOAL)):
            out[..., columns] = direction_and_distance(to_frame(basis, goal - own.car_pos), self.pos_coef)

    def _write_pads(self, state: GameState, basis: Float, out: Float) -> None:
        own = state.own
        ends = np.cumsum((self.PADS.start, PAD_WIDTH * self.pads_near_car, PAD_WIDTH * self.pads_near_ball)).tolist()
        around = ((own.car_pos, self.pads_near_car), (own.ball_pos, self.pads_near_ball))
        for (points, count), (start, stop) in zip(around, pairwise(ends), strict=True):
            pads = nearest_pads(points, own.pad_timers, basis, count, self.pos_coef, self.timer_coef)
            out[..., start:stop] = pads.reshape(state.num_arenas, state.num_cars, -1)

    def _others(self, state: GameState, basis: Float, status: Float) -> Float:
        """`[A, C, slots - 1, 27]`."""
        seen = seen_cars(state, self.zero_padding)
        rows, own = seen.rows, state.own
        pos, vel = rows[..., CAR_POS], rows[..., CAR_VEL]
        blocks = np.empty((*seen.present.shape, self.OTHER_WIDTH), np.float32)
        blocks[..., self.OTHER_LOCAL_POS] = to_frame(basis, pos - own.car_pos[:, :, None]) * self.pos_coef
        blocks[..., self.OTHER_LOCAL_VEL] = to_frame(basis, vel - own.car_vel[:, :, None]) * self.lin_vel_coef
        blocks[..., self.OTHER_LOCAL_FORWARD] = to_frame(basis, rows[..., CAR_FORWARD])
        blocks[..., self.OTHER_LOCAL_UP] = to_frame(basis, rows[..., CAR_UP])
        blocks[..., self.OTHER_LOCAL_TO_BALL] = to_frame(basis, own.ball_pos[:, :, None] - pos) * self.pos_coef
        blocks[..., self.OTHER_POS] = pos * self.pos_coef
        blocks[..., self.OTHER_VEL] = vel * self.lin_vel_coef
        blocks[..., self.OTHER_STATUS] = seen.pick(status)
        seen.hide_padding(blocks)
        return blocks[:, :, 1:]
