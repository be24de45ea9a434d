"""Tables, continuous and multi-discrete actions, the controls made from them, and the command that shows a table."""

import subprocess
import sys
from pathlib import Path

import gymnasium
import numpy as np
import pytest
from rlgym.rocket_league.action_parsers import LookupTableAction

from envs.actions import (
    ActionTable,
    ContinuousAction,
    HybridTable,
    LookupTable,
    MultiDiscreteAction,
    RowControls,
    StateAwareTable,
)
from envs.actions.__main__ import main
from envs.actions.tables import balanced
from envs.state.game_state import GameState
from envs.state.layout import CONTROL_NAMES

TABLES = [LookupTable(), StateAwareTable(), HybridTable()]


def told(cars):
    """What `CarControls` say, as rows."""
    return np.array([[float(getattr(car, name)) for name in CONTROL_NAMES] for car in cars], np.float32)


def grounded(num_cars=1):
    state = GameState(1, num_cars, 0)
    state.clear(np.array([0]))
    return state


# ------------------------------------------------------------------ tables


def test_lookup_table_is_rlgyms():
    table = LookupTable().table
    np.testing.assert_array_equal(table, LookupTableAction.make_lookup_table())
    assert table.dtype == np.float32
    ground = ~table[:, 2].astype(bool) & ~table[:, 4].astype(bool) & ~table[:, 5].astype(bool)
    assert ground.tolist() == [True] * 24 + [False] * 66
    assert LookupTable().mask(grounded()) is None


def test_hybrid_table_is_what_its_description_says():
    parser = HybridTable()
    table = parser.table
    assert len(table) == 128 == len(np.unique(table, axis=0))
    assert parser.fallback_row == 0 and not table[0].any()
    drive, hop, turn, flip = table[:40], table[40:44], table[44:96], table[96:]
    assert not drive[:, 2:6].any() and not hop[:, [1, 2, 3, 4, 7]].any() and hop[:, 5].all()
    assert not turn[:, [0, 1, 5, 7]].any() and turn[:, 2:5].any(axis=1).all()
    assert not flip[:, [0, 1, 3]].any() and flip[:, 5].all() and flip[:, [2, 4]].any(axis=1).all()
    assert set(drive[:, 1].tolist()) == {-1, -0.5, 0, 0.5, 1}
    pairs = [[0, 0], [1, 0], [1, 1], [-1, 0]]
    assert drive[::10][:, [0, 6]].tolist() == pairs and hop[:, [0, 6]].tolist() == pairs
    assert drive[:4].tolist() == [[0] * 8, [0] * 7 + [1], [0, -1, *[0] * 6], [0, -1, *[0] * 5, 1]]
    assert turn[0].tolist() == [0, 0, -1, -1, -1, 0, 0, 0] and turn[-1].tolist() == [0, 0, 1, 1, 1, 0, 1, 0]
    assert flip[1].tolist() == [0, 0, -1, 0, -1, 1, 0, 1]


@pytest.mark.parametrize("parser", TABLES, ids=lambda p: type(p).__name__)
def test_a_table_hands_out_its_rows(parser):
    state = GameState(1, len(parser.table), 0)  # absolutely nothing is known: no row falls back
    state.clear(np.array([0]))
    state.boost[:] = 50
    assert parser.action_space == gymnasium.spaces.Discrete(len(parser.table))
    for dtype in (np.int64, np.int32, np.uint8):
        controls = parser.parse(np.arange(len(parser.table), dtype=dtype), state)
        assert controls.rows.dtype == np.float32
        np.testing.assert_array_equal(controls.rows, parser.table)
        np.testing.assert_array_equal(told(controls.cars), parser.table)
    assert balanced(parser.table)


def test_controls_need_no_state():
    np.testing.assert_array_equal(told(LookupTable().controls(np.array([89, 0]))), LookupTable().table[[89, 0]])
    assert len(LookupTable().controls(np.array([], np.int64))) == 0


def test_an_own_table():
    rows = [[0] * 8, [1, 0.25, 0, 0, 0, 0, 1, 0]]
    np.testing.assert_array_equal(ActionTable(rows).parse(np.array([1]), grounded()).rows, rows[1:])
    assert StateAwareTable(rows).action_space.n == 2


# ------------------------------------------------------------------ continuous and multi-discrete


