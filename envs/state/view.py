"""View: ball, cars and pads as seen from one side of the field; derived and cached attributes, quaternions of axes."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, TypeVar, overload

import numpy as np
from numpy.typing import NDArray

from envs.state import layout
from envs.state.layout import Float

T = TypeVar("T")


class Derived(property, Generic[T]):
    """Property computed by a function of its owner, with its docstring below it, like any other attribute."""

    if TYPE_CHECKING:  # the type of a property that is not used as a decorator

        def __init__(self, read: Callable[[Any], T]) -> None:
            """Wrap `read`."""

        def __get__(self, owner: object, kind: type | None = None, /) -> T:  # type: ignore[override]
            """Return `read(owner)`."""


class cached(Generic[T]):
    """A property that is computed on first access, without the lock that functools.cached_property may use."""

    def __init__(self, function: Callable[[Any], T]) -> None:
        """Wrap a function of the owner, or a method without arguments."""
        self.function = function

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, owner: None, kind: type) -> "cached[T]": ...
    @overload
    def __get__(self, owner: object, kind: type) -> T: ...
    def __get__(self, owner: Any, kind: type) -> Any:
        """Store the value in the owner's `__dict__`, where the next access finds it."""
        if owner is None:
            return self
        value = owner.__dict__[self._name] = self.function(owner)
        return value


class ReadOnlyArray(np.ndarray[Any, Any]):
    """Array of a pool's state that cannot be written; results of computations are ordinary arrays."""

    def __setitem__(self, key: Any, value: Any) -> None:  # noqa: ANN401 - numpy's
        _plain(self, for_writing=True)[key] = value

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **settings: Any) -> Any:  # noqa: ANN401
        if "out" in settings:
            settings["out"] = tuple(_plain(array, for_writing=True) for array in settings["out"])
        return getattr(ufunc, method)(*map(_plain, inputs), **settings)


def _plain(value: Any, for_writing: bool = False) -> Any:  # noqa: ANN401 - a number or any array
    """Return a `ReadOnlyArray` as an ordinary array, and other values unchanged; raise a ValueError for writing."""
    if not isinstance(value, ReadOnlyArray):
        return value
    if for_writing and not value.flags.writeable:
        advice = "call set_state() of pool.arenas[i].ball or of a car, or begin episodes with a StateSetter"
        raise ValueError(f"GameState: pool.state is read-only between steps, as it only shows the arenas; {advice}")
    return value.view(np.ndarray)


def read_only(array: NDArray[Any]) -> ReadOnlyArray:
    """Return a view of the array that cannot be written."""
    view = array.view(ReadOnlyArray)
    view.setflags(write=False)
    return view


def quaternions(basis: Float) -> Float:
    """Return unit quaternions w, x, y, z `[..., 4]` float32 of axes forward, right and up, `basis [..., 3, 3]`.

    The rows of `4 q q^T` follow from these; the one with the largest diagonal element is `q` up to its length (Shepperd
    1978). Of q and -q, which are the same rotation, return the one in which that element is positive.
    """
    (xx, yx, zx), (xy, yy, zy), (xz, yz, zz) = (np.moveaxis(basis[..., i, :], -1, 0) for i in range(3))
    rows = np.array(
        [
            [1 + xx + yy + zz, zy - yz, xz - zx, yx - xy],
            [zy - yz, 1 + xx - yy - zz, xy + yx, xz + zx],
            [xz - zx, xy + yx, 1 - xx + yy - zz, yz + zy],
            [yx - xy, xz + zx, yz + zy, 1 - xx - yy + zz],
        ]
    )
    largest = np.einsum("ii...->i...", rows).argmax(axis=0)
    row = np.moveaxis(np.take_along_axis(rows, largest[None, None], axis=0)[0], 0, -1)
    unit: Float = (row / np.linalg.norm(row, axis=-1, keepdims=True)).astype(np.float32)
    return unit


