"""An environment and an agent for test_decoupled.py."""

import os
from pathlib import Path

import numpy as np

from agents import PPOLightningAgent
from envs import GymnasiumEnvs


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
