"""Numbers on their way to and from an environment: clipped to its action space; NaN and infinity found."""

from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray

from fabric_rl.types import NonFiniteError


def find_non_finite(array: NDArray[Any], sub_envs: NDArray[np.intp] | None = None, first: int = 0) -> str | None:
    """Describes the first NaN or infinity of `array [N, ...]`, for example `nan: sub-environment 1, column 3`.

    Row `i` belongs to sub-environment `first + sub_envs[i]`, by default to `first + i`.
    """
    if np.isfinite(array).all():
        return None
    where = np.argwhere(~np.isfinite(array))[0].tolist()
    sub_env = first + (where[0] if sub_envs is None else sub_envs[where[0]])
    column = f", column {where[1:] if len(where) > 2 else where[1]}" if len(where) > 1 else ""
    return f"{array[tuple(where)]}: sub-environment {sub_env}{column}"


def within(space: gymnasium.Space[Any], actions: NDArray[Any]) -> NDArray[Any]:
    """Actions as an environment gets them: those outside of a Box are clipped."""
    return np.clip(actions, space.low, space.high) if isinstance(space, gymnasium.spaces.Box) else actions


def require_finite(
    what: str, array: NDArray[Any], when: str, sub_envs: NDArray[np.intp] | None = None, first: int = 0
) -> None:
    """Raises NonFiniteError if `array [N, ...]` holds NaN or infinity; see `find_non_finite`."""
    if array.dtype == np.uint8:
        return
    found = find_non_finite(array, sub_envs, first)
    if found:
        raise NonFiniteError(f"the environment returned {what} that is {found}, {when}")
