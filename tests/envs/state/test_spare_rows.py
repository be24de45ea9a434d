"""Columns of the state: NumPy takes them to reach further than they do, which must not decide about their last bits."""

import numpy as np

from envs import GameState


def reach(column):
    """The address up to which NumPy before 2.0.2 takes a column to reach, whichever axis it goes along in one go."""
    last = sum(stride * (size - 1) for stride, size in zip(column.strides, column.shape, strict=True))
    return column.ctypes.data + last + max(column.strides)


def end_of_memory(array):
    while array.base is not None:
        array = array.base
    return array.ctypes.data + array.nbytes


def test_no_result_can_lie_where_numpy_takes_a_column_to_reach():
    """Else `arctan2` of a column would be one thing or, where the heap happened to put its result, another."""
    whole = GameState(5, 1, 2)
    for state in (whole, whole.select(np.array([4, 0])), whole.copy()):
        arrays = [state.car_rows, state.ball_rows, state.car_timers, state.controls]
        for view in (state.world, state.mirrored, state.own):
            arrays += [view.ball, view.cars, view.pad_timers]
        for array in arrays:
            for column in range(array.shape[-1]):
                assert reach(array[..., column]) <= end_of_memory(array)
