"""The state that a setter writes into one arena, without a pool."""

import numpy as np

from envs import GameState


def written(setter, blue=2, orange=2, seed=0, present=None):
    state = GameState(1, blue, orange, present)
    state.clear(np.array([0]))
    setter.apply(state, np.array([True]), np.random.default_rng(seed))
    return state
