"""In any situation whatsoever blue and orange see the same, are paid the same and end at the same time."""

import numpy as np
import pytest
from hypothesis import given

from envs import GoalCondition, NoTouchCondition, TimeoutCondition
from envs.obs import AdvancedObs, AdvancedObsPlus, DefaultObs, EntityObs, RelativeObs
from envs.state.layout import MIRROR
from tests.envs.comparing import build
from tests.envs.rewards.reward_play import rearranged, replay
from tests.envs.rewards.test_rewards_properties import BUILD
from tests.envs.state.situations import plays

BUILDERS = [DefaultObs(), AdvancedObs(), AdvancedObsPlus(), RelativeObs(), EntityObs(6)]


def from_the_other_side(frames):
    """The same play with the colours exchanged on the field turned around, and where its cars were."""
    state = frames[0][1]
    order = np.r_[state.num_blue : state.num_cars, : state.num_blue]
    swapped = [(mask, rearranged(state, order, mirrored=True)) for mask, state in frames]
    for _, other in swapped:
        other.num_blue, other.num_orange = state.num_orange, state.num_blue
        other.team = 1 - state.team[order]
        other.invalidate()
    return swapped, order


@given(plays(steps=1))
def test_the_other_side_of_the_field_is_its_rotation(frames):
    [(_, state)], ([(_, other)], order) = frames, from_the_other_side(frames)
    for name in ("pos", "vel", "ang_vel"):
        ours, theirs = getattr(state.world, f"ball_{name}"), getattr(state.mirrored, f"ball_{name}")
        np.testing.assert_array_equal(theirs, ours * MIRROR)
        np.testing.assert_array_equal(getattr(other.own, f"car_{name}"), getattr(state.own, f"car_{name}")[:, order])
        np.testing.assert_array_equal(getattr(other.own, f"ball_{name}"), getattr(state.own, f"ball_{name}")[:, order])
    np.testing.assert_array_equal(other.own.pad_timers, state.own.pad_timers[:, order])


@pytest.mark.parametrize("builder", BUILDERS, ids=lambda builder: type(builder).__name__)
@given(frames=plays(steps=1))
def test_blue_and_orange_see_the_same(builder, frames):
    [(_, state)], ([(_, other)], order) = frames, from_the_other_side(frames)
    seen = build(builder, state)
    assert np.isfinite(seen).all()
    np.testing.assert_array_equal(build(builder, other), seen[:, order])


@given(plays())
def test_blue_and_orange_are_paid_the_same(frames):
    swapped, order = from_the_other_side(frames)
    for name, reward in BUILD.items():
        paid = replay(reward(), frames)
        assert np.isfinite(paid).all(), name
        np.testing.assert_allclose(
            replay(reward(), swapped), paid[:, :, order], rtol=1e-4, atol=1e-4, err_msg=f"{name} on both sides"
        )


@given(plays(steps=1))
def test_games_end_alike_for_both(frames):
    [(_, state)], ([(_, other)], _) = frames, from_the_other_side(frames)
    for condition in (GoalCondition(), NoTouchCondition(10), TimeoutCondition(5)):
        assert condition.check(state).tolist() == condition.check(other).tolist()
    assert other.scoring_team.tolist() == [{0: 1, 1: 0, -1: -1}[int(team)] for team in state.scoring_team]
