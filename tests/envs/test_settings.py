"""Every setting of every component: values outside its range, and objects of another kind, are refused by name."""

import dataclasses
import inspect
from typing import Annotated, get_args, get_origin

import pytest
from rlgym.rocket_league.reward_functions import TouchReward as RLGymTouch

import envs
import envs.bots
import envs.mechanics.lanes
import envs.parameters
from envs.component import Component
from envs.factories import to_config
from fabric_rl.base.settings import annotations_of
from tests.wrong_values import wrong_values


def as_seen(obs, begins, action_mask):
    """A policy, for `PolicyBot`."""
    return obs


MADE = {
    envs.Reward: envs.GoalReward,
    envs.StateSetter: envs.Kickoff,
    envs.Lane: envs.JumpShotLane,
    envs.DoneCondition: envs.GoalCondition,
    envs.ObsBuilder: envs.DefaultObs,
    envs.ActionParser: envs.LookupTable,
    envs.bots.Bot: envs.bots.BallChaser,
    envs.Sampler: envs.Constant,
}
"""An object for every kind of component that a setting may want."""
NEEDED = {
    "EventReward": {"goal": 1.0},
    "RewardSignals": {"signals": {"a": envs.GoalReward()}},
    "ExplicitState": {"car_pos": [(0, -1000, 17)]},
    "ClipAction": {"low": -1.0, "high": 1.0},
    "PhasedReward": {"rewards": {"a": envs.GoalReward()}},
    "RoleRewards": {"rewards": {"a": envs.GoalReward(), "b": envs.GoalReward()}},
    "PhasedStates": {"setters": {"a": envs.Kickoff()}},
    "Uniform": {"min_value": 0.0, "max_value": 1.0},
    "MultirangeUniform": {"intervals": [[0, 1], [2, 4]]},
    "ParameterRandomizer": {"samplers": {"gravity": envs.Constant(650)}},
    "RLGymReward": {"reward_function": RLGymTouch()},
    "PolicyBot": {"choose": as_seen},
}
"""Settings without which a component cannot be built, besides other components."""
FROM_FILES = {"ReplayedStates", "TrainingPack"}
KINDS = sorted(
    {
        kind
        for module in (envs, envs.bots, envs.mechanics.lanes, envs.parameters)
        for kind in vars(module).values()
        if isinstance(kind, type) and issubclass(kind, Component) and "__dataclass_fields__" in vars(kind)
        if not inspect.isabstract(kind) and kind.__name__ not in FROM_FILES
    },
    key=lambda kind: kind.__name__,
)


def needed(kind):
    """Settings with which `kind` can be built."""
    settings = dict(NEEDED.get(kind.__name__, {}))
    defaults = {field.name: field for field in dataclasses.fields(kind) if field.init}
    for name, annotation in annotations_of(kind).items():
        field = defaults[name]
        if name not in settings and (field.default, field.default_factory) == (dataclasses.MISSING,) * 2:
            listed = get_origin(annotation) not in (None, Annotated)
            inner = get_args(annotation)[0] if listed else annotation
            value = MADE[inner]() if inner in MADE else 1
            settings[name] = [value] if listed else value
    return settings


CASES = [
    pytest.param(kind, name, value, error, id=f"{kind.__name__}-{name}-{value!r:.40}")
    for kind in KINDS
    for name, annotation in annotations_of(kind).items()
    for value, error in wrong_values(annotation, MADE)
]


@pytest.mark.parametrize(("kind", "name", "value", "error"), CASES)
def test_a_value_outside_its_range_is_refused_by_name(kind, name, value, error):
    with pytest.raises(error, match=rf"^{kind.__name__}: {name}(\[\w+\])? must be (?!.*\n)"):
        kind(**needed(kind) | {name: value})


@pytest.mark.filterwarnings("ignore:RLGymReward builds")
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_every_component_can_be_built_and_remembers_its_settings(kind):
    made = kind(**needed(kind))
    again = kind(**{name: getattr(made, name) for name in annotations_of(kind)})
    assert all(getattr(again, name) == getattr(made, name) for name in annotations_of(kind))
    assert to_config(made)["class_path"].endswith(kind.__name__)  # no private attribute hides a setting there
    # One whose bases all are dataclasses would be a group of settings to jsonargparse, without a class path.
    assert not all(dataclasses.is_dataclass(base) for base in kind.__mro__[:-1])


def test_a_class_is_told_from_its_object():
    with pytest.raises(
        TypeError, match=r"reward must be an envs Reward, got the class GoalReward; write GoalReward\(\)"
    ):
        envs.PerSecondReward(envs.GoalReward)
