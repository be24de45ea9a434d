"""Checkpoint files: written atomically, verified by a checksum, loaded without executing code.

A file is the output of `torch.save` (so `torch.load` opens it, too) plus a trailer of 48 bytes: a mark, the number of
bytes before it and their SHA-256. Content and checksum appear under the final name at once, so a crash never leaves one
without the other. Only numbers and text are saved, see `encode_state`.
"""

import hashlib
import io
import math
import os
import pickle
import struct
import sys
import warnings
import zipfile
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Annotated, Any, BinaryIO

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from fabric_rl.args import MOST_THREADS
from fabric_rl.base.files import atomic_write, open_regular
from fabric_rl.base.seeding import SEED_SCHEME
from fabric_rl.base.settings import Between, check_value
from fabric_rl.base.state_schema import check_structure
from fabric_rl.runs.records import checkpoint_steps, list_checkpoints, load_run
from fabric_rl.types import CheckpointError as CheckpointError

_TRAILER = struct.Struct("<8sQ32s")
_MARK = b"FABRICRL"
_FORMAT, FORMAT = "checkpoint_format", 1
"""Number of the format, 1 if missing; it changes if older readers cannot read new files (docs/reproducibility.md)."""
_TAG = "__type__"
_PLAIN_KEYS = (str, int, bool, float, type(None))
_PLAIN = (bool, float, str, type(None), torch.Size, torch.dtype, torch.device)
_PLAIN_KINDS = "?bBiufcmMSU"
"""NumPy's kinds of numbers, times, bytes and text."""
_DEEPEST = 100
"""Maximum depth of a nested state."""
_NAMED = 3
"""Maximum number of milestones named in a message."""
_EXAMPLE: dict[str, Any] = {
    **{name: {} for name in ("agent", "fingerprint", "metrics", "optimizer", "precision", "seconds")},
    **{name: [] for name in ("callback_names", "callbacks", "ranks")},
    **{name: 0 for name in ("iteration", "steps", "world_size")},
    "exact": True,
    "kl_adaptive": None,
}
"""Entries that the checkpoint of every run contains. Later additions are not listed: older checkpoints lack them."""


class NewerFormatError(CheckpointError):
    """A later version of fabric-rl wrote the checkpoint. It is not damaged, so no older one is used instead."""


class CheckpointWarning(UserWarning):
    """A checkpoint is damaged, and an older one is used instead."""


# ---------------------------------------------------------------- files


def write(path: str | Path, state: dict[str, Any]) -> None:
    """Write a checkpoint atomically: its name refers either to the complete file or to no file.

    Temporary files of a killed writer are removed first, so only one process may write into a folder. A missing folder
    is created.

    Args:
        path: The new file.
        state: Any state that `encode_state` accepts.

    Raises:
        TypeError: The state contains something that could not be loaded again.
        CheckpointError: The disk is full, permissions are missing, ...; no temporary file is left behind, and no other
            checkpoint is changed.
    """
    path = Path(path)
    buffer = io.BytesIO()  # torch's own writer does not say which error the disk had
    torch.save(encode_state(state | {_FORMAT: FORMAT}), buffer)
    content = buffer.getbuffer()
    trailer = _TRAILER.pack(_MARK, len(content), hashlib.sha256(content).digest())
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        for leftover in path.parent.glob("*.ckpt*.tmp"):
            with suppress(OSError):
                leftover.unlink()
        atomic_write(path, content, trailer, durable=True)
    except OSError as error:
        raise CheckpointError(f"checkpoint {path} cannot be written: {error.strerror or error}") from error


