"""AdvancedObs of RLGym 1, and two successors: AdvancedObsPlus with more quantities, RelativeObs in the car's frame."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np
from rlgym.rocket_league.common_values import TICKS_PER_SECOND

from envs.obs import blocks
from envs.obs.base import AXES, FLAG, LOCAL_AXES, UNIT_VECTOR, Meaning, TableObs, numbered_groups, regroup, slices
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

    BALL_POS, BALL_VEL, BALL_ANG_VEL, PREVIOUS_ACTION, PADS, SELF = slices(_ADVANCED).values()
    OTHERS = slice(76, None)
    """Columns of the blocks of other cars. The CAR_* and OTHER_* columns are relative to a block."""
    CAR_WIDTH, OTHER_WIDTH = 25, 31
    CAR_TO_BALL, CAR_BALL_VEL, CAR_POS, CAR_FORWARD, CAR_UP, CAR_VEL, CAR_ANG_VEL = list(slices(_CAR).values())[:7]
    CAR_BOOST, CAR_ON_GROUND, CAR_HAS_FLIP, CAR_DEMOED = range(21, 25)
    OTHER_OFFSET, OTHER_REL_VEL = slice(25, 28), slice(28, 31)

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
        own = state.own
        out[..., self.BALL_POS] = own.ball_pos * self._pos_factors
        out[..., self.BALL_VEL] = own.ball_vel * self.lin_vel_coef
        out[..., self.BALL_ANG_VEL] = own.ball_ang_vel * self.ang_vel_coef
        out[..., self.PREVIOUS_ACTION] = state.controls
        out[..., self.PADS] = own.pad_timers == 0
        cars = self._car_blocks(state)
        out[..., self.SELF] = cars[:, :, 0, : self.CAR_WIDTH]
        out[..., self.OTHERS] = cars[:, :, 1:].reshape(state.num_arenas, state.num_cars, -1)
        blocks.clear_absent_observers(state, out)

    def _car_blocks(self, state: GameState) -> Float:
        """Return `[A, C, slots, 31]`, every car as each car sees it, itself first."""
        seen = blocks.cars_by_slot(state, self.zero_padding)
        ball, rows = state.own, seen.rows
        pos, vel = rows[..., layout.CAR_POS], rows[..., layout.CAR_VEL]
        cars = np.empty((*seen.present.shape, self.OTHER_WIDTH), np.float32)
        cars[..., self.CAR_TO_BALL] = (ball.ball_pos[:, :, None] - pos) * self._pos_factors
        cars[..., self.CAR_BALL_VEL] = (ball.ball_vel[:, :, None] - vel) * self.lin_vel_coef
        cars[..., self.CAR_POS] = pos * self._pos_factors
        cars[..., self.CAR_FORWARD] = rows[..., layout.CAR_FORWARD]
        cars[..., self.CAR_UP] = rows[..., layout.CAR_UP]
        cars[..., self.CAR_VEL] = vel * self.lin_vel_coef
        cars[..., self.CAR_ANG_VEL] = rows[..., layout.CAR_ANG_VEL] * self.ang_vel_coef
        status = (state.boost * self.boost_coef, state.on_ground, state.has_flip, state.is_demoed)
        cars[..., self.CAR_BOOST : self.CAR_WIDTH] = seen.gather(np.stack(status, axis=-1, dtype=np.float32))
        cars[..., self.OTHER_OFFSET] = (pos - pos[:, :, :1]) * self._pos_factors
        cars[..., self.OTHER_REL_VEL] = (vel - vel[:, :, :1]) * self.lin_vel_coef
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
_PLUS_AT = list(slices(_PLUS).values())
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
_PLUS_OTHER_AT = list(slices(_PLUS_OTHER).values())


@dataclass(eq=False, repr=False)
class AdvancedObsPlus(TableObs):
    """77 floats about ball, car and goals, 6 per pad (near the car, then near the ball), then 27 per other car.

    Plain columns are in the field's axes as the car's team sees it (everybody attacks +y), `LOCAL_*` columns along the
    car's forward, right and up. Everything, pads included, is mirrored for orange. Other cars: allies first. Wrap it in
    `StackedObs` for more than one frame. `python -m envs.obs AdvancedObsPlus` lists all columns with their units.
    """

    BALL_POS, BALL_VEL, BALL_ANG_VEL, POS, FORWARD, UP, VEL, ANG_VEL = _PLUS_AT[:8]
    STATUS, JUMPS, PREVIOUS_ACTION, TOUCH_TIME, LOCAL_VEL, LOCAL_ANG_VEL = _PLUS_AT[8:14]
    LOCAL_BALL_POS, LOCAL_BALL_VEL, BALL_DISTANCE = _PLUS_AT[14:17]
    LOCAL_OPPONENT_GOAL, LOCAL_OWN_GOAL, BALL_TO_OPPONENT_GOAL, BALL_TO_OWN_GOAL = _PLUS_AT[17:]
    PADS = slice(77, None)
    """`PAD_WIDTH` columns for each of `pads_near_car` and then `pads_near_ball` pads, the nearest first."""
    PAD_WIDTH = blocks.PAD_WIDTH
    OTHER_LOCAL_POS, OTHER_LOCAL_VEL, OTHER_LOCAL_FORWARD, OTHER_LOCAL_UP = _PLUS_OTHER_AT[:4]
    OTHER_LOCAL_TO_BALL, OTHER_POS, OTHER_VEL, OTHER_STATUS = _PLUS_OTHER_AT[4:]
    """Columns of another car's block."""
    OTHER_WIDTH = 27

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

    @property
    def others_start(self) -> int:
        """First column of the other cars' blocks."""
        return self.PADS.start + blocks.PAD_WIDTH * (self.pads_near_car + self.pads_near_ball)

    def table(self, num_blue: int, num_orange: int) -> list[Meaning]:
        others = blocks.num_observed_cars(self, "zero_padding", num_blue, num_orange) - 1
        return [
            *_PLUS,
            *numbered_groups("pad_near_car", blocks.PAD, self.pads_near_car, "car"),
            *numbered_groups("pad_near_ball", blocks.PAD, self.pads_near_ball, "ball"),
            *numbered_groups("other", _PLUS_OTHER, others),
        ]

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
        out[..., self.LOCAL_VEL] = blocks.to_local_frame(basis, own.car_vel) * self.lin_vel_coef
        out[..., self.LOCAL_ANG_VEL] = blocks.to_local_frame(basis, own.car_ang_vel) * self.ang_vel_coef
        out[..., self.LOCAL_BALL_POS] = blocks.to_local_frame(basis, to_ball) * self.pos_coef
        out[..., self.LOCAL_BALL_VEL] = blocks.to_local_frame(basis, own.ball_vel - own.car_vel) * self.lin_vel_coef
        out[..., self.BALL_DISTANCE] = blocks.lengths(to_ball)[..., None] * self.pos_coef
        for goal, columns in zip(blocks.GOALS, (self.LOCAL_OPPONENT_GOAL, self.LOCAL_OWN_GOAL), strict=True):
            out[..., columns] = blocks.direction_and_distance(
                blocks.to_local_frame(basis, goal - own.car_pos), self.pos_coef
            )

    def _write_pads(self, state: GameState, basis: Float, out: Float) -> None:
        own, start = state.own, self.PADS.start
        for points, count in ((own.car_pos, self.pads_near_car), (own.ball_pos, self.pads_near_ball)):
            pads = blocks.nearest_pads(points, own.pad_timers, basis, count, self.pos_coef, self.timer_coef)
            stop = start + count * self.PAD_WIDTH
            out[..., start:stop] = pads.reshape(state.num_arenas, state.num_cars, -1)
            start = stop

    def _others(self, state: GameState, basis: Float, status: Float) -> Float:
        """Return `[A, C, slots - 1, 27]`."""
        seen = blocks.cars_by_slot(state, self.zero_padding)
        rows, own = seen.rows, state.own
        pos, vel = rows[..., layout.CAR_POS], rows[..., layout.CAR_VEL]
        cars = np.empty((*seen.present.shape, self.OTHER_WIDTH), np.float32)
        cars[..., self.OTHER_LOCAL_POS] = blocks.to_local_frame(basis, pos - own.car_pos[:, :, None]) * self.pos_coef
        cars[..., self.OTHER_LOCAL_VEL] = (
            blocks.to_local_frame(basis, vel - own.car_vel[:, :, None]) * self.lin_vel_coef
        )
        cars[..., self.OTHER_LOCAL_FORWARD] = blocks.to_local_frame(basis, rows[..., layout.CAR_FORWARD])
        cars[..., self.OTHER_LOCAL_UP] = blocks.to_local_frame(basis, rows[..., layout.CAR_UP])
        cars[..., self.OTHER_LOCAL_TO_BALL] = (
            blocks.to_local_frame(basis, own.ball_pos[:, :, None] - pos) * self.pos_coef
        )
        cars[..., self.OTHER_POS] = pos * self.pos_coef
        cars[..., self.OTHER_VEL] = vel * self.lin_vel_coef
        cars[..., self.OTHER_STATUS] = seen.gather(status)
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
_RELATIVE_AT = list(slices(_RELATIVE).values())
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
    changes only the columns about the field: `WORLD_UP`, the goals and the pads.
    `python -m envs.obs RelativeObs` lists all columns with their units.
    """

    VEL, ANG_VEL, STATUS, JUMPS, PREVIOUS_ACTION = _RELATIVE_AT[:5]
    BALL_POS, BALL_VEL, BALL_ANG_VEL, WORLD_UP, OPPONENT_GOAL, OWN_GOAL = _RELATIVE_AT[5:]
    PADS = slice(47, None)
    """`PAD_WIDTH` columns for each of `num_pads` pads, the nearest first."""
    PAD_WIDTH = blocks.PAD_WIDTH
    OTHER_POS, OTHER_VEL, OTHER_FORWARD, OTHER_UP, OTHER_ANG_VEL, OTHER_STATUS = slices(_RELATIVE_OTHER).values()
    """Columns of another car's block."""
    OTHER_WIDTH = 21

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

    @property
    def others_start(self) -> int:
        """First column of the other cars' blocks."""
        return self.PADS.start + blocks.PAD_WIDTH * self.num_pads

    def table(self, num_blue: int, num_orange: int) -> list[Meaning]:
        others = blocks.num_observed_cars(self, "zero_padding", num_blue, num_orange) - 1
        pads = numbered_groups("pad", blocks.PAD, self.num_pads, "car")
        return [*_RELATIVE, *pads, *numbered_groups("other", _RELATIVE_OTHER, others)]

    def build(self, state: GameState, out: Float) -> None:
        own, basis = state.own, blocks.own_basis(state)
        status = blocks.car_status(state, self.boost_coef, self.timer_coef)
        out[..., self.VEL] = blocks.to_local_frame(basis, own.car_vel) * self.lin_vel_coef
        out[..., self.ANG_VEL] = blocks.to_local_frame(basis, own.car_ang_vel) * self.ang_vel_coef
        out[..., self.STATUS] = status
        blocks.write_jumps(state, state.on_ground, out[..., self.JUMPS])
        out[..., self.PREVIOUS_ACTION] = state.controls
        out[..., self.BALL_POS] = blocks.to_local_frame(basis, own.ball_pos - own.car_pos) * self.pos_coef
        out[..., self.BALL_VEL] = blocks.to_local_frame(basis, own.ball_vel - own.car_vel) * self.lin_vel_coef
        out[..., self.BALL_ANG_VEL] = blocks.to_local_frame(basis, own.ball_ang_vel) * self.ang_vel_coef
        out[..., self.WORLD_UP] = basis[..., 2]
        out[..., self.OPPONENT_GOAL] = blocks.to_local_frame(basis, blocks.GOALS[0] - own.car_pos) * self.pos_coef
        out[..., self.OWN_GOAL] = blocks.to_local_frame(basis, blocks.GOALS[1] - own.car_pos) * self.pos_coef
        pads = blocks.nearest_pads(own.car_pos, own.pad_timers, basis, self.num_pads, self.pos_coef, self.timer_coef)
        out[..., self.PADS.start : self.others_start] = pads.reshape(state.num_arenas, state.num_cars, -1)
        others = self._others(state, basis, status)
        out[..., self.others_start :] = others.reshape(state.num_arenas, state.num_cars, -1)
        blocks.clear_absent_observers(state, out)

    def _others(self, state: GameState, basis: Float, status: Float) -> Float:
        """Return `[A, C, slots - 1, 21]`."""
        seen = blocks.cars_by_slot(state, self.zero_padding)
        rows, own = seen.rows, state.own
        to_car = rows[..., layout.CAR_POS] - own.car_pos[:, :, None]
        rel_vel = rows[..., layout.CAR_VEL] - own.car_vel[:, :, None]
        cars = np.empty((*seen.present.shape, self.OTHER_WIDTH), np.float32)
        cars[..., self.OTHER_POS] = blocks.to_local_frame(basis, to_car) * self.pos_coef
        cars[..., self.OTHER_VEL] = blocks.to_local_frame(basis, rel_vel) * self.lin_vel_coef
        cars[..., self.OTHER_FORWARD] = blocks.to_local_frame(basis, rows[..., layout.CAR_FORWARD])
        cars[..., self.OTHER_UP] = blocks.to_local_frame(basis, rows[..., layout.CAR_UP])
        cars[..., self.OTHER_ANG_VEL] = blocks.to_local_frame(basis, rows[..., layout.CAR_ANG_VEL]) * self.ang_vel_coef
        cars[..., self.OTHER_STATUS] = seen.gather(status)
        seen.zero_padding_(cars)
        return cars[:, :, 1:]
