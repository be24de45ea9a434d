"""ProcessPool: what a failing part says, how often a worker is started again, and what the parent refuses."""

import logging
import warnings
from functools import partial

import numpy as np
import pytest

from envs import ContinuousAction, MultiDiscreteAction, ProcessPool, RocketSimPool
from envs.processes.process_pool import GOOD_STEPS
from tests.envs.processes.process_pool_parts import Trouble, actions_with, rlgym_envs, short_games, signalling, spending


@pytest.fixture
def close():
    pools = []
    yield lambda pool: pools.append(pool) or pool
    for pool in pools:
        pool.close()


# ---------------------------------------------------------------- errors keep their kind


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
        (
            3,
            r"Trouble.step\(\) did not answer for 0.5 s; a larger timeout_seconds \(--env.timeout_seconds\) waits",
        ),
        (
            5,
            r"Trouble.step\(\) \(process_pool_parts.py, line \d+\) raised SystemExit: no more; it must return or raise",
        ),
        (6, r"Trouble.step\(\) was killed by SIGKILL \(by the system, if memory ran out: fewer workers need less"),
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


def test_a_worker_that_exits_is_started_again(close):
    pool = close(ProcessPool(partial(Trouble, 2), 1, restart=True))
    pool.reset(seed=0)
    with pytest.warns(
        RuntimeWarning, match="started worker 0 again, its episodes are cut off: .* raised SystemExit: no more"
    ):
        pool.step(np.array([5, 0]))
    pool.step(np.array([0, 0]))


def test_a_worker_that_fails_again_and_again_ends_the_pool(caplog, close):
    pool = close(ProcessPool(partial(Trouble, 4), 2, restart=True))
    pool.reset(seed=0)
    with caplog.at_level(logging.WARNING, "envs.processes.process_pool"):
        for _ in range(3):
            with pytest.warns(RuntimeWarning, match="started worker 1 again.*KeyError"):
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


def test_a_crash_that_comes_back_says_how_often(close):
    pool = close(ProcessPool(partial(Trouble, 1), 1, restart=True))
    pool.reset(seed=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        for _ in range(3):
            pool.step(np.array([2]))
        with pytest.raises(RuntimeError, match=r"exit code 7.*; it failed 4 times without 1,000 good steps in between"):
            pool.step(np.array([2]))


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
        (ContinuousAction(), {"nan among the actions of sub-environment 0": np.full((8, 8), np.nan)}),
        (
            MultiDiscreteAction(),
            {"action 2 of sub-environment 0, column 5, is outside 0..1": np.full((8, 8), 2)},
        ),
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
        with pytest.raises(AttributeError, match=f"ProcessPool: it has no {name}, .* use RocketSimPool"):
            getattr(pool, name)
        assert not hasattr(pool, name)
    with pytest.raises(AttributeError, match="'ProcessPool' object has no attribute 'nothing'"):
        pool.nothing  # noqa: B018


# ---------------------------------------------------------------- what it passes on


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


def test_a_state_that_cannot_be_had_does_not_close_the_pool(close):
    pool = close(ProcessPool(rlgym_envs, 1))
    pool.reset(seed=0)
    with pytest.raises(TypeError, match="RLGymPool: RLGym environments cannot be saved") as caught:
        pool.state_dict()
    assert "\n" not in str(caught.value)
    pool.step(np.zeros(pool.num_envs, int))
    for state in ({}, None, {"parts": []}):
        with pytest.raises(ValueError, match="ProcessPool: this is no state of a ProcessPool"):
            pool.load_state_dict(state)


def test_a_state_that_does_not_fit_does_not_close_the_pool(close):
    pool = close(ProcessPool(partial(short_games, 2), 1))
    pool.reset(seed=0)
    state = pool.state_dict()
    state["parts"][0] = {}
    with pytest.raises(ValueError, match=r"worker 0 \(arenas 0 to 1\): RocketSimPool: this is no snapshot"):
        pool.load_state_dict(state)
    pool.step(np.zeros(4, int))


@pytest.mark.parametrize("size", [2.0, "2", True])
def test_a_size_that_is_no_number_is_named(size):
    with pytest.raises(ValueError, match="ProcessPool: RocketSimPool's num_arenas must be a whole number"):
        ProcessPool(partial(RocketSimPool, num_arenas=size), 1)
