"""Rewards of this bot. The file my_bot.yaml chooses which ones it trains with, and their weights."""

import numpy as np

from fabric_rl.envs import GameState, Reward
from fabric_rl.envs.state.layout import Float

CEILING_UU = 2044.0


class HighTouchReward(Reward):
    """Reward a car for touching the ball; the higher the ball, the larger the reward."""

    unit = "per touching step"
    value_range = (0.0, 1.0)

    def __init__(self, on_the_ground: float = 0.1) -> None:
        """Set the reward for a touch on the ground, from 0 to 1. A touch under the ceiling gives 1."""
        if not 0.0 <= on_the_ground <= 1.0:
            raise ValueError(f"HighTouchReward: on_the_ground must be 0 to 1, got {on_the_ground}")
        self.on_the_ground = on_the_ground

    def compute(self, state: GameState) -> Float:
        """Return the reward of the step that led to `state`, `[arenas, cars]`."""
        height = np.clip(state.world.ball_pos[:, 2:] / CEILING_UU, 0.0, 1.0)  # [arenas, 1]
        paid = self.on_the_ground + (1.0 - self.on_the_ground) * height
        return np.where(state.touched, paid, 0.0).astype(np.float32)
