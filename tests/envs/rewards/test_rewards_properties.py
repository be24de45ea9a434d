"""What holds for every reward of the library, on recorded play with goals, demolitions, flips and resets."""

from functools import partial
from pathlib import Path

import numpy as np
import pytest

import envs
from envs import CombinedReward, GameState, TouchReward
from envs.rewards.__main__ import all_classes, rewards_table, rewards_to_choose_from, takes_rewards
from envs.state.quantities import Quantities
from tests.envs.fakes import Crash, HeadOn, Scene, configured, path_of, rearranged, replay

EVENTS = {"goal": 5, "team_goal": 2, "concede": -3, "touch": 1, "shot": 1, "save": 1, "demo": 1, "demoed": -1}
WITH_SETTINGS = {
    "EventReward": partial(envs.EventReward, **EVENTS, boost_pickup=0.1),
    "DemoReward": partial(envs.DemoReward, bump=0.5),
    "BallTravelReward": partial(envs.BallTravelReward, 1, 2, 3, -4, 5, 6, -7, by_height=True),
    "AdvancedTouchReward": partial(envs.AdvancedTouchReward, acceleration=0.5),
}
BUILD = {name: WITH_SETTINGS.get(name, getattr(envs, name)) for name in rewards_to_choose_from()}
BUILD |= {
    "signed speed": partial(envs.SpeedTowardBallReward, signed=True),
    "per second": lambda: envs.PerSecondReward(envs.FaceBallReward()),
    "team spirit": lambda: envs.TeamSpiritReward(envs.FaceBallReward(), team_spirit=0.3, opponent_scale=0.5),
    "zero-sum": lambda: envs.TeamSpiritReward(envs.StrongHitReward(), opponent_scale=1.0),
    "annealed": lambda: envs.AnnealedReward(envs.TouchReward(), steps=[10, 100], weights=[1.0, 0.2]),
    "clipped": lambda: envs.ClippedReward(envs.StrongHitReward(), 0.0, 2.0),
    "normalised": lambda: envs.EMANormalizedReward(envs.StrongHitReward(), half_life=50),
    "centred": lambda: envs.EMANormalizedReward(envs.FaceBallReward(), half_life=50, center=True, clip=3.0),
    "potential": lambda: envs.PotentialReward(envs.LiuDistancePlayerToBallReward(), gamma=0.99),
    "sum": lambda: envs.CombinedReward([envs.FaceBallReward(), envs.StrongHitReward()], [0.1, 2.0]),
    "signals": lambda: envs.RewardSignals({"style": envs.FaceBallReward(), "hit": envs.StrongHitReward()}),
}
RARE = {"FlipResetReward", "KickoffReward", "WavedashReward"}
"""Paid too seldom in random play to ask for it; test_rewards_values.py plays them by hand."""
every_reward = pytest.mark.parametrize("name", BUILD)


def test_the_play_has_everything(tapes):
    states = [state for tape in tapes for _, state in tape]
    for what in ("touched", "is_demoed", "is_flipping", "has_double_jumped", "goal_scored"):
        assert any(getattr(state, what).any() for state in states), what
    assert any(not state.all_present for state in states)
    assert sum(mask is not None for mask, _ in tapes[0]) > 10
    assert {team for s in states for team in s.scoring_team.tolist()} == {-1, 0, 1}


@every_reward
def test_finite_in_range_and_nothing_for_absent_cars(tapes, name):
    reward, earned = BUILD[name](), False
    for tape in tapes:
        before = [state.car_rows.tobytes() + state.ball_rows.tobytes() for _, state in tape]
        paid = replay(BUILD[name](), tape)
        present = tape[0][1].present
        assert paid.dtype == np.float32 and paid.shape[1:] == present.shape and np.isfinite(paid).all()
        assert not paid[:, ~present].any()
        if name not in WITH_SETTINGS and type(reward).__name__ == name:
            low, high = reward.value_range
            assert low - 1e-5 <= paid.min() and paid.max() <= high + 1e-5
        assert [state.car_rows.tobytes() + state.ball_rows.tobytes() for _, state in tape] == before
        earned |= bool(paid.any())
    assert earned or name in RARE


