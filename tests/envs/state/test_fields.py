"""The table of the fields in the documentation is that of the code."""

from operator import attrgetter
from pathlib import Path

import numpy as np

from envs import GameState
from envs.state.fields import fields, table

PAGE = Path(__file__).resolve().parents[3] / "docs" / "game_state.md"


def fields_of(state):
    """(name, array) of everything public, from all three sides."""
    names = [field.name for field in fields()]
    sides = [name.replace("world.", side) for side in ("mirrored.", "own.") for name in names if "." in name]
    return [(name, attrgetter(name)(state)) for name in (*names, *sides)]


def test_the_documentation_has_the_table():
    assert table() in PAGE.read_text(encoding="utf-8"), "run python -m envs.state and put its table into the page"


def test_every_array_has_its_shape_and_says_what_it_is():
    found = {field.name: field for field in fields()}
    assert found["world.car_vel"][1:4] == ("[A, C, 3]", "float32", "uu/s")
    assert found["controls"][1:4] == ("[A, C, 8]", "float32", "-1..1")
    assert found["episode_ticks"][1:4] == ("[A]", "int64", "ticks")
    assert found["is_supersonic"][1:4] == ("[A, C]", "bool", "")
    assert all(len(field.meaning) > 5 for field in found.values())
    public = {name for name in dir(GameState) if not name.startswith("_")}
    state = GameState(1, 1, 1)
    arrays = {name for name in public if isinstance(getattr(state, name), np.ndarray)}
    assert arrays <= found.keys(), "an array without a docstring"


def test_every_number_has_a_unit_or_none_to_have():
    plain = (
        "quaternion",
        "forward",
        "right",
        "up",
        "index",
        "team",
        "torque",
        "direction",
        "victim",
        "normal",
        "touch",
    )
    counters = ("goals", "shots", "saves", "demos", "boost_pickups")
    for field in fields():
        if field.dtype != "bool" and not field.unit:
            assert field.name.endswith((*plain, *counters)), field
