"""What a pool says about itself: layout, timers, states that do not fit; and copies of a GameState."""

import copy
import time
from hashlib import sha256

import numpy as np
import pytest

from envs import (
    ActionTable,
    AdvancedObs,
    CombinedReward,
    ContinuousAction,
    GameState,
    GoalCondition,
    GoalReward,
    HybridTable,
    InAirReward,
    LookupTable,
    RandomState,
    RepeatAction,
    ReplayedStates,
    RewardSignals,
    RocketSimPool,
    StackedObs,
    StickyButtons,
    TimeoutCondition,
    save_states,
)

PARTS = {"physics", "gather", "obs", "rewards", "dones_and_resets", "actions"}


def a_pool(**parts):
    return RocketSimPool(2, **({"num_threads": 1} | parts))


def test_the_layout_names_columns_and_rows():
    layout = a_pool().layout
    digest = sha256(LookupTable().table.astype("<f4").tobytes()).hexdigest()
    assert layout == {
        "observation columns": "DefaultObs: ball_pos 0-2, ball_vel 3-5, ball_ang_vel 6-8, pad_timers 9-42, "
        "self_flags 43-51, car_0 52-71, car_1 72-91",
        "action table": f"LookupTable: 90 rows, sha256 {digest[:12]}",
    }
    wrapped = a_pool(action=RepeatAction(StickyButtons(HybridTable(), 2), 2)).layout["action table"]
    assert wrapped.startswith("RepeatAction(StickyButtons(HybridTable)): 128 rows, sha256 ")
    assert a_pool(action=ContinuousAction()).layout["action table"] == "ContinuousAction: Box(-1.0, 1.0, (8,), float32)"


def test_the_layout_tells_what_does_not_fit():
    rows = LookupTable().table
    changed = rows.copy()
    changed[3, 1] = 0.5
    tables = [LookupTable(), ActionTable(rows), ActionTable(changed), HybridTable()]
    assert len({a_pool(action=table).layout["action table"] for table in tables}) == 4
    builders = [None, AdvancedObs(), StackedObs(AdvancedObs(), 1), StackedObs(AdvancedObs(), 2)]
    assert len({a_pool(obs=obs).layout["observation columns"] for obs in builders}) == 4
    assert a_pool(team_size=2).layout["observation columns"].endswith("car_3 112-131")


def test_timers_cover_the_steps():
    pool = a_pool(done=TimeoutCondition(0.2), action=HybridTable())
    pool.reset(seed=0)
    assert pool.drain_timers() == dict.fromkeys(PARTS, (0.0, 0))
    began = time.perf_counter()
    for _ in range(20):
        pool.step(np.zeros(4, int))
    passed = time.perf_counter() - began
    timers = pool.drain_timers()
    assert set(timers) == PARTS and {count for _, count in timers.values()} == {20}
    assert all(seconds > 0 for seconds, _ in timers.values())
    assert sum(seconds for seconds, _ in timers.values()) <= passed
    assert pool.drain_timers()["physics"] == (0.0, 0)


# ---------------------------------------------------------------- states that do not fit


def test_a_pool_without_a_game_has_no_state():
    with pytest.raises(RuntimeError, match=r"call reset\(\) before state_dict\(\)"):
        a_pool().state_dict()


@pytest.mark.parametrize("snapshot", [{}, {"state": {}}])
def test_something_else_is_no_snapshot(snapshot):
    with pytest.raises(ValueError, match=r"RocketSimPool: this is no snapshot of a pool, it lacks .*arenas"):
        a_pool().load_state_dict(snapshot)


