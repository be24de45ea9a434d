"""AdvancedObs of RLGym 1, and two successors: AdvancedObsPlus with more quantities, RelativeObs in the car's frame."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np
from rlgym.rocket_league.common_values import TICKS_PER_SECOND

from envs.obs import blocks
from envs.obs.base import AXES, FLAG, LOCAL_AXES, UNIT_VECTOR, Meaning, TableObs, numbered_groups, regroup
from envs.state import layout
from envs.state.game_state import GameState
from envs.state.layout import NUM_PADS, Float
from fabric_rl.base.settings import Between, Count, Finite

PadCount = Annotated[int, Between(0, NUM_PADS)]

# ---------------------------------------------------------------- AdvancedObs

_CAR = (
    Meaning("to_ball", "", 3, f"the ball's position minus {{}}'s: {AXES}", "uu", "pos_coef"),
    Meaning("ball_vel", "", 3, f"the ball's velocity minus {{}}'s: {AXES}", "uu/s", "lin_vel_coef"),
    Meaning("pos", "", 3, f"{{}}'s position: {AXES}", "uu", "pos_coef"),
    Meaning("forward", "", 3, f"out of the nose: {AXES}", UNIT_VECTOR),
    Meaning("up", "", 3, f"out of the roof: {AXES}", UNIT_VECTOR),
    Meaning("vel", "", 3, f"{{}}'s velocity: {AXES}", "uu/s", "lin_vel_coef"),
    Meaning("ang_vel", "", 3, f"{{}}'s angular velocity: {AXES}", "rad/s", "ang_vel_coef"),
    Meaning("boost", "", 1, "boost left", "0..100", "boost_coef"),
    Meaning("on_ground", "", 1, "at least three wheels touch something", FLAG),
    Meaning("has_flip", "", 1, "the flip is unspent", FLAG),
    Meaning("demoed", "", 1, "demolished and not back yet", FLAG),
)
_CAR_WIDTH = 25
_ADVANCED = (
    *blocks.BALL,
    *blocks.PREVIOUS_ACTION,
    Meaning("pads", "", 34, "each pad can be taken now, order of RLGym's BOOST_LOCATIONS", FLAG),
    *regroup("self", _CAR, "the car"),
)
_ADVANCED_OTHER = (
    *regroup("", _CAR, "the other car"),
    Meaning("", "offset", 3, f"the other car's position minus the own: {AXES}", "uu", "pos_coef"),
    Meaning("", "rel_vel", 3, f"the other car's velocity minus the own: {AXES}", "uu/s", "lin_vel_coef"),
)


@dataclass(eq=False, repr=False)
class AdvancedObs(TableObs):
    """76 floats about the world and the car itself, then 31 per other car, allies first: 107 in 1v1.

    Most bots of RLGym 1 and rlgym-sim were trained on this observation. Orange sees the mirrored world. A car's block
    contains the ball relative to the car; the block of another car ends with that car relative to the observer.
    `python -m envs.obs AdvancedObs` lists all columns with their units.
    """

    zero_padding: Count | None = None
    """Cars per team that the observation has room for, or None for exactly the cars in the arena."""
    pos_coef: float | Sequence[float] = 1 / 2300
    """Factor on positions (uu), one number or one per axis."""
    lin_vel_coef: Finite = 1 / 2300
    """Factor on linear velocities (uu/s)."""
    ang_vel_coef: Finite = 1 / math.pi
    """Factor on angular velocities (rad/s)."""
    boost_coef: Finite = 1 / 100
    """Factor on the boost amount (0..100)."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self._pos_factors = blocks.per_axis(self, self.pos_coef)

    def table(self, num_blue: int, num_orange: int) -> list[Meaning]:
        others = blocks.num_observed_cars(self, "zero_padding", num_blue, num_orange) - 1
        return [*_ADVANCED, *numbered_groups("other", _ADVANCED_OTHER, others)]

    def build(self, state: GameState, out: Float) -> None:
        own, cars = state.own, self._car_blocks(state)
        parts = (
            own.ball_pos * self._pos_factors,
            own.ball_vel * self.lin_vel_coef,
            own.ball_ang_vel * self.ang_vel_coef,
            state.controls,
            own.pad_timers == 0,
            cars[:, :, 0, :_CAR_WIDTH],
            cars[:, :, 1:],
        )
        blocks.write_parts(parts, out)
        blocks.clear_absent_observers(state, out)

    def _car_blocks(self, state: GameState) -> Float:
        """Return `[A, C, slots, 31]`, every car as each car sees it, itself first."""
        seen = blocks.cars_by_slot(state, self.zero_padding)
        ball, rows = state.own, seen.rows
        pos, vel = rows[..., layout.CAR_POS], rows[..., layout.CAR_VEL]
        status = (state.boost * self.boost_coef, state.on_ground, state.has_flip, state.is_demoed)
        parts = (
            (ball.ball_pos[:, :, None] - pos) * self._pos_factors,
            (ball.ball_vel[:, :, None] - vel) * self.lin_vel_coef,
            pos * self._pos_factors,
            rows[..., layout.CAR_FORWARD],
            rows[..., layout.CAR_UP],
            vel * self.lin_vel_coef,
            rows[..., layout.CAR_ANG_VEL] * self.ang_vel_coef,
            seen.gather(np.stack(status, axis=-1, dtype=np.float32)),
            (pos - pos[:, :, :1]) * self._pos_factors,
            (vel - vel[:, :, :1]) * self.lin_vel_coef,
        )
        cars: Float = np.concatenate(parts, axis=-1)
        seen.zero_padding_(cars)
        return cars


