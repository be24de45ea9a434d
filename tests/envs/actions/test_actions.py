"""Tables, continuous and multi-discrete actions, the controls made from them, and the command that shows a table."""

import subprocess
import sys
from pathlib import Path

import gymnasium
import numpy as np
import pytest
from rlgym.rocket_league.action_parsers import LookupTableAction

from envs import MixedStates, RandomState, RocketSimPool, TimeoutCondition
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
from envs.actions.situations import (
    AIR,
    AIR_WITHOUT_FLIP,
    DEMOLISHED,
    EMPTY,
    FLOOR,
    NUM_SITUATIONS,
    UNSURE,
    classify_situations,
)
from envs.actions.tables import balanced
from envs.state.game_state import GameState
from envs.state.layout import CAR_FLAGS, CONTROL_NAMES

TABLES = [LookupTable(), StateAwareTable(), HybridTable()]


def told(cars):
    """What `CarControls` say, as rows."""
    return np.array([[float(getattr(car, name)) for name in CONTROL_NAMES] for car in cars], np.float32)


def grounded(num_cars=1):
    state = GameState(1, num_cars, 0)
    state.clear(np.array([0]))
    return state


# ------------------------------------------------------------------ tables


def test_tables_are_rlgyms_and_what_their_description_says():
    table = LookupTable().table
    np.testing.assert_array_equal(table, LookupTableAction.make_lookup_table())
    assert table.dtype == np.float32
    ground = ~table[:, 2].astype(bool) & ~table[:, 4].astype(bool) & ~table[:, 5].astype(bool)
    assert ground.tolist() == [True] * 24 + [False] * 66
    assert LookupTable().mask(grounded()) is None
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


def test_own_tables():
    rows = [[0] * 8, [1, 0.25, 0, 0, 0, 0, 1, 0]]
    np.testing.assert_array_equal(ActionTable(rows).parse(np.array([1]), grounded()).rows, rows[1:])
    assert StateAwareTable(rows).action_space.n == 2


# ------------------------------------------------------------------ continuous and multi-discrete


def test_continuous_values():
    parser, state = ContinuousAction(), grounded(3)
    actions = np.array(
        [[0.5, -0.25, 1, -1, 0.125, 0.01, -0.01, 0], [2, -3, 1.5, -1.5, 0, 7, 1, -7], [0, 0, 0, 0, 0, 0, 0, 1e-9]]
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


# ------------------------------------------------------------------ python -m envs.actions


def test_descriptions_of_tables():
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
        ("", "'' is not a subclass of ActionTable"),
        (".x", "no class '.x'"),
        ("broken_module.X", "no class 'broken_module.X' (No module named 'not_installed')"),
        ("envs.actions.ContinuousAction", "'envs.actions.ContinuousAction' is not a subclass of ActionTable"),
        ("envs.actions.situations.hybrid_rows", "is not a subclass of ActionTable"),
        ("envs.actions.ActionTable", "cannot be built without arguments"),
    ],
)
def test_command_says_in_one_line_what_is_wrong(path, why, monkeypatch, capsys, tmp_path):
    (tmp_path / "broken_module.py").write_text("import not_installed\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "argv", ["envs.actions", path])
    with pytest.raises(SystemExit, match="2"):
        main()
    out, err = capsys.readouterr()
    assert out == "" and err.count("\n") == 1 and why in err


@pytest.mark.slow
def test_command_runs():
    root = Path(__file__).resolve().parents[3]
    command = [sys.executable, "-m", "envs.actions"]
    shown = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True)
    assert shown.stdout.startswith("LookupTable: 90 rows\n") and shown.stderr == ""
    failed = subprocess.run([*command, "envs.Nothing"], cwd=root, capture_output=True, text=True, check=False)
    assert failed.returncode == 2 and failed.stdout == "" and failed.stderr.count("\n") == 1


# ---------------------------------------------------------------- state-aware tables


AWARE = [StateAwareTable(), HybridTable()]
by_name = pytest.mark.parametrize("table", AWARE, ids=lambda t: type(t).__name__)

ZERO = 8  # row of the lookup table


