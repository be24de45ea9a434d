"""Results of commands: tables on the console, files (checked before the work begins), and HTML pages."""

import base64
import os
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO, TypeVar

from rich.console import RenderableType
from rich.table import Table

from fabric_rl.analysis.curves import load_matplotlib, new_figure
from fabric_rl.base.files import atomic_write, json_text, write_json, write_text
from fabric_rl.base.processes import find_ffmpeg
from fabric_rl.base.tables import console, table
from fabric_rl.base.text import escape_control_characters
from fabric_rl.metrics.metrics_csv import csv_text

if TYPE_CHECKING:
    from jinja2 import Environment

Command = TypeVar("Command", bound=Callable[..., Any])
STDOUT = Path("-")
"""Standard output instead of a file, as with a bare `--json`."""


@dataclass(frozen=True)
class Out:
    """A flag for files that a command writes."""

    flag: str
    suffixes: Sequence[str]
    help: str = ""
    """Help of a flag for the files of the `Report`; empty for a parameter of a command that writes the file itself."""
    several: bool = False


_JSON_HELP = ".json file for the results; without a file name, they go to standard output and tables to standard error."
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
    """Returns the figure of a .png file; called only if one is asked for."""
    status: int = 0
    """Exit status."""
    name: str = ""
    """Added to the names of files if a command returns several reports."""
    files: Sequence[Path] = ()
    """More .json files."""


def write_reports(reports: "int | Report | Iterable[Report]", files: Sequence[Path], out: TextIO) -> int:
    """Print and write reports as they arrive (JSON for standard output goes to `out`); return the highest status."""
    if isinstance(reports, int):
        return reports
    status = 0
    for report in [reports] if isinstance(reports, Report) else reports:
        print_all(report.show)
        for path in (*files, *report.files) if report.data is not None or report.rows else ():
            _write(report, path.with_stem(f"{path.stem}_{report.name}") if report.name else path, out)
        status = max(status, report.status)
    return status


def print_all(items: Iterable[RenderableType]) -> None:
    """Print tables and lines."""
    for each in items:
        if isinstance(each, str):
            print(escape_control_characters(each, "\n"))
        else:
            console().print(each)


def _write(report: Report, path: Path, out: TextIO) -> None:
    if path == STDOUT:
        print(json_text(dict(report.data or {})), end="", file=out)
        return
    if path.suffix == ".json":
        write_json(path, dict(report.data or {}))
    elif path.suffix == ".csv":
        write_text(path, csv_text(list(report.rows[0]), report.rows))
    elif report.draw is not None:
        atomic_write(path, png_of(report.draw()))
    print_all([f"written: {path}"])


def check_out(paths: Iterable[Path], suffixes: Collection[str], flag: str = "--out") -> None:
    """Check that the files given with `flag` can be written, before any work is done for them.

    Raises:
        ValueError: A file has none of the suffixes, or is a folder or a device.
        OSError: A file or its folder is read-only, the folder does not exist, or ffmpeg is missing for a video.
        ImportError: matplotlib is missing for a picture.
    """
    for path in paths:
        if path == STDOUT and list(suffixes) == [".json"]:
            continue
        if path.suffix not in suffixes:
            raise ValueError(f"{flag} {path} must end in {' or '.join(suffixes)}")
        check_file(path, flag)
        if path.suffix == ".png":
            new_figure(1, 1)
        if path.suffix in (".mp4", ".gif"):
            find_ffmpeg()


def check_file(path: Path, flag: str) -> None:
    """Check that a file can be written; raise an OSError or ValueError that names the flag if not."""
    if not path.parent.is_dir():
        raise FileNotFoundError(f"{flag} {path}: there is no folder {path.parent}")
    if path.exists() and not path.is_file():
        raise ValueError(f"{flag} {path} is not a file")
    if not all(os.access(each, os.W_OK) for each in (path.parent, path) if each.exists()):
        raise PermissionError(f"{flag} {path} cannot be written")


def png_of(figure: Any) -> bytes:  # noqa: ANN401 - see new_figure
    """Return a figure as PNG data."""
    picture = BytesIO()
    figure.savefig(picture, format="png", dpi=120)
    return picture.getvalue()


@dataclass(frozen=True)
class Section:
    """A title with a table or lines below it, for the console and for pages."""

    title: str
    columns: Sequence[str] = ()
    rows: Sequence[Sequence[str]] = ()
    lines: Sequence[str] = ()

    def numeric(self, column: int) -> bool:
        """Return True if a column contains numbers, and so is aligned to the right."""
        return all(re.match(r"[-+\d]|never|$", row[column]) for row in self.rows)


def section_tables(sections: Iterable[Section]) -> list[Table | str]:
    """Return sections as tables and lines for the console."""
    found: list[Table | str] = []
    for section in sections:
        if section.rows:
            columns = [f">{name}" if section.numeric(n) else name for n, name in enumerate(section.columns)]
            found.append(table(section.title, columns, section.rows))
        found += section.lines
    return found


def templates() -> "Environment":
    """Return the HTML templates in this folder; every value is escaped, also its invisible characters."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined  # most commands do not write a page

    made = Environment(loader=FileSystemLoader(Path(__file__).parent), autoescape=True, undefined=StrictUndefined)
    made.finalize = lambda value: escape_control_characters(value) if type(value) is str else value  # not of macros
    return made


def write_page(
    path: Path,
    title: str,
    sections: Sequence[Section],
    draw: Callable[[], Any] | None = None,
    figures: Mapping[str, Any] | None = None,
) -> None:
    """Write sections, a picture (drawn for both themes) and maps (arguments of `figures.html`) as one HTML page."""
    pictures = []
    clear = dict.fromkeys(("figure.facecolor", "axes.facecolor", "savefig.facecolor", "legend.facecolor"), "none")
    for theme in ("default", "dark_background"):
        if draw is not None:
            with load_matplotlib("style").context([theme, clear]):
                pictures.append(base64.b64encode(png_of(draw())).decode())
    page = templates().get_template("tables.html")
    write_text(path, page.render(title=title, sections=sections, pictures=pictures, figures=figures))
