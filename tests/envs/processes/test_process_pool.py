"""ProcessPool: the same trajectories as in one process, and what happens when a worker fails."""

import logging
import subprocess
import sys
import textwrap
import time
import warnings
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from envs import (
    AnnealedReward,
    ContinuousAction,
    GymnasiumEnvs,
    HybridTable,
    MultiDiscreteAction,
    ProcessPool,
    RocketSimPool,
    SaveBoostReward,
)
from envs.processes.process_pool import GOOD_STEPS, divide_arenas
from tests.envs.fakes import assert_same
from tests.envs.processes.process_pool_parts import (
    Told,
    Trouble,
    actions_with,
    rlgym_envs,
    short_games,
    signalling,
    spending,
)

ROOT = Path(__file__).parents[3]


def play(env, steps, seed=0):
    """Observations, rewards, ends, final observations (where valid) and masks of random play."""
    rng, out = np.random.default_rng(seed), []
    choices = env.single_action_space.n
    for _ in range(steps):
        obs, reward, terminated, truncated, infos = env.step(rng.integers(choices, size=env.num_envs))
        ended = terminated | truncated
        final = infos["final_obs"][ended] if ended.any() else np.zeros(0)
        if ended.any():
            np.testing.assert_array_equal(infos["_final_obs"], ended)
        out += [obs, reward, terminated, truncated, final, infos.get("action_mask", np.zeros(0))]
    return out


BOTH_SIZES = pytest.mark.parametrize(
    "team_size", [pytest.param(1, id="1v1", marks=pytest.mark.slow), pytest.param([(1, 0), (2, 1)], id="mixed")]
)


@pytest.mark.slow
@BOTH_SIZES
def test_any_number_of_workers_plays_the_same(team_size):
    factory = partial(short_games, 5, team_size=team_size)
    alone = factory(seed=3)
    first, _ = alone.reset(seed=9)
    expected = play(alone, 150)
    assert sum(a.sum() for a in expected if a.dtype == bool) > 20
    metrics = alone.drain_metrics()
    for workers in (1, 2, 3):
        pool = ProcessPool(factory, workers, seed=3)
        assert (pool.num_envs, pool.num_seeds) == (alone.num_envs, alone.num_seeds)
        np.testing.assert_array_equal(pool.reset(seed=9)[0], first)
        assert_same(play(pool, 150), expected)
        for name, (total, count) in pool.drain_metrics().items():
            assert (total, count) == pytest.approx(metrics[name], rel=1e-5, abs=1e-6), name
        pool.close()


@pytest.mark.slow
def test_gymnasium_environments_and_the_constructors_seed():
    pool, alone = ProcessPool(partial(short_games, 4), 2, seed=5), short_games(4, seed=5)
    np.testing.assert_array_equal(pool.reset()[0], alone.reset()[0])
    pool.close()
    factory = partial(GymnasiumEnvs, "CartPole-v1", 5)
    alone, pool = factory(seed=1), ProcessPool(factory, 2, seed=1)
    np.testing.assert_array_equal(alone.reset(seed=4)[0], pool.reset(seed=4)[0])
    assert_same(play(pool, 120), play(alone, 120))
    pool.close()


def test_masks_and_returned_arrays_are_the_callers():
    pool = ProcessPool(partial(RocketSimPool, 2, action=HybridTable(), num_threads=1), 2)
    alone = RocketSimPool(2, action=HybridTable())
    _, infos = pool.reset(seed=0)
    np.testing.assert_array_equal(infos["action_mask"], alone.reset(seed=0)[1]["action_mask"])
    kept = play(pool, 5)
    copies = [array.copy() for array in kept]
    play(pool, 5)
    assert_same(kept, copies)
    pool.close()