class HalfEmpty(RandomState):
    """Random states in which every other car has no boost."""

    def apply(self, state, mask, rng):
        super().apply(state, mask, rng)
        state.boost[np.flatnonzero(mask)[:, None], np.arange(0, state.num_cars, 2)] = 0


def pool_of(head_on, table, team_size=2, seed=0, **settings):
    """Cars everywhere, from kickoff-like rest to the air, and in every third episode a demolition."""
    setter = MixedStates([HalfEmpty(), RandomState(grounded_share=1, ball_on_ground_share=1), head_on()], [1, 1, 1])
    settings = {"num_threads": 1, "done": [TimeoutCondition(5)]} | settings
    pool = RocketSimPool(8, team_size, action=table, state_setter=setter, seed=seed, **settings)
    pool.reset()
    return pool


def lively(rng, table, held):
    """Random play that holds actions for a while and often just drives, so that cars also stay on the floor."""
    forward = np.flatnonzero((table == [1, 0, 0, 0, 0, 0, 0, 0]).all(axis=1))[0]
    fresh = rng.integers(len(table), size=held.shape)
    return np.where(rng.random(held.shape) < 0.3, np.where(rng.random(held.shape) < 0.5, fresh, forward), held)


def motion(pool):
    """All that moves in all arenas, and all that cars remember except their ids and which button was held."""
    state = pool.state
    flags = np.delete(state.car_flags, CAR_FLAGS.index("last_controls.jump"), axis=2)
    details = (state.jump_time, state.air_time, state.flip_torque, state.wheels_with_contact, state.auto_flip_timer)
    return [
        array.copy()
        for array in (*(state.ball_rows, state.car_rows[..., 1:], state.car_timers, flags, state.pad_timers), *details)
    ]


def without_contact_of_cars(state):
    """`[A]` no two cars can touch. How two cars push each other is not always restored to the last bit."""
    gaps = np.linalg.norm(state.world.car_pos[:, :, None] - state.world.car_pos[:, None], axis=-1)
    gaps += 1e4 * (np.eye(state.num_cars) + state.is_demoed[:, :, None] + state.is_demoed[:, None])
    return gaps.min(axis=(1, 2)) > 600


@pytest.mark.slow
@pytest.mark.parametrize(
    "table", [AWARE[0], pytest.param(AWARE[1], marks=pytest.mark.slow)], ids=lambda table: type(table).__name__
)
def test_a_row_and_its_fallback_move_everything_the_same(table, head_on):
    """Pools that act without fallbacks do it twice from the same snapshot: with rows that cannot act, and with what
    they fall back to. Two steps, since the first tick of the second one still runs the first one's choice."""
    pool = pool_of(head_on, ActionTable(table.table))
    rng, seen, rows = np.random.default_rng(1), np.zeros(NUM_SITUATIONS, int), set()
    held = np.zeros(pool.num_envs, np.int64)
    for _ in range(250):
        held = lively(rng, table.table, held)
        pool.step(held)
        situation = classify_situations(pool.state, table.horizon_ticks).reshape(-1)
        valid = table.mask(pool.state).reshape(len(situation), -1)
        anything = rng.random(valid.shape)
        chosen = np.where(valid.all(axis=1), held, (anything * ~valid).argmax(axis=1))
        chosen = np.where(np.repeat(without_contact_of_cars(pool.state), 4), chosen, held)
        fallback = table.fallbacks[situation, chosen]
        compared = (chosen != fallback).reshape(8, 4).any(axis=1) & without_contact_of_cars(pool.state)
        fallback = np.where(np.repeat(compared, 4), fallback, chosen)
        seen += np.bincount(situation[chosen != fallback], minlength=NUM_SITUATIONS)
        rows |= set(zip(situation[chosen != fallback].tolist(), chosen[chosen != fallback].tolist(), strict=True))
        snapshot = pool.state_dict()
        runs = []
        for actions in (chosen, fallback):
            pool.load_state_dict(snapshot)
            runs.append([])
            for step_actions in (actions, np.full_like(actions, table.fallback_row)):
                _, _, _, ended, _ = pool.step(step_actions)
                runs[-1] += [] if ended.any() else [array[compared] for array in motion(pool)]
        for one, other in zip(*runs, strict=True):
            np.testing.assert_array_equal(one, other)
        pool.load_state_dict(snapshot)
    falls = (table.fallbacks != np.arange(len(table.table))).any(axis=1)
    assert (seen[falls] >= 5).all(), seen
    assert len(rows) > 150