# ---------------------------------------------------------------- AdvancedObsPlus

_PLUS = (
    *blocks.BALL,
    Meaning("pos", "", 3, f"the car's position: {AXES}", "uu", "pos_coef"),
    Meaning("forward", "", 3, f"out of the car's nose: {AXES}", UNIT_VECTOR),
    Meaning("up", "", 3, f"out of the car's roof: {AXES}", UNIT_VECTOR),
    Meaning("vel", "", 3, f"the car's velocity: {AXES}", "uu/s", "lin_vel_coef"),
    Meaning("ang_vel", "", 3, f"the car's angular velocity: {AXES}", "rad/s", "ang_vel_coef"),
    *blocks.STATUS,
    *blocks.JUMPS,
    *blocks.PREVIOUS_ACTION,
    Meaning("touch_time", "", 1, "since anybody touched the ball or the episode began, at most 1", "s", "timer_coef"),
    Meaning("local_vel", "", 3, f"the car's velocity: {LOCAL_AXES}", "uu/s", "lin_vel_coef"),
    Meaning("local_ang_vel", "", 3, f"the car's angular velocity: {LOCAL_AXES}", "rad/s", "ang_vel_coef"),
    Meaning("local_ball_pos", "", 3, f"the ball's position minus the car's: {LOCAL_AXES}", "uu", "pos_coef"),
    Meaning("local_ball_vel", "", 3, f"the ball's velocity minus the car's: {LOCAL_AXES}", "uu/s", "lin_vel_coef"),
    Meaning("ball_distance", "", 1, "from the car to the ball", "uu", "pos_coef"),
    *blocks.direction_and_distance_columns("local_opponent_goal", "car to middle of the opponents' goal", LOCAL_AXES),
    *blocks.direction_and_distance_columns("local_own_goal", "car to middle of the own goal", LOCAL_AXES),
    *blocks.direction_and_distance_columns("ball_to_opponent_goal", "ball to middle of the opponents' goal", AXES),
    *blocks.direction_and_distance_columns("ball_to_own_goal", "ball to middle of the own goal", AXES),
)
_PLUS_OTHER = (
    Meaning("local_pos", "", 3, f"the other car's position minus the own: {LOCAL_AXES}", "uu", "pos_coef"),
    Meaning("local_vel", "", 3, f"the other car's velocity minus the own: {LOCAL_AXES}", "uu/s", "lin_vel_coef"),
    Meaning("local_forward", "", 3, f"out of the other car's nose: {LOCAL_AXES}", UNIT_VECTOR),
    Meaning("local_up", "", 3, f"out of the other car's roof: {LOCAL_AXES}", UNIT_VECTOR),
    Meaning("local_to_ball", "", 3, f"from the other car to the ball: {LOCAL_AXES}", "uu", "pos_coef"),
    Meaning("pos", "", 3, f"the other car's position: {AXES}", "uu", "pos_coef"),
    Meaning("vel", "", 3, f"the other car's velocity: {AXES}", "uu/s", "lin_vel_coef"),
    *blocks.STATUS,
)


