"""BallChaser: straight at the ball, whatever happens then."""

import numpy as np

from envs.actions.base import JUMP
from envs.bots.base import Bot
from envs.bots.driving import arrival_seconds, ball_after, bearing, drive
from envs.state.game_state import GameState
from envs.state.layout import Float

LEAD_SECONDS = 1.0
REACH, LOW, HIGH = 350.0, 170.0, 420.0


class BallChaser(Bot):
    """Drives at the ball with full boost and jumps at one that is just above; knows no goals."""

    def act(self, state: GameState) -> Float:
        own = state.own
        seconds = np.minimum(arrival_seconds(state, own.ball_pos), np.float32(LEAD_SECONDS))
        controls = drive(state, ball_after(state, seconds))
        angle, distance = bearing(state, own.ball_pos)
        height = own.ball_pos[..., 2]
        below = (distance < REACH) & (np.abs(angle) < 0.5) & (height > LOW) & (height < HIGH)
        controls[..., JUMP] = np.where(state.on_ground, below & ~state.is_holding_jump, controls[..., JUMP])
        return controls
