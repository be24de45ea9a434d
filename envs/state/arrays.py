"""StateArrays: the arrays of a `GameState`, their views from both sides, and copies of them."""

import copy
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
from numpy.typing import DTypeLike, NDArray

from envs.state import layout
from envs.state.layout import Bool, Float
from envs.state.quantities import Quantities
from envs.state.view import View
from fabric_rl.base.state_schema import check_like

State = TypeVar("State", bound="StateArrays")

LARGEST = 1e7
"""Beyond every number of a game: uu, uu/s, ticks."""


def with_spare_row(shape: tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
    """Zeros with memory of their own for one more row, so that functions of a column are the same to the bit each time.

    NumPy before 2.0.2 takes a column of a matrix to reach beyond the last row (numpy/numpy#26972). A result of
    `arctan2`, `arcsin`, ... that happens to lie there is computed by other code, with other last bits (with AVX-512).
    In the spare row no result can lie.

    Args:
        shape: Of the array, without the spare row.
        dtype: Of the array.
    """
    return np.zeros((shape[0] + 1, *shape[1:]), dtype)[:-1]


class StateArrays:
    """What is stored of all arenas; `GameState` adds what follows from it.

    Attributes:
        ball_rows: `[A, 2, 25]` float32, rows of RocketSim's gym state; in the world, then mirrored.
        car_rows: `[A, C, 2, 36]` float32, likewise.
        car_states: `[A, C]` of `CAR_STATE`; its fields are also `car_timers` `[A, C, 6]` and `car_flags` `[A, C, 5]`.
        details: `[A, C]` of `CAR_DETAILS`, of the arenas that are not `details_stale`.
        details_stale: `[A]` bool, where `details` and `last_touch_car` are older than the rest.
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
        """Creates a state, all zero.

        Args:
            num_arenas: `A`.
            num_blue: Blue slots per arena.
            num_orange: Orange slots per arena.
            present: `[A, C]` which slots have a car. Default: all.
        """
        num_cars = num_blue + num_orange
        self.num_blue, self.num_orange = num_blue, num_orange
        self.team = np.array([layout.BLUE] * num_blue + [layout.ORANGE] * num_orange, dtype=np.int8)
        self.arena_index = np.arange(num_arenas)
        self.present = np.ones((num_arenas, num_cars), np.bool_) if present is None else present
        self.ball_rows = with_spare_row((num_arenas, 2, layout.BALL_COLUMNS), np.float32)
        self.car_rows = with_spare_row((num_arenas, num_cars, 2, layout.CAR_COLUMNS), np.float32)
        self.car_states = with_spare_row((num_arenas, num_cars), layout.CAR_STATE)
        self.details = np.zeros((num_arenas, num_cars), layout.CAR_DETAILS)
        self.details_stale = np.zeros(num_arenas, np.bool_)
        self.last_touch_car = np.full(num_arenas, -1)
        self.controls = with_spare_row((num_arenas, num_cars, 8), np.float32)
        self.pad_timers = with_spare_row((num_arenas, layout.NUM_PADS), np.float32)
        self.episode_ticks = np.zeros(num_arenas, np.int64)
        self.ticks_since_touch = np.zeros(num_arenas, np.int64)
        self._own: View | None = None
        self._quantities: Quantities | None = None
        self.read_details: Callable[[StateArrays], None] | None = None
        """Fills the stale rows of `details` and `last_touch_car` from the live arenas; set by the pool."""
        self._make_views()

    def _make_views(self) -> None:
        self.all_present = bool(self.present.all())
        self.world = View(self.ball_rows[:, 0], self.car_rows[:, :, 0], self.pad_timers)
        self.mirrored = View(self.ball_rows[:, 1], self.car_rows[:, :, 1], self.pad_timers[:, ::-1])
        self.boost: Float = self.car_rows[:, :, 0, layout.BOOST]
        self.car_timers: Float = self.car_states["timers"]
        self.car_flags: Bool = self.car_states["flags"]
        self.invalidate()

    @property
    def num_arenas(self) -> int:
        """`A`."""
        return len(self.ball_rows)

    @property
    def num_cars(self) -> int:
        """`C`, cars per arena."""
        return self.num_blue + self.num_orange

    def select(self: State, arenas: NDArray[np.int64]) -> State:
        """A copy that holds only the given rows, with the pool's arena numbers in `arena_index`."""
        part, and_a_spare = copy.copy(self), np.append(arenas, arenas[:1])
        for name in _ARRAYS:
            setattr(part, name, getattr(self, name)[and_a_spare][:-1])
        part._make_views()
        return part

    def copy(self: State) -> State:
        """A copy that keeps what is in it now, however the pool goes on; the live arenas are read for it first."""
        self.read_stale_details()
        kept = self.select(np.arange(self.num_arenas))
        kept.team, kept.read_details = self.team.copy(), None
        return kept

    def __deepcopy__(self: State, memo: dict[int, Any]) -> State:
        return self.copy()

    def read_stale_details(self) -> None:
        """Brings `details` and `last_touch_car` up to date, where there are live arenas to read them from."""
        if self.read_details is not None and self.details_stale.any():
            self.read_details(self)

    def state_dict(self) -> dict[str, NDArray[Any]]:
        """Copies of all arrays, by name; plain dtypes only. Without the numbers that RocketSim gave the cars."""
        arrays = {name: _plain(getattr(self, name)).copy() for name in _ARRAYS}
        arrays["car_rows"][..., layout.CAR_ID] = 0  # of restored cars it is another one
        return arrays

    def check(self, arrays: dict[str, NDArray[Any]]) -> None:
        """Raise a ValueError unless `arrays` are those of a state with as many arenas and cars."""
        for name in _ARRAYS:
            mine, saved = getattr(self, name), arrays[name]
            try:
                check_like(saved, _plain(mine), f"GameState: the saved {name}")
            except ValueError as error:
                raise ValueError(f"{error}; restore into a pool with the same number of arenas and cars") from error

    def load_state_dict(self, arrays: dict[str, NDArray[Any]]) -> None:
        """Takes what `state_dict` gave; a ValueError as that of `check`."""
        self.check(arrays)
        for name in _ARRAYS:
            _plain(getattr(self, name))[:] = arrays[name]
        self._make_views()

    @property
    def own(self) -> View:
        """What each car sees from its own side; arrays start with `[A, C]`. Built when first asked for after a step."""
        if self._own is None:
            each = (self.num_arenas, self.num_cars)
            sizes = (layout.BALL_COLUMNS, layout.CAR_COLUMNS, layout.NUM_PADS)
            self._own = View(*(with_spare_row((*each, size), np.float32) for size in sizes))
            for side, view in ((slice(self.num_blue), self.world), (slice(self.num_blue, None), self.mirrored)):
                self._own.ball[:, side] = view.ball[:, None]
                self._own.cars[:, side] = view.cars[:, side]
                self._own.pad_timers[:, side] = view.pad_timers[:, None]
        return self._own

    def invalidate(self) -> None:
        """Drop what was derived from the rows and kept; the pool calls it whenever it has written new rows."""
        self._own = self._quantities = None

    def clear(self, arenas: NDArray[np.int64]) -> None:
        """Resets rows to a base state before a state setter runs: all zero, cars upright facing +x, wheels down."""
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
        """Zeroes the slots of one arena that have no car, whatever a state setter wrote there."""
        absent = np.flatnonzero(~self.present[arena])
        for rows in (self.car_rows, self.car_states, self.details, self.controls):
            rows[arena, absent] = np.zeros((), rows.dtype)

    def set_on_ground(self, arena: int | slice, on_ground: Bool) -> None:
        """Puts all or no wheels of each car (`on_ground [C]`, of several arenas `[A, C]`) on the ground."""
        self.car_rows[arena, :, :, layout.ON_GROUND] = on_ground[..., None]
        self.details["wheels"][arena] = on_ground[..., None]

    def set_car_rotation(self, arena: int | slice, pitch: Float, yaw: Float, roll: Float) -> None:
        """Orients all cars of one arena, or of several (world view).

        Args:
            arena: Row of this state, or rows.
            pitch: `[C]` (of several arenas `[A, C]`) radians, positive lifts the nose.
            yaw: `[C]` radians, 0 faces +x, pi/2 faces +y.
            roll: `[C]` radians.
        """
        cp, cy, cr = np.cos(pitch), np.cos(yaw), np.cos(roll)
        sp, sy, sr = np.sin(pitch), np.sin(yaw), np.sin(roll)
        world = self.world
        world.car_forward[arena] = np.stack((cp * cy, cp * sy, sp), axis=-1)
        world.car_right[arena] = np.stack((cy * sp * sr - cr * sy, sy * sp * sr + cr * cy, -cp * sr), axis=-1)
        world.car_up[arena] = np.stack((-cr * cy * sp - sr * sy, -cr * sy * sp + sr * cy, cp * cr), axis=-1)


_ARRAYS = tuple(StateArrays.__annotations__)
"""Those that a copy copies and a snapshot holds, in this order: all that the class declares."""


def _plain(array: NDArray[Any]) -> NDArray[Any]:
    """Structured arrays as bytes, others as they are."""
    return array.view(np.uint8) if array.dtype.names else array
