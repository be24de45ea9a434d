"""GameCounts: what a pool counts of its games."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from rlgym.rocket_league.common_values import TICKS_PER_SECOND

from envs.state.layout import Bool

HEADLINES = {"game/touches_per_minute": "touches/min", "game/goals_per_minute": "goals/min"}
"""Metrics that people look at first, with a short label each."""
_COUNTED = ("touches", "goals", "physics_errors", "episodes", "steps")


class GameCounts:
    """Touches, goals, broken physics, episodes and steps since the last `drain`, of all arenas together."""

    def __init__(self) -> None:
        self._counts = dict.fromkeys(_COUNTED, 0)

    def add_step(self, new_touches: Bool, goals: NDArray[np.bool_], done: NDArray[np.bool_]) -> None:
        """Counts a step: `new_touches [A, C]`, `goals [A]`, and which episodes end, `done [A]`."""
        counts = self._counts
        counts["steps"] += 1
        counts["episodes"] += int(done.sum())
        counts["touches"] += int(new_touches.sum())
        counts["goals"] += int(goals.sum())

    def add_physics_errors(self, number: int) -> None:
        """Counts arenas whose physics broke."""
        self._counts["physics_errors"] += number

    def drain(self, tick_skip: int, num_arenas: int, num_cars: int) -> dict[str, tuple[float, float]]:
        """Metrics since the last call as name -> (sum, minutes).

        Minutes are game time, per car for touches and per arena for the rest.

        Args:
            tick_skip: Ticks of a step.
            num_arenas: Of the pool.
            num_cars: In all arenas together.
        """
        counts, self._counts = self._counts, dict.fromkeys(_COUNTED, 0)
        minutes = counts["steps"] * tick_skip / TICKS_PER_SECOND / 60
        arena_minutes = minutes * num_arenas
        return {
            "game/touches_per_minute": (float(counts["touches"]), minutes * num_cars),
            "game/goals_per_minute": (float(counts["goals"]), arena_minutes),
            "game/episodes_per_minute": (float(counts["episodes"]), arena_minutes),
            "game/physics_errors_per_minute": (float(counts["physics_errors"]), arena_minutes),
        }

    def state_dict(self) -> dict[str, int]:
        """The counts."""
        return dict(self._counts)

    def load_state_dict(self, state: dict[str, int]) -> None:
        """Takes what `state_dict` gave."""
        self._counts = {name: int(state[name]) for name in _COUNTED}


def results(scoring_team: NDArray[Any], team: NDArray[Any]) -> NDArray[np.float32]:
    """1 where a car's team has scored, 0 where the other one has, 0.5 where none has (`scoring_team` -1)."""
    return np.where(scoring_team < 0, 0.5, scoring_team == team).astype(np.float32)