@pytest.mark.slow
def test_a_restored_pool_goes_on_to_the_bit():
    pool, other = (ProcessPool(partial(short_games, 4), 2) for _ in range(2))
    pool.reset(seed=0)
    play(pool, 20)
    state = pool.state_dict()
    went_on = play(pool, 60, seed=1)
    other.load_state_dict(state)
    assert_same(went_on, play(other, 60, seed=1))
    pool.close()
    three = ProcessPool(partial(short_games, 4), 3)
    with pytest.raises(ValueError, match="2 workers, but this pool has 3"):
        three.load_state_dict(state)
    other.close()
    three.close()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("action", "message"), [(2, "exit code 7"), (3, "did not answer for 0.5 s")], ids=["crashed", "hung"]
)
def test_a_lost_worker_is_reported_or_started_again(action, message):
    pool = ProcessPool(partial(Trouble, 4), 2, timeout_seconds=0.5)
    pool.reset(seed=0)
    with pytest.raises(RuntimeError, match=f"worker 0 .*{message}"):
        pool.step(actions_with(action, 1))

    pool = ProcessPool(partial(Trouble, 4), 2, timeout_seconds=0.5, restart=True)
    pool.reset(seed=0)
    before = pool.step(actions_with(0, 0))[0]
    with pytest.warns(RuntimeWarning, match=f"restarted worker 0.*{message}"):
        obs, rewards, terminated, truncated, infos = pool.step(actions_with(action, 1))
    assert (
        rewards.tolist() == [0, 0, 1, 1] and not terminated.any() and truncated.tolist() == [True, True, False, False]
    )
    np.testing.assert_array_equal(infos["final_obs"][:2], before[:2])
    assert (obs[:2] > 1000).all() and (obs[2:] == 2).all()  # begun anew, with another seed
    assert infos["steps"].tolist() == [0, 0, 2, 2]
    assert (pool.step(actions_with(0, 0))[0][:2] == 1).all()
    assert pool.drain_metrics()["game/worker_restarts"] == (1, 1)
    pool.close()


def kill(pool, worker):
    process = pool._workers[worker]._process
    process.kill()
    process.join()


@pytest.mark.slow
def test_a_worker_that_dies_between_two_steps_truncates_its_episodes_in_the_next(close):
    """Also if a state that was saved in between is restored."""
    pool, other = (close(ProcessPool(partial(short_games, 4), 2, restart=True)) for _ in range(2))
    pool.reset(seed=0)
    play(pool, 3)
    kill(pool, 0)
    with pytest.warns(RuntimeWarning, match="restarted worker 0"):
        assert pool.drain_metrics()["game/worker_restarts"] == (1, 1)
    other.load_state_dict(pool.state_dict())
    last = pool._obs.copy()
    for each in (pool, other):
        obs, rewards, terminated, truncated, infos = each.step(np.zeros(8, np.int64))
        assert truncated[:4].all() and not terminated[:4].any() and not rewards[:4].any()
        np.testing.assert_array_equal(infos["final_obs"][:4], last[:4])
        assert (obs[:4] != last[:4]).any()
    assert_same(play(pool, 20, seed=1), play(other, 20, seed=1))
    assert other._restarts == pool._restarts == [1, 0]  # so the next restart has another seed


@pytest.mark.slow
def test_annealed_rewards_go_on_in_a_worker_that_is_started_again(close):
    reward = AnnealedReward(SaveBoostReward(), [0, 10], [1, 0])
    pool = close(ProcessPool(partial(RocketSimPool, 2, reward=reward, num_threads=1), 2, restart=True))
    pool.reset(seed=0)
    play(pool, 5)
    kill(pool, 0)
    with pytest.warns(RuntimeWarning, match="restarted worker 0"):
        pool.step(np.zeros(4, np.int64))
    pool.drain_metrics()
    for weight in (0.4, 0.3, 0.2, 0.1, 0):
        pool.step(np.zeros(4, np.int64))
        assert pool.drain_metrics()["reward_weight/SaveBoostReward"] == pytest.approx((2 * weight, 2))


@pytest.mark.slow
@pytest.mark.parametrize("action", [2, 5], ids=["crashed", "SystemExit"])
def test_a_worker_that_is_started_again_is_told_what_the_others_were(action):
    pool = ProcessPool(partial(Told, 4), 2, restart=True)
    pool.set_parameters({"value": 3.0})
    pool.set_parameters({"value": 5.0})
    pool.set_phase("late", 2)
    pool.reset(seed=0)
    with pytest.warns(RuntimeWarning, match="restarted worker 0"):
        pool.step(actions_with(action, 1))
    assert pool.step(actions_with(0, 0))[0].tolist() == [[5, 2]] * 4
    pool.close()


@pytest.mark.slow
def test_workers_do_not_load_torch_and_errors_come_with_tracebacks():
    pool = ProcessPool(partial(Trouble, 2), 1)
    pool.reset()
    assert not pool.step(np.array([4, 4]))[0].any()
    pool.close()
    pool = ProcessPool(partial(Trouble, 4), 2)
    pool.reset(seed=0)
    pool.step(actions_with(0, 0))
    with pytest.raises(RuntimeError, match=r"worker 1 .*KeyError.*in the middle of a step") as caught:
        pool.step(actions_with(1, 3))
    assert "in step" in str(caught.value.__cause__) and "\n" not in str(caught.value)


