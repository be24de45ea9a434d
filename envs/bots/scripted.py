"""Scripted bots, and the driving functions that most of them use: steer, turn in the air, get off the roof.

The functions use each car's own view (`GameState.own`). Points and lengths are in uu, angles in radians.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import gymnasium
import numpy as np
from numpy.typing import NDArray
from rlgym.rocket_league.common_values import BACK_WALL_Y, BALL_RADIUS, GRAVITY, SIDE_WALL_X

from envs.actions import ActionParser
from envs.actions.base import ANALOGUE, BOOST, BUTTONS, HANDBRAKE, JUMP, PITCH, ROLL, STEER, THROTTLE, YAW
from envs.pool.players import Bot
from envs.state.game_state import GameState
from envs.state.layout import Bool, Float
from envs.state.quantities import dot, length
from fabric_rl.base.settings import CountOrZero

_SPEEDS = np.array([0, 500, 1000, 1500, 1750, 2300], np.float32)
_TURNING_RADII = np.array([145, 251, 425, 727, 909, 1136], np.float32)
"""uu at these speeds with full steer; the game's curve, as measured by the RLBot community."""

STEER_GAIN, TURN_GAIN, TURN_DAMPING = 3.0, 2.0, 0.4
ROOF_HEIGHT, ROOF_SPEED = 130.0, 800.0
TOP_SPEED, LEAST_SPEED = 2250.0, 1200.0
LANDED_HEIGHT = 200.0


def angle_and_distance(state: GameState, target: Float) -> tuple[Float, Float]:
    """Return angle to the right and distance, `[A, C]`, of a target `[A, C, 3]` in the plane of the car's wheels."""
    own = state.own
    way = target - own.car_pos
    ahead, aside = dot(way, own.car_forward), dot(way, own.car_right)
    return np.arctan2(aside, ahead), np.hypot(ahead, aside)


def drive(state: GameState, target: Float, speed: float | Float = TOP_SPEED) -> Float:
    """Return controls `[A, C, 8]` that take every car to a point, on its wheels or off them.

    Args:
        state: State of the pool.
        target: `[A, C, 3]` seen from the car's own side; a car on its wheels ignores the offset normal to their plane.
        speed: uu/s, one number or `[A, C]`; speeds above 1500 use boost, if there is any.
    """
    controls, own = np.zeros_like(state.controls), state.own
    angle, distance = angle_and_distance(state, target)
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
    """Return controls `[A, C, 8]` for cars off their wheels: level out, turn right by `angle`, roll off the roof."""
    controls, own = np.zeros_like(state.controls), state.own
    up, spin = own.car_up, own.car_ang_vel
    controls[..., THROTTLE] = 1
    controls[..., PITCH] = -TURN_GAIN * own.car_forward[..., 2] + TURN_DAMPING * dot(spin, own.car_right)
    controls[..., YAW] = np.where(up[..., 2] > 0.5, angle, 0) - TURN_DAMPING * dot(spin, up)
    tilt = np.arctan2(own.car_right[..., 2], up[..., 2])
    controls[..., ROLL] = TURN_GAIN * tilt + TURN_DAMPING * dot(spin, own.car_forward)
    controls[..., PITCH : ROLL + 1] = np.clip(controls[..., PITCH : ROLL + 1], -1, 1)
    slow = length(own.car_vel) < ROOF_SPEED
    lying = (up[..., 2] < 0.6) & (own.car_pos[..., 2] < ROOF_HEIGHT) & slow
    controls[..., JUMP] = lying & ~state.is_holding_jump
    return controls


def predict_ball(state: GameState, seconds: Float) -> Float:
    """Return the ball's position `[A, C, 3]` after `seconds`, inside the field; it bounces only off the ground."""
    own = state.own
    ball, velocity = own.ball_pos, own.ball_vel
    spot: Float = (ball + velocity * seconds[..., None]).astype(np.float32)
    spot[..., 2] -= GRAVITY / 2 * seconds * seconds
    limits = np.array([SIDE_WALL_X, BACK_WALL_Y], np.float32) - np.float32(BALL_RADIUS)
    spot[..., :2] = np.clip(spot[..., :2], -limits, limits)
    spot[..., 2] = np.maximum(spot[..., 2], np.float32(BALL_RADIUS))
    return spot