def read(path: str | Path) -> dict[str, Any]:
    """Read a checkpoint that `write` wrote; tensors are on the CPU.

    Raises:
        CheckpointError: The file is missing, truncated, damaged, not written by `write`, or would execute code.
    """
    path = Path(path)
    with _opened(path) as file:
        size = _check(path, file)
        try:
            _check_archive(file, size)
            file.seek(0)
            content = torch.load(file, map_location="cpu", weights_only=True)
            found = content.pop(_FORMAT, 1) if isinstance(content, dict) else 1
            if type(found) is not int or found < 1:
                raise ValueError("an invalid format number")
            if found > FORMAT:
                raise NewerFormatError(
                    f"checkpoint {path} has format {found}, but this fabric-rl reads {FORMAT}; install a newer version"
                )
            state = decode_state(content, size)
        except (OSError, MemoryError, CheckpointError):
            raise
        except pickle.UnpicklingError as error:
            raise CheckpointError(
                f"checkpoint {path} was rejected: it contains more than numbers and text; loading it would execute code"
            ) from error
        except Exception as error:  # a forged file with a right checksum may fail in any way
            raise CheckpointError(f"checkpoint {path} was rejected: fabric-rl did not write it") from error
    if not isinstance(state, dict):
        raise CheckpointError(f"checkpoint {path} was rejected: it is a {type(state).__name__}, not a run's state")
    return state


def verify(path: str | Path) -> None:
    """Compare a file with its checksum, without loading it.

    Raises:
        CheckpointError: The file is missing, truncated, damaged, or not written by `write`.
    """
    path = Path(path)
    with _opened(path) as file:
        _check(path, file)


def latest_valid(folder: str | Path) -> Path | None:
    """Return the path of the newest checkpoint in a folder that has a correct checksum; None if there is none."""
    for path in reversed(list_checkpoints(folder)):
        with suppress(CheckpointError):
            verify(path)
            return path
    return None


def load_latest(
    folder: str | Path, reader: Callable[[Path], dict[str, Any]] = read
) -> tuple[Path, dict[str, Any]] | None:
    """Find the newest checkpoint that can be read, and warn of each newer one that cannot.

    It changes nothing in the folder, so the run may still be training.

    Args:
        folder: Folder of the checkpoints.
        reader: Function that reads a checkpoint or raises CheckpointError.

    Returns:
        Path and state; None if there are no checkpoints.

    Raises:
        CheckpointError: There are checkpoints, but none can be read, or a later version wrote one (NewerFormatError).
    """
    found = list_checkpoints(folder)
    for path in reversed(found):
        try:
            return path, reader(path)
        except NewerFormatError:
            raise
        except CheckpointError as error:
            warnings.warn(f"{error}; trying the previous one", CheckpointWarning, stacklevel=2)
    if found:
        raise CheckpointError(f"none of the {len(found)} checkpoints in {folder} can be read")
    return None


def prune(folder: str | Path, keep: int) -> list[Path]:
    """Remove all but the newest `keep` checkpoints, but never the newest valid one.

    Args:
        folder: Folder of the checkpoints.
        keep: Number of checkpoints that stay, at least 1; more stay if all of these are damaged.

    Returns:
        The removed files, oldest first.
    """
    found, good = list_checkpoints(folder), latest_valid(folder)
    oldest_kept = 0 if good is None else min(max(0, len(found) - keep), found.index(good))
    removed = []
    for path in found[:oldest_kept]:
        with suppress(OSError):  # Windows cannot delete a file in use; the next call removes it
            path.unlink()
            removed.append(path)
    return removed


@contextmanager
def _opened(path: Path) -> Iterator[BinaryIO]:
    """Open a regular file: reading a pipe or a device might never end.

    Raises:
        CheckpointError: The file is not a regular file, or cannot be read.
    """
    try:
        with open_regular(path) as file:  # of any size, as replay buffers are; the checksum is read in pieces
            yield file
    except OSError as error:
        raise CheckpointError(f"checkpoint {path} cannot be read: {error.strerror or error}") from error


def _check(path: Path, file: BinaryIO) -> int:
    """Compare the whole file with its trailer, and return the number of bytes before the trailer."""
    size = file.seek(0, os.SEEK_END) - _TRAILER.size
    file.seek(max(0, size))
    trailer = file.read()
    if size < 0 or trailer[: len(_MARK)] != _MARK:
        raise CheckpointError(f"checkpoint {path} is truncated, or fabric-rl did not write it")
    _, length, expected = _TRAILER.unpack(trailer)
    digest, left = hashlib.sha256(), size
    file.seek(0)
    while left and (chunk := file.read(min(left, 1 << 20))):
        digest.update(chunk)
        left -= len(chunk)
    if length != size or digest.digest() != expected:
        raise CheckpointError(f"checkpoint {path} is damaged: its checksum is wrong")
    return size


