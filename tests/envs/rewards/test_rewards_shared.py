"""What rewards share of a state: the same numbers as alone, worked out once a step, and never an old one."""

import numpy as np
import pytest

import envs.rewards as library
from envs import CombinedReward, FaceBallReward, GameState, SpeedTowardBallReward, TouchReward
from envs.rewards.__main__ import rewards_to_choose_from
from envs.state.quantities import Quantities
from tests.envs.rewards.reward_play import Scene, replay
from tests.envs.rewards.test_rewards_properties import BUILD


@pytest.mark.parametrize("teams", [0, 1], ids=["mixed", "2v2"])
def test_a_sum_pays_what_its_terms_pay_alone_to_the_bit(tapes, teams):
    tape = tapes[teams]
    names = rewards_to_choose_from()
    alone = np.stack([replay(BUILD[name](), tape) for name in names])
    together = replay(CombinedReward([BUILD[name]() for name in names], [1.0] * len(names)), tape)
    np.testing.assert_array_equal(together, alone.sum(axis=0))
    assert len(names) > 25 and np.count_nonzero(alone.any(axis=(1, 2, 3))) > 20


class Counting(GameState):
    """Counts how often somebody asks who has touched."""

    asked = 0

    @property
    def touched(self):
        self.asked += 1
        return super().touched


def test_shared_by_all_terms_and_only_for_one_step():
    scene = Scene()
    scene.state.__class__ = Counting
    terms = [TouchReward(), library.JumpShotReward(), library.BasicAerialReward(), library.PossessionReward()]
    reward = CombinedReward(terms, [1, 0, 0, 1])
    scene.put(touched=[0, 0]).first(reward)
    scene.state.asked = 0
    assert scene.step(reward, touched=[1, 0]) == [2, -1]
    assert scene.state.asked == 1
    assert scene.step(reward, touched=[0, 1]) == [-1, 2]  # the state is the same object, with other numbers
    assert scene.state.asked == 2
    scene.first(reward)  # of the same numbers
    assert scene.state.asked == 2


def test_terms_that_are_changed_by_their_caller_change_no_other():
    scene = Scene(arenas=2)
    scene.put(touched=1, boost=50)
    rewards = [build() for name, build in BUILD.items() if name in rewards_to_choose_from()]
    scene.first(*rewards)
    scene.put(8, pos=(500, -1000, 17), vel=(0, 900, 0))
    before = {name: np.array(getattr(scene.state.quantities, name)) for name in quantities()}
    for reward in rewards:
        paid = reward.compute(scene.state)
        paid += 1  # somebody's own reward around another
    for name, array in before.items():
        np.testing.assert_array_equal(getattr(scene.state.quantities, name), array, err_msg=name)


def quantities():
    return [name for name, value in vars(Quantities).items() if type(value).__name__ == "cached"]


def test_quantities_by_hand():
    scene = Scene()
    scene.put(ball=(0, 0, 100), ball_vel=(0, 600, 0), pos=[(300, 0, 500), (0, -400, 400)], boost=[25, 0])
    shared = Quantities(scene.state)
    np.testing.assert_allclose(shared.ball_distance[0], [500, 500])
    np.testing.assert_allclose(shared.boost_root[0], [0.5, 0])
    # The net's back is 6000 uu away and 100 uu lower.
    np.testing.assert_allclose(shared.ball_speed_to_net[0], np.array([1, -1]) * 600 * 6000 / np.hypot(6000, 100))
    assert not (shared.any_touched or shared.any_goal or shared.any_demoed)


def test_two_sums_with_the_same_car_and_ball():
    scene = Scene()
    rewards = [FaceBallReward(), SpeedTowardBallReward(signed=True)]
    scene.put(ball=(0, 0, 17), pos=[(0, -500, 17), (500, 0, 17)], forward=[(0, 1, 0), (0, 1, 0)], vel=(0, 230, 0))
    nested = CombinedReward([CombinedReward(rewards, [1, 1]), rewards[0]], [1, 1])
    np.testing.assert_allclose(scene.step(nested), [2.1, 0], atol=1e-6)
