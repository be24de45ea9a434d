"""Files: reads that never wait or grow without end, atomic writes that follow no link, checksums."""

import errno
import hashlib
import io
import json
import os
import secrets
import stat
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

_MARK = b"fabric-rl sha256"
_CHECKSUM_BYTES = len(_MARK) + hashlib.sha256().digest_size
MOST_TEXT_BYTES, MOST_CONFIG_BYTES = 64 << 20, 1 << 20
"""Maximum sizes of a JSON file or patch, and of a configuration; far above those of real runs."""


def regular_file(path: str, flags: int) -> int:
    """Open a regular file, as the `opener` of `open`; raise OSError for others, and for links to write through."""
    if flags & (os.O_WRONLY | os.O_RDWR):
        flags |= getattr(os, "O_NOFOLLOW", 0)
    file = os.open(path, flags | getattr(os, "O_NONBLOCK", 0), 0o666)  # Windows has neither flag
    if not stat.S_ISREG(os.fstat(file).st_mode):
        os.close(file)
        raise OSError(errno.EINVAL, "not a regular file", path)
    return file


def open_regular(path: str | Path, most_bytes: int | None = None) -> BinaryIO:
    """Open a regular file for reading; raise OSError for any other, or if it has more than `most_bytes`."""
    file = open(path, "rb", opener=regular_file)  # noqa: SIM115 - the caller closes it
    if most_bytes is not None and os.fstat(file.fileno()).st_size > most_bytes:
        file.close()
        raise OSError(errno.EFBIG, f"larger than {most_bytes / 2**20:,.1f} MiB", str(path))
    return file


def read_text(path: str | Path, most_bytes: int = MOST_TEXT_BYTES, errors: str = "strict") -> str:
    """Return the content of a UTF-8 text file; errors as in `open_regular`."""
    with io.TextIOWrapper(open_regular(path, most_bytes), encoding="utf-8", errors=errors) as file:
        return file.read()


def read_json(path: Path) -> dict[str, Any]:
    """Return the object in a JSON file; `{}` if it is missing, damaged, too large or not an object."""
    try:
        content = json.loads(read_text(path))
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
    """Replace a file atomically with chunks of bytes, see `replacing`."""
    with replacing(path, durable) as file:
        for chunk in chunks:
            file.write(chunk)


@contextmanager
def replacing(path: Path, durable: bool = False) -> Iterator[BinaryIO]:
    """Replace a file atomically: its name always refers to the complete old or the complete new content.

    The content is written to a temporary file in the same folder, which is renamed at the end of the block, or deleted
    after a failure. Its name cannot be guessed, and it is created exclusively: whatever is planted under its
    name, such as a link, is an error. A link with the name of the file itself is replaced, not followed.

    Args:
        path: The file.
        durable: Flush the file and its name to the disk, so that they survive a crash of the machine.

    Raises:
        OSError: The disk is full, the folder is gone, ...; the error names the file.
    """
    temporary = path.with_name(f"{path.name}.{secrets.token_hex(8)}.tmp")
    try:
        with open(temporary, "xb") as file:
            yield file
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
        if error.errno is None:  # a message of the block itself
            raise
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
    with open_regular(path) as file:
        if os.fstat(file.fileno()).st_size > most_bytes:
            raise ValueError(f"it is larger than {most_bytes >> 20:,} MiB")
        content = memoryview(file.read())
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