def _check_archive(file: BinaryIO, size: int) -> None:
    """Raise ValueError unless this is an uncompressed `torch.save` archive, which cannot expand."""
    with zipfile.ZipFile(file) as archive:
        parts = archive.infolist()
    if any(part.compress_type != zipfile.ZIP_STORED for part in parts) or sum(part.file_size for part in parts) > size:
        raise ValueError("not written by torch.save")


# ---------------------------------------------------------------- the state of a run


def load_checkpoint(path: str | Path) -> tuple[Path, dict[str, Any]]:
    """Read a checkpoint file, or the newest valid one of a run or milestone folder.

    Returns:
        The path of the file and its content.

    Raises:
        CheckpointError: There is no valid checkpoint.
    """
    path = Path(path)
    if not path.exists():
        raise CheckpointError(f"{path}: no such checkpoint, run or milestone")
    if path.is_file():
        return path, _read_run_state(path)
    try:
        found = load_latest(path / "checkpoints" if (path / "checkpoints").is_dir() else path, _read_named)
    except CheckpointError as error:
        raise CheckpointError(f"{error}; {_instead(path) or 'start a new run'}") from error
    if found is None:
        raise CheckpointError("; ".join(filter(None, (f"{path} contains no checkpoints", _instead(path)))))
    return found


def _read_run_state(path: Path) -> dict[str, Any]:
    state = read(path)
    try:
        check_run_state(state)
    except ValueError as error:
        raise CheckpointError(f"checkpoint {path} was rejected: it is not a run's checkpoint ({error})") from error
    return state


def _read_named(path: Path) -> dict[str, Any]:
    state = _read_run_state(path)
    if state["steps"] != checkpoint_steps(path):  # renamed: the newest by name may be an older one
        raise CheckpointError(f"checkpoint {path} was rejected: its content is from step {state['steps']:,}")
    return state


def _instead(path: Path) -> str:
    """Return a text that names the milestones of a run whose checkpoints are lost; empty if it has none."""
    folders = [m.folder for m in load_run(path).milestones if list_checkpoints(m.folder)]
    if not folders:
        return ""
    folders.sort(key=lambda folder: int(folder.name))
    names = ", ".join(f"{folder.parent.name}/{folder.name}" for folder in folders[-_NAMED:])
    few = f"milestones {names}" if len(folders) <= _NAMED else f"{len(folders)} milestones, such as {names}"
    return f"use one of its {few}: --resume {folders[-1]}"


def check_run_state(state: Mapping[str, Any]) -> None:
    """Raise a one-line ValueError unless `state` is the state of a run, of any environment and agent."""
    if missing := [name for name in _EXAMPLE if name not in state]:
        raise ValueError(f"it lacks {', '.join(missing[:3])}")
    for name, example in _EXAMPLE.items():
        check_structure(state[name], example, name)
    check_value("num_threads", state.get("num_threads", 1), Annotated[int, Between(1, MOST_THREADS)])  # torch crashes
    check_value("seed_scheme", state.get("seed_scheme", 1), Annotated[int, Between(1, SEED_SCHEME)])
    check_value("num_players", state.get("num_players", 0), Annotated[int, Between(0, state["world_size"])])
    if len(state["callbacks"]) != len(state["callback_names"]):
        raise ValueError(f"it has {len(state['callback_names'])} callbacks, but {len(state['callbacks'])} states")
    if len(state["ranks"]) != state["world_size"] or not 0 <= state["iteration"] <= state["steps"]:
        raise ValueError(
            f"{state['iteration']} iterations, {state['steps']} steps and {len(state['ranks'])} ranks are inconsistent"
        )


# ---------------------------------------------------------------- primitives


def encode_state(state: object) -> Any:  # noqa: ANN401 - the structure of its argument
    """Convert a state to types that `torch.load(weights_only=True)` accepts; `decode_state` restores it exactly.

    The state may contain None, bool, int (of any size), float, str, bytes, dense tensors, NumPy arrays and scalars
    (numbers, text, bytes and structures of them), list, tuple, deque, set, frozenset, dict and OrderedDict, nested.
    Tensors lose `requires_grad` and stay on their device; only views of a larger storage are copied.

    Raises:
        TypeError: The state contains something else; the message says where.
    """
    return _encode(state, "state", 0)


