"""Kickoffs."""

import numpy as np
from numpy.typing import NDArray
from rlgym.rocket_league.common_values import BALL_RESTING_HEIGHT

from envs.resets.base import Double, StateSetter
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
        for arena in np.flatnonzero(mask).tolist():
            self.place(state, arena, self.spawns(state, rng))

    def spawns(self, state: GameState, rng: np.random.Generator) -> NDArray[np.int64]:
        """`[S]` spawns, numbers of rows of `BLUE_POS`, for the cars of a team in their order; S is the larger team's.

        Raises:
            ValueError: More cars than spawns.
        """
        most = max(state.num_blue, state.num_orange)
        if most > len(self.BLUE_POS):
            raise ValueError(f"Kickoff: there are only {len(self.BLUE_POS)} spawns a team")
        return rng.permutation(len(self.BLUE_POS))[:most]

    def place(
        self,
        state: GameState,
        arena: int,
        spawns: NDArray[np.int64],
        shift: float | Double = 0.0,
        turn: float | Double = 0.0,
        boost: float | Double = KICKOFF_BOOST,
    ) -> None:
        """Puts the ball and the cars of one arena in their places, both teams alike, rotated by 180 degrees.

        Args:
            state: Written to.
            arena: Its row.
            spawns: `[S]`, see `spawns`.
            shift: `[S, 2]` uu by which blue cars stand off the spot in x and y.
            turn: `[S]` rad by which cars are turned to the left.
            boost: `[S]` 0..100.
        """
        blue, orange = slice(state.num_blue), slice(state.num_orange)
        places = self.BLUE_POS[spawns]
        places[:, :2] += shift
        state.world.ball_pos[arena] = (0, 0, BALL_RESTING_HEIGHT)
        state.world.car_pos[arena] = np.concatenate((places[blue], places[orange] * MIRROR))
        blue_yaw, orange_yaw = self.BLUE_YAW[spawns] + turn, self.ORANGE_YAW[spawns] + turn
        yaw = np.concatenate((blue_yaw[blue], orange_yaw[orange])).astype(np.float32)
        level = np.zeros_like(yaw)
        state.set_car_rotation(arena, level, yaw, level)
        boosts = np.broadcast_to(np.asarray(boost, np.float32), len(spawns))
        state.boost[arena] = np.concatenate((boosts[blue], boosts[orange]))
