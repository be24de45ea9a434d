"""What many of the environment tests do: compare recordings, and build observations."""

import numpy as np


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