@every_reward
def test_rewards_know_neither_colours_nor_the_order_of_cars(tapes, name):
    for tape, shuffled in zip(tapes, ([2, 0, 1, 4, 5, 3], [1, 0, 3, 2]), strict=True):
        paid, state = replay(BUILD[name](), tape), tape[0][1]
        exchanged = np.r_[state.num_blue : state.num_cars, 0 : state.num_blue]
        for order, mirrored in ((exchanged, True), (np.array(shuffled), False)):
            other = [(mask, rearranged(state, order, mirrored)) for mask, state in tape]
            close(replay(BUILD[name](), other), paid[:, :, order])


def close(paid, expected):
    """Equal up to float32's rounding of positions of thousands of uu."""
    np.testing.assert_allclose(paid, expected, rtol=1e-4, atol=2e-5)


@every_reward
def test_goes_on_the_same_after_a_restore(tapes, name):
    for tape in tapes:
        half = len(tape) // 2
        reward, restored = BUILD[name](), BUILD[name]()
        replay(reward, tape[:half])
        restored.load_state_dict(reward.state_dict())
        saved = reward.state_dict()
        np.testing.assert_array_equal(replay(restored, tape[half:]), replay(reward, tape[half:]))
        restored.load_state_dict(saved)  # what was given out is a copy
        assert restored.drain_metrics().keys() == reward.drain_metrics().keys()
        again = BUILD[name]()
        again.load_state_dict(saved)
        np.testing.assert_array_equal(replay(restored, tape[half:]), replay(again, tape[half:]))


def everything():
    rewards = [build() for name, build in BUILD.items() if name != "signals"]
    return envs.CombinedReward(rewards, [1.0] * len(rewards))


def test_a_pool_with_all_of_them_resumes_to_the_bit():
    def pool():
        setter = envs.MixedStates([envs.Kickoff(), envs.RandomState(), HeadOn(), Crash()], [1, 2, 1, 3])
        return envs.RocketSimPool(
            4,
            [(1, 1), (2, 2)],
            reward=everything(),
            state_setter=setter,
            done=envs.TimeoutCondition(1.0),
            num_threads=1,
        )

    one, two, rng = pool(), pool(), np.random.default_rng(0)
    actions = rng.integers(90, size=(80, one.num_envs))
    one.reset()
    for step_actions in actions[:40]:
        one.step(step_actions)
    two.load_state_dict(one.state_dict())
    for step_actions in actions[40:]:
        np.testing.assert_array_equal(one.step(step_actions)[1], two.step(step_actions)[1])
    assert one.drain_metrics() == two.drain_metrics()
    assert one.state_dict()["components"][3]["terms"]


SECONDS = 2