def test_the_component_that_does_not_fit_is_named():
    two = CombinedReward([GoalReward(), InAirReward()], [1, 1])
    pool = a_pool(reward=two, obs=StackedObs(AdvancedObs(), 2))
    pool.reset(seed=0)
    snapshot = pool.state_dict()
    three = CombinedReward([GoalReward(), InAirReward(), GoalReward()], [1, 1, 1])
    for parts, message in (
        ({"reward": three}, "what was saved of the reward CombinedReward does not fit CombinedReward"),
        (
            {"reward": RewardSignals({"a": GoalReward()})},
            "reward CombinedReward does not fit RewardSignals: it lacks 'a'",
        ),
        ({"obs": StackedObs(AdvancedObs(), 3)}, "the obs StackedObs does not fit StackedObs: StackedObs: num_frames=3"),
        ({"done": GoalCondition()}, r"7 components \(Kickoff, LookupTable, StackedObs, .*this pool 2 and 5"),
    ):
        other = a_pool(**({"reward": two, "obs": StackedObs(AdvancedObs(), 2)} | parts))
        with pytest.raises(ValueError, match=message) as caught:
            other.load_state_dict(snapshot)
        assert "\n" not in str(caught.value)
    del snapshot["component_names"]  # a snapshot of an earlier version
    pool.load_state_dict(snapshot)


# ---------------------------------------------------------------- copies


def played(steps=10):
    pool = a_pool(state_setter=RandomState(), done=TimeoutCondition(100))
    pool.reset(seed=3)
    for _ in range(steps):
        pool.step(np.full(4, 7))
    return pool


@pytest.mark.parametrize("copied", [GameState.copy, copy.deepcopy])
def test_a_copy_stays_what_it_was(copied):
    pool = played()
    kept, wheels = copied(pool.state), pool.state.wheels_with_contact.copy()
    arrays = {name: array.copy() for name, array in kept.state_dict().items()}
    ball, own = kept.world.ball_pos.copy(), kept.own.car_pos.copy()
    for _ in range(10):
        pool.step(np.full(4, 30))
    assert (pool.state.world.ball_pos != ball).any()
    np.testing.assert_array_equal(kept.world.ball_pos, ball)
    np.testing.assert_array_equal(kept.own.car_pos, own)
    np.testing.assert_array_equal(kept.wheels_with_contact, wheels)  # read from the arena before it went on
    for name, array in kept.state_dict().items():
        np.testing.assert_array_equal(array, arrays[name], err_msg=name)
    kept.world.ball_pos[:] = 0
    assert pool.state.world.ball_pos.any()


def test_a_list_of_copies_is_saved_and_a_list_of_one_state_is_refused(tmp_path):
    pool, copies, live, heights = played(0), [], [], []
    for _ in range(4):
        pool.step(np.full(4, 7))
        copies.append(pool.state.copy())
        live.append(pool.state)
        heights += pool.state.world.ball_pos[:, 2].tolist()
    with pytest.raises(ValueError, match=r"same GameState object several times.*pool.state.copy\(\)") as caught:
        save_states(tmp_path / "live.npz", live)
    assert "\n" not in str(caught.value) and not (tmp_path / "live.npz").exists()
    assert save_states(tmp_path / "states.npz", copies) == 8 == len(ReplayedStates(tmp_path / "states.npz"))
    with np.load(tmp_path / "states.npz") as file:
        np.testing.assert_array_equal(file["ball_pos"][:, 2], np.float32(heights))
    assert save_states(tmp_path / "one.npz", pool.state) == 2
    assert save_states(tmp_path / "played.npz", (pool.state for _ in range(3))) == 6
    for wrong in (3, [3], [pool.state, pool]):
        with pytest.raises(TypeError, match=r"save_states: states must be GameState objects, got (int|RocketSimPool)"):
            save_states(tmp_path / "wrong.npz", wrong)


def test_a_state_shows_its_sizes_and_first_arena():
    pool = a_pool(team_size=[(1, 1), (1, 0)])
    pool.reset(seed=0)
    pool.step(np.zeros(3, int))
    text = repr(pool.state)
    assert text.startswith("GameState(2 arenas, 1 blue and 1 orange slots; arena 0 after 0.07 s: ball at (0, 0, 9")
    assert "blue car 0 at (" in text and "orange car 1 at (" in text and "with boost 33" in text and "\n" not in text
    assert "car 1" not in repr(pool.state.select(np.array([1]))) and "arena 1 after" in repr(pool.state.select([1]))
    assert repr(GameState(0, 1, 1)) == "GameState(0 arenas, 1 blue and 1 orange slots)"
