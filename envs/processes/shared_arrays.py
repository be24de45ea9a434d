"""SharedArrays: named numpy arrays in one block of memory that two processes share."""

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

    As soon as the other has attached, the creator calls `forget_name`: from then on the memory goes back with the last
    process that uses it, however that process ends.
    """

    def __init__(self, layout: Layout, name: str | None = None) -> None:
        """Creates a block of zeros, or attaches to the one called `name`."""
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
        """What the other process attaches to."""
        return self._memory.name

    def __getitem__(self, key: str) -> NDArray[Any]:
        """The array itself. Drop every reference to it before `close`."""
        return self._arrays[key]

    def forget_name(self) -> None:
        """Removes the name of a block that this object created; whoever has attached keeps the memory."""
        if self._named:
            self._named = False
            self._memory.unlink()

    def close(self) -> None:
        """Gives the memory back."""
        self.forget_name()
        self._arrays.clear()
        with suppress(BufferError):  # an array is still referred to, from a traceback say: freed together with it
            self._memory.close()
