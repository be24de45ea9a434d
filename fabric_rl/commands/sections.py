"""What a command has found as titled tables: on the console, and as one page of HTML with a picture."""

import base64
import re
from collections.abc import Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from rich.table import Table
from rich.text import Text

from fabric_rl.base.tables import console
from fabric_rl.runs.json_files import write_text


@dataclass(frozen=True)
class Section:
    """A table, or lines, below a title."""

    title: str
    columns: Sequence[str] = ()
    rows: Sequence[Sequence[str]] = ()
    lines: Sequence[str] = ()

    def numeric(self, column: int) -> bool:
        """Whether a column holds numbers, which stand on the right."""
        return all(re.match(r"[-+\d]|never|$", row[column]) for row in self.rows)


def templates() -> Environment:
    """The pages of this folder; whatever is put into them is text, never HTML."""
    return Environment(loader=FileSystemLoader(Path(__file__).parent), autoescape=True, undefined=StrictUndefined)


def show(sections: Sequence[Section]) -> None:
    """Prints them."""
    for section in sections:
        if section.rows:
            table = Table(title=section.title)
            for number, name in enumerate(section.columns):
                table.add_column(Text(name), justify="right" if section.numeric(number) else "left", overflow="fold")
            for row in section.rows:
                table.add_row(*map(Text, row))
            console().print(table)
        for line in section.lines:
            print(line)


def write_page(path: Path, title: str, sections: Sequence[Section], figure: Any) -> None:  # noqa: ANN401 - see new_figure
    """Writes a page that needs no other file."""
    drawn = BytesIO()
    figure.savefig(drawn, format="png", dpi=120)
    picture = base64.b64encode(drawn.getvalue()).decode()
    page = templates().get_template("tables.html").render(title=title, sections=sections, picture=picture)
    write_text(path, page.encode(errors="replace").decode())  # half a character in a name
