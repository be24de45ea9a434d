"""PhasedReward and PhasedStates: one component for each phase, switched in the middle of a game."""

from functools import partial

import numpy as np
import pytest

from envs import (
    CombinedReward,
    FaceBallReward,
    GoalReward,
    InAirReward,
    MechanicsLanes,
    PhasedReward,
    PhasedStates,
    PotentialReward,
)
from envs.actions import LookupTable
from envs.dones import TimeoutCondition
from envs.pool.rocket_pool import RocketSimPool
from envs.processes.process_pool import ProcessPool
from envs.resets import Kickoff, MixedStates, RandomState, TurtledStart
from tests.envs.processes.process_pool_parts import Spends

IDLE = int(np.flatnonzero(~LookupTable().table.any(axis=1))[0])


def phased_reward():
    face = CombinedReward([FaceBallReward()], [2.0])
    return PhasedReward({"easy": face, "hard": PotentialReward(FaceBallReward())})


def phased_pool(num_arenas=4, seed=0, num_threads=1, first_arena=0, lanes=0.0):
    setter = PhasedStates({"easy": Kickoff(), "hard": TurtledStart()})
    reward = phased_reward()
    pool = RocketSimPool(
        num_arenas,
        reward=reward,
        state_setter=MechanicsLanes(setter, mechanics_weight=lanes),
        done=TimeoutCondition(0.5),
        seed=seed,
        num_threads=num_threads,
        first_arena=first_arena,
    )
    return pool


def step(pool, times=1):
    for _ in range(times):
        result = pool.step(np.full(pool.num_envs, IDLE))
    return result[1]


def test_the_reward_of_the_present_phase_is_paid_and_knows_the_step_before():
    pool, twin = phased_pool(), RocketSimPool(4, reward=FaceBallReward(), done=TimeoutCondition(0.5))
    for each in (pool, twin):
        each.reset(seed=0)
    np.testing.assert_array_equal(step(pool), 2 * (first := step(twin)))
    pool.set_phase("hard", 2)
    np.testing.assert_allclose(step(pool), step(twin) - first, atol=1e-7)  # the change since the step before
    assert np.abs(first).max() > 0.5


def test_new_episodes_begin_as_the_present_phase_says():
    pool = phased_pool()
    pool.reset(seed=0)
    pool.set_phase("hard", 2)
    assert (pool.state.world.car_up[..., 2] > 0.9).all()  # running episodes go on
    step(pool, 8)
    assert (pool.state.world.car_up[..., 2] < -0.9).all()
    assert "phase hard" in pool.state_setter.author()


class CountsResets(InAirReward):
    """Counts the calls of `reset`."""

    resets = 0

    def reset(self, mask, state):
        self.resets += 1


def test_the_present_phase_again_forgets_nothing_and_metrics_keep_their_names():
    counter = CountsResets()
    pool = RocketSimPool(2, reward=PhasedReward({"easy": InAirReward(), "hard": counter}))
    pool.reset(seed=0)
    for _ in range(3):
        pool.set_phase("hard", 2)
    assert counter.resets == 1
    pool = phased_pool()
    pool.reset(seed=0)
    step(pool)
    names = pool.drain_metrics().keys()
    pool.set_phase("hard", 2)
    step(pool)
    metrics = pool.drain_metrics()
    assert metrics.keys() == names and metrics["reward/FaceBallReward"] == (0, 0)


@pytest.mark.parametrize("phases", [("easy", "hard"), ("hard", "easy")])
def test_a_snapshot_goes_back_to_its_phase(phases):
    pool = phased_pool()
    pool.reset(seed=0)
    pool.set_phase(phases[0], 1)
    step(pool, 2)
    snapshot = pool.state_dict()
    expected = [step(pool) for _ in range(9)]
    pool.set_phase(phases[1], 2)
    step(pool, 3)
    pool.load_state_dict(snapshot)
    np.testing.assert_array_equal([step(pool) for _ in range(9)], expected)
    fresh = phased_pool()
    fresh.reset(seed=3)
    fresh.load_state_dict(snapshot)
    np.testing.assert_array_equal([step(fresh) for _ in range(9)], expected)


@pytest.mark.slow
def test_process_pool_tells_every_worker():
    pool, alone = ProcessPool(partial(phased_pool, 4, lanes=0.5), 2), phased_pool(4, lanes=0.5)
    try:
        for each in (pool, alone):
            each.reset(seed=0)
            each.check_phases(["easy", "hard"])
            step(each)
            each.set_phase("hard", 4)
        for _ in range(9):
            np.testing.assert_array_equal(step(pool), step(alone))
        assert pool.drain_metrics() == alone.drain_metrics()
        with pytest.raises(
            ValueError, match=r"worker 0 .* has the phases easy, hard, but the training has easy, expert"
        ):
            pool.check_phases(["easy", "expert"])
    finally:
        pool.close()


def spoiled_pool(num_arenas=2, seed=0, num_threads=1, first_arena=0):
    """Pays NaN in the second step of the phase `easy`, nothing in `hard`."""
    reward = PhasedReward({"easy": InAirReward(), "hard": InAirReward(), "broken": Spends("nan")})
    setter = PhasedStates({"easy": Kickoff(), "hard": TurtledStart(), "broken": TurtledStart()})
    return RocketSimPool(num_arenas, reward=reward, state_setter=setter, num_threads=num_threads, seed=seed)


@pytest.mark.slow
def test_a_worker_that_is_started_again_is_in_the_present_phase():
    pool = ProcessPool(partial(spoiled_pool, 1), 1, restart=True)
    try:
        pool.reset(seed=0)
        pool.set_phase("broken", 3)
        step(pool)
        for _ in range(2):  # the second step of every episode fails; a worker in phase easy would go on
            with pytest.warns(RuntimeWarning, match="restarted worker 0"):
                step(pool)
            step(pool)
    finally:
        pool.close()


def test_nested_parts_are_found():
    inner = PhasedStates({"easy": Kickoff(), "hard": RandomState()})
    reward = CombinedReward([phased_reward(), GoalReward()], [1, 1])
    pool = RocketSimPool(1, reward=reward, state_setter=MixedStates([inner, Kickoff()], [1, 1]))
    pool.reset(seed=0)
    pool.set_phase("hard", 2)
    assert (inner.phase, reward.rewards[0].phase) == ("hard", "hard")
    with pytest.raises(ValueError, match="PhasedReward has the phases easy, hard, but the training has easy; use"):
        pool.check_phases(["easy"])
    with pytest.raises(ValueError, match="PhasedReward: there is no phase expert; known: easy, hard"):
        pool.set_phase("expert", 3)
