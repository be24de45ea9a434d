"""State loggers: they look at every step of a pool, change nothing, and report metrics."""

from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np

from envs.component import Component
from envs.state.game_state import GameState
from envs.state.layout import Bool


class StateLogger(Component, ABC):
    """Watches all arenas and reports metrics."""

    @abstractmethod
    def update(self, state: GameState, done: Bool) -> None:
        """Called after every step.

        Args:
            state: After the step; where the episode ends, its last state.
            done: `[A]` bool, the episode ends with this step. `reset` for the next one follows.
        """

    @abstractmethod
    def drain_metrics(self) -> dict[str, tuple[float, float]]:
        """Metrics since the last call as name -> (sum, count); always the same names."""


class EpisodeRatios(StateLogger):
    """Report the share of finished episodes with a touch, and with a goal.

    Metrics: `game/touch_ratio`, episodes in which any car touched the ball over all that ended, 0..1;
    `game/goal_ratio`, those that ended with a goal, 0..1. They are what phases are promoted by.
    """

    _in_state_dict: ClassVar = {"touched": "_touched", "counts": "_counts"}

    def __init__(self) -> None:
        self._touched = np.zeros(0, np.bool_)
        self._counts = np.zeros(3)  # episodes, of them with a touch, with a goal

    def update(self, state: GameState, done: Bool) -> None:
        self._touched |= state.touched.any(axis=1)
        if done.any():
            self._counts += (done.sum(), (done & self._touched).sum(), (done & state.goal_scored).sum())

    def reset(self, mask: Bool, state: GameState) -> None:
        if len(self._touched) != state.num_arenas:
            self._touched = np.zeros(state.num_arenas, np.bool_)
        self._touched[mask] = False

    def drain_metrics(self) -> dict[str, tuple[float, float]]:
        episodes, touched, goals = self._counts.tolist()
        self._counts[:] = 0
        return {"game/touch_ratio": (touched, episodes), "game/goal_ratio": (goals, episodes)}
