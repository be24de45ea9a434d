"""EntityObs: a set of objects, for networks with attention."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import gymnasium
import numpy as np

from envs.obs import blocks
from envs.obs.base import AXES, FLAG, UNIT_VECTOR, Meaning, TableObs, slices
from envs.state import layout
from envs.state.game_state import GameState
from envs.state.layout import NUM_PADS, Float
from fabric_rl.base.settings import Count, Finite

BIG_PAD_BOOST, SMALL_PAD_BOOST = 100, 12
_FEATURES = (
    Meaning("present", "", 1, "the row holds an object, else it is padding", FLAG),
    *(Meaning("type", name, 1, f"the object is a {name}", FLAG) for name in ("car", "ball", "pad", "goal")),
    Meaning("team", "self", 1, "the car itself", FLAG),
    Meaning("team", "ally", 1, "a car or goal of its team", FLAG),
    Meaning("team", "enemy", 1, "a car or goal of the opponents", FLAG),
    Meaning("pos", "", 3, f"position: {AXES}", "uu", "pos_coef"),
    Meaning("offset", "", 3, f"position minus the car's own: {AXES}", "uu", "pos_coef"),
    Meaning("vel", "", 3, f"velocity: {AXES}", "uu/s", "lin_vel_coef"),
    Meaning("rel_vel", "", 3, f"velocity minus the car's own, 0 for pads and goals: {AXES}", "uu/s", "lin_vel_coef"),
    Meaning("ang_vel", "", 3, f"angular velocity: {AXES}", "rad/s", "ang_vel_coef"),
    Meaning("forward", "", 3, f"out of a car's nose: {AXES}", UNIT_VECTOR),
    Meaning("up", "", 3, f"out of a car's roof: {AXES}", UNIT_VECTOR),
    Meaning("status", "boost", 1, "boost that a car has left, or that a pad gives", "0..100", "boost_coef"),
    Meaning("status", "timer", 1, "until a demolished car or a pad is back", "s", "timer_coef"),
    *blocks.STATUS[2:],
)


@dataclass(eq=False, repr=False)
class EntityObs(TableObs):
    """`[E, F]`: one row per object. Row 0 is the car itself, row 1 the ball; then allies, enemies, pads, both goals.

    Every arena has rows for `max_cars_per_team` cars per team, so one network can play any team size; rows without an
    object are all zero. Only the one-hot columns depend on the position of a row: swapping two allies or two enemies
    swaps their rows. Everything is seen from the car's own side (it attacks +y).

    Features that an object does not have (a pad's velocity) are 0.
    `python -m envs.obs EntityObs` lists all columns with their units.
    """

    PRESENT = 0
    """1 for an object, 0 for padding; the padding mask for attention is `obs[..., EntityObs.PRESENT] == 0`."""
    TYPE, TEAM, POS, OFFSET, VEL, REL_VEL, ANG_VEL, FORWARD, UP, STATUS = list(slices(_FEATURES).values())[1:]
    IS_CAR, IS_BALL, IS_PAD, IS_GOAL, IS_SELF, IS_ALLY, IS_ENEMY = range(1, 8)
    BOOST, TIMER, ON_GROUND, HAS_FLIP, BOOSTING, SUPERSONIC = range(29, 35)
    NUM_FEATURES = 35
    SELF, BALL, OTHER_CARS = 0, 1, 2
    """Indices of rows."""

    max_cars_per_team: Count = 3
    """Cars per team that the set has room for."""
    include_pads: bool = False
    """Add the 34 pads."""
    include_goals: bool = False
    """Add both goals, the opponents' and the car's own (middle of the mouth)."""
    pos_coef: float | Sequence[float] = 1 / 2300
    """Factor on positions (uu), one number or one per axis."""
    lin_vel_coef: Finite = 1 / 2300
    """Factor on linear velocities (uu/s)."""
    ang_vel_coef: Finite = 1 / math.pi
    """Factor on angular velocities (rad/s)."""
    boost_coef: Finite = 1 / 100
    """Factor on the boost amount (0..100)."""
    timer_coef: Finite = 1 / 10
    """Factor on timers (seconds)."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self._pos_factors = blocks.per_axis(self, self.pos_coef)
        self._template = self._constants()

    @property
    def objects(self) -> dict[str, slice]:
        """The rows by name: self, ball, allies, enemies, pads, goals (the opponents' goal first)."""
        cars = self.max_cars_per_team
        rows = {"self": 1, "ball": 1, "allies": cars - 1, "enemies": cars}
        rows |= {"pads": NUM_PADS * self.include_pads, "goals": 2 * self.include_goals}
        return slices(Meaning(name, "", count, "") for name, count in rows.items())

    def space(self, num_blue: int, num_orange: int) -> gymnasium.spaces.Box:
        blocks.num_observed_cars(self, "max_cars_per_team", num_blue, num_orange)
        return gymnasium.spaces.Box(-np.inf, np.inf, self._template.shape, np.float32)

    def table(self, num_blue: int, num_orange: int) -> list[Meaning]:
        return list(_FEATURES)

    def build(self, state: GameState, out: Float) -> None:
        out[:] = self._template
        own, rows = state.own, self.objects
        ball = out[:, :, self.BALL]
        ball[..., self.POS] = own.ball_pos * self._pos_factors
        ball[..., self.OFFSET] = (own.ball_pos - own.car_pos) * self._pos_factors
        ball[..., self.VEL] = own.ball_vel * self.lin_vel_coef
        ball[..., self.REL_VEL] = (own.ball_vel - own.car_vel) * self.lin_vel_coef
        ball[..., self.ANG_VEL] = own.ball_ang_vel * self.ang_vel_coef
        cars = self._cars(state)
        out[:, :, self.SELF] = cars[:, :, 0]
        out[:, :, rows["allies"].start : rows["enemies"].stop] = cars[:, :, 1:]
        for name, positions in (("pads", blocks.PAD_POS), ("goals", blocks.GOALS)):
            if rows[name].stop > rows[name].start:
                out[:, :, rows[name], self.OFFSET] = (positions - own.car_pos[:, :, None]) * self._pos_factors
        if self.include_pads:
            out[:, :, rows["pads"], self.TIMER] = own.pad_timers * self.timer_coef
        blocks.clear_absent_observers(state, out)

    def _cars(self, state: GameState) -> Float:
        """Return `[A, C, slots, F]`: itself, allies, enemies."""
        seen = blocks.cars_by_slot(state, self.max_cars_per_team)
        rows = seen.rows
        pos, vel = rows[..., layout.CAR_POS], rows[..., layout.CAR_VEL]
        cars = np.empty((*seen.present.shape, self.NUM_FEATURES), np.float32)
        slots = np.r_[self.SELF, self.OTHER_CARS : self.objects["enemies"].stop]
        cars[..., : self.POS.start] = self._template[slots, : self.POS.start]
        cars[..., self.POS] = pos * self._pos_factors
        cars[..., self.OFFSET] = (pos - pos[:, :, :1]) * self._pos_factors
        cars[..., self.VEL] = vel * self.lin_vel_coef
        cars[..., self.REL_VEL] = (vel - vel[:, :, :1]) * self.lin_vel_coef
        cars[..., self.ANG_VEL] = rows[..., layout.CAR_ANG_VEL] * self.ang_vel_coef
        cars[..., self.FORWARD] = rows[..., layout.CAR_FORWARD]
        cars[..., self.UP] = rows[..., layout.CAR_UP]
        cars[..., self.STATUS] = seen.gather(blocks.car_status(state, self.boost_coef, self.timer_coef))
        seen.zero_padding_(cars)
        return cars

    def _constants(self) -> Float:
        """Return `[E, F]`, everything constant: presence, types, teams, positions of pads and goals."""
        rows = self.objects
        template = np.zeros((rows["goals"].stop, self.NUM_FEATURES), np.float32)
        template[:, self.PRESENT] = 1
        for name, *kinds in (
            ("self", self.IS_CAR, self.IS_SELF),
            ("ball", self.IS_BALL),
            ("allies", self.IS_CAR, self.IS_ALLY),
            ("enemies", self.IS_CAR, self.IS_ENEMY),
            ("pads", self.IS_PAD),
            ("goals", self.IS_GOAL),
        ):
            template[rows[name], kinds] = 1
        if self.include_pads:
            template[rows["pads"], self.POS] = blocks.PAD_POS * self._pos_factors
            given = np.where(blocks.PAD_IS_BIG, BIG_PAD_BOOST, SMALL_PAD_BOOST)
            template[rows["pads"], self.BOOST] = given * np.float32(self.boost_coef)
        if self.include_goals:
            template[rows["goals"], self.POS] = blocks.GOALS * self._pos_factors
            template[rows["goals"], (self.IS_ENEMY, self.IS_ALLY)] = np.eye(2)
        return template
