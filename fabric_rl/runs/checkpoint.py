"""Checkpoint files: written in one step, verifiable on their own, loaded without ever executing code.

A file is what `torch.save` writes (so `torch.load` opens it, too) plus a trailer of 48 bytes: a mark, the number of
bytes before it and their SHA-256. Content and checksum appear under the final name in the same instant, so a crash
never leaves one without the other.
"""

import errno
import hashlib
import io
import os
import pickle
import struct
import warnings
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

import torch

from fabric_rl.base.files import atomic_write
from fabric_rl.runs.checkpoint_names import checkpoints
from fabric_rl.runs.primitives import from_primitives, to_primitives
from fabric_rl.types import CheckpointError as CheckpointError

_TRAILER = struct.Struct("<8sQ32s")
_MARK = b"FABRICRL"
_FORMAT, FORMAT = "checkpoint_format", 1
"""Number of the format; it changes when this reader could not read a file (docs/reproducibility.md). No number: 1."""


class NewerFormatError(CheckpointError):
    """A later version of fabric-rl wrote the checkpoint: it is not damaged, and none before it takes its place."""


class CheckpointWarning(UserWarning):
    """A checkpoint is damaged and an older one takes its place."""


# ---------------------------------------------------------------- files


def write(path: str | Path, state: dict[str, Any]) -> None:
    """Writes a checkpoint so that at any moment either the whole file or none is there under its name.

    What a killed writer left in the folder is removed first; so only one process may write into a folder. The folder is
    made if it is gone.

    Args:
        path: Where to.
        state: Anything that `to_primitives` takes.

    Raises:
        TypeError: The state holds something that could not be loaded again.
        CheckpointError: Disk full, no permission...; no temporary file is left and no other checkpoint is touched.
    """
    path = Path(path)
    buffer = io.BytesIO()  # torch's own writer does not say which error the disk had
    torch.save(to_primitives(state | {_FORMAT: FORMAT}), buffer)
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
    """Reads what `write` wrote; tensors come to the CPU.

    Raises:
        CheckpointError: No such file, cut short, damaged, not written by `write`, or it wants to execute code.
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
                raise ValueError("no format")
            if found > FORMAT:
                raise NewerFormatError(
                    f"checkpoint {path} has format {found}, this fabric-rl reads {FORMAT}: install a newer one"
                )
            state = from_primitives(content, size)
        except (OSError, MemoryError, CheckpointError):
            raise
        except pickle.UnpicklingError as error:
            raise CheckpointError(
                f"checkpoint {path} is refused: it holds more than numbers and text, loading it would execute code"
            ) from error
        except Exception as error:  # the checksum was right, so somebody made this file: it may fail in any way
            raise CheckpointError(f"checkpoint {path} is refused: fabric-rl did not write it") from error
    if not isinstance(state, dict):
        raise CheckpointError(f"checkpoint {path} is refused: it holds a {type(state).__name__}, not a run's state")
    return state


def verify(path: str | Path) -> None:
    """Compares a file with its checksum, without loading it.

    Raises:
        CheckpointError: No such file, cut short, damaged, or not written by `write`.
    """
    path = Path(path)
    with _opened(path) as file:
        _check(path, file)


def newest_verified(folder: str | Path) -> Path | None:
    """The newest checkpoint of a folder whose checksum is right, not loaded; None if there is none."""
    for path in reversed(checkpoints(folder)):
        with suppress(CheckpointError):
            verify(path)
            return path
    return None


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
        except NewerFormatError:
            raise
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
    found, good = checkpoints(folder), newest_verified(folder)
    oldest_kept = 0 if good is None else min(max(0, len(found) - keep), found.index(good))
    removed = []
    for path in found[:oldest_kept]:
        with suppress(OSError):  # Windows keeps a file that somebody reads; the next call removes it
            path.unlink()
            removed.append(path)
    return removed


@contextmanager
def _opened(path: Path) -> Iterator[BinaryIO]:
    """Opens a file that is one; the end of a pipe or a device might never come.

    Raises:
        CheckpointError: It is something else, or cannot be read.
    """
    try:
        if path.exists() and not (path.is_file() or path.is_dir()):
            raise OSError(errno.EINVAL, "It is no regular file")
        with open(path, "rb") as file:
            yield file
    except OSError as error:
        raise CheckpointError(f"checkpoint {path} cannot be read: {error.strerror or error}") from error


def _check(path: Path, file: BinaryIO) -> int:
    """Reads the file once, whole, and compares it with its trailer; returns the bytes before that."""
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
    return size


def _check_archive(file: BinaryIO, size: int) -> None:
    """Raises ValueError unless this is an archive of `torch.save`: nothing in it unpacks to more than the file has."""
    with zipfile.ZipFile(file) as archive:
        parts = archive.infolist()
    if any(part.compress_type != zipfile.ZIP_STORED for part in parts) or sum(part.file_size for part in parts) > size:
        raise ValueError("not written by torch.save")