@dataclass(eq=False, repr=False)
class AdvancedObsPlus(TableObs):
    """77 floats about ball, car and goals, 6 per pad (near the car, then near the ball), then 27 per other car.

    Plain columns are in the field's axes as the car's team sees it (everybody attacks +y), `local_*` columns along the
    car's forward, right and up. Everything, pads included, is mirrored for orange. Other cars: allies first. Wrap it in
    `StackedObs` for more than one frame. `python -m envs.obs AdvancedObsPlus` lists all columns with their units.
    """

    zero_padding: Count | None = None
    """Cars per team that the observation has room for, or None for exactly the cars in the arena."""
    pads_near_car: PadCount = 4
    """Pads next to the car, 0 to 34."""
    pads_near_ball: PadCount = 2
    """Pads next to the ball, 0 to 34."""
    pos_coef: Finite = 1 / 2300
    """Factor on positions and distances (uu)."""
    lin_vel_coef: Finite = 1 / 2300
    """Factor on linear velocities (uu/s)."""
    ang_vel_coef: Finite = 1 / math.pi
    """Factor on angular velocities (rad/s)."""
    boost_coef: Finite = 1 / 100
    """Factor on the boost amount (0..100)."""
    timer_coef: Finite = 1 / 10
    """Factor on the timers of pads, demolished cars and touches (seconds)."""

    def table(self, num_blue: int, num_orange: int) -> list[Meaning]:
        others = blocks.num_observed_cars(self, "zero_padding", num_blue, num_orange) - 1
        return [
            *_PLUS,
            *numbered_groups("pad_near_car", blocks.PAD, self.pads_near_car, "car"),
            *numbered_groups("pad_near_ball", blocks.PAD, self.pads_near_ball, "ball"),
            *numbered_groups("other", _PLUS_OTHER, others),
        ]

    def build(self, state: GameState, out: Float) -> None:
        own, basis = state.own, blocks.own_basis(state)
        to_ball, ball_vel = own.ball_pos - own.car_pos, own.ball_vel - own.car_vel
        status = blocks.car_status(state, self.boost_coef, self.timer_coef)
        seconds = (state.ticks_since_touch / np.float32(TICKS_PER_SECOND)).astype(np.float32)
        touch_time = np.minimum(seconds * self.timer_coef, np.float32(1))
        to_goals = (blocks.to_local_frame(basis, goal - own.car_pos) for goal in blocks.GOALS)
        to_pads = ((own.car_pos, self.pads_near_car), (own.ball_pos, self.pads_near_ball))
        parts = (
            own.ball_pos * self.pos_coef,
            own.ball_vel * self.lin_vel_coef,
            own.ball_ang_vel * self.ang_vel_coef,
            own.car_pos * self.pos_coef,
            own.car_forward,
            own.car_up,
            own.car_vel * self.lin_vel_coef,
            own.car_ang_vel * self.ang_vel_coef,
            status,
            blocks.car_jumps(state, state.on_ground),
            state.controls,
            np.broadcast_to(touch_time[:, None, None], (*state.present.shape, 1)),
            blocks.to_local_frame(basis, own.car_vel) * self.lin_vel_coef,
            blocks.to_local_frame(basis, own.car_ang_vel) * self.ang_vel_coef,
            blocks.to_local_frame(basis, to_ball) * self.pos_coef,
            blocks.to_local_frame(basis, ball_vel) * self.lin_vel_coef,
            blocks.lengths(to_ball)[..., None] * self.pos_coef,
            *(blocks.direction_and_distance(to_goal, self.pos_coef) for to_goal in to_goals),
            *(blocks.direction_and_distance(goal - own.ball_pos, self.pos_coef) for goal in blocks.GOALS),
            *(
                blocks.nearest_pads(point, own.pad_timers, basis, count, self.pos_coef, self.timer_coef)
                for point, count in to_pads
            ),
            self._others(state, basis, status),
        )
        blocks.write_parts(parts, out)
        blocks.clear_absent_observers(state, out)

    def _others(self, state: GameState, basis: Float, status: Float) -> Float:
        """Return `[A, C, slots - 1, 27]`."""
        seen = blocks.cars_by_slot(state, self.zero_padding)
        rows, own = seen.rows, state.own
        pos, vel = rows[..., layout.CAR_POS], rows[..., layout.CAR_VEL]
        parts = (
            blocks.to_local_frame(basis, pos - own.car_pos[:, :, None]) * self.pos_coef,
            blocks.to_local_frame(basis, vel - own.car_vel[:, :, None]) * self.lin_vel_coef,
            blocks.to_local_frame(basis, rows[..., layout.CAR_FORWARD]),
            blocks.to_local_frame(basis, rows[..., layout.CAR_UP]),
            blocks.to_local_frame(basis, own.ball_pos[:, :, None] - pos) * self.pos_coef,
            pos * self.pos_coef,
            vel * self.lin_vel_coef,
            seen.gather(status),
        )
        cars: Float = np.concatenate(parts, axis=-1)
        seen.zero_padding_(cars)
        return cars[:, :, 1:]


