"""Agents and environments of users, as they are: no masks read, strict about their action space."""

from functools import partial

import gymnasium
import numpy as np
import pytest
import torch
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from agents import PPOLightningAgent
from envs import HybridTable, RocketSimPool
from fabric_rl import TrainArgs, gae, train


class Strict(gymnasium.Env):
    """Refuses actions outside of its Box, which is far from where a new policy acts."""

    observation_space = gymnasium.spaces.Box(-1, 1, (2,), np.float32)
    action_space = gymnasium.spaces.Box(np.float32([0, -10]), np.float32([0.1, -9]))

    def reset(self, *, seed=None, options=None):
        return np.zeros(2, np.float32), {}

    def step(self, action):
        assert self.action_space.contains(action), action
        return np.zeros(2, np.float32), 0.0, False, False, {}


def strict(seed):
    return SyncVectorEnv([Strict] * 2, autoreset_mode=AutoresetMode.SAME_STEP)


def settings(**more):
    return TrainArgs(**({"num_steps": 8, "total_timesteps": 32, "minibatch_size": 16, "update_epochs": 1} | more))


def test_an_environment_only_gets_actions_of_its_space_from_the_first_step_on(fabric):
    assert train(fabric, strict, PPOLightningAgent, settings(), plain=True)["total_steps"] == 32


@pytest.mark.filterwarnings("ignore::UserWarning")  # Gymnasium's
def test_an_environment_may_have_the_final_observations_of_gymnasium(fabric):
    """An array of objects, which are None where the episode goes on; here it is cut after 3 steps in one of two."""

    def make(seed):
        envs = [partial(gymnasium.make, "Pendulum-v1", max_episode_steps=steps) for steps in (3, 200)]
        return SyncVectorEnv(envs, autoreset_mode=AutoresetMode.SAME_STEP)

    assert train(fabric, make, PPOLightningAgent, settings(), plain=True)["total_steps"] == 32


@pytest.mark.parametrize("inference", [False, True])
def test_the_progress_of_an_agent_that_only_plays_is_that_of_a_trained_one(fabric, inference):
    seen = []

    class Watched(PPOLightningAgent):
        def act(self, obs, state=None, deterministic=False):
            seen.append(float(self.progress))
            return super().act(obs, state, deterministic)

    train(fabric, strict, Watched, settings(), plain=True, inference=inference)
    assert seen[-16:] == ([1.0] * 16 if inference else [0.0] * 8 + [0.5] * 8)


def test_an_agent_that_reads_no_masks_is_given_none(fabric):
    class Maskless(PPOLightningAgent):
        def act(self, obs, state=None, deterministic=False):
            return super().act(obs, state, deterministic)

        def training_step(self, minibatch):
            assert minibatch.action_mask is None
            return super().training_step(minibatch)

    env = partial(RocketSimPool, 1, action=HybridTable(), num_threads=1)
    assert train(fabric, env, Maskless, settings(), plain=True)["total_steps"] == 32


def test_gae_takes_the_discounts_as_settings_hold_them():
    rewards = torch.randn(3, 2, 2, generator=torch.Generator().manual_seed(0))
    ends = torch.zeros(3, 2, dtype=torch.bool)
    given = [gae(rewards, rewards, rewards, ends, ends, gamma, 0.9) for gamma in ((0.9, 0.5), torch.tensor([0.9, 0.5]))]
    assert torch.equal(*given)


def test_a_batch_that_there_is_not_enough_for(fabric):
    with pytest.raises(ValueError, match=r"^--batch_size 64 is larger than the rollout of one rank, 16 steps"):
        train(fabric, strict, PPOLightningAgent, settings(batch_size=64, exp_buffer_size=64), plain=True)
