"""Checkpoint files: written in one step, verifiable on their own, loaded without ever executing code.

A file is what `torch.save` writes (so `torch.load` opens it, too) plus a trailer of 48 bytes: a mark, the number of
bytes before it and their SHA-256. Content and checksum appear under the final name in the same instant, so a crash
never leaves one without the other.
"""

import hashlib
import io
import os
import pickle
import struct
import warnings
from collections import OrderedDict, deque
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from fabric_rl.runs.checkpoint_names import checkpoints

_TRAILER = struct.Struct("<8sQ32s")
_MARK = b"FABRICRL"
_TEMPORARY = ".ckpt.tmp"
_TAG = "__type__"
_PLAIN_KEYS = (str, int, bool, float, type(None))
_PLAIN = (bool, float, str, type(None), torch.Size, torch.dtype, torch.device)


class CheckpointError(ValueError):
    """A checkpoint cannot be written or read; one line that names the file and what is wrong with it."""


class CheckpointWarning(UserWarning):
    """A checkpoint is damaged and an older one takes its place."""


# ---------------------------------------------------------------- files


def write(path: str | Path, state: dict[str, Any]) -> None:
    """Writes a checkpoint so that at any moment either the whole file or none is there under its name.

    Temporary file in the same folder, fsync, rename, fsync of the folder. What a killed writer left in the folder is
    removed first; so only one process may write into a folder. The folder is made if it is gone.

    Args:
        path: Where to.
        state: Anything that `to_primitives` takes.

    Raises:
        TypeError: The state holds something that could not be loaded again.
        CheckpointError: Disk full, no permission...; no temporary file is left and no other checkpoint is touched.
    """
    path = Path(path)
    buffer = io.BytesIO()  # torch's own writer does not say which error the disk had
    torch.save(to_primitives(state), buffer)
    content = buffer.getbuffer()
    temporary = path.with_name(path.name.removesuffix(".ckpt") + _TEMPORARY)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        for leftover in path.parent.glob(f"*{_TEMPORARY}"):
            with suppress(OSError):
                leftover.unlink(missing_ok=True)
        with open(temporary, "wb") as file:
            file.write(content)
            file.write(_TRAILER.pack(_MARK, len(content), hashlib.sha256(content).digest()))
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
        _sync_folder(path.parent)
    except OSError as error:
        raise CheckpointError(f"checkpoint {path} cannot be written: {error.strerror or error}") from error
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)


def read(path: str | Path) -> dict[str, Any]:
    """Reads what `write` wrote; tensors come to the CPU.

    Raises:
        CheckpointError: No such file, cut short, damaged, not written by `write`, or it wants to execute code.
    """
    path = Path(path)
    try:
        with open(path, "rb") as file:
            _check(path, file)
            file.seek(0)
            try:
                state = from_primitives(torch.load(file, map_location="cpu", weights_only=True))
            except (OSError, MemoryError):
                raise
            except pickle.UnpicklingError as error:
                raise CheckpointError(
                    f"checkpoint {path} is refused: it holds more than numbers and text, loading it would execute code"
                ) from error
            except Exception as error:  # the checksum was right, so somebody made this file: it may fail in any way
                raise CheckpointError(f"checkpoint {path} is refused: fabric-rl did not write it") from error
    except OSError as error:
        raise CheckpointError(f"checkpoint {path} cannot be read: {error.strerror or error}") from error
    if not isinstance(state, dict):
        raise CheckpointError(f"checkpoint {path} is refused: it holds a {type(state).__name__}, not a run's state")
    return state


def verify(path: str | Path) -> None:
    """Compares a file with its checksum, without loading it.

    Raises:
        CheckpointError: No such file, cut short, damaged, or not written by `write`.
    """
    path = Path(path)
    try:
        with open(path, "rb") as file:
            _check(path, file)
    except OSError as error:
        raise CheckpointError(f"checkpoint {path} cannot be read: {error.strerror or error}") from error


def newest_good(
    folder: str | Path, reader: Callable[[Path], dict[str, Any]] = read
) -> tuple[Path, dict[str, Any]] | None:
    """Finds the newest checkpoint that can be read, and warns once about each newer one that cannot.

    Changes nothing in the folder, so it may look at a run that is being trained.

    Args:
        folder: Where they lie.
        reader: Reads one, or raises CheckpointError.

    Returns:
        Path and state; None where there is no checkpoint at all.

    Raises:
        CheckpointError: There are checkpoints, but all are damaged.
    """
    found = checkpoints(folder)
    for path in reversed(found):
        try:
            return path, reader(path)
        except CheckpointError as error:
            warnings.warn(f"{error}; trying the one before", CheckpointWarning, stacklevel=2)
    if found:
        raise CheckpointError(f"none of the {len(found)} checkpoints in {folder} can be read")
    return None


def prune(folder: str | Path, keep: int) -> list[Path]:
    """Removes all but the newest `keep` checkpoints, and never the newest good one.

    Args:
        folder: Where they lie.
        keep: How many stay, at least 1; more if all of these are damaged.

    Returns:
        What was removed, oldest first.
    """
    if keep < 1:
        raise ValueError(f"--keep_checkpoints must be at least 1, got {keep}")
    found = checkpoints(folder)
    first_kept = max(0, len(found) - keep)
    good = next((i for i in reversed(range(len(found))) if _is_good(found[i])), 0)
    removed = []
    for path in found[: min(first_kept, good)]:
        with suppress(OSError):  # Windows keeps a file that somebody reads; the next call removes it
            path.unlink()
            removed.append(path)
    return removed


