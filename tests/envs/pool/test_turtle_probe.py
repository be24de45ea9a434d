"""The probe of the debug mode: a bot on its roof that presses jump gets up, one that does nothing lies there."""

import copy

import numpy as np
import pytest

from envs import AdvancedObs, HybridTable, LookupTable, RocketSimPool, StackedObs
from envs.actions.base import JUMP

IDLE, JUMPING = (
    int(np.flatnonzero((LookupTable().table == row).all(axis=1))[0]) for row in (np.zeros(8), np.eye(8)[JUMP])
)


def jumps(obs, begins, mask):
    """Presses jump in every second step, for a press that is held is one press."""
    jumps.calls = 0 if begins.all() else jumps.calls + 1
    return np.full(len(obs), JUMPING if jumps.calls % 2 else IDLE)


def test_who_jumps_gets_up_and_who_idles_does_not():
    pool = RocketSimPool(2, [(1, 1), (2, 1)], num_threads=1)
    pool.reset(seed=0)
    before, seen = copy.deepcopy(pool.state_dict()["state"]), []

    def idles(obs, begins, mask):
        seen.append((obs.shape, begins.sum()))
        return np.full(len(obs), IDLE)

    (idle,) = pool.inspector.probe(idles)
    assert idle == "0 of 20 cars that lay on their roofs stood up within 3 s"
    assert seen[0] == ((20, *pool.single_observation_space.shape), 20) and {begun for _, begun in seen[1:]} == {0}
    (line,) = pool.inspector.probe(jumps)
    assert line.startswith("20 of 20 cars that lay on their roofs stood up within 3 s, after ")
    assert 0.3 < float(line.split()[-4]) < 2.5
    assert [line] == pool.inspector.probe(jumps)  # the same places every time
    for name, array in pool.state.state_dict().items():
        np.testing.assert_array_equal(array, before[name], err_msg=name)
    pool.close()


@pytest.mark.parametrize("tick_skip", [4, 12])
def test_it_sees_and_acts_as_the_pool_does(tick_skip):
    obs, action = StackedObs(AdvancedObs(), num_frames=2), HybridTable()
    pool = RocketSimPool(1, (3, 0), obs, action, tick_skip=tick_skip, num_threads=1)
    pool.reset(seed=0)
    masks = []

    def choose(obs, begins, mask):
        masks.append(mask)
        return mask.argmax(axis=1)

    (line,) = pool.inspector.probe(choose)
    assert " of 24 cars " in line and masks[0].shape == (24, pool.single_action_space.n)
    assert len(masks) == 360 // tick_skip
    pool.close()
