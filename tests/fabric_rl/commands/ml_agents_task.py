"""A task with the parameters that ML-Agents' examples change."""

import gymnasium
import numpy as np


class Task(gymnasium.Env):
    """One step, whose observation and reward are 0."""

    observation_space = gymnasium.spaces.Box(-1, 1, (3,), np.float32)
    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self):
        self.mass, self.gravity, self.scale = 1.0, 9.81, 1.0
        self.wall_height = self.big_wall_min_height = self.big_wall_max_height = 4.0
        self.small_wall_height = self.big_wall_height = 4.0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return np.zeros(3, np.float32), {}

    def step(self, action):
        return np.zeros(3, np.float32), 0.0, True, False, {}


class Pictures(Task):
    """The same with images."""

    observation_space = gymnasium.spaces.Box(0, 255, (36, 36, 3), np.uint8)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return np.zeros((36, 36, 3), np.uint8), {}

    def step(self, action):
        return np.zeros((36, 36, 3), np.uint8), 0.0, True, False, {}
