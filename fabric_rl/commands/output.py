"""Where the commands put what they found out: tables on the console, pictures and tables in files."""

import os
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, redirect_stdout
from io import BytesIO
from pathlib import Path
from typing import Any, TypeVar

from envs.render.videos import find_ffmpeg
from fabric_rl.analysis.curves import new_figure
from fabric_rl.metrics.csv_tables import csv_text
from fabric_rl.runs.json_files import json_text, write_bytes, write_json

Found = TypeVar("Found")
STDOUT = Path("-")
"""In place of a file: standard output, which is what a bare `--json` means."""


def check_out(paths: Sequence[Path], suffixes: Collection[str], flag: str = "--out") -> None:
    """Checks the files of `flag` before any work is done for them.

    Raises:
        ValueError: One has another suffix, or is a folder or a device.
        OSError: Its folder does not exist; or a video, but there is no ffmpeg.
        ImportError: A picture, but matplotlib is not installed.
    """
    for path in paths:
        if path.suffix not in suffixes:
            raise ValueError(f"{flag} {path}: must end in {' or '.join(suffixes)}")
        check_file(path, flag)
        if path.suffix == ".png":
            new_figure(1, 1)
        if path.suffix in (".mp4", ".gif"):
            find_ffmpeg()


def check_file(path: Path, flag: str) -> None:
    """Checks that a file can be written there, before any work is done for it; an OSError or ValueError if not."""
    if not path.parent.is_dir():
        raise FileNotFoundError(f"{flag} {path}: there is no folder {path.parent}")
    if path.exists() and not path.is_file():
        raise ValueError(f"{flag} {path}: this is no file")
    if not all(os.access(each, os.W_OK) for each in (path.parent, path) if each.exists()):
        raise PermissionError(f"{flag} {path}: cannot be written")


def write_out(paths: Sequence[Path], found: Found, writers: Mapping[str, Callable[[Found, Path], None]]) -> None:
    """Writes what was found into each file, by the writer for its suffix, and says so."""
    for path in paths:
        writers[path.suffix](found, path)
        print(f"written: {path}")


def json_files(**flags: Path | None) -> list[Path]:
    """Where the JSON goes, checked before any work is done for it; a ValueError or OSError names the flag."""
    for flag, path in flags.items():
        if path is None or path == STDOUT:
            continue
        if path.suffix != ".json" or not path.parent.is_dir():
            raise ValueError(f"--{flag} {path}: must be a .json file in a folder that exists")
        check_file(path, f"--{flag}")
    return [path for path in flags.values() if path is not None]


def for_people(files: Collection[Path]) -> AbstractContextManager[object]:
    """What is printed meanwhile leaves standard output to the JSON, if that goes there."""
    return redirect_stdout(sys.stderr) if STDOUT in files else nullcontext()


def give_json(found: dict[str, Any], files: Sequence[Path]) -> None:
    """Writes it into files, and says so, or to standard output."""
    for path in files:
        if path == STDOUT:
            print(json_text(found), end="")
        else:
            write_json(path, found)
            with for_people(files):
                print(f"written: {path}")


def write_png(figure: Any, path: Path) -> None:  # noqa: ANN401 - see new_figure
    """Writes a figure in one step; an OSError names the file."""
    picture = BytesIO()
    figure.savefig(picture, format="png", dpi=120)
    write_bytes(path, picture.getvalue())


def write_csv(rows: Sequence[Mapping[str, object]], path: Path) -> None:
    """Writes rows with the same keys as a CSV file with a header."""
    path.write_text(csv_text(list(rows[0]) if rows else [], rows), encoding="utf-8", newline="")
