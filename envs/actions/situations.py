"""Situations in which some of the controls provably do nothing, read from a `GameState` for all cars at once."""

import numpy as np
from numpy.typing import NDArray
from rlgym.rocket_league import common_values as game

from envs.actions.base import BOOST, JUMP, PITCH, ROLL, STEER
from envs.state.game_state import GameState
from envs.state.layout import Bool, Float

UNSURE, FLOOR, AIR, AIR_WITHOUT_FLIP = range(4)
EMPTY = 4
"""Added to one of the above."""
DEMOLISHED = 8
NUM_SITUATIONS = 9
SITUATION_NAMES = (
    *("any", "on the floor", "in the air", "in the air, flip spent"),
    *("no boost", "on the floor, no boost", "in the air, no boost", "in the air, flip spent, no boost"),
    "demolished",
)

CAR_RADIUS = 100.0  # uu, no point of a car is farther from its position
RAMP = 350.0  # uu, a little more than what the curve between floor and wall, or wall and ceiling, takes up
RESPAWN_Y = 4608.0  # uu, where demolished cars come back, at either end of the field
PAD_RADIUS = 250.0  # uu, half a diagonal of the box in which a car takes a large pad
FLOOR_Z = (15.0, 19.0)  # uu, a car on four wheels rests at 17
CALM_VERTICAL_SPEED, CALM_TILT_RATE, LEVEL = 30.0, 0.3, 0.999  # uu/s, rad/s, z of the roof's unit vector

_PADS_XY = np.array(game.BOOST_LOCATIONS, np.float32)[:, :2]


def without_effect(situation: int, rows: Float) -> Float:
    """A copy of `rows [n, 8]` in which every control that does nothing in `situation` is zero.

    Rows that become equal move a car in the same way, to the bit, until the choice ends.
    """
    kept = rows.copy()
    if situation == DEMOLISHED:
        kept[:] = 0
        return kept
    place, empty = situation % EMPTY, situation >= EMPTY
    if empty:
        kept[:, BOOST] = 0
    if place == FLOOR:  # a car that jumps leaves the floor, and then pitch, yaw and roll turn it
        kept[kept[:, JUMP] == 0, PITCH : ROLL + 1] = 0
    if place in (AIR, AIR_WITHOUT_FLIP):
        kept[:, STEER] = 0
    if place == AIR_WITHOUT_FLIP:
        kept[:, JUMP] = 0
    return kept


def situations(state: GameState, horizon_ticks: int) -> NDArray[np.int64]:
    """`[A, C]` the situation that every car is sure to be in for the next `horizon_ticks` ticks, whatever it is told.

    Nothing can touch a car, no pad be reached and no car return in that time at the game's highest speeds (2300 uu/s
    cars, 6000 uu/s ball); where that is not certain the answer is `UNSURE`.
    """
    reach = game.CAR_MAX_SPEED * horizon_ticks / game.TICKS_PER_SECOND
    alone = _alone(state, reach, game.BALL_MAX_SPEED * horizon_ticks / game.TICKS_PER_SECOND)
    still = ~state.is_jumping & (state.controls[..., JUMP] == 0) & ~state.has_jumped
    found = np.full(alone.shape, UNSURE)
    found[alone & still & _settled(state)] = FLOOR
    height = state.world.car_pos[..., 2]
    flying = alone & ~state.on_ground & (height > RAMP + reach) & (height < game.CEILING_Z - RAMP - reach)
    found[flying] = AIR
    found[flying & ~state.has_flip & ~state.is_jumping] = AIR_WITHOUT_FLIP
    _add_empty(found, state, reach)
    found[state.demo_respawn_timer > (horizon_ticks + 1) / game.TICKS_PER_SECOND] = DEMOLISHED
    return found


def _settled(state: GameState) -> Bool:
    world = state.world
    height, tilting = world.car_pos[..., 2], np.abs(world.car_ang_vel[..., :2]).max(axis=-1)
    calm = (np.abs(world.car_vel[..., 2]) < CALM_VERTICAL_SPEED) & (tilting < CALM_TILT_RATE)
    level = (world.car_up[..., 2] > LEVEL) & (height > FLOOR_Z[0]) & (height < FLOOR_Z[1])
    settled: Bool = state.on_ground & calm & level
    return settled


def _alone(state: GameState, reach: float, ball_reach: float) -> Bool:
    """`[A, C]` no wall, ramp, ball or car that the car could meet, wherever they all go."""
    pos = state.world.car_pos
    x, y = np.abs(pos[..., 0]), np.abs(pos[..., 1])
    gap = reach + CAR_RADIUS
    corner = game.SIDE_WALL_X + 5120 - game.CORNER_CATHETUS_LENGTH  # |x| + |y| of the walls that cut the corners
    alone = (x < game.SIDE_WALL_X - RAMP - gap) & (y < RESPAWN_Y - CAR_RADIUS - gap)
    alone &= x + y < corner - 2 * (RAMP + gap)
    to_ball = pos - state.world.ball_pos[:, None]
    alone &= np.einsum("ack,ack->ac", to_ball, to_ball) > (gap + ball_reach + game.BALL_RADIUS) ** 2
    for other in range(state.num_cars):
        to_car = pos - pos[:, other, None]
        near = np.einsum("ack,ack->ac", to_car, to_car) <= (2 * gap) ** 2
        near[:, other] = False
        alone &= ~(near & state.present[:, other, None])
    result: Bool = alone & state.present & ~state.is_demoed
    return result


def _add_empty(found: NDArray[np.int64], state: GameState, reach: float) -> None:
    """Adds `EMPTY` for cars without boost that reach no pad, whether it is there now or not."""
    arena, car = np.nonzero((state.boost == 0) & state.present & ~state.is_demoed)
    to_pad = state.world.car_pos[arena, car, None, :2] - _PADS_XY
    nearest = np.einsum("npk,npk->np", to_pad, to_pad).min(axis=1, initial=np.inf)
    far = nearest > (reach + CAR_RADIUS + PAD_RADIUS) ** 2
    found[arena[far], car[far]] += EMPTY
