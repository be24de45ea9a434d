"""Environments that worker processes import."""

import os
import signal
import sys
import time

import numpy as np
from gymnasium.spaces import Box, Discrete
from gymnasium.vector import AutoresetMode, VectorEnv

from benchmarks.rlgym_guide import build_env
from envs import GoalReward, InAirReward, Reward, RewardSignals
from envs.adapters.rlgym_pool import RLGymPool
from envs.dones import GoalCondition, NoTouchCondition, TimeoutCondition
from envs.pool.rocket_pool import RocketSimPool


def short_games(num_arenas=6, seed=0, num_threads=None, team_size=1, first_arena=0):
    """A RocketSimPool whose episodes end often."""
    done = [GoalCondition(), NoTouchCondition(0.7), TimeoutCondition(1.5)]
    return RocketSimPool(num_arenas, team_size, done=done, num_threads=num_threads, seed=seed, first_arena=first_arena)


class Trouble(VectorEnv):
    """Counts its steps; action 1 raises, 2, 5 and 6 end the process, 3 hangs, 4 says whether torch was imported."""

    def __init__(self, num_envs=4, seed=0, broken=False, exits=False):
        if broken:
            raise ValueError("Trouble: broken from the start")
        if exits:
            raise SystemExit
        self.num_envs, self.steps = num_envs, 0
        self.single_observation_space, self.single_action_space = Box(-np.inf, np.inf, (2,)), Discrete(7)
        self.metadata = {"autoreset_mode": AutoresetMode.SAME_STEP}

    def reset(self, *, seed=None, options=None):
        self.steps = 0
        return np.full((self.num_envs, 2), seed or 0, np.float32), {}

    def step(self, actions):
        self.steps += 1
        if (actions == 1).any():
            raise KeyError("in the middle of a step")
        if (actions == 2).any():
            os._exit(7)
        if (actions == 3).any():
            time.sleep(3600)
        if (actions == 5).any():
            sys.exit("no more")
        if (actions == 6).any():
            os.kill(os.getpid(), signal.SIGKILL)
        obs = np.full((self.num_envs, 2), self.steps, np.float32)
        if (actions == 4).any():
            obs[:] = float("torch" in sys.modules)
        none = np.zeros(self.num_envs, bool)
        return obs, np.ones(self.num_envs, np.float32), none, none, {"steps": np.full(self.num_envs, self.steps)}


class Told(Trouble):
    """Shows what it was told last: its parameter in the first column, the number of its phase in the second."""

    value, phase = 0.0, 0

    @property
    def parameters(self):
        return {"value": np.full(1, self.value)}

    def check_parameters(self, values):
        pass

    def set_parameters(self, values):
        self.value = values["value"]

    def check_phases(self, names):
        pass

    def set_phase(self, name, number):
        self.phase = number

    def step(self, actions):
        _, *rest = super().step(actions)
        return np.full((self.num_envs, 2), (self.value, self.phase), np.float32), *rest


class Spends(Reward):
    """Pays NaN, nothing at all, or a number that the second worker's arenas do not get."""

    def __init__(self, what):
        self.what = what

    def compute(self, state):
        rewards = np.zeros((state.num_arenas, state.num_cars), np.float32)
        if state.episode_ticks.max() >= 16:
            if self.what == "none":
                return None
            rewards[0, 1] = np.nan
        return rewards


def spending(what="nan", num_arenas=4, seed=0, num_threads=None, first_arena=0):
    """A RocketSimPool with a reward that spoils the second step."""
    return RocketSimPool(num_arenas, reward=Spends(what), num_threads=num_threads, seed=seed, first_arena=first_arena)


def signalling(num_arenas=4, seed=0, num_threads=None, first_arena=0, action=None):
    """A RocketSimPool with two reward signals."""
    reward = RewardSignals({"goal": GoalReward(), "air": InAirReward()})
    return RocketSimPool(
        num_arenas, action=action, reward=reward, num_threads=num_threads, seed=seed, first_arena=first_arena
    )


def rlgym_envs(num_envs=2, seed=0):
    """RLGym environments."""
    return RLGymPool(build_env, num_envs, seed)


def actions_with(value, where, size=4):
    """0 for all sub-environments but those at `where`, which get `value`."""
    actions = np.zeros(size, int)
    actions[where] = value
    return actions