def decode_state(state: object, size: int = sys.maxsize) -> Any:  # noqa: ANN401
    """Restore the state that `encode_state` converted; arrays are writable and own their memory.

    The state may come from a stranger: its dtypes, shapes and sizes are checked before anything is read or allocated.

    Args:
        state: The converted state.
        size: Bytes of the file, an upper limit for arrays, for the storage of a tensor and for the number of items.

    Raises:
        ValueError, TypeError, KeyError, ...: The state is not one that `encode_state` returned.
    """
    return _Decoder(size).decode(state, 0)


class _Decoder:
    def __init__(self, size: int) -> None:
        self._size = self._items = self._bytes = size

    def decode(self, state: Any, depth: int) -> Any:  # noqa: ANN401
        self._items -= 1
        if depth > 2 * _DEEPEST or self._items < 0:  # the pairs of a dict are an additional level
            raise ValueError("nested too deeply, or more than a file of that size can contain")
        if isinstance(state, list | tuple) and not isinstance(state, torch.Size):
            return type(state)(self.decode(item, depth + 1) for item in state)
        if isinstance(state, Tensor):
            return self._tensor(state)
        if not isinstance(state, dict):
            return state
        tag = state.get(_TAG)
        if tag is None:
            plain = {key: self.decode(value, depth + 1) for key, value in state.items()}
            return _ordered(plain, vars(state)) if isinstance(state, OrderedDict) else plain
        if tag == "int":
            return int(state["hex"], 16)
        if tag == "bytes":
            return self._content(state["data"])
        if tag in ("array", "scalar"):
            array = self._array(np.lib.format.descr_to_dtype(state["dtype"]), state["shape"], state["data"])  # type: ignore[no-untyped-call]
            return array if tag == "array" else array[()]
        items = [self.decode(item, depth + 1) for item in state["items"]]
        if tag == "deque":
            return deque(items, state["maxlen"])
        return {"set": set, "frozenset": frozenset, "dict": dict, "OrderedDict": OrderedDict}[tag](items)

    def _tensor(self, tensor: Tensor) -> Tensor:
        tensor = tensor.detach()
        if not _is_dense(tensor) or tensor.device.type == "meta":
            raise ValueError("not a dense tensor")
        if not tensor.nbytes <= tensor.untyped_storage().nbytes() <= self._size:
            raise ValueError("a tensor that is larger than its saved storage")
        if tensor.dtype == torch.bool:
            self._spend(tensor.numel())
            if tensor.numel() and tensor.view(torch.uint8).max() > 1:
                raise ValueError("a bool that is neither true nor false")
        return tensor

    def _content(self, data: Tensor) -> bytes:
        data = self._tensor(data)
        if data.dtype != torch.uint8 or data.dim() != 1:
            raise ValueError("invalid bytes")
        self._spend(len(data))
        return data.numpy().tobytes()

    def _spend(self, number: int) -> None:
        self._bytes -= number
        if self._bytes < 0:
            raise ValueError("more bytes than the file has")

    def _array(self, dtype: "np.dtype[Any]", shape: list[int], data: Tensor) -> NDArray[Any]:
        if not _is_plain(dtype) or not all(type(length) is int and length >= 0 for length in shape):
            raise ValueError("an array of something other than numbers and text")
        content = self._content(data)
        if math.prod(shape) * dtype.itemsize != len(content) or not (content or math.prod(shape) <= 1):
            raise ValueError("an array whose size differs from its content")
        array: NDArray[Any] = np.ndarray(shape, dtype, buffer=content).copy()
        _check_values(array)
        return array


def _ordered(plain: dict[Any, Any], attributes: dict[str, Any]) -> "OrderedDict[Any, Any]":
    """Return an OrderedDict with the versions of modules, which torch's state dicts keep in an attribute."""
    ordered = OrderedDict(plain)
    versions = attributes.get("_metadata", {})
    if versions:
        numbers = [number for each in versions.values() for number in each.values()]
        if not all(isinstance(name, str) for name in versions) or not all(isinstance(x, int | None) for x in numbers):
            raise ValueError("invalid versions of modules")
        ordered.__dict__["_metadata"] = OrderedDict((name, dict(each)) for name, each in versions.items())
    return ordered


