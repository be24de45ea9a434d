"""Bots that earn what can be had without playing: the reward audit sets them against one that scores."""

import numpy as np

from envs.actions.base import BOOST, HANDBRAKE, JUMP, STEER, THROTTLE
from envs.bots.base import Bot
from envs.bots.driving import bearing, blank, dot, drive, recover
from envs.state.game_state import GameState
from envs.state.layout import Float

NEAR, FAR = 450.0, 900.0


class CircleBot(Bot):
    """Drives in a circle."""

    def act(self, state: GameState) -> Float:
        controls = blank(state)
        controls[..., THROTTLE] = controls[..., STEER] = 1
        level = np.zeros(controls.shape[:2], np.float32)
        return np.where(state.on_ground[..., None], controls, recover(state, level))


class HoverBot(Bot):
    """Stays about 450 to 900 uu from the ball, goes to and fro with the nose at it, and never means to touch it."""

    def act(self, state: GameState) -> Float:
        own = state.own
        angle, distance = bearing(state, own.ball_pos)
        controls = drive(state, own.ball_pos, speed=1000.0)
        back = (distance < NEAR) | ((distance < FAR) & (dot(own.car_vel, own.car_forward) < 0))
        back &= state.on_ground & (np.abs(angle) < 1.5)
        controls[..., THROTTLE] = np.where(back, -1, controls[..., THROTTLE])
        controls[..., STEER] = np.where(back, -controls[..., STEER], controls[..., STEER])
        controls[..., BOOST : HANDBRAKE + 1] *= ~state.on_ground[..., None]
        return controls


class HopBot(Bot):
    """Jumps on the spot, again and again."""

    def act(self, state: GameState) -> Float:
        controls = recover(state, np.zeros((state.num_arenas, state.num_cars), np.float32))
        controls[..., THROTTLE] = 0
        held = state.is_holding_jump & ~state.is_jumping
        controls[..., JUMP] = np.where(state.on_ground, ~held, controls[..., JUMP])
        controls[..., JUMP] = np.where(state.is_jumping, 1, controls[..., JUMP])
        return controls