def test_continuous_values():
    parser, state = ContinuousAction(), grounded(3)
    actions = np.array(
        [
            [0.5, -0.25, 1, -1, 0.125, 0.01, -0.01, 0],
            [2, -3, 1.5, -1.5, 0, 7, 1, -7],
            [0, 0, 0, 0, 0, 0, 0, 1e-9],
        ]
    )
    expected = [[0.5, -0.25, 1, -1, 0.125, 1, 0, 0], [1, -1, 1, -1, 0, 1, 1, 0], [0, 0, 0, 0, 0, 0, 0, 1]]
    for dtype in (np.float32, np.float64):
        controls = parser.parse(actions.astype(dtype), state)
        assert controls.rows.dtype == np.float32
        np.testing.assert_array_equal(controls.rows, expected)
        np.testing.assert_array_equal(told(controls.cars), expected)
    assert parser.action_space == gymnasium.spaces.Box(-1, 1, (8,), np.float32)
    assert parser.mask(state) is None
    assert actions[1, 0] == 2  # what was handed in stays


def test_multi_discrete_values():
    parser, state = MultiDiscreteAction(), grounded(2)
    assert parser.action_space == gymnasium.spaces.MultiDiscrete([3, 3, 3, 3, 3, 2, 2, 2])
    controls = parser.parse(np.array([[0, 1, 2, 0, 1, 0, 1, 0], [2, 2, 0, 1, 1, 1, 0, 1]]), state)
    expected = [[-1, 0, 1, -1, 0, 0, 1, 0], [1, 1, -1, 0, 0, 1, 0, 1]]
    np.testing.assert_array_equal(controls.rows, expected)
    np.testing.assert_array_equal(told(controls.cars), expected)
    fine = MultiDiscreteAction(bins=5)
    assert fine.action_space.nvec.tolist() == [5] * 5 + [2] * 3
    rows = fine.parse(np.array([[0, 1, 2, 3, 4, 1, 1, 1]], np.uint8), grounded()).rows
    np.testing.assert_array_equal(rows, [[-1, -0.5, 0, 0.5, 1, 1, 1, 1]])


def test_row_controls_are_made_again_only_where_rows_change():
    make, rng = RowControls(), np.random.default_rng(0)
    rows = rng.uniform(-1, 1, (4, 8)).astype(np.float32)
    rows[:, 5:] = rng.integers(2, size=(4, 3))
    first = make(rows).cars
    np.testing.assert_array_equal(told(first), rows)
    before = rows.copy()
    rows[2, 1] = 0.75  # the same array, written again
    second = make(rows).cars
    np.testing.assert_array_equal(told(second), rows)
    np.testing.assert_array_equal(told(first), before)
    assert [a is b for a, b in zip(first, second, strict=True)] == [True, True, False, True]
    np.testing.assert_array_equal(told(make(rows[:2]).cars), rows[:2])


# ------------------------------------------------------------------ bad input


def parse(parser, actions):
    return lambda: parser.parse(np.asarray(actions), grounded(len(actions)))


