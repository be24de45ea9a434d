"""GameState: everything the components read, as struct of arrays over all arenas.

Shapes: `A` arenas, `C` cars per arena (blue cars first, then orange). Lengths are in uu (1 uu is about 1 cm), speeds in
uu/s, angular velocities in rad/s, times in seconds. All floats are float32.
"""

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rlgym.rocket_league.common_values import (
    DOUBLEJUMP_MAX_DELAY,
    FLIP_TORQUE_TIME,
    GOAL_THRESHOLD,
    TICKS_PER_SECOND,
)

Float = NDArray[np.float32]
Bool = NDArray[np.bool_]

NUM_PADS = 34
BLUE, ORANGE = 0, 1

# Columns of the ball's block in RocketSim's gym state; a car's block is the same from column CAR_PHYSICS on.
BALL_COLUMNS, CAR_COLUMNS, CAR_PHYSICS = 25, 36, 11
POS, QUATERNION, VEL, ANG_VEL = slice(0, 3), slice(3, 7), slice(7, 10), slice(10, 13)
FORWARD, RIGHT, UP = slice(13, 16), slice(16, 19), slice(19, 22)
CAR_ID, GOALS, SAVES, SHOTS, DEMOS, BOOST_PICKUPS = 0, 2, 3, 4, 5, 6
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

# What is read only when somebody asks for it: fields of CAR_DETAILS and the attributes of CarState they come from.
CAR_DETAIL_ATTRIBUTES = {
    "wheels": "wheels_with_contact",
    "jump_time": "jump_time",
    "air_time": "air_time",
    "flip_torque": "flip_rel_torque",
    "is_auto_flipping": "is_auto_flipping",
    "auto_flip_timer": "auto_flip_timer",
    "auto_flip_direction": "auto_flip_torque_scale",
    "bump_cooldown": "car_contact_cooldown_timer",
    "has_world_contact": "has_world_contact",
    "world_contact_normal": "world_contact_normal",
    "bump_victim": "car_contact_id",
}
CAR_DETAILS = np.dtype(
    [
        ("wheels", "?", 4),
        ("jump_time", "<f4"),
        ("air_time", "<f4"),
        ("flip_torque", "<f4", 3),
        ("is_auto_flipping", "?"),
        ("auto_flip_timer", "<f4"),
        ("auto_flip_direction", "<f4"),
        ("bump_cooldown", "<f4"),
        ("has_world_contact", "?"),
        ("world_contact_normal", "<f4", 3),
        ("bump_victim", "<i4"),
        ("got_flip_reset", "?"),
    ]
)

_ARRAYS = (
    "arena_index",
    "present",
    "ball_rows",
    "car_rows",
    "car_states",
    "details",
    "details_stale",
    "last_touch_car",
    "controls",
    "pad_timers",
    "episode_ticks",
    "ticks_since_touch",
)


def _shift(columns: slice) -> slice:
    return slice(columns.start + CAR_PHYSICS, columns.stop + CAR_PHYSICS)


