"""EpisodeStats: returns and lengths of episodes."""

from collections import deque
from typing import Any

import numpy as np
from numpy.typing import NDArray

RECENT_EPISODES = {100: "mean_return", 20: "mean_return_last_20"}
"""The last episodes over all ranks whose mean return the summary gives under that name."""


class EpisodeStats:
    """Returns and lengths of the episodes of this rank, undiscounted.

    Attributes:
        recent: Returns of the last episodes that ended, oldest first.
    """

    def __init__(self, num_envs: int, window: int = 100) -> None:
        self._return = np.zeros(num_envs)
        self._length = np.zeros(num_envs)
        self.recent: deque[float] = deque(maxlen=window)
        self._ended = np.zeros(3)

    def update(self, rewards: NDArray[Any], done: NDArray[np.bool_], rows: slice = slice(None)) -> None:
        """Add one step of the sub-environments `rows`, with `rewards [n]` and `done [n]`."""
        returns, lengths = self._return[rows], self._length[rows]
        returns += rewards
        lengths += 1
        if done.any():
            self.recent.extend(returns[done].tolist())
            self._ended += (returns[done].sum(), lengths[done].sum(), done.sum())
            returns[done] = 0
            lengths[done] = 0

    def drain_metrics(self) -> dict[str, tuple[float, float]]:
        """Return the returns and lengths of the episodes that ended since the last call: name -> (sum, count)."""
        total_return, total_length, count = self._ended.tolist()
        self._ended[:] = 0
        return {"reward/episode_return": (total_return, count), "game/episode_length": (total_length, count)}

    def begin(self) -> None:
        """Discard the unfinished episodes, because all sub-environments begin new ones."""
        self._return[:] = 0
        self._length[:] = 0

    def state_dict(self) -> dict[str, Any]:
        """Return the unfinished and recent episodes."""
        running = {"return": self._return.copy(), "length": self._length.copy(), "recent": list(self.recent)}
        return running | {"ended": self._ended.copy()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore the state that `state_dict` returned."""
        self._return[:], self._length[:], self._ended[:] = state["return"], state["length"], state["ended"]
        self.recent.clear()
        self.recent.extend(state["recent"])
