"""Scripted bot that flies: it predicts how the ball bounces, and hits it out of the air toward the goal."""

import numpy as np
from rlgym.rocket_league.common_values import (
    BACK_WALL_Y,
    BALL_RADIUS,
    BOOST_LOCATIONS,
    CEILING_Z,
    CORNER_CATHETUS_LENGTH,
    GOAL_CENTER_TO_POST,
    GOAL_HEIGHT,
    GRAVITY,
    JUMP_MAX_TIME,
    SIDE_WALL_X,
)

from envs.actions.base import BOOST, JUMP, PITCH, ROLL, THROTTLE, YAW
from envs.bots.scripted import KickoffThenShoot, unit
from envs.state.game_state import GameState
from envs.state.layout import MIRROR, ORANGE, Bool, Float
from envs.state.quantities import dot, length

STEP, STEPS = 0.1, 30
TIMES = np.arange(1, STEPS + 1, dtype=np.float32) * np.float32(STEP)
"""Seconds of the predicted positions of the ball."""
FALL = np.array([0, 0, -GRAVITY], np.float32)
DRAG, BOUNCE, FRICTION, SPIN = 0.03, 0.6, 0.285, 0.0003
"""Share of its speed that the ball loses per second; that it keeps in a bounce; friction and spin of a bounce, as
measured by the RLBot community."""
CORNER = SIDE_WALL_X + BACK_WALL_Y - CORNER_CATHETUS_LENGTH
"""|x| + |y| of the walls across the corners."""
THRUST, BURN = 1058.0, 100 / 3
"""uu/s² of boost in the air; boost used per second."""
JUMP_SPEED, JUMP_LIFT = 875 / 3, 4375 / 3
"""uu/s of a jump at once, uu/s² while the button is held, at most for `JUMP_MAX_TIME` seconds."""
TURN = 12.46
"""rad/s² of pitch."""
AIM = np.array([0, BACK_WALL_Y + 100, 350], np.float32)
REACH, CLOSE, LEAST_HEIGHT, SHOT_SPEED = 160.0, 60.0, 180.0, 2000.0
"""uu between car and ball at a hit; a miss that needs no boost; height of the car for which it takes off; uu/s."""
FROM_BEHIND = 0.6
"""Weight of the car's own way to the ball in the direction of a hit; 0 would be the direction to the goal."""
AIR_GAIN, AIR_DAMPING, ROLL_DAMPING, CONE, LEAST_CHANGE = 5.0, 0.9, 0.4, 0.5, 40.0
"""Control in the air: gains; boost is on if the nose is this close (rad) and this much speed (uu/s) is missing."""

PADS = np.array(BOOST_LOCATIONS, np.float32)
DETOURS = np.where(PADS[:, 2] > 72, 2000, 400).astype(np.float32)
NEAR = 900.0
"""Longest detour to each pad for a car without boost, uu (big pads are higher); no detour so near the ball."""


def predict_flight(state: GameState) -> tuple[Float, Float]:
    """Return position and velocity of the ball at `TIMES`, `[A, STEPS, 3]` each, if no car touches it.

    The walls are planes, without the curves between them; the ball flies into the goals.
    """
    p, v, spin = (
        np.array(x, np.float32) for x in (state.world.ball_pos, state.world.ball_vel, state.world.ball_ang_vel)
    )
    flight = np.empty((2, STEPS, *p.shape), np.float32)
    for step in range(STEPS):
        v *= 1 - DRAG * STEP
        p += v * STEP + FALL * (STEP * STEP / 2)
        v += FALL * STEP
        away, size = -np.sign(p), np.abs(p)
        in_goal = (size[:, 0] < GOAL_CENTER_TO_POST - BALL_RADIUS) & (p[:, 2] < GOAL_HEIGHT - BALL_RADIUS)
        depths = (
            size[:, 0] - (SIDE_WALL_X - BALL_RADIUS),
            np.where(in_goal, -1, size[:, 1] - (BACK_WALL_Y - BALL_RADIUS)),
            BALL_RADIUS - p[:, 2],
            p[:, 2] - (CEILING_Z - BALL_RADIUS),
            (size[:, 0] + size[:, 1] - CORNER) / np.sqrt(2) + BALL_RADIUS,
        )
        for wall, depth in enumerate(depths):
            if not (depth > 0).any():
                continue
            normal = np.zeros_like(p)
            if wall < 2:
                normal[:, wall] = away[:, wall]
            elif wall < 4:
                normal[:, 2] = 1 if wall == 2 else -1
            else:
                normal[:, :2] = away[:, :2] / np.sqrt(2)
            _bounce(p, v, spin, normal, np.maximum(depth, 0))
        flight[:, step] = p, v
    return np.moveaxis(flight[0], 0, 1), np.moveaxis(flight[1], 0, 1)


def _bounce(p: Float, v: Float, spin: Float, normal: Float, depth: Float) -> None:
    """Change position, velocity and spin `[A, 3]` of the balls that are `depth` inside a wall and move into it."""
    into = dot(v, normal)
    hit = ((depth > 0) & (into < 0))[:, None]
    across = into[:, None] * normal
    slip = v - across + BALL_RADIUS * _cross(normal, spin)
    grip = np.minimum(1, 2 * np.abs(into) / np.maximum(length(slip), 1e-3))
    change = -FRICTION * grip[:, None] * slip
    v += hit * (change - (1 + BOUNCE) * across)
    spin += hit * (SPIN * BALL_RADIUS * _cross(change, normal))
    p += depth[:, None] * normal


_NEXT, _LAST = [1, 2, 0], [2, 0, 1]


