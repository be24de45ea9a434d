"""EntityObs: a set of objects, for networks with attention."""

import math
from collections.abc import Sequence

import gymnasium
import numpy as np

from envs.checks import whole_number
from envs.obs import blocks
from envs.obs.base import ObsBuilder
from envs.obs.meanings import AXES, FLAG, UNIT_VECTOR, Meaning
from envs.state import layout
from envs.state.game_state import GameState
from envs.state.layout import NUM_PADS, Bool, Float

BIG_PAD_BOOST, SMALL_PAD_BOOST = 100, 12


class EntityObs(ObsBuilder):
    """`[E, F]`: one row per object. Row 0 the car itself, 1 the ball, then allies, enemies, pads, both goals.

    There are rows for `max_cars_per_team` cars a team in every arena, so one network plays any team size; rows
    without an object are all zero. Nothing but the one-hot columns depends on the place of a row: exchanging two
    allies or two enemies exchanges their rows. Everything is seen from the car's own side (it attacks +y).

    Units before the coefficients: uu, uu/s, rad/s, boost 0..100, seconds; flags are 0 or 1. What an object does not
    have (a pad's velocity) is 0.
    """

    PRESENT = 0
    """1 for an object, 0 for padding: the mask of attention is `obs[..., EntityObs.PRESENT] == 0`."""
    TYPE, TEAM = slice(1, 5), slice(5, 8)
    """One-hot: car, ball, pad, goal; and whose, for cars and goals: the car itself, its team's, the opponents'."""
    IS_CAR, IS_BALL, IS_PAD, IS_GOAL, IS_SELF, IS_ALLY, IS_ENEMY = range(1, 8)
    POS, OFFSET, VEL, REL_VEL, ANG_VEL, FORWARD, UP = blocks.spans(*[3] * 7, start=8)
    """OFFSET and REL_VEL are minus the car's own position and velocity. REL_VEL is 0 for pads and goals."""
    STATUS = slice(29, 35)
    """BOOST is what a car has and what a pad gives; TIMER counts down until a demolished car or a pad is back."""
    BOOST, TIMER, ON_GROUND, HAS_FLIP, BOOSTING, SUPERSONIC = range(29, 35)
    NUM_FEATURES = 35
    SELF, BALL, OTHER_CARS = 0, 1, 2
    """Rows."""

    def __init__(
        self,
        max_cars_per_team: int = 3,
        include_pads: bool = False,
        include_goals: bool = False,
        pos_coef: float | Sequence[float] = 1 / 2300,
        lin_vel_coef: float = 1 / 2300,
        ang_vel_coef: float = 1 / math.pi,
        boost_coef: float = 1 / 100,
        timer_coef: float = 1 / 10,
    ) -> None:
        """Creates the builder.

        Args:
            max_cars_per_team: Cars per team that the set has room for.
            include_pads: Adds the 34 pads.
            include_goals: Adds the opponents' goal and the own one (middle of the mouth).
            pos_coef: Factor on positions (uu), one number or one per axis.
            lin_vel_coef: Factor on linear velocities (uu/s).
            ang_vel_coef: Factor on angular velocities (rad/s).
            boost_coef: Factor on the boost amount (0..100).
            timer_coef: Factor on timers (seconds).
        """
        name = "EntityObs"
        self.max_cars_per_team = whole_number(name, "max_cars_per_team", max_cars_per_team)
        self.include_pads, self.include_goals = include_pads, include_goals
        self.pos_coef = blocks.pos_coefficient(name, pos_coef)
        self.lin_vel_coef = blocks.coefficient(name, "lin_vel_coef", lin_vel_coef)
        self.ang_vel_coef = blocks.coefficient(name, "ang_vel_coef", ang_vel_coef)
        self.boost_coef = blocks.coefficient(name, "boost_coef", boost_coef)
        self.timer_coef = blocks.coefficient(name, "timer_coef", timer_coef)
        self._template = self._constants()

    @staticmethod
    def padding_mask(obs: Float) -> Bool:
        """`[..., E]` True where a row of `obs [..., E, F]` is padding: the key-padding mask of attention."""
        mask: Bool = obs[..., EntityObs.PRESENT] == 0
        return mask

    @property
    def objects(self) -> dict[str, slice]:
        """Rows by name: self, ball, allies, enemies, pads, goals (opponents', own)."""
        cars = self.max_cars_per_team
        widths = (1, 1, cars - 1, cars, NUM_PADS * self.include_pads, 2 * self.include_goals)
        return dict(zip(("self", "ball", "allies", "enemies", "pads", "goals"), blocks.spans(*widths), strict=True))

    def space(self, num_blue: int, num_orange: int) -> gymnasium.spaces.Box:
        """Box of `[objects, 35]`; see `ObsBuilder.space`."""
        blocks.num_slots("EntityObs", "max_cars_per_team", self.max_cars_per_team, num_blue, num_orange)
        return gymnasium.spaces.Box(-np.inf, np.inf, self._template.shape, np.float32)

    def meanings(self, num_blue: int, num_orange: int) -> list[Meaning]:
        """Features of an object; see `ObsBuilder.meanings`."""
        pos, vel, ang_vel = self.pos_coef, self.lin_vel_coef, self.ang_vel_coef
        return [
            Meaning("present", "", 1, "the row holds an object, else it is padding", FLAG),
            *(Meaning("type", name, 1, f"the object is a {name}", FLAG) for name in ("car", "ball", "pad", "goal")),
            Meaning("team", "self", 1, "the car itself", FLAG),
            Meaning("team", "ally", 1, "a car or goal of its team", FLAG),
            Meaning("team", "enemy", 1, "a car or goal of the opponents", FLAG),
            Meaning("pos", "", 3, f"position: {AXES}", "uu", pos),
            Meaning("offset", "", 3, f"position minus the car's own: {AXES}", "uu", pos),
            Meaning("vel", "", 3, f"velocity: {AXES}", "uu/s", vel),
            Meaning("rel_vel", "", 3, f"velocity minus the car's own, 0 for pads and goals: {AXES}", "uu/s", vel),
            Meaning("ang_vel", "", 3, f"angular velocity: {AXES}", "rad/s", ang_vel),
            Meaning("forward", "", 3, f"out of a car's nose: {AXES}", UNIT_VECTOR),
            Meaning("up", "", 3, f"out of a car's roof: {AXES}", UNIT_VECTOR),
            Meaning("status", "boost", 1, "boost that a car has left, or that a pad gives", "0..100", self.boost_coef),
            Meaning("status", "timer", 1, "until a demolished car or a pad is back", "s", self.timer_coef),
            *blocks.status_meanings("status", self.boost_coef, self.timer_coef)[2:],
        ]

    def build(self, state: GameState, out: Float) -> None:
        out[:] = self._template
        own, rows = state.own, self.objects
        ball = out[:, :, self.BALL]
        ball[..., self.POS] = own.ball_pos * self.pos_coef
        ball[..., self.OFFSET] = (own.ball_pos - own.car_pos) * self.pos_coef
        ball[..., self.VEL] = own.ball_vel * self.lin_vel_coef
        ball[..., self.REL_VEL] = (own.ball_vel - own.car_vel) * self.lin_vel_coef
        ball[..., self.ANG_VEL] = own.ball_ang_vel * self.ang_vel_coef
        cars = self._cars(state)
        out[:, :, self.SELF] = cars[:, :, 0]
        out[:, :, rows["allies"].start : rows["enemies"].stop] = cars[:, :, 1:]
        for name, positions in (("pads", blocks.PAD_POS), ("goals", blocks.GOALS)):
            if rows[name].stop > rows[name].start:
                out[:, :, rows[name], self.OFFSET] = (positions - own.car_pos[:, :, None]) * self.pos_coef
        if self.include_pads:
            out[:, :, rows["pads"], self.TIMER] = own.pad_timers * self.timer_coef
        blocks.clear_absent_observers(state, out)

    def _cars(self, state: GameState) -> Float:
        """`[A, C, slots, F]`: itself, allies, enemies."""
        seen = blocks.seen_cars(state, self.max_cars_per_team)
        rows = seen.rows
        pos, vel = rows[..., layout.CAR_POS], rows[..., layout.CAR_VEL]
        cars = np.empty((*seen.present.shape, self.NUM_FEATURES), np.float32)
        slots = np.r_[self.SELF, self.OTHER_CARS : self.objects["enemies"].stop]
        cars[..., : self.POS.start] = self._template[slots, : self.POS.start]
        cars[..., self.POS] = pos * self.pos_coef
        cars[..., self.OFFSET] = (pos - pos[:, :, :1]) * self.pos_coef
        cars[..., self.VEL] = vel * self.lin_vel_coef
        cars[..., self.REL_VEL] = (vel - vel[:, :, :1]) * self.lin_vel_coef
        cars[..., self.ANG_VEL] = rows[..., layout.CAR_ANG_VEL] * self.ang_vel_coef
        cars[..., self.FORWARD] = rows[..., layout.CAR_FORWARD]
        cars[..., self.UP] = rows[..., layout.CAR_UP]
        cars[..., self.STATUS] = seen.pick(blocks.car_status(state, self.boost_coef, self.timer_coef))
        seen.hide_padding(cars)
        return cars

    def _constants(self) -> Float:
        """`[E, F]`: what no state changes: presence, types, teams, places of pads and goals."""
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
            template[rows["pads"], self.POS] = blocks.PAD_POS * self.pos_coef
            given = np.where(blocks.PAD_IS_BIG, BIG_PAD_BOOST, SMALL_PAD_BOOST)
            template[rows["pads"], self.BOOST] = given * self.boost_coef
        if self.include_goals:
            template[rows["goals"], self.POS] = blocks.GOALS * self.pos_coef
            template[rows["goals"], (self.IS_ENEMY, self.IS_ALLY)] = np.eye(2)
        return template