# ---------------------------------------------------------------- RelativeObs

_RELATIVE = (
    Meaning("vel", "", 3, f"the car's velocity: {LOCAL_AXES}", "uu/s", "lin_vel_coef"),
    Meaning("ang_vel", "", 3, f"the car's angular velocity: {LOCAL_AXES}", "rad/s", "ang_vel_coef"),
    *blocks.STATUS,
    *blocks.JUMPS,
    *blocks.PREVIOUS_ACTION,
    Meaning("ball_pos", "", 3, f"the ball's position minus the car's: {LOCAL_AXES}", "uu", "pos_coef"),
    Meaning("ball_vel", "", 3, f"the ball's velocity minus the car's: {LOCAL_AXES}", "uu/s", "lin_vel_coef"),
    Meaning("ball_ang_vel", "", 3, f"the ball's spin: {LOCAL_AXES}", "rad/s", "ang_vel_coef"),
    Meaning("world_up", "", 3, f"the world's +z, against gravity: {LOCAL_AXES}", UNIT_VECTOR),
    Meaning("opponent_goal", "", 3, f"from the car to the opponents' goal: {LOCAL_AXES}", "uu", "pos_coef"),
    Meaning("own_goal", "", 3, f"from the car to the own goal: {LOCAL_AXES}", "uu", "pos_coef"),
)
_RELATIVE_OTHER = (
    Meaning("pos", "", 3, f"the other car's position minus the own: {LOCAL_AXES}", "uu", "pos_coef"),
    Meaning("vel", "", 3, f"the other car's velocity minus the own: {LOCAL_AXES}", "uu/s", "lin_vel_coef"),
    Meaning("forward", "", 3, f"out of the other car's nose: {LOCAL_AXES}", UNIT_VECTOR),
    Meaning("up", "", 3, f"out of the other car's roof: {LOCAL_AXES}", UNIT_VECTOR),
    Meaning("ang_vel", "", 3, f"the other car's angular velocity: {LOCAL_AXES}", "rad/s", "ang_vel_coef"),
    *blocks.STATUS,
)


