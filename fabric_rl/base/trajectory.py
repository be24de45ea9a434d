"""One episode of one player, as read from demonstrations and used by imitation learning and replay."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray


class Trajectory(NamedTuple):
    """One episode of one player, T steps."""

    obs: NDArray[Any]
    """`[T + 1, ...]` observations of the environment, including the final one."""
    action: NDArray[Any]
    """`[T, ...]` actions of the action space: int64, or float32 for a Box."""
    weight: NDArray[np.float32]
    """`[T]` weight of each step, 0..1; less than 1 if the action is inferred, 0 if it is meaningless."""
    terminated: bool
    """True if the episode terminated, False if it was truncated."""
    action_mask: NDArray[np.bool_] | None = None
    """`[T, n]` action masks; None if the environment has none."""
    soft: NDArray[np.float32] | None = None
    """`[T, n]` soft labels over the rows of an action table, with sum 1; only on request."""
    reward: NDArray[np.float32] | None = None
    """`[T]` rewards, or `[T, K]` for K reward signals; None if unknown."""
    episode: str = ""
    """File and number of the episode, shared by its players; empty if it has only this one."""