def landing_seconds(state: GameState) -> Float:
    """Return the seconds `[A, C]` until the ball has come down to `LANDED_HEIGHT`, 0 where it is lower."""
    own = state.own
    above, rising = own.ball_pos[..., 2] - LANDED_HEIGHT, own.ball_vel[..., 2]
    root = np.sqrt(np.maximum(rising * rising + 2 * GRAVITY * above, 0))
    return np.where(above > 0, (rising + root) / GRAVITY, 0).astype(np.float32)


def arrival_seconds(state: GameState, target: Float) -> Float:
    """Return the seconds `[A, C]` that each car needs to reach a point, going straight at `LEAST_SPEED` or faster."""
    own = state.own
    way = (target - own.car_pos)[..., :2]
    speed = length(own.car_vel)
    seconds: Float = (length(way) / np.maximum(speed, LEAST_SPEED)).astype(np.float32)
    return seconds


class IdleBot(Bot):
    """Never press any control."""

    def act(self, state: GameState) -> Float:
        return np.zeros_like(state.controls)


@dataclass(eq=False, repr=False)
class RandomBot(Bot):
    """Choose random controls in every step, like an untrained policy."""

    _in_state_dict: ClassVar[dict[str, str]] = {"rng": "_rng"}

    seed: CountOrZero = 0
    """The same seed and number of cars give the same play."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self._rng = np.random.default_rng(self.seed)

    def act(self, state: GameState) -> Float:
        """Draw sticks from -1, 0 and 1, and press each button half of the time; see `Bot.act`."""
        controls = np.zeros_like(state.controls)
        shape = controls.shape[:2]
        controls[..., ANALOGUE] = self._rng.integers(-1, 2, (*shape, 5))
        controls[..., BUTTONS] = self._rng.integers(0, 2, (*shape, 3))
        return controls

    def actions(self, state: GameState, parser: ActionParser) -> NDArray[Any]:
        """Draw `[N, ...]` uniformly from a discrete or bounded space, else raise a ValueError; see `Bot.actions`."""
        space, count = parser.action_space, int(state.present.sum())
        if isinstance(space, gymnasium.spaces.Discrete):
            return self._rng.integers(space.start, space.start + space.n, count)
        if isinstance(space, gymnasium.spaces.MultiDiscrete):
            return self._rng.integers(space.start, space.start + space.nvec, (count, *space.shape))
        if isinstance(space, gymnasium.spaces.Box) and space.is_bounded():
            return self._rng.uniform(space.low, space.high, (count, *space.shape)).astype(space.dtype)
        raise ValueError(f"RandomBot: cannot draw actions from {space}")


LEAD_SECONDS = 1.0
REACH, LOW, HIGH = 350.0, 170.0, 420.0


class BallChaser(Bot):
    """Drive at the ball with full boost, and jump if it is just above the car; ignore the goals."""

    def act(self, state: GameState) -> Float:
        own = state.own
        seconds = np.minimum(arrival_seconds(state, own.ball_pos), np.float32(LEAD_SECONDS))
        controls = drive(state, predict_ball(state, seconds))
        angle, distance = angle_and_distance(state, own.ball_pos)
        height = own.ball_pos[..., 2]
        below = (distance < REACH) & (np.abs(angle) < 0.5) & (height > LOW) & (height < HIGH)
        controls[..., JUMP] = np.where(state.on_ground, below & ~state.is_holding_jump, controls[..., JUMP])
        return controls


NEAR, FAR = 450.0, 900.0


class CircleBot(Bot):
    """Drive in a circle."""

    def act(self, state: GameState) -> Float:
        controls = np.zeros_like(state.controls)
        controls[..., THROTTLE] = controls[..., STEER] = 1
        level = np.zeros(controls.shape[:2], np.float32)
        return np.where(state.on_ground[..., None], controls, recover(state, level))


class HoverBot(Bot):
    """Drive back and forth about 450 to 900 uu from the ball, facing it, without trying to touch it."""

    def act(self, state: GameState) -> Float:
        own = state.own
        angle, distance = angle_and_distance(state, own.ball_pos)
        controls = drive(state, own.ball_pos, speed=1000.0)
        back = (distance < NEAR) | ((distance < FAR) & (dot(own.car_vel, own.car_forward) < 0))
        back &= state.on_ground & (np.abs(angle) < 1.5)
        controls[..., THROTTLE] = np.where(back, -1, controls[..., THROTTLE])
        controls[..., STEER] = np.where(back, -controls[..., STEER], controls[..., STEER])
        controls[..., BOOST : HANDBRAKE + 1] *= ~state.on_ground[..., None]
        return controls


class HopBot(Bot):
    """Jump on the spot again and again."""

    def act(self, state: GameState) -> Float:
        controls = recover(state, np.zeros((state.num_arenas, state.num_cars), np.float32))
        controls[..., THROTTLE] = 0
        held = state.is_holding_jump & ~state.is_jumping
        controls[..., JUMP] = np.where(state.on_ground, ~held, controls[..., JUMP])
        controls[..., JUMP] = np.where(state.is_jumping, 1, controls[..., JUMP])
        return controls


GOAL = np.array([0, 5300], np.float32)
LINE_UP, LEAST_BEHIND, MOST_BEHIND, ASIDE = 0.6, 70.0, 1500.0, 600.0
"""Aim off the line: share of the distance to the ball, least and most uu behind it; uu beside it."""
DODGE_SECONDS, DODGE_HEIGHT = 0.35, 220.0
FIELD = np.array([3900, 4950], np.float32)


class KickoffThenShoot(Bot):
    """Drive at the ball at kickoffs; then get behind the ball, in line with the opponents' goal, and shoot.

    On the line, the bot approaches with boost and dodges into the ball. It meets a high ball where it comes down,
    drives around a ball that lies between it and its own goal, and ignores opponents, teammates and pads.
    """

    def act(self, state: GameState) -> Float:
        own = state.own
        landing = landing_seconds(state)
        seconds = np.maximum(arrival_seconds(state, own.ball_pos), landing)
        for _ in range(2):
            spot = predict_ball(state, np.minimum(seconds, np.float32(2.5)))
            seconds = np.maximum(arrival_seconds(state, spot), landing)
        way = (spot - own.car_pos)[..., :2]
        distance = length(way)
        line = unit(GOAL - spot[..., :2])
        aligned = dot(unit(way), line)
        rests = dot(own.ball_vel, own.ball_vel) < 1
        kickoff = rests & (np.abs(own.ball_pos[..., :2]).max(axis=-1) < 1)
        ready = kickoff | (aligned > 0.93)

        off_line: Float = np.clip(3 * (1 - aligned), 0, 1)
        behind = LEAST_BEHIND + np.minimum(LINE_UP * distance, MOST_BEHIND) * off_line
        across = np.stack((-line[..., 1], line[..., 0]), axis=-1)
        side = np.where(dot(way, across) > 0, -1, 1)  # the side of the line on which the car is
        around = side * ASIDE * (aligned < 0.2)
        target = spot.copy()
        target[..., :2] -= np.where(kickoff, 0, behind)[..., None] * line
        target[..., :2] += np.where(kickoff, 0, around)[..., None] * across
        target[..., :2] = np.clip(target[..., :2], -FIELD, FIELD)

        target = self._via(state, target, ~kickoff)

        wait = landing > 0.1
        speed = np.where(wait, distance / np.maximum(seconds, 0.1), TOP_SPEED)
        controls = drive(state, target, speed.astype(np.float32))
        controls[..., BOOST] *= ready | (distance > 2500)
        return self._dodge(state, controls, ready)

    def _via(self, state: GameState, target: Float, free: Bool) -> Float:
        """Return where to drive on the way to `target [A, C, 3]`; `free` marks cars that may make a detour."""
        return target

    @staticmethod
    def _dodge(state: GameState, controls: Float, ready: Bool) -> Float:
        """Jump when the ball is within reach ahead, then flip at it."""
        own = state.own
        angle, distance = angle_and_distance(state, own.ball_pos)
        closing = dot(own.car_vel - own.ball_vel, own.car_forward)
        soon = (distance - 150 < closing * DODGE_SECONDS) & (closing > 300)
        ahead = soon & (np.abs(angle) < 0.3) & (own.ball_pos[..., 2] < DODGE_HEIGHT)
        jump = state.on_ground & ahead & ready & ~state.is_holding_jump
        flip = state.has_jumped & state.can_flip & ahead  # it has released the button, and can still flip
        controls[..., JUMP] = np.where(jump | flip, 1, controls[..., JUMP])
        controls[..., PITCH] = np.where(flip, -1, controls[..., PITCH])
        controls[..., YAW : ROLL + 1] *= ~flip[..., None]
        return controls


def unit(vectors: Float) -> Float:
    """Return the vectors `[..., k]` scaled to length 1; zero vectors stay zero."""
    scaled: Float = vectors / np.maximum(length(vectors)[..., None], np.float32(1e-6))
    return scaled
