"""Rewards from flags and YAML, what bad settings say, and the table in the documentation."""

from pathlib import Path

import pytest
from jsonargparse import ArgumentParser

from envs import (
    AdvancedTouchReward,
    AnnealedReward,
    BadOrientationReward,
    BallTravelReward,
    ClippedReward,
    CombinedReward,
    EventReward,
    FaceBallReward,
    NegativeVelocityTowardOwnGoalReward,
    PerSecondReward,
    PotentialReward,
    Reward,
    RewardSignals,
    StrongHitReward,
    TeamSpiritReward,
)
from envs.rewards.__main__ import all_classes, rewards_to_choose_from, takes_rewards
from envs.rewards.__main__ import table as reward_table

ROOT = Path(__file__).parents[3]
NEEDED = {"EventReward": {"goal": 1.0, "touch": 0.5}}


def parse(text):
    parser = ArgumentParser(exit_on_error=False)
    parser.add_argument("--reward", type=Reward)
    return parser.instantiate(parser.parse_object({"reward": text})).reward


@pytest.mark.parametrize("name", rewards_to_choose_from())
def test_from_a_class_path(name):
    reward = parse({"class_path": f"envs.{name}", "init_args": NEEDED.get(name, {})})
    assert type(reward).__name__ == name and reward.label() == name


@pytest.mark.parametrize("name", [c.__name__ for c in all_classes() if takes_rewards(c)])
def test_around_another_from_a_class_path(name):
    inner = {"class_path": "envs.FaceBallReward"}
    settings = {"CombinedReward": {"rewards": [inner], "weights": [2.0]}, "RewardSignals": {"signals": {"a": inner}}}
    reward = parse({"class_path": f"envs.{name}", "init_args": settings.get(name, {"reward": inner})})
    assert type(reward).__name__ == name


def test_nested_with_settings():
    inner = {"class_path": "envs.PerSecondReward", "init_args": {"reward": {"class_path": "envs.FaceBallReward"}}}
    annealed = {"reward": inner, "steps": [0, 1000], "weights": [1.0, 0.1]}
    event = {"class_path": "envs.EventReward", "init_args": {"goal": 20, "concede": -10}}
    terms = [{"class_path": "envs.AnnealedReward", "init_args": annealed}, event]
    spirit = {"class_path": "envs.CombinedReward", "init_args": {"rewards": terms, "weights": [0.5, 1.0]}}
    init = {"reward": spirit, "team_spirit": 0.3}
    reward = parse({"class_path": "envs.TeamSpiritReward", "init_args": init})
    assert reward.team_spirit == 0.3
    assert reward.reward.rewards[0].reward.reward.label() == "FaceBallReward"
    assert reward.reward.rewards[1].weights["concede"] == -10


def charge():
    return NegativeVelocityTowardOwnGoalReward()


@pytest.mark.parametrize(
    ("build", "error", "message"),
    [
        (
            lambda: CombinedReward([charge()], [-1]),
            ValueError,
            "NegativeVelocityTowardOwnGoalReward is a charge already",
        ),
        (lambda: CombinedReward([PerSecondReward(charge())], [-1]), ValueError, "would pay for it"),
        (lambda: CombinedReward([BadOrientationReward()], [-0.1]), ValueError, "give a positive weight"),
        (lambda: AnnealedReward(charge(), [0, 1], [1, -1]), ValueError, "AnnealedReward: .* give weights of 0 or more"),
        (lambda: EventReward(), ValueError, "EventReward: all weights are zero, .* set one of goal, team_goal"),
        (lambda: AdvancedTouchReward(0, 0), ValueError, "AdvancedTouchReward: all weights are zero"),
        (lambda: BallTravelReward(goal=0, own_goal=0), ValueError, "BallTravelReward: all weights are zero"),
        (lambda: PotentialReward(StrongHitReward()), ValueError, "StrongHitReward depends on earlier states"),
        (lambda: AnnealedReward(FaceBallReward(), [5, 5], [1, 0]), ValueError, "AnnealedReward: steps must rise"),
        (lambda: AnnealedReward(FaceBallReward(), [5], [1, 0]), ValueError, "AnnealedReward: steps must rise"),
        (lambda: ClippedReward(FaceBallReward(), 0.5, 1), ValueError, "ClippedReward: needs low <= 0 <= high"),
        (lambda: ClippedReward(FaceBallReward(), 0, 0), ValueError, "ClippedReward: needs low <= 0 <= high"),
        (lambda: RewardSignals({}), ValueError, "RewardSignals: signals must name"),
    ],
)
def test_bad_settings_are_one_clear_line(build, error, message):
    with pytest.raises(error, match=message) as caught:
        build()
    assert "\n" not in str(caught.value)


def test_zero_sum_and_potential_of_a_charge_may_have_any_weight():
    CombinedReward([TeamSpiritReward(charge(), opponent_scale=1), PotentialReward(charge())], [-1, -1])


def test_compute_before_reset_is_named():
    from tests.envs.rewards.reward_play import Scene

    for reward in (StrongHitReward(), PerSecondReward(FaceBallReward()), PotentialReward(FaceBallReward())):
        with pytest.raises(RuntimeError, match=f"{type(reward).__name__}: call reset"):
            reward.compute(Scene().state)


def test_the_documentation_has_the_table():
    assert reward_table().strip() in (ROOT / "docs" / "rewards.md").read_text(encoding="utf-8")
