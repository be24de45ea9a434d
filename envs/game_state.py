"""GameState: everything the components read, as struct of arrays over all arenas.

Shapes: `A` arenas, `C` cars per arena (blue cars first, then orange). Lengths are in uu (1 uu is about 1 cm), speeds in
uu/s, angular velocities in rad/s, times in seconds. All floats are float32.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rlgym.rocket_league.common_values import DOUBLEJUMP_MAX_DELAY, FLIP_TORQUE_TIME, GOAL_THRESHOLD

Float = NDArray[np.float32]
Bool = NDArray[np.bool_]

NUM_PADS = 34
BLUE, ORANGE = 0, 1

# Columns of the ball's block in RocketSim's gym state; a car's block is the same from column CAR_PHYSICS on.
BALL_COLUMNS, CAR_COLUMNS, CAR_PHYSICS = 25, 36, 11
POS, VEL, ANG_VEL = slice(0, 3), slice(7, 10), slice(10, 13)
FORWARD, RIGHT, UP = slice(13, 16), slice(16, 19), slice(19, 22)
IS_DEMOED, ON_GROUND, TOUCHED, BOOST = 7, 8, 9, 10

MIRROR = np.array([-1, -1, 1], np.float32)
"""Factor on a vector that rotates it by 180 degrees about z."""

# Attributes of RocketSim.CarState that the gym state lacks and every step reads, packed into one row of CAR_STATE.
CAR_TIMERS = (
    "handbrake_val",
    "flip_time",
    "air_time_since_jump",
    "demo_respawn_timer",
    "time_spent_boosting",
    "supersonic_time",
)
CAR_FLAGS = ("last_controls.jump", "has_jumped", "is_jumping", "has_flipped", "has_double_jumped")
CAR_STATE = np.dtype(
    {"names": ["timers", "flags"], "formats": [("<f4", 6), ("?", 5)], "offsets": [0, 24], "itemsize": 32}
)
CAR_STATE_FORMAT = "6f5?3x"
"""`CAR_STATE` for the struct module."""


def _shift(columns: slice) -> slice:
    return slice(columns.start + CAR_PHYSICS, columns.stop + CAR_PHYSICS)


CAR_POS, CAR_VEL, CAR_ANG_VEL = _shift(POS), _shift(VEL), _shift(ANG_VEL)
CAR_FORWARD, CAR_RIGHT, CAR_UP = _shift(FORWARD), _shift(RIGHT), _shift(UP)
CAR_BASIS = slice(CAR_FORWARD.start, CAR_UP.stop)


class View:
    """Ball, cars and pads as seen from one side of the field.

    `GameState.world` is the field as it is, `GameState.mirrored` the same rotated by 180 degrees about z (orange's
    side: orange attacks +y in it), both with arrays `ball_* [A, 3]`, `car_* [A, C, 3]`, `pad_timers [A, 34]`.
    `GameState.own` holds for every car what it sees from its own side, where everybody attacks +y:
    `ball_* [A, C, 3]`, `car_* [A, C, 3]`, `pad_timers [A, C, 34]`.
    """

    __slots__ = ("ball", "cars", "pad_timers")

    def __init__(self, ball: Float, cars: Float, pad_timers: Float) -> None:
        """Wraps rows of RocketSim's gym state: `ball [..., 25]`, `cars [..., C, 36]`, `pad_timers [..., 34]`."""
        self.ball = ball
        self.cars = cars
        self.pad_timers = pad_timers
        """Seconds until each pad can be taken again, 0..10, 0 when it is there; order of rlgym's BOOST_LOCATIONS."""

    @property
    def ball_pos(self) -> Float:
        """Position, uu: |x| <= 4096, |y| <= 6000, 0 <= z <= 2044."""
        return self.ball[..., POS]

    @property
    def ball_vel(self) -> Float:
        """Linear velocity, uu/s, norm <= 6000."""
        return self.ball[..., VEL]

    @property
    def ball_ang_vel(self) -> Float:
        """Angular velocity, rad/s, norm <= 6."""
        return self.ball[..., ANG_VEL]

    @property
    def car_pos(self) -> Float:
        """Position, uu."""
        return self.cars[..., CAR_POS]

    @property
    def car_vel(self) -> Float:
        """Linear velocity, uu/s, norm <= 2300."""
        return self.cars[..., CAR_VEL]

    @property
    def car_ang_vel(self) -> Float:
        """Angular velocity, rad/s, norm <= 5.5."""
        return self.cars[..., CAR_ANG_VEL]

    @property
    def car_forward(self) -> Float:
        """Unit vector out of the car's nose."""
        return self.cars[..., CAR_FORWARD]

    @property
    def car_right(self) -> Float:
        """Unit vector to the car's right (RocketSim's rotation matrix, middle column)."""
        return self.cars[..., CAR_RIGHT]

    @property
    def car_up(self) -> Float:
        """Unit vector out of the car's roof."""
        return self.cars[..., CAR_UP]