def sums_at(tick_skip, rewards):
    """`{name: [A, C]}` what each pays in two seconds of the same play, whose actions change every 16 ticks."""
    paid = dict.fromkeys(rewards, 0.0)
    reward = KeepAll(rewards, paid)
    done = [envs.TimeoutCondition(1000)]
    pool = envs.RocketSimPool(
        12, 2, reward=reward, state_setter=envs.RandomState(), done=done, num_threads=1, seed=8, tick_skip=tick_skip,
        action_delay_ticks=0,
    )  # fmt: skip
    pool.reset()
    actions = np.random.default_rng(1).integers(90, size=(SECONDS * 120 // 16, pool.num_envs))
    for step_actions in actions:
        for _ in range(16 // tick_skip):
            pool.step(step_actions)
    usable = ~(pool.state.goal_scored | reward.spoiled)
    return {name: total[usable] for name, total in paid.items()}


class KeepAll(envs.Reward):
    """Adds up what each reward pays; arenas with a demolition or a goal are spoiled."""

    def __init__(self, rewards, paid):
        self.rewards, self.paid, self.spoiled = rewards, paid, False

    def reset(self, mask, state):
        for reward in self.rewards.values():
            reward.reset(mask, state)

    def compute(self, state):
        self.spoiled = self.spoiled | state.goal_scored | state.is_demoed.any(axis=1)
        for name, reward in self.rewards.items():
            self.paid[name] = self.paid[name] + reward.compute(state).astype(float)
        return np.zeros((state.num_arenas, state.num_cars), np.float32)


def test_per_second_and_per_change_do_not_depend_on_the_tick_skip():
    def build():
        dense = {n: BUILD[n]() for n in rewards_to_choose_from() if BUILD[n]().unit == "per step"}
        rated = {f"rated {name}": envs.PerSecondReward(reward) for name, reward in dense.items()}
        rated["BoostKeepReward"] = envs.BoostKeepReward()
        exact = {n: BUILD[n]() for n in ("RecoveryAndLandingReward", "GoalViewReward", "BoostChangeReward")}
        exact["potential"] = envs.PotentialReward(envs.LiuDistancePlayerToBallReward())
        return {n: BUILD[n]() for n in dense} | rated | exact, rated, exact

    rewards, rated, exact = build()
    fine, coarse = sums_at(4, rewards), sums_at(8, build()[0])
    assert len(fine["potential"]) >= 8
    for name in exact:
        np.testing.assert_allclose(coarse[name], fine[name], rtol=0, atol=1e-4, err_msg=name)
    for name in rated:
        # What changes between -1 and 1 within a step can differ by a step's length, 1/15 s, each time.
        np.testing.assert_allclose(coarse[name], fine[name], rtol=0, atol=0.25, err_msg=name)
        assert abs(coarse[name] - fine[name]).mean() < 0.04, name
    for name in ("FaceBallReward", "InAirReward", "SaveBoostReward"):
        assert 1.9 < abs(fine[name]).sum() / abs(coarse[name]).sum() < 2.1, name


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
    terms = [TouchReward(), envs.JumpShotReward(), envs.BasicAerialReward(), envs.PossessionReward()]
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


NEEDED = {"EventReward": {"goal": 1.0, "touch": 0.5}}


@pytest.mark.parametrize("name", [kind.__name__ for kind in all_classes()])
def test_from_a_class_path(name):
    inner = path_of("FaceBallReward")
    settings = {"CombinedReward": {"rewards": [inner], "weights": [2.0]}, "RewardSignals": {"signals": {"a": inner}}}
    settings["RoleRewards"] = {"rewards": {"a": inner, "b": inner}}
    around = {kind.__name__: {"reward": inner} for kind in all_classes() if takes_rewards(kind)}
    reward = configured(envs.Reward, path_of(name, **(around | settings | NEEDED).get(name, {})))
    assert type(reward).__name__ == name and (name not in rewards_to_choose_from() or reward.label() == name)


def test_nested_with_settings():
    inner = path_of("PerSecondReward", reward=path_of("FaceBallReward"))
    annealed = path_of("AnnealedReward", reward=inner, steps=[0, 1000], weights=[1.0, 0.1])
    terms = [annealed, path_of("EventReward", goal=20, concede=-10)]
    combined = path_of("CombinedReward", rewards=terms, weights=[0.5, 1.0])
    reward = configured(envs.Reward, path_of("TeamSpiritReward", reward=combined, team_spirit=0.3))
    assert reward.team_spirit == 0.3
    assert reward.reward.rewards[0].reward.reward.label() == "FaceBallReward"
    assert reward.reward.rewards[1].weights["concede"] == -10


def test_compute_before_reset_is_named():

    for reward in (
        envs.StrongHitReward(),
        envs.PerSecondReward(envs.FaceBallReward()),
        envs.PotentialReward(envs.FaceBallReward()),
    ):
        with pytest.raises(RuntimeError, match=f"{type(reward).__name__}: call reset"):
            reward.compute(Scene().state)


def test_the_documentation_has_the_table():
    assert rewards_table().strip() in (Path(__file__).parents[3] / "docs" / "rewards.md").read_text(encoding="utf-8")
