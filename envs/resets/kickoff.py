"""Kickoffs."""

import numpy as np
from rlgym.rocket_league.common_values import BALL_RESTING_HEIGHT

from envs.resets.base import StateSetter
from envs.state.game_state import GameState
from envs.state.layout import MIRROR, Bool

KICKOFF_BOOST = 33.3


class Kickoff(StateSetter):
    """The five mirrored kickoff spawns with boost 33.3, in random order; at most five cars a team."""

    BLUE_POS = np.array(
        [[-2048, -2560, 17], [2048, -2560, 17], [-256, -3840, 17], [256, -3840, 17], [0, -4608, 17]], np.float32
    )
    BLUE_YAW = np.array([0.25, 0.75, 0.5, 0.5, 0.5], np.float64) * np.pi
    ORANGE_YAW = np.array([-0.75, -0.25, -0.5, -0.5, -0.5], np.float64) * np.pi

    def apply(self, state: GameState, mask: Bool, rng: np.random.Generator) -> None:
        """See `StateSetter.apply`."""
        if max(state.num_blue, state.num_orange) > len(self.BLUE_POS):
            raise ValueError(f"Kickoff: there are only {len(self.BLUE_POS)} spawns a team")
        for arena in np.flatnonzero(mask):
            spawns = rng.permutation(len(self.BLUE_POS))
            blue, orange = spawns[: state.num_blue], spawns[: state.num_orange]
            state.world.ball_pos[arena] = (0, 0, BALL_RESTING_HEIGHT)
            state.world.car_pos[arena] = np.concatenate((self.BLUE_POS[blue], self.BLUE_POS[orange] * MIRROR))
            yaw = np.concatenate((self.BLUE_YAW[blue], self.ORANGE_YAW[orange])).astype(np.float32)
            level = np.zeros_like(yaw)
            state.set_car_rotation(int(arena), level, yaw, level)
            state.boost[arena] = KICKOFF_BOOST
