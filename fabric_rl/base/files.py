"""Text and JSON files of a run: written in one step, read without complaint where they are missing or damaged."""

import json
import os
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
    write_bytes(path, text.encode("utf-8"))


def write_bytes(path: Path, content: bytes) -> None:
    """Writes a file in one step (temporary file, then rename); an OSError names it."""
    temporary = path.with_name(f"{path.name}.{os.getpid()}.tmp")  # another process may write the same one
    try:
        temporary.write_bytes(content)
        os.replace(temporary, path)
    except OSError as error:  # of a full disk names no file
        raise OSError(error.errno, error.strerror, str(path)) from error
    finally:  # nothing is left where the disk is full
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