def test_bad_actions_are_refused():
    pool = ProcessPool(partial(Trouble, 4), 1)
    with pytest.raises(RuntimeError, match="reset"):
        pool.step(np.zeros(4, int))
    pool.reset()
    for steps, actions in enumerate([np.zeros(3, int), np.zeros(4), np.zeros((4, 1), int)], start=1):
        with pytest.raises(ValueError, match="actions must be int64 of shape"):
            pool.step(actions)
        assert (pool.step(np.zeros(4, int))[0] == steps).all()
    pool.close()
    with pytest.raises(RuntimeError, match="closed"):
        pool.reset()


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="reads /proc")
@pytest.mark.parametrize(
    "end",
    [
        "pool.close()",
        "pass",
        "os.kill(os.getpid(), 9)",
        "later(9), pool.step([0, 0, 0, 3])  # hangs",
        "with suppress(KeyboardInterrupt): later(2), pool.step([0, 0, 0, 3])",
    ],
    ids=["close", "exit", "killed", "killed while one hangs", "Ctrl+C while one hangs"],
)
def test_no_process_outlives_the_pool(end):
    code = f"""
        import os, signal
        signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored where tests run in the background
        from contextlib import suppress
        from functools import partial
        from threading import Timer
        from envs import ProcessPool
        from tests.envs.processes.process_pool_parts import Trouble
        pool = ProcessPool(partial(Trouble, 4), 2)
        pool.reset()
        later = lambda number: Timer(0.5, os.kill, (os.getpid(), number)).start()
        print(*[w._process.pid for w in pool._workers], flush=True)
        {end}
    """
    child = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], cwd=ROOT, capture_output=True, text=True, timeout=120
    )
    pids = child.stdout.split()
    assert len(pids) == 2, child.stderr
    if "9" not in end:  # there, Python's own tracker tidies up and says so
        assert "leaked" not in child.stderr and "Traceback" not in child.stderr
    deadline = time.monotonic() + 60
    while any(Path(f"/proc/{pid}").exists() for pid in pids) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(Path(f"/proc/{pid}").exists() for pid in pids)


@pytest.mark.slow
@BOTH_SIZES
def test_groups_step_on_their_own_and_play_the_same(team_size):
    """Whatever the number of workers: the arenas of a group depend on the number of groups alone."""
    factory = partial(short_games, 5, team_size=team_size)
    alone = factory(seed=3)
    first, _ = alone.reset(seed=9)
    choices, rows = alone.single_action_space.n, None
    actions = np.random.default_rng(0).integers(choices, size=(120, alone.num_envs))
    expected = [alone.step(each) for each in actions]
    for workers in (2, 3, 5):
        pool = ProcessPool(factory, workers, seed=3, groups=2)
        assert rows in (None, pool.group_rows)
        rows = pool.group_rows
        np.testing.assert_array_equal(pool.reset(seed=9)[0], first)
        pool.step_group(0, actions[0][rows[0]])
        for t, (obs, rewards, terminated, truncated, infos) in enumerate(expected):
            pool.step_group(1, actions[t][rows[1]])  # now both are on their way
            for group in (0, 1):
                results = pool.wait_group(group)
                if group == 0 and t + 1 < len(actions):
                    pool.step_group(0, actions[t + 1][rows[0]])
                for ours, theirs in zip(results, (obs, rewards, terminated, truncated), strict=False):
                    np.testing.assert_array_equal(ours, theirs[rows[group]])
                ended = (terminated | truncated)[rows[group]]
                if ended.any():
                    np.testing.assert_array_equal(results[4]["_final_obs"], ended)
                    theirs = infos["final_obs"][rows[group]][ended]
                    np.testing.assert_array_equal(results[4]["final_obs"][ended], theirs)
        pool.close()


def test_the_arenas_of_a_group_do_not_depend_on_the_number_of_workers():
    assert divide_arenas(7, 2, 1) == ([0, 3, 7], [range(2)])
    assert divide_arenas(7, 3, 2) == ([0, 3, 5, 7], [range(1), range(1, 3)])
    assert divide_arenas(7, 7, 2) == (list(range(8)), [range(3), range(3, 7)])


