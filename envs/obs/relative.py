"""RelativeObs: everything as the driver sees it."""

import math

import gymnasium
import numpy as np

from envs.checks import whole_number
from envs.obs import blocks
from envs.obs.base import ObsBuilder
from envs.obs.meanings import LOCAL_AXES, UNIT_VECTOR, Meaning
from envs.state.game_state import GameState
from envs.state.layout import CAR_ANG_VEL, CAR_FORWARD, CAR_POS, CAR_UP, CAR_VEL, NUM_PADS, Float


class RelativeObs(ObsBuilder):
    """47 floats, 6 per pad, then 21 per other car (allies first), all along the car's forward, right and up.

    Positions are minus the car's, and so are velocities but the car's own. Turning and moving the whole scene, however
    the car lies, changes nothing but the columns about the field: `WORLD_UP`, the goals and the pads. Units before the
    coefficients: uu, uu/s, rad/s, boost 0..100, seconds; flags are 0 or 1.
    """

    VEL, ANG_VEL, STATUS, JUMPS, PREVIOUS_ACTION = blocks.spans(3, 3, blocks.STATUS_WIDTH, blocks.JUMP_WIDTH, 8)
    """STATUS: boost, seconds until a demolished car is back, on_ground, has_flip, boosting, supersonic. JUMPS:
    is_holding_jump, handbrake (0..1), has_jumped, is_jumping, has_flipped, is_flipping, has_double_jumped, can_flip,
    air_time_since_jump (seconds, unscaled). PREVIOUS_ACTION: throttle, steer, pitch, yaw, roll, jump, boost,
    handbrake."""
    BALL_POS, BALL_VEL, BALL_ANG_VEL = blocks.spans(3, 3, 3, start=29)
    WORLD_UP, OPPONENT_GOAL, OWN_GOAL = blocks.spans(3, 3, 3, start=38)
    """The world's +z, against gravity, as a unit vector; the middle of each goal's mouth."""
    PADS = slice(47, None)
    """`PAD_WIDTH` floats for each of `num_pads` pads, the nearest first: position, 1 for a big pad, 1 while it is
    there, seconds until it is back."""
    PAD_WIDTH = blocks.PAD_WIDTH
    OTHER_POS, OTHER_VEL, OTHER_FORWARD, OTHER_UP, OTHER_ANG_VEL = blocks.spans(*[3] * 5)
    OTHER_STATUS = slice(15, 21)
    """Columns of another car's block; OTHER_STATUS as STATUS."""
    OTHER_WIDTH = 21

    def __init__(
        self,
        zero_padding: int | None = None,
        num_pads: int = 6,
        pos_coef: float = 1 / 2300,
        lin_vel_coef: float = 1 / 2300,
        ang_vel_coef: float = 1 / math.pi,
        boost_coef: float = 1 / 100,
        timer_coef: float = 1 / 10,
    ) -> None:
        """Creates the builder.

        Args:
            zero_padding: Cars per team that the observation has room for, or None for exactly those in the arena.
            num_pads: Pads next to the car, 0 to 34.
            pos_coef: Factor on positions (uu).
            lin_vel_coef: Factor on linear velocities (uu/s).
            ang_vel_coef: Factor on angular velocities (rad/s).
            boost_coef: Factor on the boost amount (0..100).
            timer_coef: Factor on the timers of pads and demolished cars (seconds).
        """
        name = "RelativeObs"
        self.zero_padding = blocks.room_for_cars(name, "zero_padding", zero_padding)
        self.num_pads = whole_number(name, "num_pads", num_pads, 0, NUM_PADS)
        self.pos_coef = blocks.coefficient(name, "pos_coef", pos_coef)
        self.lin_vel_coef = blocks.coefficient(name, "lin_vel_coef", lin_vel_coef)
        self.ang_vel_coef = blocks.coefficient(name, "ang_vel_coef", ang_vel_coef)
        self.boost_coef = blocks.coefficient(name, "boost_coef", boost_coef)
        self.timer_coef = blocks.coefficient(name, "timer_coef", timer_coef)

    @property
    def others_start(self) -> int:
        """First column of the other cars' blocks."""
        return self.PADS.start + blocks.PAD_WIDTH * self.num_pads

    def space(self, num_blue: int, num_orange: int) -> gymnasium.spaces.Box:
        """Box of `47 + 6 * pads + 21 * others`; see `ObsBuilder.space`."""
        others = blocks.num_slots("RelativeObs", "zero_padding", self.zero_padding, num_blue, num_orange) - 1
        return gymnasium.spaces.Box(-np.inf, np.inf, (self.others_start + self.OTHER_WIDTH * others,), np.float32)

    def meanings(self, num_blue: int, num_orange: int) -> list[Meaning]:
        pos, vel, ang_vel, timer = self.pos_coef, self.lin_vel_coef, self.ang_vel_coef, self.timer_coef
        meanings = [
            Meaning("vel", "", 3, f"the car's velocity: {LOCAL_AXES}", "uu/s", vel),
            Meaning("ang_vel", "", 3, f"the car's angular velocity: {LOCAL_AXES}", "rad/s", ang_vel),
            *blocks.status_meanings("status", self.boost_coef, timer),
            *blocks.jump_meanings("jumps"),
            *blocks.action_meanings("previous_action"),
            Meaning("ball_pos", "", 3, f"the ball's position minus the car's: {LOCAL_AXES}", "uu", pos),
            Meaning("ball_vel", "", 3, f"the ball's velocity minus the car's: {LOCAL_AXES}", "uu/s", vel),
            Meaning("ball_ang_vel", "", 3, f"the ball's spin: {LOCAL_AXES}", "rad/s", ang_vel),
            Meaning("world_up", "", 3, f"the world's +z, against gravity: {LOCAL_AXES}", UNIT_VECTOR),
            Meaning("opponent_goal", "", 3, f"from the car to the opponents' goal: {LOCAL_AXES}", "uu", pos),
            Meaning("own_goal", "", 3, f"from the car to the own goal: {LOCAL_AXES}", "uu", pos),
            *blocks.nearest_pads_meanings("pad", self.num_pads, "car", pos, timer),
        ]
        others = (self.space(num_blue, num_orange).shape[0] - self.others_start) // self.OTHER_WIDTH
        for group in (f"other_{number}" for number in range(others)):
            meanings += [
                Meaning(group, "pos", 3, f"the other car's position minus the own: {LOCAL_AXES}", "uu", pos),
                Meaning(group, "vel", 3, f"the other car's velocity minus the own: {LOCAL_AXES}", "uu/s", vel),
                Meaning(group, "forward", 3, f"out of the other car's nose: {LOCAL_AXES}", UNIT_VECTOR),
                Meaning(group, "up", 3, f"out of the other car's roof: {LOCAL_AXES}", UNIT_VECTOR),
                Meaning(group, "ang_vel", 3, f"the other car's angular velocity: {LOCAL_AXES}", "rad/s", ang_vel),
                *blocks.status_meanings(group, self.boost_coef, timer),
            ]
        return meanings

    def build(self, state: GameState, out: Float) -> None:
        own, basis = state.own, blocks.own_basis(state)
        status = blocks.car_status(state, self.boost_coef, self.timer_coef)
        out[..., self.VEL] = blocks.to_frame(basis, own.car_vel) * self.lin_vel_coef
        out[..., self.ANG_VEL] = blocks.to_frame(basis, own.car_ang_vel) * self.ang_vel_coef
        out[..., self.STATUS] = status
        blocks.write_jumps(state, state.on_ground, out[..., self.JUMPS])
        out[..., self.PREVIOUS_ACTION] = state.controls
        out[..., self.BALL_POS] = blocks.to_frame(basis, own.ball_pos - own.car_pos) * self.pos_coef
        out[..., self.BALL_VEL] = blocks.to_frame(basis, own.ball_vel - own.car_vel) * self.lin_vel_coef
        out[..., self.BALL_ANG_VEL] = blocks.to_frame(basis, own.ball_ang_vel) * self.ang_vel_coef
        out[..., self.WORLD_UP] = basis[..., 2]
        out[..., self.OPPONENT_GOAL] = blocks.to_frame(basis, blocks.GOALS[0] - own.car_pos) * self.pos_coef
        out[..., self.OWN_GOAL] = blocks.to_frame(basis, blocks.GOALS[1] - own.car_pos) * self.pos_coef
        pads = blocks.nearest_pads(own.car_pos, own.pad_timers, basis, self.num_pads, self.pos_coef, self.timer_coef)
        out[..., self.PADS.start : self.others_start] = pads.reshape(state.num_arenas, state.num_cars, -1)
        others = self._others(state, basis, status)
        out[..., self.others_start :] = others.reshape(state.num_arenas, state.num_cars, -1)
        blocks.clear_absent_observers(state, out)

    def _others(self, state: GameState, basis: Float, status: Float) -> Float:
        """`[A, C, slots - 1, 21]`."""
        seen = blocks.seen_cars(state, self.zero_padding)
        rows, own = seen.rows, state.own
        to_car, rel_vel = rows[..., CAR_POS] - own.car_pos[:, :, None], rows[..., CAR_VEL] - own.car_vel[:, :, None]
        cars = np.empty((*seen.present.shape, self.OTHER_WIDTH), np.float32)
        cars[..., self.OTHER_POS] = blocks.to_frame(basis, to_car) * self.pos_coef
        cars[..., self.OTHER_VEL] = blocks.to_frame(basis, rel_vel) * self.lin_vel_coef
        cars[..., self.OTHER_FORWARD] = blocks.to_frame(basis, rows[..., CAR_FORWARD])
        cars[..., self.OTHER_UP] = blocks.to_frame(basis, rows[..., CAR_UP])
        cars[..., self.OTHER_ANG_VEL] = blocks.to_frame(basis, rows[..., CAR_ANG_VEL]) * self.ang_vel_coef
        cars[..., self.OTHER_STATUS] = seen.pick(status)
        seen.hide_padding(cars)
        return cars[:, :, 1:]