class GameState:
    """The state of all arenas after a step. Components read it; state setters write it.

    Attributes:
        num_blue: Blue cars per arena.
        num_orange: Orange cars per arena.
        arena_index: `[A]` int64, the pool's number of each arena here (a pool also builds states of a few arenas).
        team: `[C]` int8, 0 blue, 1 orange.
        world: The field as it is; writable by state setters.
        mirrored: The field rotated by 180 degrees about z.
        pad_timers: `[A, 34]` seconds, world order.
        boost: `[A, C]` 0..100.
        controls: `[A, C, 8]` float32, what each car was told in this step: throttle, steer, pitch, yaw, roll in -1..1,
            jump, boost, handbrake 0 or 1; all zero when an episode begins.
        episode_ticks: `[A]` int64, ticks simulated since the episode began.
        ticks_since_touch: `[A]` int64, ticks since any car touched the ball or the episode began.
    """

    def __init__(
        self,
        num_arenas: int,
        num_blue: int,
        num_orange: int,
        *,
        buffers: tuple[NDArray[Any], ...] | None = None,
    ) -> None:
        """Creates a state, all zero unless `buffers` (in the order of `select`) bring the values."""
        num_cars = num_blue + num_orange
        self.num_blue, self.num_orange = num_blue, num_orange
        self.team = np.array([BLUE] * num_blue + [ORANGE] * num_orange, dtype=np.int8)
        if buffers is None:
            self.arena_index = np.arange(num_arenas)
            self.ball_rows = np.zeros((num_arenas, 2, BALL_COLUMNS), np.float32)
            self.car_rows = np.zeros((num_arenas, num_cars, 2, CAR_COLUMNS), np.float32)
            self.car_states = np.zeros((num_arenas, num_cars), CAR_STATE)
            self.wheels = np.zeros((num_arenas, num_cars, 4), np.bool_)
            self.wheels_stale = np.zeros(num_arenas, np.bool_)
            self.controls = np.zeros((num_arenas, num_cars, 8), np.float32)
            self.pad_timers = np.zeros((num_arenas, NUM_PADS), np.float32)
            self.episode_ticks = np.zeros(num_arenas, np.int64)
            self.ticks_since_touch = np.zeros(num_arenas, np.int64)
        else:
            (
                self.arena_index,
                self.ball_rows,
                self.car_rows,
                self.car_states,
                self.wheels,
                self.wheels_stale,
                self.controls,
                self.pad_timers,
                self.episode_ticks,
                self.ticks_since_touch,
            ) = buffers
        self.world = View(self.ball_rows[:, 0], self.car_rows[:, :, 0], self.pad_timers)
        self.mirrored = View(self.ball_rows[:, 1], self.car_rows[:, :, 1], self.pad_timers[:, ::-1])
        self.boost: Float = self.car_rows[:, :, 0, BOOST]
        self.car_timers: Float = self.car_states["timers"]
        self.car_flags: Bool = self.car_states["flags"]
        self.read_wheels: Callable[[GameState], None] | None = None
        self._own: View | None = None

    @property
    def num_arenas(self) -> int:
        """`A`."""
        return len(self.ball_rows)

    @property
    def num_cars(self) -> int:
        """`C`, cars per arena."""
        return self.num_blue + self.num_orange

    def select(self, arenas: NDArray[np.int64]) -> "GameState":
        """A copy that holds only the given rows, with the pool's arena numbers in `arena_index`."""
        buffers = (
            self.arena_index,
            self.ball_rows,
            self.car_rows,
            self.car_states,
            self.wheels,
            self.wheels_stale,
            self.controls,
            self.pad_timers,
            self.episode_ticks,
            self.ticks_since_touch,
        )
        part = GameState(len(arenas), self.num_blue, self.num_orange, buffers=tuple(b[arenas] for b in buffers))
        part.read_wheels = self.read_wheels
        return part

    @property
    def own(self) -> View:
        """What each car sees from its own side; arrays start with `[A, C]`. Built when first asked for after a step."""
        if self._own is None:
            side, cars = self.team.astype(np.intp), np.arange(self.num_cars)
            pads = np.stack((self.world.pad_timers, self.mirrored.pad_timers), axis=1)
            self._own = View(self.ball_rows[:, side], self.car_rows[:, cars, side], pads[:, side])
        return self._own

    def invalidate(self) -> None:
        """Drops what was derived from the rows and kept; the pool calls it whenever it has written new rows."""
        self._own = None

    def clear(self, arenas: NDArray[np.int64]) -> None:
        """Resets rows to a base state before a state setter runs: all zero, cars upright facing +x, wheels down."""
        for rows in (self.ball_rows, self.car_rows, self.car_states, self.controls, self.pad_timers):
            rows[arenas] = np.zeros((), rows.dtype)
        self.episode_ticks[arenas] = 0
        self.ticks_since_touch[arenas] = 0
        self.car_rows[arenas, :, 0, CAR_FORWARD.start] = 1
        self.car_rows[arenas, :, 0, CAR_RIGHT.start + 1] = 1
        self.car_rows[arenas, :, 0, CAR_UP.start + 2] = 1
        self.car_rows[arenas, :, :, ON_GROUND] = 1
        self.wheels[arenas] = True
        self.wheels_stale[arenas] = False

    def set_on_ground(self, arena: int, on_ground: Bool) -> None:
        """Puts all or no wheels of each car (`on_ground [C]`) of one arena on the ground; for state setters."""
        self.car_rows[arena, :, :, ON_GROUND] = on_ground[:, None]
        self.wheels[arena] = on_ground[:, None]

    def set_car_rotation(self, arena: int, pitch: Float, yaw: Float, roll: Float) -> None:
        """Orients all cars of one arena (world view).

        Args:
            arena: Row of this state.
            pitch: `[C]` radians, positive lifts the nose.
            yaw: `[C]` radians, 0 faces +x, pi/2 faces +y.
            roll: `[C]` radians.
        """
        cp, cy, cr = np.cos(pitch), np.cos(yaw), np.cos(roll)
        sp, sy, sr = np.sin(pitch), np.sin(yaw), np.sin(roll)
        world = self.world
        world.car_forward[arena] = np.stack((cp * cy, cp * sy, sp), axis=-1)
        world.car_right[arena] = np.stack((cy * sp * sr - cr * sy, sy * sp * sr + cr * cy, -cp * sr), axis=-1)
        world.car_up[arena] = np.stack((-cr * cy * sp - sr * sy, -cr * sy * sp + sr * cy, cp * cr), axis=-1)

    def _timer(self, name: str) -> Float:
        column: Float = self.car_timers[:, :, CAR_TIMERS.index(name)]
        return column

    def _flag(self, name: str) -> Bool:
        column: Bool = self.car_flags[:, :, CAR_FLAGS.index(name)]
        return column

    @property
    def touched(self) -> Bool:
        """`[A, C]` whether the car hit the ball since the previous step."""
        touched: Bool = self.car_rows[:, :, 0, TOUCHED] > 0
        return touched

    @property
    def wheels_with_contact(self) -> Bool:
        """`[A, C, 4]` whether each wheel touches something: front left, front right, back left, back right.

        Writable by state setters. Read from the live arenas when first asked for after a step.
        """
        if self.read_wheels is not None and self.wheels_stale.any():
            self.read_wheels(self)
        return self.wheels

    @property
    def on_ground(self) -> Bool:
        """`[A, C]` at least three wheels in contact (walls and ceiling count)."""
        grounded: Bool = self.car_rows[:, :, 0, ON_GROUND] > 0
        return grounded

    @property
    def is_holding_jump(self) -> Bool:
        """`[A, C]` jump was pressed on the last tick."""
        return self._flag("last_controls.jump")

    @property
    def handbrake(self) -> Float:
        """`[A, C]` 0..1, rises and falls while the button is held and released."""
        return self._timer("handbrake_val")

    @property
    def has_jumped(self) -> Bool:
        """`[A, C]` after a jump until the car lands."""
        return self._flag("has_jumped")

    @property
    def is_jumping(self) -> Bool:
        """`[A, C]` while the jump button still lifts the car."""
        return self._flag("is_jumping")

    @property
    def has_flipped(self) -> Bool:
        """`[A, C]` after a flip until the car lands."""
        return self._flag("has_flipped")

    @property
    def flip_time(self) -> Float:
        """`[A, C]` seconds since the flip began."""
        return self._timer("flip_time")

    @property
    def is_flipping(self) -> Bool:
        """`[A, C]` flipped less than 0.65 s ago (RLGym's definition, not CarState.is_flipping)."""
        flipping: Bool = self.has_flipped & (self.flip_time < FLIP_TORQUE_TIME)
        return flipping

    @property
    def has_double_jumped(self) -> Bool:
        """`[A, C]` after a double jump until the car lands."""
        return self._flag("has_double_jumped")

    @property
    def air_time_since_jump(self) -> Float:
        """`[A, C]` seconds since the jump ended, 0 on the ground."""
        return self._timer("air_time_since_jump")

    @property
    def has_flip(self) -> Bool:
        """`[A, C]` neither flipped nor double jumped, and at most 1.25 s since the jump."""
        unspent: Bool = ~(self.has_double_jumped | self.has_flipped) & (self.air_time_since_jump < DOUBLEJUMP_MAX_DELAY)
        return unspent

    @property
    def can_flip(self) -> Bool:
        """`[A, C]` in the air, jump released, flip unspent."""
        return ~self.on_ground & ~self.is_holding_jump & self.has_flip

    @property
    def demo_respawn_timer(self) -> Float:
        """`[A, C]` seconds until a demolished car returns, 0 when alive."""
        return self._timer("demo_respawn_timer")

    @property
    def boost_active_time(self) -> Float:
        """`[A, C]` seconds since boosting began, 0 when not boosting."""
        return self._timer("time_spent_boosting")

    @property
    def supersonic_time(self) -> Float:
        """`[A, C]` seconds since the car became supersonic, 0 when it is not."""
        return self._timer("supersonic_time")

    @property
    def goal_scored(self) -> Bool:
        """`[A]` the ball is behind a goal line (|y| > 5215.5, rlgym's threshold)."""
        scored: Bool = np.abs(self.world.ball_pos[:, 1]) > GOAL_THRESHOLD
        return scored

    @property
    def scoring_team(self) -> NDArray[np.int8]:
        """`[A]` 0 where blue has scored, 1 where orange has, -1 elsewhere."""
        team = np.where(self.world.ball_pos[:, 1] > 0, BLUE, ORANGE)
        return np.where(self.goal_scored, team, -1).astype(np.int8)
