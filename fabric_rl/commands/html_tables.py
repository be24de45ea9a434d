"""Titled tables: on the console, and as one page of HTML with a picture."""

import base64
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from rich.table import Table

from fabric_rl.base.files import write_text
from fabric_rl.base.tables import table
from fabric_rl.commands.output import png_of


@dataclass(frozen=True)
class Section:
    """A table, or lines, below a title."""

    title: str
    columns: Sequence[str] = ()
    rows: Sequence[Sequence[str]] = ()
    lines: Sequence[str] = ()

    def numeric(self, column: int) -> bool:
        """Return whether a column holds numbers, which stand on the right."""
        return all(re.match(r"[-+\d]|never|$", row[column]) for row in self.rows)


def shown(sections: Iterable[Section]) -> list[Table | str]:
    """Return them for the console."""
    found: list[Table | str] = []
    for section in sections:
        if section.rows:
            columns = [f">{name}" if section.numeric(n) else name for n, name in enumerate(section.columns)]
            found.append(table(section.title, columns, section.rows))
        found += section.lines
    return found


def templates() -> Environment:
    """Return the pages of this folder; whatever is put into them is text, never HTML."""
    return Environment(loader=FileSystemLoader(Path(__file__).parent), autoescape=True, undefined=StrictUndefined)


def write_page(path: Path, title: str, sections: Sequence[Section], figure: Any) -> None:  # noqa: ANN401 - see new_figure
    """Write a page that needs no other file."""
    picture = base64.b64encode(png_of(figure)).decode()
    page = templates().get_template("tables.html").render(title=title, sections=sections, picture=picture)
    write_text(path, page.encode(errors="replace").decode())  # half a character in a name
