"""Text and JSON files of a run: atomic writes, and reads that treat damaged JSON files as missing."""

import json
import os
import secrets
from contextlib import suppress
from pathlib import Path
from typing import Any


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
