"""Results of `VectorEnv.step` in the form that training expects."""

from typing import Any

import numpy as np
from numpy.typing import NDArray


def final_obs_as_rows(obs: NDArray[Any], final: NDArray[Any], ended: NDArray[np.bool_]) -> NDArray[Any]:
    """Return the final observations `[N, ...]` of the `ended [N]` sub-environments, and `obs [N, ...]` of the others.

    `final [N]` is in Gymnasium's own format: an array of objects, which are None where the episode continues.
    """
    rows = obs.copy()
    for index in np.flatnonzero(ended):
        rows[index] = final[index]
    return rows