@by_name
def test_a_row_that_is_not_the_same_moves_something(table, head_on):
    """The comparison above can fail: rows that the mask keeps apart do differ, sooner or later."""
    pool = pool_of(head_on, ActionTable(table.table))
    pool.step(np.full(pool.num_envs, table.fallback_row))
    snapshot, runs = pool.state_dict(), []
    for action in (table.fallback_row, int(np.flatnonzero(table.table[:, 0] == 1)[0])):
        pool.load_state_dict(snapshot)
        pool.step(np.full(pool.num_envs, action))
        runs.append(motion(pool))
    assert not all(np.array_equal(one, other) for one, other in zip(*runs, strict=True))


@by_name
def test_fallbacks_are_valid_rows_in_every_situation(table):
    rows = np.arange(len(table.table))
    assert table.fallbacks.shape == (NUM_SITUATIONS, len(rows))
    np.testing.assert_array_equal(np.take_along_axis(table.fallbacks, table.fallbacks, axis=1), table.fallbacks)
    valid = table.fallbacks == rows
    assert np.take_along_axis(valid, table.fallbacks, axis=1).all()
    assert valid[:, table.fallback_row].all()
    assert valid[UNSURE].all()
    assert valid[DEMOLISHED].sum() == 1


@by_name
def test_parse_applies_the_mapping_and_the_pool_hands_out_the_mask(table, head_on):
    parser = type(table)()
    pool = pool_of(head_on, parser)
    rng, held, infos = np.random.default_rng(0), np.zeros(pool.num_envs, np.int64), {}
    for _ in range(150):
        held = lively(rng, parser.table, held)
        state, situation = pool.state, classify_situations(pool.state, 9)
        mask = parser.mask(state)
        assert mask.shape == (8, 4, len(parser.table)) and mask.dtype == np.bool_
        assert mask[..., parser.fallback_row].all()
        controls = parser.parse(held, state)
        applied = parser.fallbacks[situation.reshape(-1), held]
        np.testing.assert_array_equal(controls.rows, parser.table[applied])
        assert np.take_along_axis(mask.reshape(len(held), -1), applied[:, None], axis=1).all()
        again = parser.parse(applied, state)
        np.testing.assert_array_equal(again.rows, controls.rows)
        if infos:
            np.testing.assert_array_equal(infos["action_mask"], mask.reshape(len(held), -1))
        *_, infos = pool.step(held)
        np.testing.assert_array_equal(pool.state.controls[~_ended(pool)], controls.rows.reshape(8, 4, 8)[~_ended(pool)])


def _ended(pool):
    return pool.state.episode_ticks == 0


def test_valid_actions_never_fall_back_and_others_are_counted(head_on):
    parser = HybridTable()
    pool, rng = pool_of(head_on, parser), np.random.default_rng(0)
    mask = parser.mask(pool.state).reshape(pool.num_envs, -1)
    for _ in range(60):
        *_, infos = pool.step((rng.random(mask.shape) * mask).argmax(axis=1))
        mask = infos["action_mask"]
    assert pool.drain_metrics()["action/fallback_share"] == (0, 60 * pool.num_envs)
    pool.step((rng.random(mask.shape) * ~mask).argmax(axis=1))
    taken = float((~mask.all(axis=1)).sum())
    assert taken > 0
    saved = parser.state_dict()
    assert parser.drain_metrics() == {"action/fallback_share": (taken, pool.num_envs)}
    assert parser.drain_metrics() == {"action/fallback_share": (0, 0)}
    other = HybridTable()
    other.load_state_dict(saved)
    assert other.drain_metrics() == {"action/fallback_share": (taken, pool.num_envs)}


