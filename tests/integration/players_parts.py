"""An environment and an agent for test_players.py."""

import os
from pathlib import Path

import numpy as np

from agents import PPOLightningAgent
from envs import GymnasiumEnvs
from envs.demonstrations import Trajectory
from fabric_rl import Callback
from fabric_rl.callbacks import AdaptiveBatchSize
from fabric_rl.imitation import Cloning


class Masked(GymnasiumEnvs):
    """CartPole in which the cart may be pushed to the left only where it is not there already.

    Each rank that builds it leaves a file of its number in the folder BUILT.
    """

    def __init__(self, num_envs: int = 4, seed: int = 0):
        super().__init__("CartPole-v1", num_envs, seed)
        if "BUILT" in os.environ:
            Path(os.environ["BUILT"], os.environ.get("SLURM_PROCID", "0")).touch()

    def reset(self, *, seed=None, options=None):
        obs, infos = super().reset(seed=seed, options=options)
        return obs, infos | {"action_mask": allowed(obs)}

    def step(self, actions):
        obs, rewards, terminated, truncated, infos = super().step(actions)
        return obs, rewards, terminated, truncated, infos | {"action_mask": allowed(obs)}


def allowed(obs):
    return np.stack([obs[:, 0] > -0.02, np.ones(len(obs), bool)], axis=1)


class Certain(PPOLightningAgent):
    """Takes the most likely action: two ranks with two sub-environments play as one with four."""

    def act(self, obs, state=None, deterministic=False, action_mask=None):
        return super().act(obs, state, True, action_mask)


class Imitating(Cloning):
    """Clones the same demonstrations on every trainer, all of them in one optimizer step."""

    def __init__(self):
        super().__init__(["it"], batch_size=40)
        obs = np.random.default_rng(0).normal(size=(41, 4)).astype(np.float32)
        ones = np.ones(40, np.float32)
        self.show([Trajectory(obs, (obs[:-1, 2] > 0).astype(np.int64), ones, terminated=True)])


class ScarceForPlayers(AdaptiveBatchSize):
    """Memory for everything, but none on a rank that plays."""

    def on_train_start(self, state):
        super().on_train_start(state)
        self._memory = Memory(free=1e12 if state.learns else 0.0)


class Memory:
    """So much is free, and a training step needs a mebibyte."""

    def __init__(self, free):
        self.free = lambda: free

    def begin(self):
        pass

    def needed(self):
        return 2.0**20


class FailsOnPlayers(Callback):
    """Cannot begin where there is no training."""

    def on_train_start(self, state):
        if not state.learns:
            raise ValueError("FailsOnPlayers: there is nothing to learn here")


class FailsOnPlayersWithoutAWord(Callback):
    """As FailsOnPlayers, but does not say why."""

    def on_train_start(self, state):
        if not state.learns:
            raise ValueError