@pytest.mark.slow
def test_a_worker_that_is_started_again_cuts_off_its_own_group_only():
    pool = ProcessPool(partial(Trouble, 5), 3, groups=2, restart=True)
    pool.reset(seed=0)
    assert pool.group_rows == (slice(0, 2), slice(2, 5))
    for group, rows in enumerate(pool.group_rows):
        pool.step_group(group, np.zeros(rows.stop - rows.start, int))
    assert [pool.wait_group(group)[0][0, 0] for group in (0, 1)] == [1, 1]
    pool.step_group(0, np.zeros(2, int))
    pool.step_group(1, np.array([0, 2, 0]))
    assert not pool.wait_group(0)[3].any()
    with pytest.warns(RuntimeWarning, match="restarted worker 2"):
        obs, rewards, _, truncated, infos = pool.wait_group(1)
    assert truncated.tolist() == [False, True, True] and rewards.tolist() == [1, 0, 0]
    assert infos["_final_obs"].tolist() == [False, True, True]
    assert obs.shape == infos["final_obs"].shape == (3, 2)
    assert (infos["final_obs"][1:] == 1).all()  # what the lost worker has seen last: the step before
    pool.step(np.zeros(5, int))  # all together, as before
    pool.close()


# ---------------------------------------------------------------- processPool


@pytest.fixture
def close():
    pools = []
    yield lambda pool: pools.append(pool) or pool
    for pool in pools:
        pool.close()


# ---------------------------------------------------------------- errors keep their kind


@pytest.mark.slow
@pytest.mark.parametrize(
    ("what", "error", "message"),
    [
        ("nan", FloatingPointError, "Spends: nan in the rewards of arena 0, car 1"),
        ("none", ValueError, r"Spends: compute\(\) returned NoneType, expected \[arenas, cars\]"),
    ],
)
def test_a_malformed_part_of_a_worker_is_one_line_of_its_kind(what, error, message, close):
    pool = close(ProcessPool(partial(spending, what), 2))
    pool.reset(seed=0)
    pool.step(np.zeros(8, int))
    with pytest.raises(error, match=rf"^ProcessPool worker 0 \(arenas 0 to 1\): {message}") as caught:
        pool.step(np.zeros(8, int))
    assert "\n" not in str(caught.value)
    assert "Traceback in the worker" in str(caught.value.__cause__) and "in compute" not in str(caught.value)
    assert "rocket_pool.py" in str(caught.value.__cause__)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("action", "message"),
    [
        (2, r"Trouble.step\(\) ended its process with exit code 7; it must return or raise an error"),
        (3, r"Trouble.step\(\) did not answer for 0.5 s; increase timeout_seconds \(--env.timeout_seconds\) to wait"),
        (
            5,
            r"Trouble.step\(\) \(process_pool_parts.py, line \d+\) raised SystemExit: no more; it must return or raise",
        ),
        (6, r"Trouble.step\(\) was killed by SIGKILL \(by the system if memory ran out; then use fewer workers"),
    ],
    ids=["exit code", "hung", "SystemExit", "killed"],
)
def test_a_lost_worker_is_one_line_with_its_number_its_arenas_and_the_part(action, message, close):
    pool = close(ProcessPool(partial(Trouble, 4), 2, timeout_seconds=0.5))
    pool.reset(seed=0)
    with pytest.raises(RuntimeError, match=rf"^ProcessPool worker 1 \(arenas 2 to 3\): {message}") as caught:
        pool.step(actions_with(action, 3))
    assert "\n" not in str(caught.value) and caught.value.__cause__ is None
    assert caught.value.failed_in.startswith("Trouble.step()")


def test_a_worker_that_exits_while_it_is_built_says_where():
    with pytest.raises(
        RuntimeError, match=r"worker 0 \(arenas 0 to 3\), while .*: Trouble.__init__\(\) \(.* raised SystemExit"
    ):
        ProcessPool(partial(Trouble, 4, exits=True), 1)


@pytest.mark.slow
def test_a_worker_that_fails_again_and_again_ends_the_pool(caplog, close):
    pool = close(ProcessPool(partial(Trouble, 4), 2, restart=True))
    pool.reset(seed=0)
    with caplog.at_level(logging.WARNING, "envs.processes.process_pool"):
        for _ in range(3):
            with pytest.warns(RuntimeWarning, match="restarted worker 1.*KeyError"):
                pool.step(actions_with(1, 3))
            pool.step(actions_with(0, 0))
        with pytest.raises(
            RuntimeError, match=r"worker 1 .* failed 4 times without 1,000 good steps in between: KeyError"
        ):
            pool.step(actions_with(1, 3))
    assert [record.getMessage().count("in the middle of a step") > 0 for record in caplog.records] == [True] * 4
    with pytest.raises(RuntimeError, match="closed"):
        pool.step(actions_with(0, 0))


