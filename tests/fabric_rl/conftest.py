"""Shared by the framework's tests: an environment and an agent whose every number can be told in advance."""

from collections.abc import Sequence

import gymnasium
import numpy as np
import pytest
import torch
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from lightning import Fabric

from fabric_rl import ActorCritic, ActOutput

NEVER = 10**9


class CounterEnv(VectorEnv):
    """Sub-environment i, episode e, step t shows the observation `1000 i + 100 e + t`; the reward is action + 1.

    Each episode of sub-environment i terminates after `terminate_after[i]` steps, is truncated after
    `truncate_after[i]`, or both at once. `broken` = (what, step of the run, sub-environment, number) spoils one value.
    """

    def __init__(
        self,
        terminate_after: Sequence[int] = (3, NEVER, 4),
        truncate_after: Sequence[int] = (NEVER, 2, 4),
        seed: int = 0,
        broken: tuple[str, int, int, float] | None = None,
        autoreset_mode: AutoresetMode = AutoresetMode.SAME_STEP,
    ):
        self.num_envs = len(terminate_after)
        self.metadata = {"autoreset_mode": autoreset_mode}
        self.single_observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (2,), np.float32)
        self.single_action_space = gymnasium.spaces.Discrete(5)
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self.action_space = batch_space(self.single_action_space, self.num_envs)
        self.terminate_after, self.truncate_after = np.array(terminate_after), np.array(truncate_after)
        self.broken = broken
        self.seeds = []
        self.closed_by_train = False

    def reset(self, *, seed=None, options=None):
        self.seeds.append(seed)
        self.episode, self.t = np.zeros((2, self.num_envs), int)
        self.steps = 0
        obs = self.observe()
        self.spoil("reset", obs)
        return obs, {}

    def step(self, actions):
        assert actions.shape == (self.num_envs,)
        self.t += 1
        rewards = actions + 1.0
        terminated, truncated = self.t == self.terminate_after, self.t == self.truncate_after
        done = terminated | truncated
        infos = {"final_obs": self.observe(), "_final_obs": done} if done.any() else {}
        self.episode[done] += 1
        self.t[done] = 0
        obs = self.observe()
        self.spoil("obs", obs)
        self.spoil("reward", rewards[:, None])
        self.spoil("final_obs", infos.get("final_obs"))
        self.steps += 1
        return obs, rewards, terminated, truncated, infos

    def observe(self):
        """`[N, 2]`: the number, and a column that stays 0; float64, as many environments have it."""
        number = 1000.0 * np.arange(self.num_envs) + 100 * self.episode + self.t
        return np.stack([number, np.zeros(self.num_envs)], axis=1)

    def spoil(self, what, array):
        if self.broken is not None and what == self.broken[0] and (what == "reset" or self.steps == self.broken[1]):
            array[self.broken[2], -1] = self.broken[3]

    def close_extras(self, **kwargs):
        self.closed_by_train = True


class KnownAgent(ActorCritic):
    """V(obs) = the observed number, action = that number modulo 5, log-probability = minus a tenth of it.

    One weight per optimizer group, both with gradient 1, so that a step of SGD moves them by the learning rate.
    """

    def __init__(self, observation_space, action_space, lrs: Sequence[float] = (0.1, 0.3)):
        super().__init__(observation_space, action_space)
        self.lrs = lrs
        self.weights = torch.nn.ParameterList([torch.nn.Parameter(torch.zeros(())) for _ in lrs])
        self.seen = []

    def act(self, obs, state=None, deterministic=False):
        return ActOutput(obs[:, 0].long() % 5, -obs[:, 0] / 10, self.value(obs))

    def value(self, obs, state=None):
        return obs[:, 0]

    def training_step(self, minibatch):
        self.seen.append(minibatch)
        loss = sum(self.weights)
        return loss, {"value_loss": minibatch.returns.mean()}

    def configure_optimizers(self):
        return torch.optim.SGD([{"params": [w], "lr": lr} for w, lr in zip(self.weights, self.lrs, strict=True)])


@pytest.fixture
def counter_env():
    return CounterEnv


@pytest.fixture
def known_agent():
    return KnownAgent


@pytest.fixture(scope="session")
def fabric():
    return Fabric(accelerator="cpu", devices=1)