@pytest.mark.slow
def test_a_situation_lasts_as_long_as_it_is_said_to(head_on):
    """Whatever the cars do: on the floor stays on four wheels, in the air stays in the air, empty stays empty."""
    pool = pool_of(head_on, LookupTable(), team_size=1, tick_skip=1, action_delay_ticks=0, seed=3)
    rng, held = np.random.default_rng(3), np.zeros(pool.num_envs, np.int64)
    for _ in range(200):
        for _ in range(6):
            held = lively(rng, LookupTable().table, held)
            pool.step(held)
        state = pool.state
        situation, before = classify_situations(state, 9), state.episode_ticks.copy()
        place, empty = situation % EMPTY, (situation >= EMPTY) & (situation < DEMOLISHED)
        calm = rng.integers(0, 48, size=pool.num_envs)  # rows without jump
        for _ in range(9):
            pool.step(np.where(LookupTable().table[calm, 5] == 0, calm, ZERO))
            same = (state.episode_ticks > before)[:, None]
            assert state.on_ground[same & (place == FLOOR) & (situation != DEMOLISHED)].all()
            flying = same & ((place == AIR) | (place == AIR_WITHOUT_FLIP))
            assert not state.wheels_with_contact[flying].any()
            assert not state.has_flip[same & (place == AIR_WITHOUT_FLIP)].any()
            assert not state.boost[same & empty].any()
            assert state.is_demoed[same & (situation == DEMOLISHED)].all()


# ------------------------------------------------------------------ situations by hand


def by_hand(num_blue=1, num_orange=1):
    """The first car is at rest on the floor, everything else is far away."""
    state = GameState(1, num_blue, num_orange)
    state.clear(np.array([0]))
    state.world.ball_pos[0] = (-3000, -3000, 93)
    state.world.car_pos[0] = (-2000, -4000, 17)
    state.world.car_pos[0, 0] = (1000, 2000, 17)
    state.boost[:] = 50
    return state


def first(state, horizon_ticks=9):
    return int(classify_situations(state, horizon_ticks)[0, 0])


def test_on_the_floor():
    assert first(by_hand()) == FLOOR

    def changed(change):
        state = by_hand()
        change(state)
        return first(state)

    reach = 2300 * 9 / 120  # 172.5 uu

    def put(target, values):
        target[:] = values

    unsure = [
        lambda s: put(s.controls[0, 0], [0, 0, 0, 0, 0, 1, 0, 0]),  # its jump button is still down
        lambda s: put(s.car_flags[0, 0], [False, True, False, False, False]),  # has just jumped
        lambda s: put(s.car_rows[0, 0, :, 8], 0),  # not on its wheels
        lambda s: put(s.world.car_vel[0, 0], (0, 0, 200)),
        lambda s: put(s.world.car_ang_vel[0, 0], (1, 0, 0)),
        lambda s: put(s.world.car_up[0, 0], (0, 0.1, 0.99)),
        lambda s: put(s.world.car_pos[0, 0], (1000, 2000, 25)),
        lambda s: put(s.world.car_pos[0, 0], (4096 - 350 - reach - 90, 0, 17)),  # side wall
        lambda s: put(s.world.car_pos[0, 0], (0, 4608 - 100 - reach - 90, 17)),  # where cars return
        lambda s: put(s.world.car_pos[0, 0], (3300, -4000, 17)),  # corner
        lambda s: put(s.world.ball_pos[0], (1000, 2800, 93)),
        lambda s: put(s.world.car_pos[0, 1], (1500, 2000, 17)),
    ]
    assert [changed(change) for change in unsure] == [UNSURE] * len(unsure)
    fast = by_hand()
    fast.world.car_vel[0, 0] = (2300, 0, 0)
    assert first(fast) == FLOOR
    absent = by_hand()
    absent.world.car_pos[0, 1] = (1500, 2000, 17)
    absent.present[0, 1] = False
    assert first(absent) == FLOOR
    assert classify_situations(absent, 9)[0, 1] == UNSURE
    assert first(by_hand(), horizon_ticks=90) == UNSURE  # in 0.75 s everything can be there


