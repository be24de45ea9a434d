"""GameState: everything that components read, as a struct of arrays over all arenas.

Shapes: `A` arenas, `C` cars per arena (blue cars first, then orange). Lengths are in uu (1 uu is about 1 cm), speeds in
uu/s, angular velocities in rad/s, times in seconds. All floats are float32. `envs.state.layout` names the
columns.
"""

import copy
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray
from rlgym.rocket_league import common_values as game

from envs.state import layout
from envs.state.layout import Bool, Float
from envs.state.quantities import Quantities
from envs.state.view import Derived, View, quaternions, read_only
from fabric_rl.base.settings import is_integer
from fabric_rl.base.state_schema import check_structure

State = TypeVar("State", bound="StateArrays")


def zeros_with_spare_row(shape: tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
    """Return zeros with memory for one more row, so that functions of a column are bit-reproducible.

    NumPy before 2.0.2 assumes that a column of a matrix extends beyond the last row (numpy/numpy#26972). A result of
    `arctan2`, `arcsin`, ... that happens to be stored there is computed by different code, with different last bits
    (with AVX-512). No result can be stored in the spare row.
    """
    return np.zeros((shape[0] + 1, *shape[1:]), dtype)[:-1]


class StateArrays:
    """Stored arrays of all arenas; `GameState` adds derived quantities.

    Attributes:
        ball_rows: `[A, 2, 25]` float32, rows of RocketSim's gym state; axis 1: the world view, then the mirrored view.
        car_rows: `[A, C, 2, 36]` float32, the same for the cars; here, axis 2 contains the views.
        car_states: `[A, C]` of `CAR_STATE`; its fields are also `car_timers` `[A, C, 6]` and `car_flags` `[A, C, 5]`.
        details: `[A, C]` of `CAR_DETAILS`, valid in arenas that are not `details_stale`.
        details_stale: `[A]` bool, True where `details` and `last_touch_car` are older than the rest.
        last_touch_car: `[A]` int64, see `GameState.last_touch`.
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
        """Create a state of zeros for `A` arenas; `present [A, C]` is True for slots with a car; default: all."""
        num_cars = num_blue + num_orange
        self.num_blue, self.num_orange = num_blue, num_orange
        self.team = np.array([layout.BLUE] * num_blue + [layout.ORANGE] * num_orange, dtype=np.int8)
        self.arena_index = np.arange(num_arenas)
        self.present = np.ones((num_arenas, num_cars), np.bool_) if present is None else present
        self.ball_rows = zeros_with_spare_row((num_arenas, 2, layout.BALL_COLUMNS), np.float32)
        self.car_rows = zeros_with_spare_row((num_arenas, num_cars, 2, layout.CAR_COLUMNS), np.float32)
        self.car_states = zeros_with_spare_row((num_arenas, num_cars), layout.CAR_STATE)
        self.details = np.zeros((num_arenas, num_cars), layout.CAR_DETAILS)
        self.details_stale = np.zeros(num_arenas, np.bool_)
        self.last_touch_car = np.full(num_arenas, -1)
        self.controls = zeros_with_spare_row((num_arenas, num_cars, 8), np.float32)
        self.pad_timers = zeros_with_spare_row((num_arenas, layout.NUM_PADS), np.float32)
        self.episode_ticks = np.zeros(num_arenas, np.int64)
        self.ticks_since_touch = np.zeros(num_arenas, np.int64)
        self._own: View | None = None
        self._quantities: Quantities | None = None
        self.read_details: Callable[[StateArrays], None] | None = None
        """Fills the stale rows of `details` and `last_touch_car` from the live arenas; set by the pool."""
        self._views: dict[bool, dict[str, Any]] = {}
        self._make_views()

    def _make_views(self, writable: bool = True) -> None:
        self.all_present = bool(self.present.all())
        wrap = np.asarray if writable else read_only
        ball, cars, states, pads = map(wrap, (self.ball_rows, self.car_rows, self.car_states, self.pad_timers))
        self.world = View(ball[:, 0], cars[:, :, 0], pads)
        self.mirrored = View(ball[:, 1], cars[:, :, 1], pads[:, ::-1])
        self.boost: Float = cars[:, :, 0, layout.BOOST]
        self.car_timers: Float = states["timers"]
        self.car_flags: Bool = states["flags"]
        self._views[writable] = {name: vars(self)[name] for name in _VIEWS}
        self.invalidate()

    def set_writable(self, writable: bool) -> None:
        """Choose whether `world`, `mirrored`, `boost`, timers and flags can be written; a pool's can within a step."""
        if writable not in self._views:
            self._make_views(writable)
        vars(self).update(self._views[writable])

    @property
    def num_arenas(self) -> int:
        """`A`."""
        return len(self.ball_rows)

    @property
    def num_cars(self) -> int:
        """`C`, cars per arena."""
        return self.num_blue + self.num_orange

    def select(self: State, arenas: NDArray[np.int64]) -> State:
        """Return a copy of the given rows, with the pool's arena numbers in `arena_index`."""
        part, and_a_spare = copy.copy(self), np.append(arenas, arenas[:1])
        for name in _ARRAYS:
            setattr(part, name, getattr(self, name)[and_a_spare][:-1])
        part._views = {}
        part._make_views()
        return part

    def copy(self: State) -> State:
        """Return a copy that later steps of the pool do not change; stale details are read first."""
        self.read_stale_details()
        kept = self.select(np.arange(self.num_arenas))
        kept.team, kept.read_details = self.team.copy(), None
        return kept

    def __deepcopy__(self: State, memo: dict[int, Any]) -> State:
        return self.copy()

    def read_stale_details(self) -> None:
        """Update `details` and `last_touch_car` from the live arenas, if there are any."""
        if self.read_details is not None and self.details_stale.any():
            self.read_details(self)

    def state_dict(self) -> dict[str, NDArray[Any]]:
        """Return copies of all arrays by name, with plain dtypes, and RocketSim's car ids set to 0."""
        arrays = {name: _plain(getattr(self, name)).copy() for name in _ARRAYS}
        arrays["car_rows"][..., layout.CAR_ID] = 0  # differs in restored cars
        return arrays

    def check(self, arrays: dict[str, NDArray[Any]]) -> None:
        """Raise a ValueError unless `arrays` fit a state with this number of arenas and cars."""
        for name in _ARRAYS:
            mine, saved = getattr(self, name), arrays[name]
            try:
                check_structure(saved, _plain(mine), f"GameState: the saved {name}")
            except ValueError as error:
                raise ValueError(f"{error}; restore into a pool with the same number of arenas and cars") from error

    def load_state_dict(self, arrays: dict[str, NDArray[Any]]) -> None:
        """Restore a `state_dict`. Call `check` first for a state read from a file."""
        for name in _ARRAYS:
            _plain(getattr(self, name))[:] = arrays[name]
        self._make_views()

    @property
    def own(self) -> View:
        """View of each car from its own side; arrays start with `[A, C]`. Built on first access after a step."""
        if self._own is None:
            each = (self.num_arenas, self.num_cars)
            sizes = (layout.BALL_COLUMNS, layout.CAR_COLUMNS, layout.NUM_PADS)
            self._own = View(*(zeros_with_spare_row((*each, size), np.float32) for size in sizes))
            for side, view in ((slice(self.num_blue), self.world), (slice(self.num_blue, None), self.mirrored)):
                self._own.ball[:, side] = view.ball[:, None]
                self._own.cars[:, side] = view.cars[:, side]
                self._own.pad_timers[:, side] = view.pad_timers[:, None]
        return self._own

    def invalidate(self) -> None:
        """Drop cached quantities; the pool calls it after it has written new rows."""
        self._own = self._quantities = None

    def clear(self, arenas: NDArray[np.int64]) -> None:
        """Reset rows to a base state before a state setter runs: all zero, cars upright facing +x, wheels down."""
        for rows in (self.ball_rows, self.car_rows, self.car_states, self.details, self.controls, self.pad_timers):
            rows[arenas] = np.zeros((), rows.dtype)
        self.episode_ticks[arenas] = 0
        self.ticks_since_touch[arenas] = 0
        self.car_rows[arenas, :, 0, layout.CAR_FORWARD.start] = 1
        self.car_rows[arenas, :, 0, layout.CAR_RIGHT.start + 1] = 1
        self.car_rows[arenas, :, 0, layout.CAR_UP.start + 2] = 1
        self.car_rows[arenas, :, :, layout.ON_GROUND] = 1
        self.details["wheels"][arenas] = True
        self.details["bump_victim"][arenas] = -1
        self.details_stale[arenas] = False
        self.last_touch_car[arenas] = -1

    def clear_absent(self, arena: int) -> None:
        """Zero the slots without a car in one arena, whatever a state setter wrote into them."""
        absent = np.flatnonzero(~self.present[arena])
        for rows in (self.car_rows, self.car_states, self.details, self.controls):
            rows[arena, absent] = np.zeros((), rows.dtype)

    def set_on_ground(self, arena: int | slice, on_ground: Bool) -> None:
        """Put all or no wheels of each car (`on_ground [C]`, or `[A, C]` for several arenas) on the ground."""
        self.car_rows[arena, :, :, layout.ON_GROUND] = on_ground[..., None]
        self.details["wheels"][arena] = on_ground[..., None]

    def set_car_rotation(self, arena: int | slice, pitch: Float, yaw: Float, roll: Float) -> None:
        """Orient all cars of one arena, or of several (world view).

        Args:
            arena: Row or rows of this state.
            pitch: `[C]` (`[A, C]` for several arenas) radians, positive lifts the nose.
            yaw: `[C]` radians, 0 faces +x, pi/2 faces +y.
            roll: `[C]` radians.
        """
        cp, cy, cr = np.cos(pitch), np.cos(yaw), np.cos(roll)
        sp, sy, sr = np.sin(pitch), np.sin(yaw), np.sin(roll)
        world = self.world
        world.car_forward[arena] = np.stack((cp * cy, cp * sy, sp), axis=-1)
        world.car_right[arena] = np.stack((cy * sp * sr - cr * sy, sy * sp * sr + cr * cy, -cp * sr), axis=-1)
        world.car_up[arena] = np.stack((-cr * cy * sp - sr * sy, -cr * sy * sp + sr * cy, cp * cr), axis=-1)


_VIEWS = ("world", "mirrored", "boost", "car_timers", "car_flags")
_ARRAYS = tuple(StateArrays.__annotations__)
"""All arrays that the class declares, in the order of copies and snapshots."""


def _plain(array: NDArray[Any]) -> NDArray[Any]:
    """Return structured arrays as bytes, others unchanged."""
    return array.view(np.uint8) if array.dtype.names else array


def _timer(name: str) -> Derived[Float]:
    column = layout.CAR_TIMERS.index(name)
    return Derived(lambda state: state.car_timers[:, :, column])


def _flag(name: str) -> Derived[Bool]:
    column = layout.CAR_FLAGS.index(name)
    return Derived(lambda state: state.car_flags[:, :, column])


def _counter(column: int) -> Derived[Float]:
    return Derived(lambda state: state.car_rows[:, :, 0, column])


def _detail(name: str) -> Derived[Any]:
    def read(state: StateArrays) -> NDArray[Any]:
        state.read_stale_details()
        return state.details[name]

    return Derived(read)


class GameState(StateArrays):
    """The state of all arenas after a step. Components read it; state setters write it.

    A slot of `[A, C]` without a car (`present` is False, in pools of mixed team sizes) is zero everywhere.

    Attributes:
        num_blue: Blue slots per arena.
        num_orange: Orange slots per arena.
        arena_index: `[A]` int64, index of each arena in the pool (some states contain only a few of its arenas).
        present: `[A, C]` bool, True if there is a car in the slot.
        all_present: True if every slot has a car.
        team: `[C]` int8, 0 blue, 1 orange.
        world: The field, not mirrored; writable by state setters, read-only between the steps of a pool.
        mirrored: The field rotated by 180 degrees about z.
        pad_timers: `[A, 34]` seconds until each pad can be taken again, as `world.pad_timers`.
        boost: `[A, C]` boost left, 0..100.
        controls: `[A, C, 8]` float32, controls of each car in this step: throttle, steer, pitch, yaw, roll in -1..1,
            jump, boost, handbrake 0 or 1; all zero when an episode begins.
        episode_ticks: `[A]` int64, ticks simulated since the episode began.
        ticks_since_touch: `[A]` int64, ticks since any car touched the ball or the episode began.
    """

    @classmethod
    def from_numbers(
        cls,
        car_pos: ArrayLike,
        num_blue: int | None = None,
        *,
        car_rotation: ArrayLike = 0.0,
        car_vel: ArrayLike = 0.0,
        car_ang_vel: ArrayLike = 0.0,
        boost: ArrayLike = 100.0 / 3,
        on_ground: ArrayLike | None = None,
        touched: ArrayLike = False,
        demo_respawn_timer: ArrayLike = 0.0,
        ball_pos: ArrayLike = (0.0, 0.0, game.BALL_RESTING_HEIGHT),
        ball_vel: ArrayLike = 0.0,
        ball_ang_vel: ArrayLike = 0.0,
        pad_timers: ArrayLike = 0.0,
        episode_ticks: ArrayLike = 0,
    ) -> "GameState":
        """Create a complete state from numbers, for one arena or many: for tests, notebooks and replays.

        All arguments are in field coordinates (not mirrored), and may have a leading axis `[A]`; values with fewer axes
        apply to all arenas and cars. Everything else (jumps, flips, counters, controls) is zero, and you can set it
        afterwards: `state.has_jumped[0, 1] = True`, `state.goals[0, 0] = 1`. Call `complete` after you change
        `state.world`.

        Args:
            car_pos: `[C, 3]` or `[A, C, 3]` uu, blue cars first; a car that stands on its wheels has z = 17.
            num_blue: Number of blue cars; default: half of the cars, rounded up.
            car_rotation: `[C, 3]` pitch (positive lifts the nose), yaw (0 faces +x, pi/2 faces +y), roll in radians.
            car_vel: `[C, 3]` uu/s.
            car_ang_vel: `[C, 3]` rad/s.
            boost: `[C]` 0..100.
            on_ground: `[C]` bool; default: True if a car is level and at most 20 uu high.
            touched: `[C]` bool, True if the car hit the ball in the step that led to this state.
            demo_respawn_timer: `[C]` seconds until a demolished car returns.
            ball_pos: `[3]` uu.
            ball_vel: `[3]` uu/s.
            ball_ang_vel: `[3]` rad/s.
            pad_timers: `[34]` seconds until each pad is back.
            episode_ticks: Ticks since the episode began.

        Raises:
            ValueError: An argument contains NaN or infinity, or does not fit the number of cars.
        """
        try:
            shape = np.shape(car_pos)
        except ValueError:  # rows of different lengths
            shape = ()
        if len(shape) not in (2, 3) or shape[-1] != 3 or not all(shape):
            raise ValueError(f"GameState: car_pos must be [C, 3] or [A, C, 3], got {list(shape)}")
        cars = shape[-2]
        blue = (cars + 1) // 2 if num_blue is None else num_blue
        if not is_integer(blue) or not 0 <= blue <= cars:
            raise ValueError(f"GameState: num_blue must be between 0 and the {cars} cars of car_pos, got {blue}")
        state = cls(shape[0] if len(shape) == 3 else 1, blue, cars - blue)
        state.clear(np.arange(state.num_arenas))
        every, each, vectors = slice(None), (state.num_arenas, cars), (state.num_arenas, cars, 3)
        world = state.world
        angles = _broadcast_finite("car_rotation", car_rotation, vectors)
        state.set_car_rotation(every, angles[..., 0], angles[..., 1], angles[..., 2])
        numbers = {"car_pos": car_pos, "car_vel": car_vel, "car_ang_vel": car_ang_vel}
        numbers |= {"ball_pos": ball_pos, "ball_vel": ball_vel, "ball_ang_vel": ball_ang_vel}
        for name, values in numbers.items():
            target = getattr(world, name)
            target[:] = _broadcast_finite(name, values, target.shape)
        state.ball_rows[:, 0, layout.FORWARD.start : layout.UP.stop] = np.eye(3).reshape(9)  # not visible
        state.boost[:] = _broadcast_finite("boost", boost, each)
        state.demo_respawn_timer[:] = _broadcast_finite("demo_respawn_timer", demo_respawn_timer, each)
        state.pad_timers[:] = _broadcast_finite("pad_timers", pad_timers, (state.num_arenas, layout.NUM_PADS))
        low_and_level = ~angles[..., ::2].any(axis=-1) & (world.car_pos[..., 2] <= 20)
        state.set_on_ground(
            every, low_and_level if on_ground is None else _broadcast_finite("on_ground", on_ground, each) > 0
        )
        state.car_rows[..., layout.TOUCHED] = _broadcast_finite("touched", touched, each)[..., None]
        hit = state.touched.any(axis=1)
        state.last_touch_car[hit] = state.touched[hit].argmax(axis=1)
        state.episode_ticks[:] = _broadcast_finite("episode_ticks", episode_ticks, each[:1])
        state.ticks_since_touch[:] = np.where(hit, 0, state.episode_ticks)
        supersonic = np.linalg.norm(world.car_vel, axis=-1) >= game.SUPERSONIC_THRESHOLD
        state.supersonic_time[supersonic] = 1 / game.TICKS_PER_SECOND
        state.complete()
        return state

    def complete(self) -> None:
        """Update everything that depends on written values: the mirrored view, quaternions, flip resets.

        Slots without a car become zero. You do not need this for the states of a pool, which are read from its arenas.
        """
        self.details["got_flip_reset"] = ~self.on_ground & ~self.has_jumped
        self.car_rows[:, :, 0, layout.IS_DEMOED] = self.is_demoed
        for rows, first in ((self.ball_rows, 0), (self.car_rows, layout.CAR_PHYSICS)):
            rows[..., 1, :] = rows[..., 0, :]
            for columns in layout.VECTORS:
                rows[..., 1, first + columns.start : first + columns.stop] *= layout.MIRROR
            basis = rows[..., first + layout.FORWARD.start : first + layout.UP.stop]
            rows[..., first + layout.QUATERNION.start : first + layout.QUATERNION.stop] = quaternions(
                basis.reshape(*basis.shape[:-1], 3, 3)
            )
        self.car_rows[~self.present] = 0
        self.invalidate()

    def __repr__(self) -> str:
        text = f"GameState({self.num_arenas} arenas, {self.num_blue} blue and {self.num_orange} orange slots"
        if self.num_arenas:
            seconds = self.episode_ticks[0] / game.TICKS_PER_SECOND
            text += f"; arena {self.arena_index[0]} after {seconds:.2f} s: ball at {_place(self.world.ball_pos[0])}"
            for car in np.flatnonzero(self.present[0]).tolist():
                place, boost = _place(self.world.car_pos[0, car]), self.boost[0, car]
                text += f", {'orange' if self.team[car] else 'blue'} car {car} at {place} with boost {boost:.0f}"
        return f"{text})"

    @property
    def quantities(self) -> Quantities:
        """Distances, speeds, touches..., each computed once after a step, however many rewards read it."""
        if self._quantities is None:
            self._quantities = Quantities(self)
        return self._quantities

    def advance(self, controls: Float, ticks: int) -> None:
        """Record a step of `ticks` ticks in which the cars had the controls `controls [A * C, 8]`."""
        self.controls.reshape(controls.shape)[:] = controls
        if not self.all_present:
            self.controls[~self.present] = 0
        self.episode_ticks += ticks
        self.ticks_since_touch += ticks
        self.ticks_since_touch[self.touched.any(axis=1)] = 0

    touched: Derived[Bool] = Derived(lambda state: state.car_rows[:, :, 0, layout.TOUCHED] > 0)
    """`[A, C]` the car hit the ball since the previous step."""
    on_ground: Derived[Bool] = Derived(lambda state: state.car_rows[:, :, 0, layout.ON_GROUND] > 0)
    """`[A, C]` at least three wheels in contact (walls and ceiling count)."""
    is_holding_jump = _flag("last_controls.jump")
    """`[A, C]` jump was pressed on the last tick."""
    handbrake = _timer("handbrake_val")
    """`[A, C]` 0..1, rises and falls while the button is held and released."""
    has_jumped = _flag("has_jumped")
    """`[A, C]` after a jump until the car lands."""
    is_jumping = _flag("is_jumping")
    """`[A, C]` while the jump button still lifts the car."""
    has_flipped = _flag("has_flipped")
    """`[A, C]` after a flip until the car lands."""
    flip_time = _timer("flip_time")
    """`[A, C]` seconds since the flip began."""

    @property
    def is_flipping(self) -> Bool:
        """`[A, C]` flipped less than 0.65 s ago (RLGym's definition, not CarState.is_flipping)."""
        flipping: Bool = self.has_flipped & (self.flip_time < game.FLIP_TORQUE_TIME)
        return flipping

    has_double_jumped = _flag("has_double_jumped")
    """`[A, C]` after a double jump until the car lands."""
    air_time_since_jump = _timer("air_time_since_jump")
    """`[A, C]` seconds since the jump ended, 0 on the ground."""

    @property
    def has_flip(self) -> Bool:
        """`[A, C]` neither flipped nor double jumped, and at most 1.25 s since the jump."""
        in_time: Bool = self.air_time_since_jump < game.DOUBLEJUMP_MAX_DELAY
        return ~(self.has_double_jumped | self.has_flipped) & in_time

    @property
    def can_flip(self) -> Bool:
        """`[A, C]` in the air, jump released, flip unspent."""
        return ~self.on_ground & ~self.is_holding_jump & self.has_flip

    demo_respawn_timer = _timer("demo_respawn_timer")
    """`[A, C]` seconds until a demolished car returns, 0 when alive."""
    boost_active_time = _timer("time_spent_boosting")
    """`[A, C]` seconds since boosting began, 0 when not boosting."""
    supersonic_time = _timer("supersonic_time")
    """`[A, C]` seconds since the car became supersonic, 0 when it is not."""

    is_boosting: Derived[Bool] = Derived(lambda state: state.boost_active_time > 0)
    """`[A, C]` boost is burning."""
    is_supersonic: Derived[Bool] = Derived(lambda state: state.supersonic_time > 0)
    """`[A, C]` faster than 2200 uu/s, or a moment ago and still faster than 2100."""
    is_demoed: Derived[Bool] = Derived(lambda state: state.demo_respawn_timer > 0)
    """`[A, C]` demolished and not back yet; position, velocities, rotation, wheel contacts and the timers of boost
    and supersonic speed stay as they were."""

    # Counters of the game, float32 `[A, C]`, since the episode began.

    goals = _counter(layout.GOALS)
    """`[A, C]` goals of the car in this episode as RocketSim counts them: soon after its touch, no own goals."""
    shots = _counter(layout.SHOTS)
    """`[A, C]` shots on goal in this episode as RocketSim counts them: hard ones only."""
    saves = _counter(layout.SAVES)
    """`[A, C]` saves of such shots in this episode, as RocketSim counts them."""
    demos = _counter(layout.DEMOS)
    """`[A, C]` opponents demolished in this episode."""
    boost_pickups = _counter(layout.BOOST_PICKUPS)
    """`[A, C]` boost pads taken in this episode."""

    # Second tier: read from the live arenas on first access after a step (about 2 us per car).

    wheels_with_contact: Derived[Bool] = _detail("wheels")
    """`[A, C, 4]` each wheel touches something: front right, front left, back right, back left."""
    jump_time: Derived[Float] = _detail("jump_time")
    """`[A, C]` seconds since the jump began, until the car lands."""
    air_time: Derived[Float] = _detail("air_time")
    """`[A, C]` seconds since the car left the ground, 0 on it."""
    flip_torque: Derived[Float] = _detail("flip_torque")
    """`[A, C, 3]` direction of the last flip in the car's frame: x rolls, y pitches; zero before the first."""
    is_auto_flipping: Derived[Bool] = _detail("is_auto_flipping")
    """`[A, C]` the car lies on its roof and turns itself over."""
    auto_flip_timer: Derived[Float] = _detail("auto_flip_timer")
    """`[A, C]` seconds that the auto-flip still turns the car."""
    auto_flip_direction: Derived[Float] = _detail("auto_flip_direction")
    """`[A, C]` the way the auto-flip rolls the car: 1, -1, or 0 when there was none."""
    got_flip_reset: Derived[Bool] = _detail("got_flip_reset")
    """`[A, C]` in the air with a flip won back by four wheels on the ball (or another surface), not by a jump."""
    bump_cooldown: Derived[Float] = _detail("bump_cooldown")
    """`[A, C]` seconds until the same car can be bumped again, 0 without a recent bump."""
    bump_victim: Derived[NDArray[np.int32]] = _detail("bump_victim")
    """`[A, C]` slot of the car that was bumped while `bump_cooldown` lasts, else -1."""
    has_world_contact: Derived[Bool] = _detail("has_world_contact")
    """`[A, C]` the car's body touches the field."""
    world_contact_normal: Derived[Float] = _detail("world_contact_normal")
    """`[A, C, 3]` unit normal of the surface that the body touches, world view; multiply by MIRROR for orange's."""

    @property
    def last_touch(self) -> NDArray[np.int64]:
        """`[A]` slot of the car that touched the ball last in this episode, -1 for none."""
        self.read_stale_details()
        return self.last_touch_car

    goal_scored: Derived[Bool] = Derived(lambda state: np.abs(state.world.ball_pos[:, 1]) > game.GOAL_THRESHOLD)
    """`[A]` the ball is behind a goal line (|y| > 5215.5, rlgym's threshold)."""

    @property
    def scoring_team(self) -> NDArray[np.int8]:
        """`[A]` 0 where blue has scored, 1 where orange has, -1 elsewhere."""
        team = np.where(self.world.ball_pos[:, 1] > 0, layout.BLUE, layout.ORANGE)
        return np.where(self.goal_scored, team, -1).astype(np.int8)


def _broadcast_finite(name: str, values: ArrayLike, shape: tuple[int, ...]) -> Float:
    """Broadcast `values` to finite float32 of this shape."""
    try:
        numbers = np.broadcast_to(np.asarray(values, np.float32), shape)
    except (TypeError, ValueError):
        given = list(np.shape(values)) if isinstance(values, np.ndarray) else " ".join(repr(values).split())
        raise ValueError(f"GameState: {name} must be numbers that fit {list(shape)}, got {given}") from None
    if not np.isfinite(numbers).all():
        raise ValueError(f"GameState: {name} contains NaN or infinity")
    return numbers


def _place(xyz: Float) -> str:
    return f"({', '.join(f'{x:.0f}' for x in xyz.tolist())})"
