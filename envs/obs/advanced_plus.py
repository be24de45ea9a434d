"""AdvancedObsPlus: the field and the car's own frame side by side, goals, and the pads that matter."""

import math

import gymnasium
import numpy as np
from rlgym.rocket_league.common_values import TICKS_PER_SECOND

from envs.checks import whole_number
from envs.obs import blocks
from envs.obs.base import ObsBuilder
from envs.obs.meanings import AXES, LOCAL_AXES, UNIT_VECTOR, Meaning
from envs.state.game_state import GameState
from envs.state.layout import CAR_FORWARD, CAR_POS, CAR_UP, CAR_VEL, NUM_PADS, Float


class AdvancedObsPlus(ObsBuilder):
    """77 floats about ball, car and goals, 6 per pad (near the car, then near the ball), then 27 per other car.

    Plain columns are in the field's axes as the car's team sees it (everybody attacks +y), `LOCAL_*` columns along the
    car's forward, right and up. Everything, pads included, is mirrored for orange. Other cars: allies first. Wrap it in
    `StackedObs` for more than one frame. Units before the coefficients: uu, uu/s, rad/s, boost 0..100, seconds; flags
    are 0 or 1.
    """

    BALL_POS, BALL_VEL, BALL_ANG_VEL, POS, FORWARD, UP, VEL, ANG_VEL = blocks.spans(*[3] * 8)
    STATUS, JUMPS, PREVIOUS_ACTION, TOUCH_TIME = blocks.spans(blocks.STATUS_WIDTH, blocks.JUMP_WIDTH, 8, 1, start=24)
    """STATUS: boost, seconds until a demolished car is back, on_ground, has_flip, boosting, supersonic. JUMPS:
    is_holding_jump, handbrake (0..1), has_jumped, is_jumping, has_flipped, is_flipping, has_double_jumped, can_flip,
    air_time_since_jump (seconds, unscaled). PREVIOUS_ACTION: throttle, steer, pitch, yaw, roll, jump, boost, handbrake.
    TOUCH_TIME: seconds since anybody touched the ball or the episode began, scaled, at most 1."""
    LOCAL_VEL, LOCAL_ANG_VEL, LOCAL_BALL_POS, LOCAL_BALL_VEL, BALL_DISTANCE = blocks.spans(3, 3, 3, 3, 1, start=48)
    """The ball's position and velocity minus the car's, and the distance (uu, scaled)."""
    LOCAL_OPPONENT_GOAL, LOCAL_OWN_GOAL, BALL_TO_OPPONENT_GOAL, BALL_TO_OWN_GOAL = blocks.spans(4, 4, 4, 4, start=61)
    """Unit direction and distance (uu, scaled) to the middle of the goal's mouth, from the car and from the ball."""
    PADS = slice(77, None)
    """`PAD_WIDTH` floats for each of `pads_near_car` and then `pads_near_ball` pads, the nearest first: offset from the
    car or from the ball along the car's axes, 1 for a big pad, 1 while it is there, seconds until it is back."""
    PAD_WIDTH = blocks.PAD_WIDTH
    OTHER_LOCAL_POS, OTHER_LOCAL_VEL, OTHER_LOCAL_FORWARD, OTHER_LOCAL_UP, OTHER_LOCAL_TO_BALL = blocks.spans(*[3] * 5)
    OTHER_POS, OTHER_VEL, OTHER_STATUS = blocks.spans(3, 3, blocks.STATUS_WIDTH, start=15)
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
        self.zero_padding = blocks.room_for_cars(name, "zero_padding", zero_padding)
        self.pads_near_car = whole_number(name, "pads_near_car", pads_near_car, 0, NUM_PADS)
        self.pads_near_ball = whole_number(name, "pads_near_ball", pads_near_ball, 0, NUM_PADS)
        self.pos_coef = blocks.coefficient(name, "pos_coef", pos_coef)
        self.lin_vel_coef = blocks.coefficient(name, "lin_vel_coef", lin_vel_coef)
        self.ang_vel_coef = blocks.coefficient(name, "ang_vel_coef", ang_vel_coef)
        self.boost_coef = blocks.coefficient(name, "boost_coef", boost_coef)
        self.timer_coef = blocks.coefficient(name, "timer_coef", timer_coef)

    @property
    def others_start(self) -> int:
        """First column of the other cars' blocks."""
        return self.PADS.start + blocks.PAD_WIDTH * (self.pads_near_car + self.pads_near_ball)

    def space(self, num_blue: int, num_orange: int) -> gymnasium.spaces.Box:
        """Box of `77 + 6 * pads + 27 * others`; see `ObsBuilder.space`."""
        others = blocks.num_slots("AdvancedObsPlus", "zero_padding", self.zero_padding, num_blue, num_orange) - 1
        return gymnasium.spaces.Box(-np.inf, np.inf, (self.others_start + self.OTHER_WIDTH * others,), np.float32)

    def meanings(self, num_blue: int, num_orange: int) -> list[Meaning]:
        pos, vel, ang_vel, timer = self.pos_coef, self.lin_vel_coef, self.ang_vel_coef, self.timer_coef
        opponents, own = "middle of the opponents' goal", "middle of the own goal"
        meanings = [
            Meaning("ball_pos", "", 3, f"the ball's position: {AXES}", "uu", pos),
            Meaning("ball_vel", "", 3, f"the ball's velocity: {AXES}", "uu/s", vel),
            Meaning("ball_ang_vel", "", 3, f"the ball's spin: {AXES}", "rad/s", ang_vel),
            Meaning("pos", "", 3, f"the car's position: {AXES}", "uu", pos),
            Meaning("forward", "", 3, f"out of the car's nose: {AXES}", UNIT_VECTOR),
            Meaning("up", "", 3, f"out of the car's roof: {AXES}", UNIT_VECTOR),
            Meaning("vel", "", 3, f"the car's velocity: {AXES}", "uu/s", vel),
            Meaning("ang_vel", "", 3, f"the car's angular velocity: {AXES}", "rad/s", ang_vel),
            *blocks.status_meanings("status", self.boost_coef, timer),
            *blocks.jump_meanings("jumps"),
            *blocks.action_meanings("previous_action"),
            Meaning("touch_time", "", 1, "since anybody touched the ball or the episode began, at most 1", "s", timer),
            Meaning("local_vel", "", 3, f"the car's velocity: {LOCAL_AXES}", "uu/s", vel),
            Meaning("local_ang_vel", "", 3, f"the car's angular velocity: {LOCAL_AXES}", "rad/s", ang_vel),
            Meaning("local_ball_pos", "", 3, f"the ball's position minus the car's: {LOCAL_AXES}", "uu", pos),
            Meaning("local_ball_vel", "", 3, f"the ball's velocity minus the car's: {LOCAL_AXES}", "uu/s", vel),
            Meaning("ball_distance", "", 1, "from the car to the ball", "uu", pos),
            *blocks.direction_and_distance_meanings("local_opponent_goal", f"car to {opponents}", LOCAL_AXES, pos),
            *blocks.direction_and_distance_meanings("local_own_goal", f"car to {own}", LOCAL_AXES, pos),
            *blocks.direction_and_distance_meanings("ball_to_opponent_goal", f"ball to {opponents}", AXES, pos),
            *blocks.direction_and_distance_meanings("ball_to_own_goal", f"ball to {own}", AXES, pos),
            *blocks.nearest_pads_meanings("pad_near_car", self.pads_near_car, "car", pos, timer),
            *blocks.nearest_pads_meanings("pad_near_ball", self.pads_near_ball, "ball", pos, timer),
        ]
        others = (self.space(num_blue, num_orange).shape[0] - self.others_start) // self.OTHER_WIDTH
        for group in (f"other_{number}" for number in range(others)):
            meanings += [
                Meaning(group, "local_pos", 3, f"the other car's position minus the own: {LOCAL_AXES}", "uu", pos),
                Meaning(group, "local_vel", 3, f"the other car's velocity minus the own: {LOCAL_AXES}", "uu/s", vel),
                Meaning(group, "local_forward", 3, f"out of the other car's nose: {LOCAL_AXES}", UNIT_VECTOR),
                Meaning(group, "local_up", 3, f"out of the other car's roof: {LOCAL_AXES}", UNIT_VECTOR),
                Meaning(group, "local_to_ball", 3, f"from the other car to the ball: {LOCAL_AXES}", "uu", pos),
                Meaning(group, "pos", 3, f"the other car's position: {AXES}", "uu", pos),
                Meaning(group, "vel", 3, f"the other car's velocity: {AXES}", "uu/s", vel),
                *blocks.status_meanings(group, self.boost_coef, timer),
            ]
        return meanings

    def build(self, state: GameState, out: Float) -> None:
        basis = blocks.own_basis(state)
        self._write_field(state, out)
        self._write_local(state, basis, out)
        self._write_pads(state, basis, out)
        status = blocks.car_status(state, self.boost_coef, self.timer_coef)
        out[..., self.STATUS] = status
        blocks.write_jumps(state, state.on_ground, out[..., self.JUMPS])
        out[..., self.PREVIOUS_ACTION] = state.controls
        seconds = (state.ticks_since_touch / np.float32(TICKS_PER_SECOND)).astype(np.float32)
        out[..., self.TOUCH_TIME] = np.minimum(seconds * self.timer_coef, np.float32(1))[:, None, None]
        others = self._others(state, basis, status)
        out[..., self.others_start :] = others.reshape(state.num_arenas, state.num_cars, -1)
        blocks.clear_absent_observers(state, out)

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
        for goal, columns in zip(blocks.GOALS, (self.BALL_TO_OPPONENT_GOAL, self.BALL_TO_OWN_GOAL), strict=True):
            out[..., columns] = blocks.direction_and_distance(goal - own.ball_pos, self.pos_coef)

    def _write_local(self, state: GameState, basis: Float, out: Float) -> None:
        own = state.own
        to_ball = own.ball_pos - own.car_pos
        out[..., self.LOCAL_VEL] = blocks.to_frame(basis, own.car_vel) * self.lin_vel_coef
        out[..., self.LOCAL_ANG_VEL] = blocks.to_frame(basis, own.car_ang_vel) * self.ang_vel_coef
        out[..., self.LOCAL_BALL_POS] = blocks.to_frame(basis, to_ball) * self.pos_coef
        out[..., self.LOCAL_BALL_VEL] = blocks.to_frame(basis, own.ball_vel - own.car_vel) * self.lin_vel_coef
        out[..., self.BALL_DISTANCE] = blocks.lengths(to_ball)[..., None] * self.pos_coef
        for goal, columns in zip(blocks.GOALS, (self.LOCAL_OPPONENT_GOAL, self.LOCAL_OWN_GOAL), strict=True):
            out[..., columns] = blocks.direction_and_distance(blocks.to_frame(basis, goal - own.car_pos), self.pos_coef)

    def _write_pads(self, state: GameState, basis: Float, out: Float) -> None:
        own, start = state.own, self.PADS.start
        for points, count in ((own.car_pos, self.pads_near_car), (own.ball_pos, self.pads_near_ball)):
            pads = blocks.nearest_pads(points, own.pad_timers, basis, count, self.pos_coef, self.timer_coef)
            stop = start + count * self.PAD_WIDTH
            out[..., start:stop] = pads.reshape(state.num_arenas, state.num_cars, -1)
            start = stop

    def _others(self, state: GameState, basis: Float, status: Float) -> Float:
        """`[A, C, slots - 1, 27]`."""
        seen = blocks.seen_cars(state, self.zero_padding)
        rows, own = seen.rows, state.own
        pos, vel = rows[..., CAR_POS], rows[..., CAR_VEL]
        cars = np.empty((*seen.present.shape, self.OTHER_WIDTH), np.float32)
        cars[..., self.OTHER_LOCAL_POS] = blocks.to_frame(basis, pos - own.car_pos[:, :, None]) * self.pos_coef
        cars[..., self.OTHER_LOCAL_VEL] = blocks.to_frame(basis, vel - own.car_vel[:, :, None]) * self.lin_vel_coef
        cars[..., self.OTHER_LOCAL_FORWARD] = blocks.to_frame(basis, rows[..., CAR_FORWARD])
        cars[..., self.OTHER_LOCAL_UP] = blocks.to_frame(basis, rows[..., CAR_UP])
        cars[..., self.OTHER_LOCAL_TO_BALL] = blocks.to_frame(basis, own.ball_pos[:, :, None] - pos) * self.pos_coef
        cars[..., self.OTHER_POS] = pos * self.pos_coef
        cars[..., self.OTHER_VEL] = vel * self.lin_vel_coef
        cars[..., self.OTHER_STATUS] = seen.pick(status)
        seen.hide_padding(cars)
        return cars[:, :, 1:]