CAR_POS, CAR_VEL, CAR_ANG_VEL = _shift(POS), _shift(VEL), _shift(ANG_VEL)
CAR_QUATERNION = _shift(QUATERNION)
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
    def car_quaternion(self) -> Float:
        """Rotation as a unit quaternion w, x, y, z."""
        return self.cars[..., CAR_QUATERNION]

    @property
    def ball_quaternion(self) -> Float:
        """Rotation as a unit quaternion w, x, y, z."""
        return self.ball[..., QUATERNION]

    @property
    def car_pitch_yaw_roll(self) -> Float:
        """Euler angles, radians: pitch in -pi/2..pi/2 lifts the nose, yaw 0 faces +x, roll turns to the right."""
        forward, right, up = self.car_forward, self.car_right, self.car_up
        pitch = np.arcsin(np.clip(forward[..., 2], -1, 1))
        yaw = np.arctan2(forward[..., 1], forward[..., 0])
        return np.stack((pitch, yaw, np.arctan2(-right[..., 2], up[..., 2])), axis=-1)

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

    A slot of `[A, C]` without a car (`present` is False, in pools of mixed team sizes) is zero everywhere.

    Attributes:
        num_blue: Blue slots per arena.
        num_orange: Orange slots per arena.
        arena_index: `[A]` int64, the pool's number of each arena here (a pool also builds states of a few arenas).
        present: `[A, C]` bool, whether there is a car in the slot.
        all_present: Whether every slot has a car.
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

    arena_index: NDArray[np.int64]
    present: Bool
    ball_rows: Float
    car_rows: Float
    car_states: NDArray[np.void]
    details: NDArray[np.void]
    details_stale: Bool
    last_touch_car: NDArray[np.int64]
    controls: Float
    pad_timers: Float
    episode_ticks: NDArray[np.int64]
    ticks_since_touch: NDArray[np.int64]

    def __init__(self, num_arenas: int, num_blue: int, num_orange: int, present: Bool | None = None) -> None:
        """Creates a state, all zero.

        Args:
            num_arenas: `A`.
            num_blue: Blue slots per arena.
            num_orange: Orange slots per arena.
            present: `[A, C]` which slots have a car. Default: all.
        """
        num_cars = num_blue + num_orange
        self.num_blue, self.num_orange = num_blue, num_orange
        self.team = np.array([BLUE] * num_blue + [ORANGE] * num_orange, dtype=np.int8)
        self.arena_index = np.arange(num_arenas)
        self.present = np.ones((num_arenas, num_cars), np.bool_) if present is None else present
        self.ball_rows = np.zeros((num_arenas, 2, BALL_COLUMNS), np.float32)
        self.car_rows = np.zeros((num_arenas, num_cars, 2, CAR_COLUMNS), np.float32)
        self.car_states = np.zeros((num_arenas, num_cars), CAR_STATE)
        self.details = np.zeros((num_arenas, num_cars), CAR_DETAILS)
        self.details_stale = np.zeros(num_arenas, np.bool_)
        self.last_touch_car = np.full(num_arenas, -1)
        self.controls = np.zeros((num_arenas, num_cars, 8), np.float32)
        self.pad_timers = np.zeros((num_arenas, NUM_PADS), np.float32)
        self.episode_ticks = np.zeros(num_arenas, np.int64)
        self.ticks_since_touch = np.zeros(num_arenas, np.int64)
        self.read_details: Callable[[GameState], None] | None = None
        """Fills the stale rows of `details` and `last_touch_car` from the live arenas; set by the pool."""
        self._make_views()

    def _make_views(self) -> None:
        self.all_present = bool(self.present.all())
        self.world = View(self.ball_rows[:, 0], self.car_rows[:, :, 0], self.pad_timers)
        self.mirrored = View(self.ball_rows[:, 1], self.car_rows[:, :, 1], self.pad_timers[:, ::-1])
        self.boost: Float = self.car_rows[:, :, 0, BOOST]
        self.car_timers: Float = self.car_states["timers"]
        self.car_flags: Bool = self.car_states["flags"]
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
        part = copy.copy(self)
        for name in _ARRAYS:
            setattr(part, name, getattr(self, name)[arenas])
        part._make_views()
        return part

    def copy(self) -> "GameState":
        """A copy that keeps what is in it now, however the pool goes on; the live arenas are read for it first."""
        if self.read_details is not None and self.details_stale.any():
            self.read_details(self)
        kept = self.select(np.arange(self.num_arenas))
        kept.team, kept.read_details = self.team.copy(), None
        return kept

    def __deepcopy__(self, memo: dict[int, Any]) -> "GameState":
        """See `copy`."""
        return self.copy()

    def __repr__(self) -> str:
        """Sizes, and the first arena in short."""
        text = f"GameState({self.num_arenas} arenas, {self.num_blue} blue and {self.num_orange} orange slots"
        if self.num_arenas:
            seconds = self.episode_ticks[0] / TICKS_PER_SECOND
            text += f"; arena {self.arena_index[0]} after {seconds:.2f} s: ball at {_place(self.world.ball_pos[0])}"
            for car in np.flatnonzero(self.present[0]).tolist():
                place, boost = _place(self.world.car_pos[0, car]), self.boost[0, car]
                text += f", {'orange' if self.team[car] else 'blue'} car {car} at {place} with boost {boost:.0f}"
        return f"{text})"

    def state_dict(self) -> dict[str, NDArray[Any]]:
        """Copies of all arrays, by name; plain dtypes only. Without the numbers that RocketSim gave the cars."""
        arrays = {name: _plain(getattr(self, name)).copy() for name in _ARRAYS}
        arrays["car_rows"][..., CAR_ID] = 0  # of restored cars it is another one
        return arrays

    def load_state_dict(self, arrays: dict[str, NDArray[Any]]) -> None:
        """Takes what `state_dict` gave.

        Raises:
            ValueError: Another number of arenas or cars.
        """
        for name in _ARRAYS:
            mine = _plain(getattr(self, name))
            if mine.shape != arrays[name].shape:
                raise ValueError(
                    f"GameState: the saved {name} has shape {list(arrays[name].shape)}, this one {list(mine.shape)}; "
                    "restore into a pool with the same number of arenas and cars"
                )
            mine[:] = arrays[name]
        self._make_views()

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
        for rows in (self.ball_rows, self.car_rows, self.car_states, self.details, self.controls, self.pad_timers):
            rows[arenas] = np.zeros((), rows.dtype)
        self.episode_ticks[arenas] = 0
        self.ticks_since_touch[arenas] = 0
        self.car_rows[arenas, :, 0, CAR_FORWARD.start] = 1
        self.car_rows[arenas, :, 0, CAR_RIGHT.start + 1] = 1
        self.car_rows[arenas, :, 0, CAR_UP.start + 2] = 1
        self.car_rows[arenas, :, :, ON_GROUND] = 1
        self.details["wheels"][arenas] = True
        self.details_stale[arenas] = False
        self.last_touch_car[arenas] = -1

    def clear_absent(self, arena: int) -> None:
        """Zeroes the slots of one arena that have no car, whatever a state setter wrote there."""
        absent = np.flatnonzero(~self.present[arena])
        for rows in (self.car_rows, self.car_states, self.details, self.controls):
            rows[arena, absent] = np.zeros((), rows.dtype)

    def set_on_ground(self, arena: int, on_ground: Bool) -> None:
        """Puts all or no wheels of each car (`on_ground [C]`) of one arena on the ground; for state setters."""
        self.car_rows[arena, :, :, ON_GROUND] = on_ground[:, None]
        self.details["wheels"][arena] = on_ground[:, None]

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
    def is_boosting(self) -> Bool:
        """`[A, C]` boost is burning."""
        boosting: Bool = self.boost_active_time > 0
        return boosting

    @property
    def is_supersonic(self) -> Bool:
        """`[A, C]` faster than 2200 uu/s, or a moment ago and still faster than 2100."""
        supersonic: Bool = self.supersonic_time > 0
        return supersonic

    @property
    def is_demoed(self) -> Bool:
        """`[A, C]` demolished and not back yet; position and rotation stay what they were."""
        demoed: Bool = self.demo_respawn_timer > 0
        return demoed

    # Counters of the game, float32 `[A, C]`, since the episode began.

    @property
    def goals(self) -> Float:
        """`[A, C]` goals the car has scored in this episode."""
        return self.car_rows[:, :, 0, GOALS]

    @property
    def shots(self) -> Float:
        """`[A, C]` shots on goal in this episode, as the game counts them."""
        return self.car_rows[:, :, 0, SHOTS]

    @property
    def saves(self) -> Float:
        """`[A, C]` saves in this episode, as the game counts them."""
        return self.car_rows[:, :, 0, SAVES]

    @property
    def demos(self) -> Float:
        """`[A, C]` opponents demolished in this episode."""
        return self.car_rows[:, :, 0, DEMOS]

    @property
    def boost_pickups(self) -> Float:
        """`[A, C]` boost pads taken in this episode."""
        return self.car_rows[:, :, 0, BOOST_PICKUPS]

    # The second tier: read from the live arenas when first asked for after a step (about 2 us per car).

    def _detail(self, name: str) -> NDArray[Any]:
        if self.read_details is not None and self.details_stale.any():
            self.read_details(self)
        return self.details[name]

    @property
    def wheels_with_contact(self) -> Bool:
        """`[A, C, 4]` whether each wheel touches something: front left, front right, back left, back right."""
        return self._detail("wheels")

    @property
    def jump_time(self) -> Float:
        """`[A, C]` seconds since the jump began, while it lifts the car."""
        return self._detail("jump_time")

    @property
    def air_time(self) -> Float:
        """`[A, C]` seconds since the car left the ground, 0 on it."""
        return self._detail("air_time")

    @property
    def flip_torque(self) -> Float:
        """`[A, C, 3]` direction of the last flip in the car's frame: x rolls, y pitches; zero before the first."""
        return self._detail("flip_torque")

    @property
    def is_auto_flipping(self) -> Bool:
        """`[A, C]` the car lies on its roof and turns itself over."""
        return self._detail("is_auto_flipping")

    @property
    def auto_flip_timer(self) -> Float:
        """`[A, C]` seconds that the auto-flip still turns the car."""
        return self._detail("auto_flip_timer")

    @property
    def auto_flip_direction(self) -> Float:
        """`[A, C]` the way the auto-flip rolls the car: 1, -1, or 0 when there was none."""
        return self._detail("auto_flip_direction")

    @property
    def got_flip_reset(self) -> Bool:
        """`[A, C]` in the air with a flip won back by four wheels on the ball (or another surface), not by a jump."""
        return self._detail("got_flip_reset")

    @property
    def bump_cooldown(self) -> Float:
        """`[A, C]` seconds until the same car can be bumped again, 0 without a recent bump."""
        return self._detail("bump_cooldown")

    @property
    def bump_victim(self) -> NDArray[np.int32]:
        """`[A, C]` slot of the car that was bumped while `bump_cooldown` lasts, else -1."""
        return self._detail("bump_victim")

    @property
    def has_world_contact(self) -> Bool:
        """`[A, C]` the car's body touches the field."""
        return self._detail("has_world_contact")

    @property
    def world_contact_normal(self) -> Float:
        """`[A, C, 3]` unit normal of the surface that the body touches, world view; multiply by MIRROR for orange's."""
        return self._detail("world_contact_normal")

    @property
    def last_touch(self) -> NDArray[np.int64]:
        """`[A]` slot of the car that touched the ball last in this episode, -1 for none."""
        if self.read_details is not None and self.details_stale.any():
            self.read_details(self)
        return self.last_touch_car

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


def _plain(array: NDArray[Any]) -> NDArray[Any]:
    """Structured arrays as bytes, others as they are."""
    return array.view(np.uint8) if array.dtype.names else array


def _place(xyz: Float) -> str:
    return f"({', '.join(f'{x:.0f}' for x in xyz.tolist())})"