def eight(value, column=0, dtype=np.float32):
    row = np.zeros((1, 8), dtype)
    row[0, column] = value
    return row


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (parse(LookupTable(), [0.5]), "LookupTable: actions must be integers"),
        (parse(LookupTable(), [True]), "LookupTable: actions must be integers"),
        (parse(LookupTable(), [[1]]), "LookupTable: actions must be integers"),
        (parse(LookupTable(), [90]), "LookupTable: action 90 is outside the table, use 0..89"),
        (parse(HybridTable(), [3, 128]), "HybridTable: action 128 is outside the table, use 0..127"),
        (parse(HybridTable(), [-1]), "HybridTable: action -1 is outside"),
        (lambda: HybridTable(horizon_ticks=0), "HybridTable: horizon_ticks"),
        (lambda: StateAwareTable(np.eye(8)), "StateAwareTable: table needs an all-zero row"),
        (lambda: ActionTable(np.zeros((3, 7))), r"ActionTable: table must have the shape \[rows, 8\], got \[3, 7\]"),
        (lambda: ActionTable(np.zeros((0, 8))), "ActionTable: table must have the shape"),
        (lambda: ActionTable([[0] * 8, [0] * 7]), "ActionTable: table must be rows of eight numbers"),
        (lambda: ActionTable([["x"] * 8]), "ActionTable: table must be rows of eight numbers"),
        (lambda: ActionTable(eight(1.5)), "ActionTable: table must hold"),
        (lambda: ActionTable(eight(np.nan)), "ActionTable: table must hold"),
        (lambda: ActionTable(eight(0.5, 6)), "ActionTable: table must hold"),
        (parse(ContinuousAction(), eight(np.nan)), "ContinuousAction: nan among the actions"),
        (parse(ContinuousAction(), eight(-np.inf, 2)), "ContinuousAction: -inf"),
        (parse(ContinuousAction(), np.zeros(8)), "ContinuousAction: actions must be floats of shape"),
        (parse(ContinuousAction(), np.zeros((2, 7))), "ContinuousAction: actions must be floats of shape"),
        (parse(ContinuousAction(), np.zeros((2, 8), int)), "ContinuousAction: actions must be floats of shape"),
        (parse(MultiDiscreteAction(), eight(1.0)), "MultiDiscreteAction: actions must be integers of shape"),
        (parse(MultiDiscreteAction(), np.zeros(8, int)), "MultiDiscreteAction: actions must be integers of shape"),
        (parse(MultiDiscreteAction(), eight(3, 4, int)), "MultiDiscreteAction: choice 3 in column 4 is outside 0..2"),
        (parse(MultiDiscreteAction(), eight(2, 5, int)), "MultiDiscreteAction: choice 2 in column 5 is outside 0..1"),
        (parse(MultiDiscreteAction(), eight(-1, 0, int)), "MultiDiscreteAction: choice -1 in column 0"),
        (lambda: MultiDiscreteAction(bins=4), "MultiDiscreteAction: bins must be odd"),
    ],
)
def test_bad_input_is_one_clear_line(build, message):
    with pytest.raises(ValueError, match=rf"^{message}(?!.*\n)"):
        build()


# ------------------------------------------------------------------ python -m envs.actions


def test_description_of_the_lookup_table():
    lines = LookupTable().describe().splitlines()
    assert lines[0] == "LookupTable: 90 rows"
    assert [line.split() for line in lines[3:93]] == [
        [str(i), *(f"{value:g}" for value in row)] for i, row in enumerate(LookupTable().table.tolist())
    ]
    assert lines[94:98] == [
        "steer  values: -1 0 1",
        "pitch  values: -1 0 1",
        "yaw    values: -1 0 1",
        "roll   values: -1 0 1",
    ]
    assert lines[98].startswith("steer left: 24 rows: 0 1 6 7 12 13 14 15 24 ")
    assert lines[99].startswith("steer right: 24 rows: 4 5 10 11 20 21 22 23 42 ")
    assert lines[-3:] == [
        "turning rows (steer or yaw): 48",
        "left and right balanced: yes",
        "all-zero row (fallback): 8",
    ]


def test_description_finds_what_is_missing():
    text = ActionTable([[1, 1, 0, 0, 0, 0, 0, 0], [1, 0, 0, 0, 0, 0, 0, 0]]).describe()
    assert "steer left: 0 rows: none" in text and "steer right: 1 rows: 0" in text
    assert "balanced: NO" in text and "(fallback): NONE" in text
    assert "demolished: 1" in HybridTable().describe()


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("envs.NoSuchTable", "no class 'envs.NoSuchTable'"),
        ("no_such_module.Table", "no class 'no_such_module.Table'"),
        ("nothing", "no class 'nothing'"),
        ("", "no class ''"),
        (".x", "no class '.x'"),
        ("envs.actions.ContinuousAction", "is no ActionTable"),
        ("envs.actions.situations.hybrid_rows", "is no ActionTable"),
        ("envs.actions.ActionTable", "cannot be made without arguments"),
    ],
)
def test_command_says_in_one_line_what_is_wrong(path, why, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["envs.actions", path])
    assert main() == 2
    out, err = capsys.readouterr()
    assert out == "" and err.count("\n") == 1 and why in err


def test_command_runs():
    root = Path(__file__).resolve().parents[3]
    command = [sys.executable, "-m", "envs.actions"]
    shown = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True)
    assert shown.stdout.startswith("LookupTable: 90 rows\n") and shown.stderr == ""
    failed = subprocess.run([*command, "envs.Nothing"], cwd=root, capture_output=True, text=True, check=False)
    assert failed.returncode == 2 and failed.stdout == "" and failed.stderr.count("\n") == 1