@pytest.mark.slow
def test_good_steps_win_the_restarts_back(close):
    pool = close(ProcessPool(partial(Trouble, 1), 1, restart=True))
    pool.reset(seed=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        for _ in range(3):
            pool.step(np.array([1]))
        for _ in range(GOOD_STEPS):
            pool.step(np.array([0]))
        for _ in range(3):
            pool.step(np.array([1]))
        with pytest.raises(RuntimeError, match="failed 4 times"):
            pool.step(np.array([1]))


# ---------------------------------------------------------------- what the parent refuses


@pytest.mark.slow
@pytest.mark.parametrize(
    ("action", "refused"),
    [
        (
            None,
            {
                "action 90 of sub-environment 5 is outside 0..89": actions_with(90, 5, 8),
                "action -1 of sub-environment 7 is outside 0..89": actions_with(-1, 7, 8),
                "actions must be an array of numbers, got NoneType": None,
                "actions must be an array of numbers, got str": "a",
                r"actions must be int64 of shape \[8\], got int64 of shape \[\]": 3,
            },
        ),
        (ContinuousAction(), {"actions must be finite, got nan for sub-environment 0": np.full((8, 8), np.nan)}),
        (MultiDiscreteAction(), {"action 2 of sub-environment 0, column 5, is outside 0..1": np.full((8, 8), 2)}),
    ],
    ids=["table", "continuous", "discrete"],
)
def test_a_bad_action_leaves_the_pool_usable(action, refused, close):
    pool = close(ProcessPool(partial(signalling, action=action), 2))
    alone = signalling(action=action)
    pool.reset(seed=0), alone.reset(seed=0)
    for message, actions in refused.items():
        with pytest.raises(ValueError, match=f"^ProcessPool: {message}") as caught:
            pool.step(actions)
        assert "\n" not in str(caught.value)
        shape = (8, *(pool.single_action_space.shape or ()))
        good = np.ones(shape, pool.single_action_space.dtype)
        for ours, theirs in zip(pool.step(good)[:4], alone.step(good)[:4], strict=True):
            np.testing.assert_array_equal(ours, theirs)


def test_what_lives_in_the_workers_is_one_clear_sentence(close):
    pool = close(ProcessPool(partial(Trouble, 2), 1))
    for name in ("state", "arenas"):
        with pytest.raises(AttributeError, match=f"ProcessPool has no {name}: .* use RocketSimPool"):
            getattr(pool, name)
        assert not hasattr(pool, name)
    with pytest.raises(AttributeError, match="'ProcessPool' object has no attribute 'nothing'"):
        pool.nothing  # noqa: B018


# ---------------------------------------------------------------- what it passes on


@pytest.mark.slow
def test_layout_signals_and_timers_are_the_parts(close):
    pool, alone = close(ProcessPool(signalling, 2)), signalling()
    assert pool.layout == alone.layout and set(pool.layout) == {"observation columns", "action table"}
    assert pool.reward_signals == ("goal", "air")
    pool.reset(seed=0)
    infos = pool.step(np.zeros(8, int))[4]
    assert infos["reward_signals"].shape == (8, 2) and infos["reward_signals"].dtype == np.float32
    pool.step(np.zeros(8, int))
    timers = pool.drain_timers()
    assert set(timers) == {"physics", "gather", "obs", "rewards", "dones_and_resets", "actions"}
    assert {count for _, count in timers.values()} == {4}  # two steps in two workers
    assert timers["physics"][0] > 0 and pool.drain_timers()["physics"] == (0.0, 0)
    other = close(ProcessPool(partial(Trouble, 2), 1))
    assert other.layout == {} and other.drain_timers() == {}


@pytest.mark.slow
def test_a_state_that_cannot_be_had_or_does_not_fit_does_not_close_the_pool(close):
    pool = close(ProcessPool(rlgym_envs, 1))
    pool.reset(seed=0)
    with pytest.raises(TypeError, match="RLGymPool: RLGym environments cannot be saved") as caught:
        pool.state_dict()
    assert "\n" not in str(caught.value)
    pool.step(np.zeros(pool.num_envs, int))
    for state in ({}, None, {"parts": []}):
        with pytest.raises(ValueError, match="ProcessPool: this is not the state of a ProcessPool"):
            pool.load_state_dict(state)
    pool = close(ProcessPool(partial(short_games, 2), 1))
    pool.reset(seed=0)
    state = pool.state_dict()
    state["parts"][0] = {}
    with pytest.raises(ValueError, match=r"worker 0 \(arenas 0 to 1\): RocketSimPool: this is not a snapshot"):
        pool.load_state_dict(state)
    pool.step(np.zeros(4, int))