def bases(quaternions: Float) -> Float:
    """Return axes forward, right and up `[..., 3, 3]` float32 of quaternions w, x, y, z `[..., 4]` of any length."""
    w, x, y, z = np.moveaxis(quaternions / np.linalg.norm(quaternions, axis=-1, keepdims=True), -1, 0)
    rows = [
        [1 - 2 * (y * y + z * z), 2 * (x * y + w * z), 2 * (x * z - w * y)],
        [2 * (x * y - w * z), 1 - 2 * (x * x + z * z), 2 * (y * z + w * x)],
        [2 * (x * z + w * y), 2 * (y * z - w * x), 1 - 2 * (x * x + y * y)],
    ]
    return np.moveaxis(np.array(rows, np.float32), (0, 1), (-2, -1))


def _ball(columns: slice) -> Derived[Float]:
    return Derived(lambda view: view.ball[..., columns])


def _cars(columns: slice) -> Derived[Float]:
    return Derived(lambda view: view.cars[..., columns])


class View:
    """Ball, cars and pads as seen from one side of the field.

    `GameState.world` is the field itself, `GameState.mirrored` the field rotated by 180 degrees about z (orange's
    side: orange attacks +y in it), both with arrays `ball_* [A, 3]`, `car_* [A, C, 3]`, `pad_timers [A, 34]`.
    `GameState.own` is the view of every car from its own side, where every car attacks +y:
    `ball_* [A, C, 3]`, `car_* [A, C, 3]`, `pad_timers [A, C, 34]`.
    """

    __slots__ = ("ball", "cars", "pad_timers")

    def __init__(self, ball: Float, cars: Float, pad_timers: Float) -> None:
        """Wrap rows of RocketSim's gym state: `ball [..., 25]`, `cars [..., C, 36]`, `pad_timers [..., 34]`."""
        self.ball = ball
        self.cars = cars
        self.pad_timers = pad_timers
        """Seconds until each pad can be taken again, 0..10, 0 when it is there; order of rlgym's BOOST_LOCATIONS."""

    ball_pos = _ball(layout.POS)
    """Position, uu: |x| <= 4096, |y| <= 6000, 0 <= z <= 2044."""
    ball_vel = _ball(layout.VEL)
    """Linear velocity, uu/s, norm <= 6000."""
    ball_ang_vel = _ball(layout.ANG_VEL)
    """Angular velocity, rad/s, norm <= 6."""
    car_pos = _cars(layout.CAR_POS)
    """Position, uu."""
    car_vel = _cars(layout.CAR_VEL)
    """Linear velocity, uu/s, norm <= 2300."""
    car_ang_vel = _cars(layout.CAR_ANG_VEL)
    """Angular velocity, rad/s, norm <= 5.5 (a demolished car may keep more)."""
    car_quaternion = _cars(layout.CAR_QUATERNION)
    """Rotation as a unit quaternion w, x, y, z."""
    ball_quaternion = _ball(layout.QUATERNION)
    """Always 1, 0, 0, 0 in the world's view: the rotation of the ball is not simulated."""

    @property
    def car_pitch_yaw_roll(self) -> Float:
        """Euler angles, radians: pitch in -pi/2..pi/2 lifts the nose, yaw 0 faces +x, roll turns to the right."""
        forward, right, up = self.car_forward, self.car_right, self.car_up
        pitch = np.arcsin(np.clip(forward[..., 2], -1, 1))
        yaw = np.arctan2(forward[..., 1], forward[..., 0])
        return np.stack((pitch, yaw, np.arctan2(-right[..., 2], up[..., 2])), axis=-1)

    car_forward = _cars(layout.CAR_FORWARD)
    """Unit vector out of the car's nose."""
    car_right = _cars(layout.CAR_RIGHT)
    """Unit vector to the car's right (RocketSim's rotation matrix, middle column)."""
    car_up = _cars(layout.CAR_UP)
    """Unit vector out of the car's roof."""
