"""Parts of a ProcessPool: arrays in shared memory, merged infos, the inspector, factories of the shards."""

import functools
import inspect
import math
import pickle
from collections.abc import Sequence
from contextlib import suppress
from multiprocessing.shared_memory import SharedMemory
from typing import Any, NamedTuple, Protocol

import numpy as np
from gymnasium.vector import VectorEnv
from numpy.typing import NDArray

from envs.factories import unwrap_partial
from fabric_rl.base.settings import Count, check_value, is_whole

Layout = dict[str, tuple[tuple[int, ...], np.dtype[Any]]]
"""Name -> (shape, dtype) of every array."""

_ALIGNMENT_BYTES = 64


class SharedArrays:
    """Arrays of a fixed layout. One process creates the block, the other attaches to it by its name.

    As soon as the other process has attached, the creator calls `forget_name`: from then on the memory is freed with
    the last process that uses it, however that process ends.
    """

    def __init__(self, layout: Layout, name: str | None = None) -> None:
        """Create a block of zeros, or attach to the one called `name`."""
        size, offsets = 0, []
        for shape, dtype in layout.values():
            offsets.append(size)
            size += math.ceil(math.prod(shape) * dtype.itemsize / _ALIGNMENT_BYTES) * _ALIGNMENT_BYTES
        self._memory = SharedMemory(name, create=name is None, size=size)
        self._named = name is None
        self._arrays: dict[str, NDArray[Any]] = {
            key: np.ndarray(shape, dtype, self._memory.buf, offset)
            for (key, (shape, dtype)), offset in zip(layout.items(), offsets, strict=True)
        }

    @property
    def name(self) -> str:
        """Name of the block, to which the other process attaches."""
        return self._memory.name

    def __getitem__(self, key: str) -> NDArray[Any]:
        """Return the array itself. Drop every reference to it before `close`."""
        return self._arrays[key]

    def forget_name(self) -> None:
        """Remove the name of a block that this object created; attached processes keep the memory."""
        if self._named:
            self._named = False
            self._memory.unlink()

    def close(self) -> None:
        """Release the memory."""
        self.forget_name()
        self._arrays.clear()
        with suppress(BufferError):  # an array is still referenced, for example by a traceback: freed together with it
            self._memory.close()


def merge_infos(infos: Sequence[dict[str, Any]], sizes: Sequence[int]) -> dict[str, Any]:
    """Merge the infos of all parts into one dict of arrays over all sub-environments, zero in parts without the key.

    Args:
        infos: Infos of every part.
        sizes: Number of sub-environments of every part. Values with another number of entries are dropped.
    """
    joined: dict[str, Any] = {}
    for name in dict.fromkeys(name for info in infos for name in info):
        values = [info.get(name) for info in infos]
        known = [value for value in values if value is not None]
        if all(isinstance(value, dict) for value in known):
            joined[name] = merge_infos([value or {} for value in values], sizes)
            continue
        arrays = [np.asarray(value) for value in known]
        like = arrays[0]
        pairs = list(zip(values, sizes, strict=True))
        if any(np.shape(value)[:1] != (size,) for value, size in pairs if value is not None):
            continue  # not one entry for each sub-environment
        empty = [np.zeros((size, *like.shape[1:]), like.dtype) if value is None else value for value, size in pairs]
        joined[name] = np.concatenate(empty)
    return joined


class ProcessInspector:
    """Inspector that refers to the commands which show the contents of worker processes."""

    def __init__(self, layout: dict[str, str]) -> None:
        self._table = layout.get("action table", "unknown")

    def describe_actions(self) -> list[str]:
        """Return a line about the action table."""
        return [f"the action table is in worker processes: {self._table}; python -m envs.actions shows tables"]

    def first_states(self) -> int:
        """Return 0: initial states are not accessible."""
        return 0

    def describe_resets(self) -> list[str]:
        """Return a line about initial states."""
        return ["first states are in worker processes; fabric-rl show-resets --config ... shows them"]

    def reset_rows(self) -> list[dict[str, Any]]:
        """Return no rows."""
        return []

    def reset_problems(self) -> list[str]:
        """Return no problems."""
        return []


class Shards(NamedTuple):
    """Division of a pool's arenas over its workers, and of the workers into groups.

    Attributes:
        starts: `[workers + 1]` first arena of each worker, and the number of all arenas.
        groups: Workers of each group. The arenas of a group do not depend on the number of workers, so neither do
            trajectories.
    """

    starts: list[int]
    groups: list[range]

    @classmethod
    def divide(cls, arenas: int, workers: int, groups: int) -> "Shards":
        """Divide as evenly as possible; a ValueError for more workers than arenas, or more groups than workers."""
        if workers > arenas:
            raise ValueError(
                f"ProcessPool: num_workers (--env.num_workers) is {workers}, but there are only {arenas} parts"
            )
        if workers < groups:
            raise ValueError(
                f"ProcessPool: groups (--env.groups) is {groups}, but there are only {workers} workers; every group "
                "needs one of its own (--env.num_workers)"
            )
        starts, members = [0], []
        for group in range(groups):
            members.append(range(workers * group // groups, workers * (group + 1) // groups))
            first, stop = arenas * group // groups, arenas * (group + 1) // groups
            count = len(members[group])
            starts += [first + (stop - first) * (k + 1) // count for k in range(count)]
        return cls(starts, members)


_SIZES = ("num_arenas", "num_envs")
"""Parameters for the size of an environment; the first one that the factory has is divided."""


class VectorEnvFactory(Protocol):
    """Builds a vector environment; a class, or a `functools.partial` of one."""

    def __call__(self, *, seed: int) -> VectorEnv[Any, Any, Any]:
        """Build the environment, whose sub-environments' seeds count from `seed`."""


def split_factory(factory: VectorEnvFactory) -> tuple[int, Any]:
    """Return the number of arenas that `factory` builds, and a function (first, count, seed) -> factory of a part.

    Raises:
        TypeError: The factory has no parameter for the seed or for the size.
        ValueError: The size is less than 1.
    """
    call = unwrap_partial(factory)
    function, given = call.function, call.named()
    parameters = inspect.signature(function).parameters
    name = getattr(function, "__name__", str(function))
    size = next((size for size in _SIZES if size in parameters), None)
    total: Any = given.get(size, parameters[size].default) if size else None
    if size is None or not is_whole(total) or "seed" not in parameters:
        if size is not None and "seed" in parameters:
            check_value(f"ProcessPool: {name}'s {size}", total, Count)
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
    """Pickle the factory; a TypeError if it cannot be sent to another process."""
    try:
        return pickle.dumps(factory)
    except Exception as error:
        raise TypeError(
            f"ProcessPool: the factory cannot be sent to another process ({error}); define it and the classes it uses "
            "at the top level of a module file"
        ) from error