def _is_dense(tensor: Tensor) -> bool:
    return tensor.layout == torch.strided and not tensor.is_quantized and not tensor.is_nested


def _is_plain(dtype: "np.dtype[Any]") -> bool:
    """Return whether a dtype consists of numbers, text, bytes and structures of them, without objects."""
    if dtype.subdtype is not None:
        return _is_plain(dtype.subdtype[0])
    if dtype.names is not None:
        return bool(dtype.names) and all(_is_plain(dtype[name]) for name in dtype.names)
    return not dtype.hasobject and dtype.kind in _PLAIN_KINDS


def _check_values(array: NDArray[Any]) -> None:
    """Raise ValueError for bytes that are not a valid value of their dtype, which NumPy does not check."""
    if array.dtype.names is not None:
        for name in array.dtype.names:
            _check_values(array[name])
    elif array.dtype.kind == "b" and array.size and array.view(np.uint8).max() > 1:
        raise ValueError("a bool that is neither true nor false")
    elif array.dtype.kind == "U" and array.size:
        codes = np.frombuffer(array.tobytes(), np.dtype(f"{array.dtype.byteorder}u4"))
        if codes.max(initial=0) > sys.maxunicode:
            raise ValueError("an invalid character")


def _encode(obj: Any, where: str, depth: int) -> Any:  # noqa: ANN401
    kind = type(obj)
    if depth > _DEEPEST:
        raise TypeError(f"checkpoint: {where} is nested too deeply; at most {_DEEPEST} levels can be loaded again")
    if kind in _PLAIN:
        return obj
    if kind is int:
        return obj if -(2**63) <= obj < 2**63 else {_TAG: "int", "hex": hex(obj)}
    if isinstance(obj, Tensor):
        tensor = obj.detach()
        if not _is_dense(tensor):
            raise TypeError(f"checkpoint: {where} is not a dense tensor; only dense ones can be saved")
        # torch.save writes the whole storage behind a view.
        return tensor.clone() if tensor.untyped_storage().nbytes() > tensor.nbytes else tensor
    if kind is bytes:
        return {_TAG: "bytes", "data": _byte_tensor(obj)}
    if kind is np.ndarray or isinstance(obj, np.generic):
        if not _is_plain(obj.dtype):
            raise TypeError(f"checkpoint: {where} is a NumPy array of {obj.dtype}; only numbers and text can be saved")
        return {
            _TAG: "array" if kind is np.ndarray else "scalar",
            "dtype": np.lib.format.dtype_to_descr(obj.dtype),  # type: ignore[no-untyped-call]
            "shape": list(obj.shape),
            "data": _byte_tensor(obj.tobytes()),
        }
    if kind in (list, tuple, deque, set, frozenset):
        items = [_encode(item, f"{where}[{i}]", depth + 1) for i, item in enumerate(obj)]
        if kind in (list, tuple):
            return kind(items)
        return {_TAG: kind.__name__, "items": items} | ({"maxlen": obj.maxlen} if kind is deque else {})
    if kind in (dict, OrderedDict):
        pairs = [
            (_encode(key, f"a key of {where}", depth + 1), _encode(obj[key], f"{where}[{key!r}]", depth + 1))
            for key in obj
        ]
        if _TAG in obj or not all(type(key) in _PLAIN_KEYS for key, _ in pairs):
            return {_TAG: kind.__name__, "items": pairs}
        encoded = kind(pairs)
        if kind is OrderedDict:  # torch's state dicts keep the versions of modules in an attribute
            encoded.__dict__.update(_encode(vars(obj), f"vars({where})", depth + 1))
        return encoded
    raise TypeError(
        f"checkpoint: {where} is a {kind.__module__}.{kind.__qualname__}, which cannot be loaded without executing "
        "code; use only numbers, text, arrays, tensors, lists and dicts in state_dict()"
    )


def _byte_tensor(data: bytes) -> Tensor:
    return torch.from_numpy(np.frombuffer(bytearray(data), np.uint8))
