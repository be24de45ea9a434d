"""Arrays that two processes share."""

import math
from contextlib import suppress
from multiprocessing.shared_memory import SharedMemory
from typing import Any

import numpy as np
from numpy.typing import NDArray

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
        self.name, self._named = self._memory.name, name is None
        self._arrays: dict[str, NDArray[Any]] = {
            key: np.ndarray(shape, dtype, self._memory.buf, offset)
            for (key, (shape, dtype)), offset in zip(layout.items(), offsets, strict=True)
        }

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
        with suppress(BufferError):  # an array is still referenced, for example by a traceback; freed together with it
            self._memory.close()
