"""RLGymPool steps RLGym environments as they are; RLGymReward pays what RLGym's function pays."""

import random
from functools import partial

import numpy as np
import pytest
from rlgym.rocket_league.reward_functions import CombinedReward as RLGymCombined
from rlgym.rocket_league.reward_functions import GoalReward as RLGymGoal
from rlgym.rocket_league.reward_functions import TouchReward as RLGymTouch

from benchmarks.rlgym_guide import InAir, SpeedTowardBall, VelocityBallToGoal, build_env
from envs import (
    CombinedReward,
    GoalCondition,
    GoalReward,
    InAirReward,
    Kickoff,
    MixedStates,
    RandomState,
    RLGymPool,
    RLGymReward,
    RocketSimPool,
    SpeedTowardBallReward,
    TimeoutCondition,
    TouchReward,
    VelocityBallToGoalReward,
)


def short_env(team_size=1, seconds=1.0):
    env = build_env(team_size)
    env.truncation_cond.conditions[0].timeout_seconds = seconds
    return env


@pytest.mark.parametrize("team_size", [1, 2])
def test_the_pool_is_the_environment_driven_by_hand(team_size):
    build = partial(short_env, team_size)
    pool = RLGymPool(build, 2, seed=1)
    assert pool.num_envs == 4 * team_size and pool.single_action_space.n == 90
    obs, _ = pool.reset(seed=7)
    envs = [build(), build()]
    random.seed(7)
    np.random.seed(7)
    by_hand = [env.reset() for env in envs]
    np.testing.assert_array_equal(obs, np.float32([o for first in by_hand for o in first.values()]))
    choices, ends = np.random.RandomState(0), 0
    for _ in range(60):
        actions = choices.randint(90, size=pool.num_envs)
        generators = random.getstate(), np.random.get_state()
        obs, rewards, terminated, truncated, infos = pool.step(actions)
        after = random.getstate(), np.random.get_state()
        random.setstate(generators[0])
        np.random.set_state(generators[1])
        expected, first = [], 0
        for env in envs:
            agents = list(env.agents)
            chosen = actions[first : first + len(agents), None]
            final, paid, over, cut = env.step(dict(zip(agents, chosen, strict=True)))
            ended = any(over.values()) or any(cut.values())
            shown = env.reset() if ended else final
            ends += ended
            expected += [(shown[a], final[a], paid[a], over[a], cut[a]) for a in agents]
            first += len(agents)
        random.setstate(after[0])
        np.random.set_state(after[1])
        columns = [np.array(column) for column in zip(*expected, strict=True)]
        np.testing.assert_array_equal(obs, columns[0].astype(np.float32))
        np.testing.assert_allclose(rewards, columns[2], rtol=1e-6)
        np.testing.assert_array_equal(terminated, columns[3])
        np.testing.assert_array_equal(truncated, columns[4])
        if truncated.any():
            np.testing.assert_array_equal(infos["final_obs"][truncated], columns[1][truncated].astype(np.float32))
            np.testing.assert_array_equal(infos["_final_obs"], truncated | terminated)
    assert ends
    metrics = pool.drain_metrics()
    assert metrics["game/episodes_per_minute"] == pytest.approx((ends, 2 * 60 * 8 / 120 / 60))
    pool.close()


@pytest.mark.parametrize(
    ("build", "error", "message"),
    [
        (lambda: RLGymPool(lambda: 3, 1), TypeError, "build_env .*must build an RLGym, got int"),
        (lambda: RLGymPool(build_env, 0), ValueError, "num_envs .*at least 1"),
        (lambda: RLGymPool(build_env, 1).step(np.zeros(2)), ValueError, "actions must be integers"),
        (lambda: RLGymPool(build_env, 1).step(np.zeros(3, int)), ValueError, r"of shape \[2\]"),
        (lambda: RLGymPool(iter([build_env(1), build_env(2)]).__next__, 2), ValueError, "zero_padding"),
    ],
)
def test_bad_input_is_one_clear_error(build, error, message):
    with pytest.raises(error, match=message):
        build()


def test_rlgym_rewards_pay_what_the_pools_own_pay(shot, dropped):
    theirs = RLGymCombined(
        (InAir(), 0.5), (SpeedTowardBall(), 1.0), (VelocityBallToGoal(), 2.0), (RLGymGoal(), 10.0), (RLGymTouch(), 3.0)
    )
    ours = CombinedReward(
        [InAirReward(), SpeedTowardBallReward(), VelocityBallToGoalReward(), GoalReward(), TouchReward()],
        [0.5, 1.0, 2.0, 10.0, 3.0],
    )
    with pytest.warns(UserWarning, match="us in 1v1"):
        adapter = RLGymReward(theirs)
    rewards = {}
    for name, reward in (("ours", ours), ("theirs", adapter)):
        setter = MixedStates([Kickoff(), RandomState(), shot(), shot(into_blue_goal=True), dropped()], [1] * 5)
        pool = RocketSimPool(
            4, [(2, 2), (1, 0)], reward=reward, state_setter=setter, done=[GoalCondition(), TimeoutCondition(2)]
        )
        pool.reset(seed=3)
        rng = np.random.default_rng(0)
        rewards[name] = np.array([pool.step(rng.integers(90, size=pool.num_envs))[1] for _ in range(150)])
        pool.close()
    np.testing.assert_allclose(rewards["theirs"], rewards["ours"], atol=2e-5)
    assert (np.abs(rewards["ours"]) > 9).any(), "no goal"


def test_an_adapter_takes_reward_functions_only():
    with pytest.raises(TypeError, match="RewardFunction"):
        RLGymReward(GoalReward())
