"""The result of a command, and the files that it goes to: checked before the work begins, written after it."""

import os
import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass
from importlib import import_module
from io import BytesIO
from pathlib import Path
from typing import Any, TextIO, TypeVar

from rich.console import RenderableType

from fabric_rl.analysis.curves import new_figure
from fabric_rl.base.files import atomic_write, json_text, write_json
from fabric_rl.base.tables import console
from fabric_rl.metrics.csv_tables import csv_text

Command = TypeVar("Command", bound=Callable[..., Any])
STDOUT = Path("-")
"""In place of a file: standard output, which is what a bare `--json` means."""


@dataclass(frozen=True)
class Out:
    """A flag for files that a command writes; they are checked before the work begins."""

    flag: str
    suffixes: Sequence[str]
    help: str = ""
    """Empty for a parameter of the command, which writes that file itself; else its `Report` is written."""
    several: bool = False


_JSON_HELP = ".json file for the results; without a file name, they go to standard output, tables to standard error."
JSON = Out("json", [".json"], _JSON_HELP)


def writes(*outs: Out) -> Callable[[Command], Command]:
    """Declare the files that a command writes."""

    def declare(command: Command) -> Command:
        command.outs = outs  # type: ignore[attr-defined]
        return command

    return declare


@dataclass(frozen=True)
class Report:
    """The result of a command."""

    show: Sequence[RenderableType] = ()
    """Tables and lines for people."""
    data: Mapping[str, Any] | None = None
    """Content of a .json file."""
    rows: Sequence[Mapping[str, object]] = ()
    """Rows of a .csv file, all with the same keys."""
    draw: Callable[[], Any] | None = None
    """Returns the figure of a .png file; called if there is to be one."""
    status: int = 0
    """Exit status."""
    name: str = ""
    """Part of the names of files if a command gives several reports."""
    files: Sequence[Path] = ()
    """More .json files."""


def give(reports: "int | Report | Iterable[Report]", files: Sequence[Path], out: TextIO) -> int:
    """Print and write reports as they come, JSON for standard output to `out`.

    Returns:
        The greatest exit status.
    """
    if isinstance(reports, int):
        return reports
    status = 0
    for report in [reports] if isinstance(reports, Report) else reports:
        show(report.show)
        for path in (*files, *report.files) if report.data is not None or report.rows else ():
            _write(report, path.with_stem(f"{path.stem}_{report.name}") if report.name else path, out)
        status = max(status, report.status)
    return status


def show(shown: Iterable[RenderableType]) -> None:
    """Print tables and lines."""
    for each in shown:
        if isinstance(each, str):
            print(each)
        else:
            console().print(each)


def _write(report: Report, path: Path, out: TextIO) -> None:
    if path == STDOUT:
        print(json_text(dict(report.data or {})), end="", file=out)
        return
    if path.suffix == ".json":
        write_json(path, dict(report.data or {}))
    elif path.suffix == ".csv":
        path.write_text(csv_text(list(report.rows[0]), report.rows), encoding="utf-8", newline="")
    elif report.draw is not None:
        write_png(report.draw(), path)
    print(f"written: {path}")


def for_people(files: Collection[Path]) -> "redirect_stdout[TextIO]":
    """Return a context that leaves standard output to the JSON, if that goes there."""
    return redirect_stdout(sys.stderr if STDOUT in files else sys.stdout)


def check_out(paths: Iterable[Path], suffixes: Collection[str], flag: str = "--out") -> None:
    """Check the files of `flag` before any work is done for them.

    Raises:
        ValueError: One has another suffix, or is a folder or a device.
        OSError: Its folder does not exist or does not let us write; or a video, but there is no ffmpeg.
        ImportError: A picture, but matplotlib is not installed.
    """
    for path in paths:
        if path == STDOUT and list(suffixes) == [".json"]:
            continue
        if path.suffix not in suffixes:
            raise ValueError(f"{flag} {path}: must end in {' or '.join(suffixes)}")
        check_file(path, flag)
        if path.suffix == ".png":
            new_figure(1, 1)
        if path.suffix in (".mp4", ".gif"):
            import_module("envs.pool.videos").find_ffmpeg()


def check_file(path: Path, flag: str) -> None:
    """Check that a file can be written; an OSError or ValueError names the flag."""
    if not path.parent.is_dir():
        raise FileNotFoundError(f"{flag} {path}: there is no folder {path.parent}")
    if path.exists() and not path.is_file():
        raise ValueError(f"{flag} {path}: this is no file")
    if not all(os.access(each, os.W_OK) for each in (path.parent, path) if each.exists()):
        raise PermissionError(f"{flag} {path}: cannot be written")


def write_png(figure: Any, path: Path) -> None:  # noqa: ANN401 - see new_figure
    """Write a figure in one step; an OSError names the file."""
    atomic_write(path, png_of(figure))


def png_of(figure: Any) -> bytes:  # noqa: ANN401
    """Return the picture of a figure."""
    picture = BytesIO()
    figure.savefig(picture, format="png", dpi=120)
    return picture.getvalue()
