"""What several rewards read of one state, worked out once: distances to the ball, touches, who is demolished..."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Generic, TypeVar, overload

import numpy as np
from numpy.typing import NDArray
from rlgym.rocket_league.common_values import BACK_NET_Y

from envs.rewards.geometry import dot, length, seconds_between
from envs.state.game_state import GameState
from envs.state.layout import BOOST_PICKUPS, POS, SAVES, VEL, Bool, Float

OPPONENTS_NET = np.array([0, BACK_NET_Y, 0], np.float32)
"""Back of the net that a car attacks, on the floor, seen from its own side."""
LEAST_LENGTH = np.float32(1e-6)

_T = TypeVar("_T")


class once(Generic[_T]):
    """A property that is worked out when first read; unlike functools.cached_property without a lock."""

    def __init__(self, function: Callable[[Any], _T]) -> None:
        """Wraps a function of the owner, or a method without arguments."""
        self.function = function

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, owner: None, kind: type) -> "once[_T]": ...
    @overload
    def __get__(self, owner: object, kind: type) -> _T: ...
    def __get__(self, owner: Any, kind: type) -> Any:
        """Puts the value in the place of the property, where the next read finds it."""
        if owner is None:
            return self
        value = owner.__dict__[self._name] = self.function(owner)
        return value


class Shared:
    """Quantities of one state, each worked out when first asked for. They are nobody's to change.

    All arrays are copies, so they may be kept over steps, and are zero or False in slots without a car as far as the
    state is.

    Attributes:
        state: The state they are of; it must not change as long as this is used.
    """

    def __init__(self, state: GameState) -> None:
        self.state = state
        self._known: dict[tuple[int, ...], tuple[Any, ...]] = {}

    @once
    def touched(self) -> Bool:
        """`[A, C]` the car of the slot hit the ball since the previous step."""
        state = self.state
        return state.touched if state.all_present else state.touched & state.present

    hit: once[Bool] = once(lambda shared: shared.touched.any(axis=1))
    """`[A]` any car has touched."""
    any_touched: once[bool] = once(lambda shared: bool(shared.touched.any()))
    """Whether there is a touch in any arena."""
    on_ground: once[Bool] = once(lambda shared: shared.state.on_ground)
    """`[A, C]` see `GameState.on_ground`."""
    is_demoed: once[Bool] = once(lambda shared: shared.state.is_demoed)
    """`[A, C]` see `GameState.is_demoed`."""
    any_demoed: once[bool] = once(lambda shared: bool(shared.is_demoed.any()))
    """Whether any car is demolished."""
    is_flipping: once[Bool] = once(lambda shared: shared.state.is_flipping)
    """`[A, C]` see `GameState.is_flipping`."""
    has_flip: once[Bool] = once(lambda shared: shared.state.has_flip)
    """`[A, C]` see `GameState.has_flip`."""
    any_goal: once[bool] = once(lambda shared: bool(shared.goal_scored.any()))
    """Whether the ball is in a goal in any arena."""
    goal_scored: once[Bool] = once(lambda shared: shared.state.goal_scored)
    """`[A]` see `GameState.goal_scored`."""
    ticks: once[NDArray[np.int64]] = once(lambda shared: shared.state.episode_ticks.copy())
    """`[A]` of the episode."""
    counters: once[Float] = once(lambda shared: shared.state.car_rows[:, :, 0, SAVES : BOOST_PICKUPS + 1].copy())
    """`[A, C, 4]` saves, shots, demolitions, boost pickups in this episode."""
    boost_root: once[Float] = once(lambda shared: np.sqrt(shared.state.boost * np.float32(0.01)))
    """`[A, C]` sqrt(boost / 100), 0..1: the first drops count most."""

    # Places and velocities, uu and uu/s.

    car_pos: once[Float] = once(lambda shared: shared.state.world.car_pos.copy())
    """`[A, C, 3]` of the cars, world view."""
    car_vel: once[Float] = once(lambda shared: shared.state.world.car_vel.copy())
    """`[A, C, 3]` of the cars, world view."""
    car_height: once[Float] = once(lambda shared: shared.state.world.car_pos[..., 2].copy())
    """`[A, C]` of the cars."""
    car_up: once[Float] = once(lambda shared: shared.state.world.car_up[..., 2].copy())
    """`[A, C]` z of the unit vector out of the roof."""
    ball_sides_pos: once[Float] = once(lambda shared: shared.state.ball_rows[..., POS].copy())
    """`[A, 2, 3]` of the ball, as blue sees it and as orange does."""
    ball_sides_vel: once[Float] = once(lambda shared: shared.state.ball_rows[..., VEL].copy())
    """`[A, 2, 3]` of the ball, as blue sees it and as orange does."""
    ball_pos: once[Float] = once(lambda shared: shared.ball_sides_pos[:, 0])
    """`[A, 3]` of the ball, world view."""

    @once
    def to_ball(self) -> Float:
        """`[A, C, 3]` from each car to the ball, world view."""
        world = self.state.world
        vectors: Float = world.ball_pos[:, None] - world.car_pos
        return vectors

    ball_distance: once[Float] = once(lambda shared: length(shared.to_ball))
    """`[A, C]` from each car to the ball."""
    ball_divisor: once[Float] = once(lambda shared: np.maximum(shared.ball_distance, LEAST_LENGTH))
    """`[A, C]` `ball_distance`, at least 1e-6."""
    to_net: once[Float] = once(lambda shared: OPPONENTS_NET - shared.state.ball_rows[..., POS])
    """`[A, 2, 3]` from the ball to the opponents' net, as blue sees it and as orange does."""
    net_divisor: once[Float] = once(lambda shared: np.maximum(length(shared.to_net), LEAST_LENGTH))
    """`[A, 2]` the length of `to_net`, at least 1e-6."""
    ball_speed_to_net: once[Float] = once(
        lambda shared: dot(shared.state.ball_rows[..., VEL], shared.to_net) / shared.net_divisor
    )
    """`[A, 2]` the ball's speed toward orange's net and toward blue's."""

    # What depends on arrays that rewards keep. They mostly keep the same ones, those of the last step's `Shared`, so
    # results are known by the identity of the arrays, which live in the entry: no other array can get it meanwhile.

    def begun(self, mask: Bool, first: NDArray[Any], kept: NDArray[Any]) -> NDArray[Any]:
        """`kept [A, ...]` with the rows of `first` where `mask [A]`."""
        key = (id(first), id(kept), id(mask))
        if key not in self._known:
            rows = kept.copy()
            rows[mask] = first[mask]
            self._known[key] = (rows, first, kept, mask)
        begun: NDArray[Any] = self._known[key][0]
        return begun

    def gone(self, was_demoed: Bool) -> Bool | None:
        """`[A, C]` demolished now or in the last state; None if there are none."""
        key = (id(was_demoed),)
        if key not in self._known:
            gone: Bool = self.is_demoed | was_demoed
            self._known[key] = (gone if gone.any() else None, was_demoed)
        found: Bool | None = self._known[key][0]
        return found

    def seconds_since(self, ticks: NDArray[np.int64]) -> Float:
        """`[A, 1]` game time since `ticks [A]` of the episode."""
        key = (id(ticks), 0)
        if key not in self._known:
            self._known[key] = (seconds_between(self.ticks, ticks)[:, None], ticks)
        seconds: Float = self._known[key][0]
        return seconds


_current: ContextVar[Shared | None] = ContextVar("shared", default=None)
"""Of the surrounding `sharing`; every thread has its own."""


def shared_of(state: GameState) -> Shared:
    """The quantities of `state`: within `sharing(state)` the same ones for all rewards, else new ones."""
    current = _current.get()
    return current if current is not None and current.state is state else Shared(state)


@contextmanager
def sharing(state: GameState) -> Iterator[None]:
    """While it is open, all rewards that look at `state` in this thread share what they work out.

    It begins with what a surrounding one of the same state has, or with nothing. The state must not change meanwhile: a
    sum of rewards opens it for one step or one reset, not longer.
    """
    before = _current.set(shared_of(state))
    try:
        yield
    finally:
        _current.reset(before)