def test_in_the_air_without_boost_demolished():
    state = by_hand()
    state.world.car_pos[0, 0, 2] = 1000
    state.car_rows[0, 0, :, 8] = 0
    assert first(state) == AIR
    state.car_timers[0, 0, 2] = 1.2  # air_time_since_jump
    assert first(state) == AIR
    state.car_timers[0, 0, 2] = 1.3
    assert first(state) == AIR_WITHOUT_FLIP
    state.car_timers[0, 0, 2] = 0
    state.car_flags[0, 0, 4] = True  # has_double_jumped
    assert first(state) == AIR_WITHOUT_FLIP
    state.boost[0, 0] = 0
    assert first(state) == AIR_WITHOUT_FLIP + EMPTY
    state.world.car_pos[0, 0, :2] = (0, 1024 + 500)  # a pad within reach
    assert first(state) == AIR_WITHOUT_FLIP
    for z in (400, 1900):
        state.world.car_pos[0, 0, 2] = z
        assert first(state) == UNSURE
    state.car_timers[0, 0, 3] = 0.1  # demo_respawn_timer: 12 ticks
    assert first(state) == DEMOLISHED
    assert first(state, horizon_ticks=11) == UNSURE


def test_hand_checked_fallbacks():
    lookup, hybrid = StateAwareTable(), HybridTable()

    def row(table, *values):
        return int(np.flatnonzero((table.table == np.array(values)).all(axis=1))[0])

    def falls(table, situation, values):
        return table.table[table.fallbacks[situation, row(table, *values)]].tolist()

    # columns: throttle, steer, pitch, yaw, roll, jump, boost, handbrake
    assert falls(lookup, FLOOR, [0, 1, -1, 1, 1, 0, 0, 0]) == [0, 1, 0, 1, 0, 0, 0, 0]
    assert falls(lookup, FLOOR, [1, 0, 1, 0, 0, 0, 1, 0]) == [1, 0, 0, 0, 0, 0, 1, 0]
    assert falls(lookup, FLOOR, [0, 0, -1, 0, 0, 1, 0, 1]) == [0, 0, -1, 0, 0, 1, 0, 1]
    assert falls(lookup, EMPTY, [1, -1, 0, -1, 0, 0, 1, 1]) == [1, -1, 0, -1, 0, 0, 0, 1]
    assert falls(lookup, EMPTY, [1, 0, 1, 0, 0, 0, 1, 0]) == [1, 0, 1, 0, 0, 0, 1, 0]  # its throttle acts alone
    assert falls(lookup, FLOOR + EMPTY, [1, 0, 1, 0, 0, 0, 1, 0]) == [1, 0, 0, 0, 0, 0, 0, 0]
    assert falls(lookup, AIR_WITHOUT_FLIP, [0, 0, 0, 0, 0, 1, 0, 0]) == [0] * 8
    assert falls(lookup, AIR, [0, 0, 0, 0, 0, 1, 0, 0]) == [0, 0, 0, 0, 0, 1, 0, 0]
    assert falls(lookup, DEMOLISHED, [1, 1, 0, 1, 0, 0, 1, 0]) == [0] * 8

    assert falls(hybrid, FLOOR, [0, 0, 1, -1, 0, 0, 0, 0]) == [0] * 8
    assert falls(hybrid, FLOOR, [0, 0, 1, 0, 1, 1, 0, 0]) == [0, 0, 1, 0, 1, 1, 0, 0]
    assert falls(hybrid, EMPTY, [1, 0.5, 0, 0, 0, 0, 1, 0]) == [1, 0.5, 0, 0, 0, 0, 0, 0]
    assert falls(hybrid, EMPTY, [0, 0, 1, 0, 1, 1, 1, 1]) == [0, 0, 1, 0, 1, 1, 0, 1]
    assert falls(hybrid, AIR, [1, -0.5, 0, 0, 0, 0, 0, 1]) == [1, 0, 0, 0, 0, 0, 0, 1]
    assert falls(hybrid, AIR_WITHOUT_FLIP, [0, 0, 1, 0, -1, 1, 1, 0]) == [0, 0, 1, 0, -1, 0, 1, 0]
    assert falls(hybrid, AIR_WITHOUT_FLIP, [0, 0, 1, 0, -1, 1, 1, 1]) == [0, 0, 1, 0, -1, 1, 1, 1]  # handbrake acts
    assert falls(hybrid, AIR_WITHOUT_FLIP + EMPTY, [1, 0, 0, 0, 0, 1, 1, 0]) == [1, 0, 0, 0, 0, 0, 0, 0]
