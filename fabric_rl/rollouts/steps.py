"""What environments return, checked: of another shape it would be broadcast, and nobody would notice."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
NUMBERS, INTEGERS, FLOATS, BOOLS = "numbers", "integers", "floats", "bools"
_KINDS = {NUMBERS: "fiub", INTEGERS: "iu", FLOATS: "f", BOOLS: "b"}  # numpy's dtype.kind


class Step(NamedTuple):
    """What `VectorEnv.step` returns for `n` sub-environments."""

    obs: Array
    """`[n, ...]` numbers."""
    reward: Array
    """`[n]` numbers."""
    terminated: Array
    """`[n]` bool."""
    truncated: Array
    """`[n]` bool."""
    infos: dict[str, Any]


def checked_step(what: str, returned: Any, n: int, obs_shape: tuple[int, ...]) -> Step:  # noqa: ANN401 - checked here
    """The same as arrays; ValueError for anything that is not as `Step` says."""
    values = checked_tuple(what, returned, ("observations", "rewards", "terminated", "truncated", "infos"))
    obs, reward, terminated, truncated, infos = values
    if not isinstance(infos, dict):
        raise ValueError(f"{what}: infos must be a dict, got {kind_of(infos)}")
    return Step(
        checked_array(f"{what}: the observations", obs, (n, *obs_shape)),
        checked_array(f"{what}: the rewards", reward, (n,)),
        checked_array(f"{what}: terminated", terminated, (n,), BOOLS),
        checked_array(f"{what}: truncated", truncated, (n,), BOOLS),
        infos,
    )


def checked_array(what: str, value: Any, shape: tuple[int, ...], kind: str = NUMBERS) -> Array:  # noqa: ANN401
    """The value as an array; ValueError if it has another shape or dtype."""
    array = np.asarray(value)
    if array.shape != shape or array.dtype.kind not in _KINDS[kind]:
        raise ValueError(
            f"{what} must be {kind} of shape {list(shape)}, got {array.dtype} of shape {list(array.shape)}"
        )
    return array


def checked_tuple(what: str, value: Any, names: tuple[str, ...]) -> tuple[Any, ...]:  # noqa: ANN401
    """The value, if it is a tuple of so many things; else ValueError."""
    if not isinstance(value, tuple) or len(value) != len(names):
        raise ValueError(f"{what} must return a tuple ({', '.join(names)}), got {kind_of(value)}")
    return value


def kind_of(value: Any) -> str:  # noqa: ANN401 - whatever was returned
    """What a value is, for messages."""
    if value is None:
        return "None (is a return missing?)"
    return f"a tuple of {len(value)}" if isinstance(value, tuple) else type(value).__name__
