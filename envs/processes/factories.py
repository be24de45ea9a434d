"""Factories of a ProcessPool's parts, made from the factory of the whole environment."""

import functools
import inspect
import pickle
from typing import Any, Protocol

from gymnasium.vector import VectorEnv

from envs.checks import whole_number
from envs.partials import taken_apart
from fabric_rl.base.settings import is_whole

_SIZES = ("num_arenas", "num_envs")
"""What says how large an environment is: the first of these parameters that the factory has is divided."""


class VectorEnvFactory(Protocol):
    """Builds a vector environment; a class, or a `functools.partial` of one."""

    def __call__(self, *, seed: int) -> VectorEnv[Any, Any, Any]:
        """Builds it with its sub-environments' seeds counting from `seed`."""


def divisible(factory: VectorEnvFactory) -> tuple[int, Any]:
    """How many arenas `factory` builds, and a function (first, count, seed) -> factory of a part.

    Raises:
        TypeError: It takes no seed, or nothing that says how large it is.
        ValueError: Its size is less than 1.
    """
    call = taken_apart(factory)
    function, given = call.function, call.named()
    parameters = inspect.signature(function).parameters
    name = getattr(function, "__name__", str(function))
    size = next((size for size in _SIZES if size in parameters), None)
    total: Any = given.get(size, parameters[size].default) if size else None
    if size is None or not is_whole(total) or "seed" not in parameters:
        if size is not None and "seed" in parameters:
            whole_number("ProcessPool", f"{name}'s {size}", total)
        raise TypeError(
            f"ProcessPool: the factory must take seed and a number {' or '.join(_SIZES)} to divide over the workers; "
            f"{name} takes {', '.join(parameters)}"
        )
    if total < 1:
        raise ValueError(f"ProcessPool: {name}'s {size} must be at least 1, got {total}")

    def part(first: int, count: int, seed: int) -> Any:  # noqa: ANN401 - a partial
        arguments = given | {size: count, "seed": seed}
        if "num_threads" in parameters:
            arguments["num_threads"] = given.get("num_threads") or 1
        if "first_arena" in parameters:
            arguments["first_arena"] = given.get("first_arena", 0) + first
        return functools.partial(function, **arguments)

    return total, part


def pickled(factory: Any) -> bytes:  # noqa: ANN401 - a partial
    """The factory as bytes; a TypeError if it cannot be sent to another process."""
    try:
        return pickle.dumps(factory)
    except Exception as error:
        raise TypeError(
            f"ProcessPool: the factory cannot be sent to another process ({error}); define it and the classes it uses "
            "at the top level of a module file"
        ) from error
