"""ProcessPool: the same trajectories as in one process, and what happens when a worker fails."""

import subprocess
import sys
import textwrap
import time
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from envs import GymnasiumEnvs, HybridTable, ProcessPool, RocketSimPool
from envs.processes.memory import Shards
from tests.envs.comparing import assert_same
from tests.envs.processes.process_pool_parts import Told, Trouble, actions_with, short_games

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


def test_the_constructors_seed_counts_when_reset_has_none():
    pool, alone = ProcessPool(partial(short_games, 4), 2, seed=5), short_games(4, seed=5)
    np.testing.assert_array_equal(pool.reset()[0], alone.reset()[0])
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


def test_gymnasium_environments_shard_too():
    factory = partial(GymnasiumEnvs, "CartPole-v1", 5)
    alone, pool = factory(seed=1), ProcessPool(factory, 2, seed=1)
    np.testing.assert_array_equal(alone.reset(seed=4)[0], pool.reset(seed=4)[0])
    assert_same(play(pool, 120), play(alone, 120))
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
    with pytest.raises(ValueError, match="2 workers, this pool has 3"):
        three.load_state_dict(state)
    other.close()
    three.close()


def test_an_error_in_a_worker_comes_with_its_traceback():
    pool = ProcessPool(partial(Trouble, 4), 2)
    pool.reset(seed=0)
    pool.step(actions_with(0, 0))
    with pytest.raises(RuntimeError, match=r"worker 1 .*KeyError.*in the middle of a step") as caught:
        pool.step(actions_with(1, 3))
    assert "in step" in str(caught.value.__cause__) and "\n" not in str(caught.value)


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
    with pytest.warns(RuntimeWarning, match=f"started worker 0 again.*{message}"):
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


def test_a_worker_that_is_started_again_is_told_what_the_others_were():
    pool = ProcessPool(partial(Told, 4), 2, restart=True)
    pool.set_parameters({"value": 3.0})
    pool.set_parameters({"value": 5.0})
    pool.set_phase("late", 2)
    pool.reset(seed=0)
    with pytest.warns(RuntimeWarning, match="started worker 0 again"):
        pool.step(actions_with(2, 1))
    assert pool.step(actions_with(0, 0))[0].tolist() == [[5, 2]] * 4
    pool.close()


def test_workers_do_not_load_torch():
    pool = ProcessPool(partial(Trouble, 2), 1)
    pool.reset()
    assert not pool.step(np.array([4, 4]))[0].any()
    pool.close()


@pytest.mark.parametrize(
    ("build", "error", "message"),
    [
        (lambda: ProcessPool(partial(Trouble, 4, broken=True), 2), ValueError, "^Trouble: broken from the start$"),
        (lambda: ProcessPool(partial(RocketSimPool, 2, tick_skip=0), 1), ValueError, "tick_skip"),
        (lambda: ProcessPool(lambda num_envs=2, seed=0: None, 1), TypeError, "top level of a module"),
        (lambda: ProcessPool(lambda: None, 1), TypeError, "must take seed and a number"),
        (lambda: ProcessPool(partial(Trouble, 2), 3), ValueError, "num_workers .*only 2"),
        (lambda: ProcessPool(partial(Trouble, 2), 0), ValueError, "num_workers .*at least 1"),
        (lambda: ProcessPool(partial(Trouble, 0)), ValueError, "at least 1"),
        (lambda: ProcessPool(partial(Trouble, 2), 1, timeout_seconds=0), ValueError, "timeout_seconds"),
    ],
)
def test_bad_settings_are_one_clear_error(build, error, message):
    with pytest.raises(error, match=message):
        build()


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
    assert Shards.divide(7, 2, 1) == ([0, 3, 7], [range(2)])
    assert Shards.divide(7, 3, 2) == ([0, 3, 5, 7], [range(1), range(1, 3)])
    assert Shards.divide(7, 7, 2) == (list(range(8)), [range(3), range(3, 7)])


def test_groups_need_a_worker_each():
    with pytest.raises(ValueError, match=r"groups \(--env.groups\) is 3, but there are only 2 workers"):
        ProcessPool(partial(short_games, 5), 2, groups=3)
    with pytest.raises(ValueError, match=r"groups \(--env.groups\) must be"):
        ProcessPool(partial(short_games, 5), 2, groups=0)


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
    with pytest.warns(RuntimeWarning, match="started worker 2 again"):
        obs, rewards, _, truncated, infos = pool.wait_group(1)
    assert truncated.tolist() == [False, True, True] and rewards.tolist() == [1, 0, 0]
    assert infos["_final_obs"].tolist() == [False, True, True]
    assert obs.shape == infos["final_obs"].shape == (3, 2)
    assert (infos["final_obs"][1:] == 1).all()  # what the lost worker has seen last: the step before
    pool.step(np.zeros(5, int))  # all together, as before
    pool.close()
