"""Rewards from flags and YAML, what bad settings say, and the table in the documentation."""

import math
from pathlib import Path

import pytest
from jsonargparse import ArgumentParser

from envs import (
    AdvancedTouchReward,
    AerialDistanceReward,
    AnnealedReward,
    BadOrientationReward,
    BallTravelReward,
    BasicAerialReward,
    BoostChangeReward,
    ClippedReward,
    CombinedReward,
    DemoReward,
    EMANormalizedReward,
    EventReward,
    FaceBallReward,
    GoalViewReward,
    KickoffReward,
    NegativeVelocityTowardOwnGoalReward,
    PerSecondReward,
    PotentialReward,
    Reward,
    RewardSignals,
    SaveReward,
    StrongHitReward,
    TeamSpiritReward,
    TouchReward,
)
from envs.rewards.catalogue import all_classes, rewards_to_choose_from, takes_rewards
from envs.rewards.catalogue import table as reward_table

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
        (lambda: EventReward(goal=float("nan")), ValueError, "EventReward: goal must be finite numbers"),
        (lambda: EventReward(goal="x"), ValueError, "EventReward: goal must be finite numbers"),
        (lambda: AdvancedTouchReward(0, 0), ValueError, "AdvancedTouchReward: all weights are zero"),
        (lambda: BallTravelReward(goal=0, own_goal=0), ValueError, "BallTravelReward: all weights are zero"),
        (lambda: BoostChangeReward(loss=-1), ValueError, "BoostChangeReward: loss must be one number of at least 0"),
        (lambda: DemoReward(victim=-1), ValueError, "DemoReward: victim must be one number of at least 0"),
        (
            lambda: AerialDistanceReward(car=-1),
            ValueError,
            "AerialDistanceReward: car must be one number of at least 0",
        ),
        (lambda: BasicAerialReward(2000), ValueError, "BasicAerialReward: min_height must be a number from 0 to 1900"),
        (lambda: SaveReward(0), ValueError, "SaveReward: horizon_seconds must be a number from 0.1 to 10, got 0"),
        (lambda: GoalViewReward(1.5), ValueError, "GoalViewReward: gamma must be a number from 0 to 1, got 1.5"),
        (lambda: PotentialReward(StrongHitReward()), ValueError, "StrongHitReward depends on earlier states"),
        (lambda: PotentialReward(FaceBallReward(), gamma=2), ValueError, "PotentialReward: gamma must be a number"),
        (lambda: PerSecondReward(FaceBallReward), TypeError, r"reward must be .* write FaceBallReward\(\)"),
        (lambda: TeamSpiritReward(FaceBallReward(), 1.2), ValueError, "TeamSpiritReward: team_spirit .* from 0 to 1"),
        (lambda: TeamSpiritReward(FaceBallReward(), 0, -1), ValueError, "TeamSpiritReward: opponent_scale"),
        (lambda: AnnealedReward(FaceBallReward(), [5, 5], [1, 0]), ValueError, "AnnealedReward: steps must rise"),
        (lambda: AnnealedReward(FaceBallReward(), [5], [1, 0]), ValueError, "AnnealedReward: steps must rise"),
        (lambda: AnnealedReward(FaceBallReward(), [0.5], [1]), ValueError, "AnnealedReward: steps must be a whole"),
        (
            lambda: AnnealedReward(FaceBallReward(), steps=5),
            ValueError,
            r"AnnealedReward: .* got steps 5 and weights \(1",
        ),
        (lambda: ClippedReward(FaceBallReward(), 0.5, 1), ValueError, "ClippedReward: needs low <= 0 <= high"),
        (lambda: ClippedReward(FaceBallReward(), 0, 0), ValueError, "ClippedReward: needs low <= 0 <= high"),
        (
            lambda: EMANormalizedReward(FaceBallReward(), 0),
            ValueError,
            "EMANormalizedReward: half_life must be positive",
        ),
        (lambda: RewardSignals({}), ValueError, "RewardSignals: signals must name"),
    ],
)
def test_bad_settings_are_one_clear_line(build, error, message):
    with pytest.raises(error, match=message) as caught:
        build()
    assert "\n" not in str(caught.value)


def test_zero_sum_and_potential_of_a_charge_may_have_any_weight():
    CombinedReward([TeamSpiritReward(charge(), opponent_scale=1), PotentialReward(charge())], [-1, -1])


def test_compute_before_reset_and_a_foreign_state_are_named():
    from tests.envs.rewards.reward_play import Scene

    for reward in (StrongHitReward(), PerSecondReward(FaceBallReward()), PotentialReward(FaceBallReward())):
        with pytest.raises(RuntimeError, match=f"{type(reward).__name__}: call reset"):
            reward.compute(Scene().state)
    small, large = StrongHitReward(), StrongHitReward()
    Scene().first(small)
    Scene(arenas=3).first(large)
    with pytest.raises(ValueError, match="StrongHitReward: remembers"):
        small.load_state_dict(large.state_dict())


@pytest.mark.parametrize(
    ("reward", "state", "message"),
    [
        (AnnealedReward(TouchReward()), {"taken": 1.5}, "taken must be a whole number, got 1.5"),
        (AnnealedReward(TouchReward()), {"taken": -1}, "taken must be between 0 and inf, got -1"),
        (AnnealedReward(TouchReward()), {"sum": math.nan}, r"its state\['sum'\] is nan"),
        (AnnealedReward(TouchReward()), {"count": True}, r"its state\['count'\] is True, a bool, not 0"),
        (AnnealedReward(TouchReward()), None, "its state lacks count, inner, sum, taken"),
        (KickoffReward(), {"kept": {}}, "its state must be arrays by their names, got {'kept': {}}"),
    ],
)
def test_a_state_that_cannot_be_is_refused_by_name(reward, state, message):
    before = reward.state_dict()
    with pytest.raises(ValueError, match=f"^{type(reward).__name__}: {message}"):
        reward.load_state_dict({} if state is None else before | state)
    assert reward.state_dict() == before


def test_the_documentation_has_the_table():
    assert reward_table().strip() in (ROOT / "docs" / "rewards.md").read_text(encoding="utf-8")
