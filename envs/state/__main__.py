"""`python -m envs.state`: print the table of GameState's fields for docs/game_state.md, read from its docstrings."""

import ast
import inspect
import re
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from envs.state.game_state import GameState
from envs.state.view import View

_ARENAS, _BLUE, _ORANGE = 11, 6, 7
"""Sizes that no other axis has, so that a shape shows which axis is which."""
_AXES = {_ARENAS: "A", _BLUE + _ORANGE: "C"}
_UNITS = {"uu/s": "uu/s", "uu": "uu", "rad/s": "rad/s", "radians": "rad", "seconds": "s", "ticks": "ticks"}
"""Words of docstrings -> units; the first word that occurs in the text counts."""
_RANGES = ("0..100", "0..1", "-1..1")


class Field(NamedTuple):
    """One array of a state."""

    name: str
    """Attribute of the state; `world....` if every view has it."""
    shape: str
    """Shape, with A for arenas and C for cars."""
    dtype: str
    """NumPy's name of the dtype."""
    unit: str
    """Unit, or the range of a number without a unit; empty for flags, indices and unit vectors."""
    meaning: str
    """The docstring."""


def fields() -> list[Field]:
    """Return every array that components read, in the order of the code."""
    state = GameState(_ARENAS, _BLUE, _ORANGE)
    owners: list[tuple[str, object, type]] = [("world.", state.world, View), ("", state, GameState)]
    found = []
    for prefix, owner, kind in owners:
        for name, text in _documented(kind):
            array = getattr(owner, name)
            if isinstance(array, np.ndarray):
                shape = f"[{', '.join(_AXES.get(size, str(size)) for size in array.shape)}]"
                meaning = re.sub(rf"^`\[.*?\]` ({array.dtype}, )?", "", " ".join(text.split())).rstrip(".")
                unit = "" if array.dtype == np.bool_ else _unit_in(meaning)
                found.append(Field(prefix + name, shape, str(array.dtype), unit, meaning))
    return found


def fields_table() -> str:
    """Return a Markdown table of all fields."""
    rows = [("Field", "Shape", "Type", "Unit", "Meaning"), ("---",) * 5]
    rows += [(f"`{f.name}`", f.shape, f.dtype, f.unit, f.meaning.replace("|", "\\|")) for f in fields()]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _unit_in(text: str) -> str:
    words = re.findall(r"[\w/]+", text.lower())
    unit = next((unit for word, unit in _UNITS.items() if word in words), "")
    return unit or next((values for values in _RANGES if values in text), "")


def _documented(kind: type) -> Iterator[tuple[str, str]]:
    """Yield a class's attributes and their docstrings: from `Attributes:`, below assignments, of properties."""
    attributes = (inspect.getdoc(kind) or "").partition("Attributes:\n")[2]
    yield from re.findall(r"^    (\w+): (.*(?:\n     +.*)*)", attributes, re.MULTILINE)
    (tree,) = ast.parse(inspect.getsource(kind)).body
    assert isinstance(tree, ast.ClassDef)
    for block in (tree.body, *(node.body for node in tree.body if isinstance(node, ast.FunctionDef))):
        for node, after in zip(block, [*block[1:], None], strict=True):
            if isinstance(node, ast.FunctionDef) and any(
                ast.unparse(each) == "property" for each in node.decorator_list
            ):
                yield node.name, ast.get_docstring(node) or ""
            elif isinstance(node, ast.Assign | ast.AnnAssign) and isinstance(after, ast.Expr):
                target = node.targets[0] if isinstance(node, ast.Assign) else node.target
                if isinstance(after.value, ast.Constant) and isinstance(after.value.value, str):
                    yield getattr(target, "id", getattr(target, "attr", "")), after.value.value


if __name__ == "__main__":
    print(fields_table())
