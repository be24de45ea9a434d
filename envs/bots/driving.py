"""How bots get a car from here to there: steering on wheels, turning in the air, getting off the roof.

All of it looks from the car's own side (`GameState.own`). Points and lengths in uu, angles in radians.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from rlgym.rocket_league.common_values import BACK_WALL_Y, BALL_RADIUS, GRAVITY, SIDE_WALL_X

from envs.actions.base import BOOST, HANDBRAKE, JUMP, PITCH, ROLL, STEER, THROTTLE, YAW
from envs.state.game_state import GameState
from envs.state.layout import Bool, Float

_SPEEDS = np.array([0, 500, 1000, 1500, 1750, 2300], np.float32)
_TURNING_RADII = np.array([145, 251, 425, 727, 909, 1136], np.float32)
"""uu at these speeds with full steer; the game's curve, as measured by the RLBot community."""

STEER_GAIN, TURN_GAIN, TURN_DAMPING = 3.0, 2.0, 0.4
ROOF_HEIGHT, ROOF_SPEED = 130.0, 800.0
TOP_SPEED = 2250.0


def blank(state: GameState) -> Float:
    """`[A, C, 8]` controls that do nothing."""
    return np.zeros((state.num_arenas, state.num_cars, 8), np.float32)


def dot(a: NDArray[Any], b: NDArray[Any]) -> Float:
    """Scalar products of `[..., k]` vectors."""
    product: Float = np.einsum("...i,...i->...", a, b)
    return product


def bearing(state: GameState, target: Float) -> tuple[Float, Float]:
    """Where a target `[A, C, 3]` lies on the plane of the car's wheels: angle to the right, and distance, `[A, C]`."""
    own = state.own
    way = target - own.car_pos
    ahead, aside = dot(way, own.car_forward), dot(way, own.car_right)
    return np.arctan2(aside, ahead), np.hypot(ahead, aside)


def drive(state: GameState, target: Float, speed: float | Float = TOP_SPEED) -> Float:
    """Controls `[A, C, 8]` that take every car to a point, each in the way that its wheels, or their absence, allow.

    Args:
        state: Of the pool.
        target: `[A, C, 3]` seen from the car's own side; of a point in the air, the place below counts.
        speed: uu/s, one number or `[A, C]`; above 1410 it takes boost, if there is some.
    """
    controls, own = blank(state), state.own
    angle, distance = bearing(state, target)
    velocity = dot(own.car_vel, own.car_forward)
    radius = np.interp(np.abs(velocity), _SPEEDS, _TURNING_RADII)
    ahead, aside = distance * np.cos(angle), np.abs(distance * np.sin(angle))
    too_tight = (np.hypot(ahead, aside - radius) < 0.95 * radius) & (np.abs(angle) > 0.3)
    faster = velocity < speed
    controls[..., THROTTLE] = np.where(too_tight & (velocity > 400), -1, np.where(faster, 1, 0))
    controls[..., STEER] = np.clip(STEER_GAIN * angle, -1, 1)
    straight, burning = np.abs(angle) < 0.25, velocity > 1200
    short = np.broadcast_to(speed, velocity.shape) - velocity > np.where(burning, 20, 300)
    controls[..., BOOST] = straight & short & (np.broadcast_to(speed, velocity.shape) > 1500)
    controls[..., HANDBRAKE] = (np.abs(angle) > 1.8) & (velocity > 600) & (distance > 2 * radius)
    return np.where(state.on_ground[..., None], controls, recover(state, angle))


def recover(state: GameState, angle: Float) -> Float:
    """Controls `[A, C, 8]` off the wheels: level out with the nose `angle` further to the right, roll off the roof."""
    controls, own = blank(state), state.own
    up, spin = own.car_up, own.car_ang_vel
    controls[..., THROTTLE] = 1
    controls[..., PITCH] = -TURN_GAIN * own.car_forward[..., 2] + TURN_DAMPING * dot(spin, own.car_right)
    controls[..., YAW] = np.where(up[..., 2] > 0.5, angle, 0) - TURN_DAMPING * dot(spin, up)
    tilt = np.arctan2(own.car_right[..., 2], up[..., 2])
    controls[..., ROLL] = TURN_GAIN * tilt + TURN_DAMPING * dot(spin, own.car_forward)
    controls[..., PITCH : ROLL + 1] = np.clip(controls[..., PITCH : ROLL + 1], -1, 1)
    slow = np.sqrt(dot(own.car_vel, own.car_vel)) < ROOF_SPEED
    lying = (up[..., 2] < 0.6) & (own.car_pos[..., 2] < ROOF_HEIGHT) & slow
    controls[..., JUMP] = lying & ~state.is_holding_jump
    return controls


def ball_after(state: GameState, seconds: Float) -> Float:
    """`[A, C, 3]` where the ball will be, held inside the field: it flies on and bounces nowhere but off the ground."""
    own = state.own
    ball, velocity = own.ball_pos, own.ball_vel
    spot: Float = (ball + velocity * seconds[..., None]).astype(np.float32)
    spot[..., 2] -= GRAVITY / 2 * seconds * seconds
    limits = np.array([SIDE_WALL_X, BACK_WALL_Y], np.float32) - np.float32(BALL_RADIUS)
    spot[..., :2] = np.clip(spot[..., :2], -limits, limits)
    spot[..., 2] = np.maximum(spot[..., 2], np.float32(BALL_RADIUS))
    return spot


def landing_seconds(state: GameState, height: float = 200.0) -> Float:
    """`[A, C]` until the ball has come down to `height` uu, 0 where it is lower."""
    own = state.own
    above, rising = own.ball_pos[..., 2] - height, own.ball_vel[..., 2]
    root = np.sqrt(np.maximum(rising * rising + 2 * GRAVITY * above, 0))
    return np.where(above > 0, (rising + root) / GRAVITY, 0).astype(np.float32)


def arrival_seconds(state: GameState, target: Float, least_speed: float = 1200.0) -> Float:
    """`[A, C]` the time that the straight way to a point takes at the car's speed, at least `least_speed`."""
    own = state.own
    way = (target - own.car_pos)[..., :2]
    speed = np.sqrt(dot(own.car_vel, own.car_vel))
    seconds: Float = (np.sqrt(dot(way, way)) / np.maximum(speed, least_speed)).astype(np.float32)
    return seconds


def can_dodge(state: GameState) -> Bool:
    """`[A, C]` jumped, let go of the button, flip unspent."""
    return state.has_jumped & state.can_flip
