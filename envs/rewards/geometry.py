"""Small pieces of geometry and time that rewards share."""

import numpy as np
from numpy.typing import NDArray
from rlgym.rocket_league.common_values import TICKS_PER_SECOND

from envs.state.layout import Float


def seconds_between(ticks: NDArray[np.int64], before: NDArray[np.int64]) -> Float:
    """`[A]` game time between two counts of ticks."""
    return (ticks - before).astype(np.float32) / np.float32(TICKS_PER_SECOND)


def dot(a: Float, b: Float) -> Float:
    """Scalar products of `[..., 3]`."""
    products: Float = np.einsum("...i,...i->...", a, b)
    return products


def length(vectors: Float) -> Float:
    """Euclidean lengths of `[..., 3]`."""
    return np.sqrt(dot(vectors, vectors))
