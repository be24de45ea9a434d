"""Symmetry: a reflection of an environment."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class Symmetry(NamedTuple):
    """A reflection of an environment that keeps its dynamics and rewards: how observations and actions change.

    With observations flattened to `[N, D]`, the reflected ones are `obs[:, obs_index] * obs_sign`.
    """

    obs_index: NDArray[np.int64]
    """`[D]` for each column, the column that its reflection comes from."""
    obs_sign: NDArray[np.float32]
    """`[D]` 1 or -1."""
    actions: tuple[NDArray[np.int64], ...] | NDArray[np.float32]
    """For each column of discrete actions (one for `Discrete`), the reflection of each of its `n` choices, `[n]`. For a
    Box, `[K]` 1 or -1 for each of its numbers."""
