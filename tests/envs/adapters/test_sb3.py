"""RocketSimVecEnv: the pool's steps, ends as Stable-Baselines3 expects them, masks, and a short training."""

import gymnasium
import numpy as np
import pytest

from envs import GoalCondition, GymnasiumEnvs, HybridTable, RandomState, RocketSimPool, TimeoutCondition

pytest.importorskip("stable_baselines3")
from envs import RocketSimVecEnv

SHORT = {"done": [GoalCondition(), TimeoutCondition(timeout_seconds=0.5)], "state_setter": RandomState()}


def test_it_is_the_pool():
    env, pool = RocketSimVecEnv(num_arenas=3, **SHORT), RocketSimPool(3, **SHORT)
    assert env.seed(7) == [7, 8, 9, 10, 11, 12]
    np.testing.assert_array_equal(env.reset(), pool.reset(seed=7)[0])
    rng, ends = np.random.default_rng(0), 0
    for _ in range(40):
        actions = rng.integers(90, size=6)
        obs, rewards, ended, infos = env.step(actions)
        expected, paid, over, cut, told = pool.step(actions)
        np.testing.assert_array_equal(obs, expected)
        np.testing.assert_array_equal(rewards, paid)
        assert ended.tolist() == (over | cut).tolist()
        for i, info in enumerate(infos):
            assert info["TimeLimit.truncated"] == (cut[i] and not over[i])
            assert ("terminal_observation" in info) == ended[i]
            if ended[i]:
                np.testing.assert_array_equal(info["terminal_observation"], told["final_obs"][i])
                ends += 1
    assert ends >= 12
    env.close()
    pool.close()


def test_masks_and_attributes():
    env = RocketSimVecEnv(num_arenas=1, action=HybridTable())
    assert env.has_attr("action_masks")  # sb3-contrib asks before the first reset
    assert not RocketSimVecEnv(num_arenas=1).has_attr("action_masks") and env.num_envs == 2
    env.seed(3)
    env.reset()
    assert env.has_attr("action_masks") and env.get_attr("tick_skip") == [8, 8]
    masks = np.stack(env.env_method("action_masks"))
    np.testing.assert_array_equal(masks, env.pool.reset(seed=3)[1]["action_mask"])
    with pytest.raises(NotImplementedError, match="set tick_skip when the pool is built"):
        env.set_attr("tick_skip", 4)
    with pytest.raises(NotImplementedError, match=r"call pool.render\(\), which is for all environments"):
        env.env_method("render")
    env.close()
    with pytest.raises(TypeError, match="pass a pool or its settings, not both"):
        RocketSimVecEnv(RocketSimPool(1), num_arenas=4)
    with pytest.raises(ValueError, match="the pool must have autoreset_mode SAME_STEP"):
        RocketSimVecEnv(gymnasium.make_vec("CartPole-v1", num_envs=2))


@pytest.mark.slow
def test_ppo_of_sb3_trains_in_it():
    from stable_baselines3 import PPO
    from stable_baselines3.common.vec_env import VecMonitor, VecNormalize

    env = VecNormalize(VecMonitor(RocketSimVecEnv(num_arenas=4, **SHORT)))
    model = PPO("MlpPolicy", env, n_steps=32, batch_size=64, n_epochs=1, seed=0, device="cpu").learn(512)
    assert len(model.ep_info_buffer) > 4 and model.num_timesteps == 512
    env.close()


def sb3_on_cartpole(env, seed, steps):
    from stable_baselines3 import PPO
    from stable_baselines3.common.vec_env import VecMonitor

    return PPO("MlpPolicy", VecMonitor(env), n_steps=64, batch_size=128, seed=seed, device="cpu").learn(steps)


@pytest.mark.slow
def test_sb3_learns_the_same_in_it_as_in_its_own_environments():
    """The policies are bit-identical after the same steps."""
    from stable_baselines3.common.env_util import make_vec_env

    envs = RocketSimVecEnv(GymnasiumEnvs("CartPole-v1", 8)), make_vec_env("CartPole-v1", 8)
    mine, theirs = (sb3_on_cartpole(env, 0, 4096).policy.state_dict() for env in envs)
    assert all(mine[name].equal(theirs[name]) for name in theirs)


@pytest.mark.learning
def test_ppo_of_sb3_learns_cartpole_in_it():
    """Over three seeds: the policy of one seed may be caught at a bad moment, also in SB3's own environments."""
    from stable_baselines3.common.evaluation import evaluate_policy

    models = [sb3_on_cartpole(RocketSimVecEnv(GymnasiumEnvs("CartPole-v1", 8)), seed, 40_000) for seed in range(3)]
    returns = [evaluate_policy(model, model.get_env(), 10)[0] for model in models]
    assert sum(returns) / len(returns) > 300, returns
