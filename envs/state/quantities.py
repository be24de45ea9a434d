"""Quantities: values that several rewards read from one state, computed once: distances, touches, demolitions."""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from rlgym.rocket_league.common_values import BACK_NET_Y, TICKS_PER_SECOND

from envs.state.layout import BOOST_PICKUPS, POS, SAVES, VEL, Bool, Float
from envs.state.view import cached

if TYPE_CHECKING:
    from envs.state.game_state import GameState

OPPONENTS_NET = np.array([0, BACK_NET_Y, 0], np.float32)
"""Back of the net that a car attacks, on the floor, seen from its own side."""
LEAST_LENGTH = np.float32(1e-6)


def seconds_between(ticks: NDArray[np.int64], before: NDArray[np.int64]) -> Float:
    """Return the game time `[A]` in seconds between two tick counts."""
    return (ticks - before).astype(np.float32) / np.float32(TICKS_PER_SECOND)


def dot(a: Float, b: Float) -> Float:
    """Return the scalar products `[...]` of vectors `[..., k]`."""
    products: Float = np.einsum("...i,...i->...", a, b)
    return products


def length(vectors: Float) -> Float:
    """Return the Euclidean norms `[...]` of vectors `[..., k]`."""
    return np.sqrt(dot(vectors, vectors))


class Quantities:
    """Quantities that several rewards read from a state, each computed on first access; do not write to them.

    All arrays are copies, so they may be kept over steps. In slots without a car, they are zero or False where the
    state is. `GameState.quantities` is computed from the current numbers of the state.
    """

    def __init__(self, state: "GameState") -> None:
        self.state = state

    @cached
    def touched(self) -> Bool:
        """`[A, C]` the car of the slot hit the ball since the previous step."""
        state = self.state
        return state.touched if state.all_present else state.touched & state.present

    hit: cached[Bool] = cached(lambda q: q.touched.any(axis=1))
    """`[A]` any car has touched."""
    any_touched: cached[bool] = cached(lambda q: bool(q.touched.any()))
    """True if there is a touch in any arena."""
    on_ground: cached[Bool] = cached(lambda q: q.state.on_ground)
    """`[A, C]` see `GameState.on_ground`."""
    is_demoed: cached[Bool] = cached(lambda q: q.state.is_demoed)
    """`[A, C]` see `GameState.is_demoed`."""
    any_demoed: cached[bool] = cached(lambda q: bool(q.is_demoed.any()))
    """True if any car is demolished."""
    is_flipping: cached[Bool] = cached(lambda q: q.state.is_flipping)
    """`[A, C]` see `GameState.is_flipping`."""
    has_flip: cached[Bool] = cached(lambda q: q.state.has_flip)
    """`[A, C]` see `GameState.has_flip`."""
    any_goal: cached[bool] = cached(lambda q: bool(q.goal_scored.any()))
    """True if the ball is in a goal in any arena."""
    goal_scored: cached[Bool] = cached(lambda q: q.state.goal_scored)
    """`[A]` see `GameState.goal_scored`."""
    ticks: cached[NDArray[np.int64]] = cached(lambda q: q.state.episode_ticks.copy())
    """`[A]` ticks since the episode began."""
    counters: cached[Float] = cached(lambda q: q.state.car_rows[:, :, 0, SAVES : BOOST_PICKUPS + 1].copy())
    """`[A, C, 4]` saves, shots, demolitions, boost pickups in this episode."""
    boost_root: cached[Float] = cached(lambda q: np.sqrt(q.state.boost * np.float32(0.01)))
    """`[A, C]` sqrt(boost / 100), 0..1: the first drops count most."""

    # Positions and velocities, uu and uu/s.

    car_pos: cached[Float] = cached(lambda q: q.state.world.car_pos.copy())
    """`[A, C, 3]` positions of the cars, world view."""
    car_vel: cached[Float] = cached(lambda q: q.state.world.car_vel.copy())
    """`[A, C, 3]` velocities of the cars, world view."""
    car_height: cached[Float] = cached(lambda q: q.state.world.car_pos[..., 2].copy())
    """`[A, C]` heights of the cars."""
    car_up: cached[Float] = cached(lambda q: q.state.world.car_up[..., 2].copy())
    """`[A, C]` z of the unit vector out of the roof."""
    ball_sides_pos: cached[Float] = cached(lambda q: q.state.ball_rows[..., POS].copy())
    """`[A, 2, 3]` position of the ball, as blue sees it and as orange does."""
    ball_sides_vel: cached[Float] = cached(lambda q: q.state.ball_rows[..., VEL].copy())
    """`[A, 2, 3]` velocity of the ball, as blue sees it and as orange does."""
    ball_pos: cached[Float] = cached(lambda q: q.ball_sides_pos[:, 0])
    """`[A, 3]` position of the ball, world view."""

    @cached
    def to_ball(self) -> Float:
        """`[A, C, 3]` from each car to the ball, world view."""
        world = self.state.world
        vectors: Float = world.ball_pos[:, None] - world.car_pos
        return vectors

    ball_distance: cached[Float] = cached(lambda q: length(q.to_ball))
    """`[A, C]` from each car to the ball."""
    ball_divisor: cached[Float] = cached(lambda q: np.maximum(q.ball_distance, LEAST_LENGTH))
    """`[A, C]` `ball_distance`, at least 1e-6."""
    to_net: cached[Float] = cached(lambda q: OPPONENTS_NET - q.state.ball_rows[..., POS])
    """`[A, 2, 3]` from the ball to the opponents' net, as blue sees it and as orange does."""
    net_divisor: cached[Float] = cached(lambda q: np.maximum(length(q.to_net), LEAST_LENGTH))
    """`[A, 2]` the length of `to_net`, at least 1e-6."""
    ball_speed_to_net: cached[Float] = cached(lambda q: dot(q.state.ball_rows[..., VEL], q.to_net) / q.net_divisor)
    """`[A, 2]` the ball's speed toward orange's net and toward blue's."""