@dataclass(eq=False, repr=False)
class RelativeObs(TableObs):
    """47 floats, 6 per pad, then 21 per other car (allies first), all along the car's forward, right and up.

    Positions are relative to the car, and so are velocities, except the car's own. Rotating and moving the whole scene
    changes only the columns about the field: `world_up`, the goals and the pads.
    `python -m envs.obs RelativeObs` lists all columns with their units.
    """

    zero_padding: Count | None = None
    """Cars per team that the observation has room for, or None for exactly the cars in the arena."""
    num_pads: PadCount = 6
    """Pads next to the car, 0 to 34."""
    pos_coef: Finite = 1 / 2300
    """Factor on positions (uu)."""
    lin_vel_coef: Finite = 1 / 2300
    """Factor on linear velocities (uu/s)."""
    ang_vel_coef: Finite = 1 / math.pi
    """Factor on angular velocities (rad/s)."""
    boost_coef: Finite = 1 / 100
    """Factor on the boost amount (0..100)."""
    timer_coef: Finite = 1 / 10
    """Factor on the timers of pads and demolished cars (seconds)."""

    def table(self, num_blue: int, num_orange: int) -> list[Meaning]:
        others = blocks.num_observed_cars(self, "zero_padding", num_blue, num_orange) - 1
        pads = numbered_groups("pad", blocks.PAD, self.num_pads, "car")
        return [*_RELATIVE, *pads, *numbered_groups("other", _RELATIVE_OTHER, others)]

    def build(self, state: GameState, out: Float) -> None:
        own, basis = state.own, blocks.own_basis(state)
        status = blocks.car_status(state, self.boost_coef, self.timer_coef)
        parts = (
            blocks.to_local_frame(basis, own.car_vel) * self.lin_vel_coef,
            blocks.to_local_frame(basis, own.car_ang_vel) * self.ang_vel_coef,
            status,
            blocks.car_jumps(state, state.on_ground),
            state.controls,
            blocks.to_local_frame(basis, own.ball_pos - own.car_pos) * self.pos_coef,
            blocks.to_local_frame(basis, own.ball_vel - own.car_vel) * self.lin_vel_coef,
            blocks.to_local_frame(basis, own.ball_ang_vel) * self.ang_vel_coef,
            basis[..., 2],
            *(blocks.to_local_frame(basis, goal - own.car_pos) * self.pos_coef for goal in blocks.GOALS),
            blocks.nearest_pads(own.car_pos, own.pad_timers, basis, self.num_pads, self.pos_coef, self.timer_coef),
            self._others(state, basis, status),
        )
        blocks.write_parts(parts, out)
        blocks.clear_absent_observers(state, out)

    def _others(self, state: GameState, basis: Float, status: Float) -> Float:
        """Return `[A, C, slots - 1, 21]`."""
        seen = blocks.cars_by_slot(state, self.zero_padding)
        rows, own = seen.rows, state.own
        to_car = rows[..., layout.CAR_POS] - own.car_pos[:, :, None]
        rel_vel = rows[..., layout.CAR_VEL] - own.car_vel[:, :, None]
        parts = (
            blocks.to_local_frame(basis, to_car) * self.pos_coef,
            blocks.to_local_frame(basis, rel_vel) * self.lin_vel_coef,
            blocks.to_local_frame(basis, rows[..., layout.CAR_FORWARD]),
            blocks.to_local_frame(basis, rows[..., layout.CAR_UP]),
            blocks.to_local_frame(basis, rows[..., layout.CAR_ANG_VEL]) * self.ang_vel_coef,
            seen.gather(status),
        )
        cars: Float = np.concatenate(parts, axis=-1)
        seen.zero_padding_(cars)
        return cars[:, :, 1:]