def _cross(a: Float, b: Float) -> Float:
    """Return the cross products of vectors `[A, 3]`; faster than `np.cross` for few rows."""
    product: Float = a[:, _NEXT] * b[:, _LAST] - a[:, _LAST] * b[:, _NEXT]
    return product


class AerialShooter(KickoffThenShoot):
    """Fly to every ball that the boost suffices for, and hit it toward the goal; else play like `KickoffThenShoot`.

    The bot predicts the ball's bounces, takes off as soon as it can arrive in time, and picks up boost on its way.
    """

    def act(self, state: GameState) -> Float:
        controls = super().act(state)
        own = state.own
        side = np.where((state.team == ORANGE)[:, None, None], MIRROR, 1).astype(np.float32)
        ball, speed = (each[:, None] * side for each in predict_flight(state))  # [A, C, STEPS, 3]
        car, velocity, times = own.car_pos[..., None, :], own.car_vel[..., None, :], TIMES[:, None]

        # the hit that sends the ball to the goal, as far as the car can come from there
        way = AIM - ball
        seconds = length(way)[..., None] / SHOT_SPEED
        shot = unit(way / seconds - FALL * seconds / 2 - speed)
        hit = unit(shot + FROM_BEHIND * unit(ball - car))

        # how far the car would be from it without boost, and how long it would have to burn
        place = ball - REACH * hit
        lift = JUMP_SPEED * times + JUMP_LIFT * JUMP_MAX_TIME * (times - JUMP_MAX_TIME / 2)
        jump = np.where(state.on_ground[..., None, None], own.car_up[..., None, :] * lift, 0)
        lack = place - car - velocity * times - FALL * times * times / 2 - jump
        miss = length(lack)
        angle = np.arccos(np.clip(dot(unit(lack), own.car_forward[..., None, :]), -1, 1))
        turning = 2 * np.sqrt(np.maximum(angle - CONE / 2, 0) / TURN)
        left = np.maximum(TIMES - turning, 0.01)
        root = left * left - 2 * miss / THRUST  # a burn of b seconds moves it by THRUST * b * (left - b / 2)
        burn = left - np.sqrt(np.maximum(root, 0))

        possible = ((root > 0) & (BURN * burn < state.boost[..., None])) | (miss < CLOSE)
        possible &= place[..., 2] > np.where(state.on_ground, LEAST_HEIGHT, CLOSE)[..., None]
        possible &= np.logical_and.accumulate(np.abs(ball[..., 1]) < BACK_WALL_Y, axis=-1)
        first = possible.argmax(axis=-1)[..., None]
        change, lack, hit = (
            np.take_along_axis(each, first.reshape(*first.shape, *[1] * (each.ndim - 3)), axis=2)[:, :, 0]
            for each in (miss / left, lack, hit)
        )
        toward = np.where((change > LEAST_CHANGE)[..., None], unit(lack), hit)
        flies = possible.any(axis=-1) & (~state.on_ground | (own.car_up[..., 2] > 0.9))
        return np.where(flies[..., None], self._fly(state, toward, change), controls)

    def _via(self, state: GameState, target: Float, free: Bool) -> Float:
        """Return the place of a pad where that is a short detour for the boost it brings."""
        own, spots = state.own, PADS[:, :2]
        to_pad, onward = spots - own.car_pos[..., None, :2], target[..., None, :2] - spots
        way, gap = (target - own.car_pos)[..., :2], own.ball_pos - own.car_pos
        distance = length(to_pad)
        detour = distance + length(onward) - length(way)[..., None]
        there = (own.pad_timers <= 0) & (dot(to_pad, own.car_forward[..., None, :2]) > 0.6 * distance)
        gain = np.where(there & (distance > 100), DETOURS * (1 - state.boost[..., None] / 100) - detour, 0)
        fetches = free & (dot(gap, gap) > NEAR * NEAR) & (gain.max(axis=-1) > 0)
        return np.where(fetches[..., None], PADS[gain.argmax(axis=-1)], target)

    @staticmethod
    def _fly(state: GameState, toward: Float, change: Float) -> Float:
        """Return controls `[A, C, 8]` that jump, turn the nose and boost; and that flip at a ball in reach."""
        own, controls = state.own, np.zeros_like(state.controls)
        spin, right, up = own.car_ang_vel, own.car_right, own.car_up
        aside, above = dot(toward, right), dot(toward, up)
        angle = np.arccos(np.clip(dot(toward, own.car_forward), -1, 1))
        gain = AIR_GAIN * angle / np.maximum(np.hypot(aside, above), 1e-6)
        controls[..., THROTTLE] = 1
        controls[..., PITCH] = gain * above + AIR_DAMPING * dot(spin, right)
        controls[..., YAW] = gain * aside - AIR_DAMPING * dot(spin, up)
        controls[..., ROLL] = ROLL_DAMPING * dot(spin, own.car_forward)
        controls[..., PITCH : ROLL + 1] = np.clip(controls[..., PITCH : ROLL + 1], -1, 1)
        controls[..., BOOST] = (angle < CONE) & (change > LEAST_CHANGE)
        controls[..., JUMP] = (state.on_ground & ~state.is_holding_jump) | state.is_jumping
        gap = own.ball_pos - own.car_pos
        closing = dot(unit(gap), own.car_vel - own.ball_vel)
        near = length(gap) - REACH < 0.12 * closing
        flip = near & state.can_flip & state.has_jumped & (dot(unit(gap), own.car_forward) > 0.8)
        controls[..., JUMP] = np.where(flip, 1, controls[..., JUMP])
        controls[..., PITCH] = np.where(flip, -1, controls[..., PITCH])
        controls[..., YAW : ROLL + 1] *= ~flip[..., None]
        return controls
