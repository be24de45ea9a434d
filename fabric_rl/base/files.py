"""Text and JSON files of a run: written in one step, read without complaint where they are missing or damaged."""

import json
import os
import secrets
from contextlib import suppress
from pathlib import Path
from typing import Any


def read_json(path: Path) -> dict[str, Any]:
    """The object in a file; an empty one where it is missing, damaged or something else."""
    try:
        content = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    except (OSError, RecursionError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}


def json_text(content: dict[str, Any]) -> str:
    """JSON for people."""
    return json.dumps(content, indent=2) + "\n"


def write_json(path: Path, content: dict[str, Any]) -> None:
    """Writes an object in one step."""
    write_text(path, json_text(content))


def write_text(path: Path, text: str) -> None:
    """Writes a text file in one step."""
    atomic_write(path, text.encode("utf-8"))


def atomic_write(path: Path, *chunks: bytes | memoryview, durable: bool = False) -> None:
    """Writes a file so that at any moment either all of it is there under its name, or what was there before.

    The content goes to a temporary file beside it, of a name that nobody can guess or plant a link under, which is
    renamed at the end. Where that fails nothing is left behind.

    Args:
        path: The file.
        chunks: Its content, one after another.
        durable: The file and its name are on the disk when this returns, whatever happens to the machine then.

    Raises:
        OSError: The disk is full, the folder is gone...; it names the file.
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
    except OSError as error:  # that of a full disk names no file
        raise OSError(error.errno, error.strerror, str(path)) from error
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