def _is_good(path: Path) -> bool:
    try:
        verify(path)
    except CheckpointError:
        return False
    return True


def _check(path: Path, file: BinaryIO) -> None:
    """Reads the file once, whole, and compares it with its trailer."""
    size = file.seek(0, os.SEEK_END) - _TRAILER.size
    file.seek(max(0, size))
    trailer = file.read()
    if size < 0 or trailer[: len(_MARK)] != _MARK:
        raise CheckpointError(f"checkpoint {path} is cut short, or fabric-rl did not write it")
    _, length, expected = _TRAILER.unpack(trailer)
    digest, left = hashlib.sha256(), size
    file.seek(0)
    while left and (chunk := file.read(min(left, 1 << 20))):
        digest.update(chunk)
        left -= len(chunk)
    if length != size or digest.digest() != expected:
        raise CheckpointError(f"checkpoint {path} is damaged: its checksum is wrong")


def _sync_folder(folder: Path) -> None:
    """Makes a rename in the folder survive a power cut; Windows has no such call."""
    if hasattr(os, "O_DIRECTORY"):
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


# ---------------------------------------------------------------- state as numbers and text


def to_primitives(state: object) -> Any:  # noqa: ANN401 - the structure of its argument
    """Turns a state into what `torch.load(weights_only=True)` accepts; `from_primitives` turns it back exactly.

    Takes None, bool, int (of any size), float, str, bytes, tensors, numpy arrays and scalars (of any dtype without
    objects, structured ones included), list, tuple, deque, set, frozenset, dict and OrderedDict, nested. Tensors
    lose `requires_grad`, are not copied unless they show a part of a larger storage, and stay on their device.

    Raises:
        TypeError: Something else is in it; the message says where.
    """
    return _encode(state, "state")


def from_primitives(state: object) -> Any:  # noqa: ANN401
    """Turns back what `to_primitives` gave; arrays are writable and own their memory."""
    if isinstance(state, list | tuple):
        return type(state)(from_primitives(item) for item in state)
    if isinstance(state, OrderedDict):
        ordered = OrderedDict((key, from_primitives(value)) for key, value in state.items())
        ordered.__dict__.update(from_primitives(vars(state)))
        return ordered
    if not isinstance(state, dict):
        return state
    tag = state.get(_TAG)
    if tag is None:
        return {key: from_primitives(value) for key, value in state.items()}
    if tag == "int":
        return int(state["hex"], 16)
    if tag == "bytes":
        return state["data"].numpy().tobytes()
    if tag in ("array", "scalar"):
        dtype: np.dtype[Any] = np.lib.format.descr_to_dtype(state["dtype"])  # type: ignore[no-untyped-call]
        array: NDArray[Any] = np.ndarray(state["shape"], dtype, buffer=state["data"].numpy().tobytes()).copy()
        return array if tag == "array" else array[()]
    items = [from_primitives(item) for item in state["items"]]
    if tag == "deque":
        return deque(items, state["maxlen"])
    return {"set": set, "frozenset": frozenset, "dict": dict, "OrderedDict": OrderedDict}[tag](items)


def _encode(obj: Any, where: str) -> Any:  # noqa: ANN401
    kind = type(obj)
    if kind in _PLAIN:
        return obj
    if kind is int:
        return obj if -(2**63) <= obj < 2**63 else {_TAG: "int", "hex": hex(obj)}
    if isinstance(obj, Tensor):
        tensor = obj.detach()
        # torch.save writes the whole storage behind a view.
        is_part = tensor.layout == torch.strided and tensor.untyped_storage().nbytes() > tensor.nbytes
        return tensor.clone() if is_part else tensor
    if kind is bytes:
        return {_TAG: "bytes", "data": _byte_tensor(obj)}
    if kind is np.ndarray or isinstance(obj, np.generic):
        if obj.dtype.hasobject:
            raise TypeError(f"checkpoint: {where} is a numpy array of objects; only numbers and text can be saved")
        return {
            _TAG: "array" if kind is np.ndarray else "scalar",
            "dtype": np.lib.format.dtype_to_descr(obj.dtype),  # type: ignore[no-untyped-call]
            "shape": list(obj.shape),
            "data": _byte_tensor(obj.tobytes()),
        }
    if kind in (list, tuple, deque, set, frozenset):
        items = [_encode(item, f"{where}[{i}]") for i, item in enumerate(obj)]
        if kind in (list, tuple):
            return kind(items)
        return {_TAG: kind.__name__, "items": items} | ({"maxlen": obj.maxlen} if kind is deque else {})
    if kind in (dict, OrderedDict):
        pairs = [(_encode(key, f"a key of {where}"), _encode(obj[key], f"{where}[{key!r}]")) for key in obj]
        if _TAG in obj or not all(type(key) in _PLAIN_KEYS for key, _ in pairs):
            return {_TAG: kind.__name__, "items": pairs}
        encoded = kind(pairs)
        if kind is OrderedDict:  # torch's state dicts keep the versions of modules in an attribute
            encoded.__dict__.update(_encode(vars(obj), f"vars({where})"))
        return encoded
    raise TypeError(
        f"checkpoint: {where} is a {kind.__module__}.{kind.__qualname__}, which cannot be loaded without executing "
        "code; keep numbers, text, arrays, tensors, lists and dicts in state_dict()"
    )


def _byte_tensor(data: bytes) -> Tensor:
    return torch.from_numpy(np.frombuffer(bytearray(data), np.uint8))
