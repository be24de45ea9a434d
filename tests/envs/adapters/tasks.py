"""Tasks of users whose observations are no arrays; also named on command lines."""

import gymnasium
import numpy as np
from gymnasium.spaces import Box, Dict, Discrete, MultiBinary, MultiDiscrete, Text, Tuple


class Entries(gymnasium.Env):
    """Pays for action 1; ends after `length` steps."""

    observation_space = Dict(
        flags=MultiBinary(2), here=Discrete(3, start=1), seen=Tuple((Box(-4, 4, (2, 1)), MultiDiscrete([2, 3])))
    )
    action_space = Discrete(2)

    def __init__(self, length=3, render_mode=None):
        self.length, self.time = length, 0

    def observe(self):
        t = self.time
        seen = (np.float32([[t - 1], [t + 1]]), np.array([t % 2, t % 3]))
        return {"flags": np.int8([1, 0]), "here": np.int64(1 + t % 3), "seen": seen}

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.time = 0
        return self.observe(), {}

    def step(self, action):
        self.time += 1
        return self.observe(), float(action), self.time >= self.length, False, {}


class Seen(Entries):
    observation_space = Dict(image=Box(0, 255, (2, 2, 3), np.uint8), turn=Discrete(2))

    def observe(self):
        return {"image": np.full((2, 2, 3), 7, np.uint8), "turn": np.int64(1)}


class Numbered(Entries):
    observation_space = Discrete(3)

    def observe(self):
        return np.int64(1)


class Of(Entries):
    """Observations of any space."""

    def __init__(self, space, render_mode=None):
        super().__init__()
        self.observation_space = space


class Worded(Entries):
    def __init__(self, only=False, render_mode=None):
        super().__init__()
        self.only = only
        self.observation_space = Text(5) if only else Dict(here=Discrete(2), said=Text(5))

    def observe(self):
        return "abc" if self.only else {"here": np.int64(1), "said": "abc"}


class Reported(Entries):
    """Reports numbers, truth values, nested ones, and what is none of these, in every step."""

    def reset(self, *, seed=None, options=None):
        began = super().reset(seed=seed)
        if seed is not None:
            self.length = 2 + seed % 3
        return began

    def step(self, action):
        *stepped, _ = super().step(action)
        half = self.length / 2 if self.length % 2 else self.length // 2  # sometimes an int
        said = {"success": np.bool_(action), "distance": np.float32(self.length), "arm": {"half": half}}
        rest = {"word": "hit", "vector": np.ones(2), "broken": np.nan}
        return *stepped, said | rest | ({"rare": 7} if self.length == 2 else {})


class TwoMeasures(Reported):
    """Has a stricter measure of success beside the usual one, as an array without axes."""

    def step(self, action):
        *stepped, said = super().step(action)
        return *stepped, said | {"is_success": np.asarray(said["success"] and self.length == 4)}


class Seldom(Entries):
    """Never succeeds, pays nothing, and says so in episodes that begin with 1; all have the same length."""

    observation_space = Box(0, 1, (1,))

    def observe(self):
        return np.float32([self.began])

    def reset(self, *, seed=None, options=None):
        gymnasium.Env.reset(self, seed=seed)
        self.began = self.np_random.integers(2)
        return super().reset()

    def step(self, action):
        obs, _, *ended, _ = super().step(action)
        return obs, 0.0, *ended, {"success": False} if self.began else {}
