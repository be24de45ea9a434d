"""KickoffThenShoot: the simplest bot that wins something."""

import numpy as np

from envs.actions.base import BOOST, JUMP, PITCH, ROLL, YAW
from envs.bots.base import Bot
from envs.bots.driving import TOP_SPEED, arrival_seconds, ball_after, bearing, can_dodge, dot, drive, landing_seconds
from envs.state.game_state import GameState
from envs.state.layout import Bool, Float

GOAL = np.array([0, 5300], np.float32)
LINE_UP, LEAST_BEHIND, MOST_BEHIND, ASIDE = 0.6, 70.0, 1500.0, 600.0
"""Off the line, how far behind the ball to aim: parts of the distance to it, least and most, uu; how far beside it."""
DODGE_SECONDS, DODGE_HEIGHT = 0.35, 220.0
FIELD = np.array([3900, 4950], np.float32)


class KickoffThenShoot(Bot):
    """Drives at the ball of a kickoff; then gets behind the ball, in line with the opponents' goal, and hits it there.

    On the line it comes with boost and dodges into the ball. It meets a high ball where that comes down, goes around a
    ball that lies between it and its own goal, and ignores opponents, teammates and pads.
    """

    def act(self, state: GameState) -> Float:
        own = state.own
        landing = landing_seconds(state)
        seconds = np.maximum(arrival_seconds(state, own.ball_pos), landing)
        for _ in range(2):
            spot = ball_after(state, np.minimum(seconds, np.float32(2.5)))
            seconds = np.maximum(arrival_seconds(state, spot), landing)
        way = (spot - own.car_pos)[..., :2]
        distance = np.sqrt(dot(way, way))
        line = unit(GOAL - spot[..., :2])
        aligned = dot(unit(way), line)
        kickoff = self._is_kickoff(state)
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

        wait = landing > 0.1
        speed = np.where(wait, distance / np.maximum(seconds, 0.1), TOP_SPEED)
        controls = drive(state, target, speed.astype(np.float32))
        controls[..., BOOST] *= ready | (distance > 2500)
        return self._dodge(state, controls, ready)

    @staticmethod
    def _is_kickoff(state: GameState) -> Bool:
        """`[A, C]` the ball rests on the middle."""
        own = state.own
        still = dot(own.ball_vel, own.ball_vel) < 1
        begins: Bool = still & (np.abs(own.ball_pos[..., :2]).max(axis=-1) < 1)
        return begins

    @staticmethod
    def _dodge(state: GameState, controls: Float, ready: Bool) -> Float:
        """Jumps when the ball is within reach ahead, then flips at it."""
        own = state.own
        angle, distance = bearing(state, own.ball_pos)
        closing = dot(own.car_vel - own.ball_vel, own.car_forward)
        soon = (distance - 150 < closing * DODGE_SECONDS) & (closing > 300)
        ahead = soon & (np.abs(angle) < 0.3) & (own.ball_pos[..., 2] < DODGE_HEIGHT)
        jump = state.on_ground & ahead & ready & ~state.is_holding_jump
        flip = can_dodge(state) & ahead
        controls[..., JUMP] = np.where(jump | flip, 1, controls[..., JUMP])
        controls[..., PITCH] = np.where(flip, -1, controls[..., PITCH])
        controls[..., YAW : ROLL + 1] *= ~flip[..., None]
        return controls


def unit(vectors: Float) -> Float:
    """`[..., 2]` of length 1, or zero."""
    size: Float = np.sqrt(dot(vectors, vectors))[..., None]
    scaled: Float = vectors / np.maximum(size, np.float32(1e-6))
    return scaled
