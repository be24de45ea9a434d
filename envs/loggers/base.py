"""State loggers: they look at every step of a pool, change nothing, and report metrics."""

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from envs.state.game_state import GameState
from envs.state.layout import Bool


class StateLogger(ABC):
    """Watches all arenas and reports metrics."""

    @abstractmethod
    def update(self, state: GameState, done: Bool) -> None:
        """Called after every step.

        Args:
            state: After the step; where the episode ends, its last state.
            done: `[A]` bool, the episode ends with this step. `reset` for the next one follows.
        """

    def reset(self, mask: Bool, state: GameState) -> None:  # noqa: B027 - some keep nothing of an episode
        """Called for the arenas (`mask [A]`) that begin a new episode in `state`, also when the old one is cut off."""

    @abstractmethod
    def drain_metrics(self) -> dict[str, tuple[float, float]]:
        """Metrics since the last call as name -> (sum, count); always the same names."""

    def state_dict(self) -> dict[str, Any]:
        """What it remembers, as numbers and arrays; nothing by default."""
        return {}

    def load_state_dict(self, state: dict[str, Any]) -> None:  # noqa: B027 - some keep nothing
        """Takes what `state_dict` gave."""


class EpisodeRatios(StateLogger):
    """How many of the episodes that ended had a touch, and how many a goal.

    Metrics: `game/touch_ratio`, episodes in which any car touched the ball over all that ended, 0..1;
    `game/goal_ratio`, those that ended with a goal, 0..1. They are what phases are promoted by.
    """

    def __init__(self) -> None:
        """Knows nothing yet."""
        self._touched = np.zeros(0, np.bool_)
        self._counts = np.zeros(3)  # episodes, of them with a touch, with a goal

    def update(self, state: GameState, done: Bool) -> None:
        """See `StateLogger.update`."""
        self._touched |= state.touched.any(axis=1)
        if done.any():
            self._counts += (done.sum(), (done & self._touched).sum(), (done & state.goal_scored).sum())

    def reset(self, mask: Bool, state: GameState) -> None:
        """See `StateLogger.reset`."""
        if len(self._touched) != state.num_arenas:
            self._touched = np.zeros(state.num_arenas, np.bool_)
        self._touched[mask] = False

    def drain_metrics(self) -> dict[str, tuple[float, float]]:
        """See `StateLogger.drain_metrics`."""
        episodes, touched, goals = self._counts.tolist()
        self._counts[:] = 0
        return {"game/touch_ratio": (touched, episodes), "game/goal_ratio": (goals, episodes)}

    def state_dict(self) -> dict[str, Any]:
        """Which running episodes had a touch `[A]`, and the counts since the last `drain_metrics`."""
        return {"touched": self._touched.copy(), "counts": self._counts.copy()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Takes what `state_dict` gave."""
        self._touched, self._counts = np.array(state["touched"], np.bool_), np.array(state["counts"])
