"""Checks of the values that environments and agents return: types, shapes, dtypes, NaN; clipping of actions."""

from typing import Any, NamedTuple

import gymnasium
import numpy as np
from numpy.typing import NDArray

from fabric_rl.base.vector_step import final_obs_as_rows
from fabric_rl.types import NonFiniteError

Array = NDArray[Any]
NUMBERS, INTEGERS, FLOATS, BOOLS = "numbers", "integers", "floats", "bools"
_KINDS = {NUMBERS: "fiub", INTEGERS: "iu", FLOATS: "f", BOOLS: "b"}  # numpy's dtype.kind


class Step(NamedTuple):
    """Result of `VectorEnv.step` for `n` sub-environments."""

    obs: Array
    """`[n, ...]` numbers."""
    reward: Array
    """`[n]` numbers."""
    terminated: Array
    """`[n]` bool."""
    truncated: Array
    """`[n]` bool."""
    infos: dict[str, Any]


def check_step(what: str, returned: Any, n: int, obs_shape: tuple[int, ...]) -> Step:  # noqa: ANN401 - checked here
    """Return the result of a `step` as arrays; raise a ValueError if it does not match `Step`."""
    names = ("observations", "rewards", "terminated", "truncated", "infos")
    obs, reward, terminated, truncated, infos = check_tuple(what, returned, names)
    if not isinstance(infos, dict):
        raise ValueError(f"{what}: infos must be a dict, got {describe_type(infos)}")
    step = Step(
        check_array(f"{what}: the observations", obs, (n, *obs_shape)),
        check_array(f"{what}: the rewards", reward, (n,)),
        check_array(f"{what}: terminated", terminated, (n,), BOOLS),
        check_array(f"{what}: truncated", truncated, (n,), BOOLS),
        infos,
    )
    final = infos.get("final_obs")
    if isinstance(final, np.ndarray) and final.dtype == object and final.shape == (n,):  # Gymnasium's own format
        ended = step.terminated | step.truncated
        if all(last is not None for last in final[ended]):
            step = step._replace(infos=infos | {"final_obs": final_obs_as_rows(step.obs, final, ended)})
    return step


def check_array(what: str, value: Any, shape: tuple[int, ...], kind: str = NUMBERS) -> Array:  # noqa: ANN401
    """Return the value as an array; raise a ValueError if its shape or dtype is wrong."""
    array = np.asarray(value)
    if array.shape != shape or array.dtype.kind not in _KINDS[kind]:
        raise ValueError(
            f"{what} must be {kind} of shape {list(shape)}, got {array.dtype} of shape {list(array.shape)}"
        )
    return array


def check_tuple(what: str, value: Any, names: tuple[str, ...]) -> tuple[Any, ...]:  # noqa: ANN401
    """Return the value; raise a ValueError unless it is a tuple with one element per name."""
    if not isinstance(value, tuple) or len(value) != len(names):
        raise ValueError(f"{what} must return a tuple ({', '.join(names)}), got {describe_type(value)}")
    return value


def describe_type(value: Any) -> str:  # noqa: ANN401 - whatever was returned
    """Describe the type of a value for messages."""
    if value is None:
        return "None (is a return statement missing?)"
    return f"a tuple of {len(value)}" if isinstance(value, tuple) else type(value).__name__


def find_non_finite(array: NDArray[Any], sub_envs: NDArray[np.intp] | None = None, first: int = 0) -> str | None:
    """Describe the first NaN or infinity of `array [N, ...]`, as in `nan: sub-environment 1, column 3`, or return None.

    Row `i` belongs to sub-environment `first + sub_envs[i]`, by default to `first + i`.
    """
    if np.isfinite(array).all():
        return None
    where = np.argwhere(~np.isfinite(array))[0].tolist()
    sub_env = first + (where[0] if sub_envs is None else sub_envs[where[0]])
    column = f", column {where[1:] if len(where) > 2 else where[1]}" if len(where) > 1 else ""
    return f"{array[tuple(where)]}: sub-environment {sub_env}{column}"


def clip_actions(space: gymnasium.Space[Any], actions: NDArray[Any]) -> NDArray[Any]:
    """Return the actions, clipped to the bounds of a Box."""
    return np.clip(actions, space.low, space.high) if isinstance(space, gymnasium.spaces.Box) else actions


def require_finite(
    what: str, array: NDArray[Any], when: str, sub_envs: NDArray[np.intp] | None = None, first: int = 0
) -> None:
    """Raise a NonFiniteError if `array [N, ...]` contains NaN or infinity; see `find_non_finite`."""
    if array.dtype != np.uint8 and (found := find_non_finite(array, sub_envs, first)):
        raise NonFiniteError(f"the environment returned {what} that is {found}, {when}")


def select_rows(infos: dict[str, Any], rows: NDArray[np.intp], size: int) -> dict[str, Any]:
    """Return the infos of the sub-environments `rows`; entries without one row for each are unchanged."""
    found: dict[str, Any] = {}
    for name, value in infos.items():
        if isinstance(value, dict):
            found[name] = select_rows(value, rows, size)
        else:
            found[name] = np.asarray(value)[rows] if np.shape(value)[:1] == (size,) else value
    return found
