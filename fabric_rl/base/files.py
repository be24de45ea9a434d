"""Files: atomic writes, JSON that is treated as missing if it is damaged, and bounded reads of files from others."""

import hashlib
import io
import json
import os
import secrets
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

_MARK = b"fabric-rl sha256"
_CHECKSUM_BYTES = len(_MARK) + hashlib.sha256().digest_size


def read_json(path: Path) -> dict[str, Any]:
    """Return the object in a JSON file; `{}` if it is missing, damaged or not an object."""
    try:
        content = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    except (OSError, RecursionError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}


def json_text(content: dict[str, Any]) -> str:
    """Return indented JSON."""
    return json.dumps(content, indent=2) + "\n"


def write_json(path: Path, content: dict[str, Any]) -> None:
    """Write a JSON file atomically."""
    write_text(path, json_text(content))


def write_text(path: Path, text: str) -> None:
    """Write a UTF-8 text file atomically."""
    atomic_write(path, text.encode("utf-8"))


def atomic_write(path: Path, *chunks: bytes | memoryview, durable: bool = False) -> None:
    """Replace a file atomically: its name always refers to the complete old or the complete new content.

    The content is written to a temporary file in the same folder, with a name that cannot be guessed (so nobody can
    plant a link there). This file is renamed at the end, or deleted after a failure.

    Args:
        path: The file.
        chunks: Parts of the content, in order.
        durable: Flush the file and its name to the disk, so that they survive a crash of the machine.

    Raises:
        OSError: The disk is full, the folder is gone, ...; the error names the file.
    """
    temporary = path.with_name(f"{path.name}.{secrets.token_hex(8)}.tmp")
    try:
        with open(temporary, "xb") as file:
            for chunk in chunks:
                file.write(chunk)
            if durable:
                file.flush()
                os.fsync(file.fileno())
        os.replace(temporary, path)
        if durable and hasattr(os, "O_DIRECTORY"):  # Windows has no such call
            folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)
    except OSError as error:  # the error of a full disk does not name the file
        raise OSError(error.errno, error.strerror, str(path)) from error
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)


@contextmanager
def read_error_context(what: str) -> Iterator[None]:
    """Turn any error of a block that reads a damaged or forged file into one line, `<what>: <reason>`.

    Raises:
        ValueError: The block failed.
    """
    try:
        yield
    except Exception as error:  # zlib, zipfile, json and numpy fail in many ways
        reason = f"it lacks {error}" if isinstance(error, KeyError) else " ".join(str(error).split())
        raise ValueError(f"{what}: {reason or type(error).__name__}") from error


def checksum(content: bytes | memoryview) -> bytes:
    """Return the end of a file with `content`, by which `read_checked` detects damage; zip readers ignore it."""
    return _MARK + hashlib.sha256(content).digest()


def read_checked(path: Path, most_bytes: int) -> memoryview:
    """Return the content of a file, without its `checksum` if it has one.

    Raises:
        ValueError: The file is larger than `most_bytes`, or damaged; the message does not name it.
    """
    if path.stat().st_size > most_bytes:
        raise ValueError(f"it is larger than {most_bytes >> 20:,} MiB")
    content = memoryview(path.read_bytes())
    body, end = content[:-_CHECKSUM_BYTES], content[-_CHECKSUM_BYTES:]
    if end[: len(_MARK)] != _MARK:
        return content  # of an older version, or of another program
    if end != checksum(body):
        raise ValueError("it is damaged: its checksum is wrong")
    return body


def read_arrays(path: Path, most_bytes: int) -> dict[str, NDArray[Any]]:
    """Return the arrays of a .npz file without pickles, after comparing them with their checksums.

    Raises:
        Exception: The file is damaged, or its arrays are larger than `most_bytes`; use `read_error_context`.
    """
    found = {}
    with zipfile.ZipFile(io.BytesIO(read_checked(path, most_bytes))) as archive:
        members = archive.infolist()
        if sum(member.file_size for member in members) > most_bytes:
            raise ValueError(f"its arrays are larger than {most_bytes >> 20:,} MiB")
        for member in members:
            if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):  # others cannot be bounded
                raise ValueError(f"{member.filename} is compressed in a way that NumPy does not use")
            with archive.open(member) as file:
                data = file.read(member.file_size)
            header = io.BytesIO(data)
            np.lib.format.read_magic(header)  # type: ignore[no-untyped-call]
            shape, in_columns, dtype = np.lib.format.read_array_header_1_0(header)  # type: ignore[no-untyped-call]
            array = np.frombuffer(data, dtype, offset=header.tell()).reshape(shape, order="F" if in_columns else "C")
            found[member.filename.removesuffix(".npy")] = array
    return found
