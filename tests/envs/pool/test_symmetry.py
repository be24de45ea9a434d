"""Left-right symmetry: a mirrored game, played with mirrored actions, is seen as `find_symmetry` says."""

from functools import partial

import numpy as np
import pytest
from gymnasium.spaces import Box
from rlgym.rocket_league.common_values import BOOST_LOCATIONS

from envs import (
    ActionTable,
    AdvancedObs,
    AdvancedObsPlus,
    ClipAction,
    CombinedReward,
    ContinuousAction,
    DefaultObs,
    DelayAction,
    EntityObs,
    HybridTable,
    LookupTable,
    MultiDiscreteAction,
    ProcessPool,
    RandomState,
    RepeatAction,
    Reward,
    RocketSimPool,
    StateAwareTable,
    TouchReward,
)
from envs.dones import DoneCondition
from envs.obs import ObsBuilder
from envs.pool.symmetry import reflect_state
from envs.resets import StateSetter
from envs.resets.mixtures import PADS_MIRRORED_X
from envs.rewards.combinators import AnnealedReward, PhasedReward
from envs.state.layout import NUM_PADS
from fabric_rl.base.symmetry import Symmetry

OBS = [DefaultObs, AdvancedObs, AdvancedObsPlus, EntityObs]
ACTIONS = [LookupTable, ContinuousAction, MultiDiscreteAction, StateAwareTable]


class Given(StateSetter):
    """Writes the states that it was given."""

    def __init__(self, states):
        self.states = states

    def apply(self, state, mask, rng):
        for arena in np.flatnonzero(mask):
            for name in ("ball_rows", "car_rows", "car_states", "details"):
                getattr(state, name)[arena] = getattr(self.states, name)[arena]


class OneSided(Reward):
    def compute(self, state):
        return np.repeat(state.world.ball_pos[:, :1], state.num_cars, axis=1) / 4096


class OneGoal(Reward):
    def compute(self, state):
        paid = state.goal_scored & (state.world.ball_pos[:, 0] > 0)
        return np.repeat(paid[:, None], state.num_cars, axis=1).astype(np.float32)


class RightSide(DoneCondition):
    def check(self, state):
        return state.world.ball_pos[:, 0] > 1000


class Crash(DefaultObs):
    def build(self, state, out):
        1 / (state.num_arenas < 24)


class Compass(ObsBuilder):
    """Sees whether the ball is on the right, in a way that has no mirror image."""

    def space(self, num_blue, num_orange):
        return DefaultObs().space(num_blue, num_orange)

    def build(self, state, out):
        out[...] = np.maximum(0, state.world.ball_pos[:, :1, None])


def mirrored_actions(symmetry, actions):
    if isinstance(symmetry.actions, tuple):
        columns = actions.reshape(len(actions), -1)
        return np.stack([c[columns[:, k]] for k, c in enumerate(symmetry.actions)], axis=1).reshape(actions.shape)
    return actions * symmetry.actions


@pytest.mark.slow
@pytest.mark.parametrize(("obs", "action"), [*zip(OBS, ACTIONS, strict=True)])
def test_mirrored_play(obs, action):
    """The physics itself is the judge: both games are simulated."""
    pool = partial(RocketSimPool, 6, 2, obs=obs(), num_threads=1)
    one = pool(action=action(), state_setter=RandomState())
    symmetry = one.find_symmetry()
    assert isinstance(symmetry, Symmetry)
    seen, _ = one.reset(seed=1)
    first = one.state.copy()
    other = pool(action=action(), state_setter=Given(reflect_state(first)))
    images, _ = other.reset(seed=1)
    one.action_space.seed(0)
    for _ in range(8):
        flat = seen.reshape(len(seen), -1)
        expected = flat[:, symmetry.obs_index] * symmetry.obs_sign
        assert np.mean(np.abs(images.reshape(len(seen), -1) - expected) > 0.02) < 0.02
        actions = one.action_space.sample()
        seen, *_ = one.step(actions)
        images, *_ = other.step(mirrored_actions(symmetry, actions))
    one.close()
    other.close()


@pytest.mark.slow
def test_the_map_is_its_own_inverse():
    for obs in OBS:
        found = RocketSimPool(1, [(1, 0), (2, 1)], obs=obs(), num_threads=1).find_symmetry()
        assert (found.obs_index[found.obs_index] == np.arange(len(found.obs_index))).all()
        assert (found.obs_sign[found.obs_index] == found.obs_sign).all()
        assert (found.actions[0][found.actions[0]] == np.arange(90)).all()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"reward": CombinedReward([TouchReward(), OneSided()], [1.0, 1.0])}, "OneSided pays differently"),
        pytest.param(
            {"reward": PhasedReward({"a": TouchReward(), "b": OneSided()})},
            "OneSided pays differently",
            marks=pytest.mark.slow,
        ),
        ({"reward": OneGoal()}, "OneGoal pays differently"),
        ({"action": ClipAction(LookupTable(), [-1] * 5, [1, 0.2, 1, 1, 1])}, "ClipAction gives other controls"),
        pytest.param(
            {"reward": AnnealedReward(OneSided(), [1000, 2000], [0, 1])},
            "OneSided pays differently",
            marks=pytest.mark.slow,
        ),
        ({"done": RightSide()}, "RightSide ends an episode, but not its mirror image"),
        ({"obs": Crash()}, "failed in a game of 24 arenas (ZeroDivisionError"),
        ({"obs": Compass()}, "column 0 (obs) of Compass has no mirror image"),
        pytest.param(
            {"action": HybridTable()},
            "some of the 128 actions of HybridTable have no mirror image",
            marks=pytest.mark.slow,
        ),
        ({"action": ActionTable(np.eye(3, 8))}, "of the 3 actions of ActionTable"),
    ],
)
def test_what_is_not_symmetric(settings, reason):
    found = RocketSimPool(1, num_threads=1, **settings).find_symmetry()
    assert isinstance(found, str) and reason in found


@pytest.mark.slow
def test_wrappers_of_a_table_and_processes():
    alone = RocketSimPool(1, num_threads=1).find_symmetry()
    wrapped = RocketSimPool(1, num_threads=1, action=DelayAction(RepeatAction(LookupTable(), 2), 1)).find_symmetry()
    assert np.array_equal(wrapped.actions[0], alone.actions[0])
    assert np.array_equal(wrapped.obs_index, alone.obs_index)
    mixed = partial(RocketSimPool, 2, [(1, 0), (3, 3)], num_threads=1)  # the first worker has only one car
    pool = ProcessPool(mixed, num_workers=2)
    for one, other in zip(pool.find_symmetry(), mixed().find_symmetry(), strict=True):
        assert np.array_equal(one, other)
    pool.close()


class Rare(ObsBuilder):
    """Sees which wheels touch something, and the pads in reach: each column is almost always the same."""

    def space(self, num_blue, num_orange):
        return Box(0, 1, (4 + NUM_PADS,), np.float32)

    def build(self, state, out):
        out[..., :4] = state.wheels_with_contact
        away = state.world.car_pos[:, :, None] - np.array(BOOST_LOCATIONS, np.float32)
        out[..., 4:] = np.linalg.norm(away, axis=-1) < 150


@pytest.mark.slow
@pytest.mark.parametrize("team_size", [1, 3])
def test_columns_that_seldom_change(team_size):
    found = RocketSimPool(1, team_size, obs=Rare(), num_threads=1).find_symmetry()
    assert found.obs_index[:4].tolist() == [1, 0, 3, 2]
    assert (found.obs_index[4:] - 4 == PADS_MIRRORED_X).all() and (found.obs_sign == 1).all()
