"""What many of the environment tests do: compare recordings, play at random, and build observations."""

import numpy as np

from envs import RandomState, RocketSimPool, TimeoutCondition


def assert_same(ours, theirs):
    """Two lists of arrays are the same to the bit."""
    assert len(ours) == len(theirs)
    for number, (a, b) in enumerate(zip(ours, theirs, strict=True)):
        np.testing.assert_array_equal(a, b, err_msg=f"array {number}")
        assert a.dtype == b.dtype


def build(builder, state):
    """The observations `[A, C, ...]` of a state; NaN where the builder wrote nothing."""
    shape = (state.num_arenas, state.num_cars, *builder.space(state.num_blue, state.num_orange).shape)
    obs = np.full(shape, np.nan, np.float32)
    builder.build(state, obs)
    return obs


def random_play(num_arenas, team_size, steps=20):
    """A copy of the state after some steps of random actions, in the middle of everybody's first episode."""
    setter, done = RandomState(), [TimeoutCondition(100)]
    pool = RocketSimPool(num_arenas, team_size, state_setter=setter, done=done, num_threads=1, seed=2)
    pool.reset()
    rng = np.random.default_rng(0)
    for _ in range(steps):
        pool.step(rng.integers(90, size=pool.num_envs))
    state = pool.state.select(np.arange(num_arenas))
    pool.close()
    return state
