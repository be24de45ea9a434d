"""One weight by name: on the command line, in YAML and in Python."""

import re

import pytest
import yaml

import envs
from envs import MechanicsLanes
from fabric_rl.base.argv import DEFAULT_CONFIG
from fabric_rl.base.messages import one_line
from fabric_rl.cli.command_line import read_settings
from train_fabric import main

QUICKSTART = ["--config", "rocket_1v1_quickstart"]
SCHOOL = ["--config", "bot_school"]


def settings(words):
    config = yaml.safe_load(read_settings(main, words, "", DEFAULT_CONFIG).arguments["resolved_config"])
    return config["env"]["init_args"]


def overlay(tmp_path, **init_args):
    path = tmp_path / "mine.yaml"
    path.write_text(yaml.safe_dump({"env": {"init_args": init_args}}))
    return ["--config", str(path)]


def weights(part):
    return part["init_args"]["weights"]


def test_a_text_that_looks_like_a_number_stays_text(tmp_path):
    text = read_settings(main, ["--group", "1e-4"], "", DEFAULT_CONFIG).arguments["resolved_config"]
    (tmp_path / "config.yaml").write_text(text)
    again = read_settings(main, ["--config", str(tmp_path / "config.yaml")], "", DEFAULT_CONFIG)
    assert again.arguments["start"].group == "1e-4"


@pytest.mark.slow
def test_a_flag_changes_one_weight_and_keeps_the_others():
    found = settings([*QUICKSTART, "--env.reward.weights.GoalReward", "20", "--env.reward.weights.Touch", "2"])
    assert weights(found["reward"]) == [2.0, 0.4, 0.05, 0.01, 0.3, 20.0]
    wrapped = settings([*QUICKSTART, "--env.reward.weights.VelocityBallToGoalReward", "1"])
    assert weights(wrapped["reward"])[4] == 1.0  # a wrapper has its inner reward's name, as in the metrics
    assert weights(settings([*QUICKSTART, "--env.state_setter.weights.Kickoff", "2"])["state_setter"]) == [2.0, 0.6]


@pytest.mark.slow
def test_a_file_changes_one_weight_and_keeps_the_others(tmp_path):
    file = overlay(
        tmp_path,
        reward={"init_args": {"weights": {"GoalReward": 20}}},
        state_setter={"init_args": {"weights": {"Kickoff": 0}}},
    )
    found = settings([*QUICKSTART, *file])
    assert weights(found["reward"]) == [0.6, 0.4, 0.05, 0.01, 0.3, 20.0]
    assert weights(found["state_setter"]) == [0.0, 0.6]
    flag = settings([*QUICKSTART, *file, "--env.reward.weights.GoalReward", "30"])
    assert weights(flag["reward"])[-1] == 30.0


@pytest.mark.slow
def test_new_rewards_do_not_inherit_the_weights_of_others(tmp_path):
    file = overlay(
        tmp_path,
        reward={
            "class_path": "envs.CombinedReward",
            "init_args": {
                "rewards": [{"class_path": "envs.GoalReward"}, {"class_path": "envs.TouchReward"}],
                "weights": {"GoalReward": 5},
            },
        },
    )
    assert weights(settings([*QUICKSTART, *file])["reward"]) == {"GoalReward": 5.0}


@pytest.mark.slow
def test_phases_are_changed_one_by_one(tmp_path):
    before = settings(SCHOOL)["reward"]["init_args"]["rewards"]
    phase = "SilverSkills2-GoldSkills1"  # the hyphen is part of the name
    found = settings([*SCHOOL, f"--env.reward.rewards.{phase}.weights.KickoffReward", "7"])["reward"]["init_args"]
    assert weights(found["rewards"][phase]) == [*weights(before[phase])[:-1], 7.0]
    assert list(found["rewards"]) == list(before)
    assert found["rewards"]["BronzeSkills1"] == before["BronzeSkills1"]
    file = overlay(
        tmp_path, reward={"init_args": {"rewards": {phase: {"init_args": {"weights": {"KickoffReward": 7}}}}}}
    )
    assert settings([*SCHOOL, *file])["reward"]["init_args"] == found
    inner = "--env.state_setter.inner.setters.BronzeSkills1.weights.Kickoff"
    states = settings([*SCHOOL, inner, "3"])["state_setter"]["init_args"]["inner"]["init_args"]["setters"]
    assert weights(states["BronzeSkills1"]) == [0.55, 3.0, 0.05]


@pytest.mark.slow
def test_whole_phases_replace_all_phases(tmp_path):
    only = {"Mine": {"class_path": "envs.GoalReward"}}
    file = overlay(tmp_path, reward={"class_path": "envs.PhasedReward", "init_args": {"rewards": only}})
    assert settings([*SCHOOL, *file])["reward"]["init_args"]["rewards"] == only


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([*QUICKSTART, "--env.reward.weights.GoalRewrd", "2"], r"--env.reward.weights.GoalRewrd: .*mean GoalReward\?"),
        ([*QUICKSTART, "--env.reward.weights.GoalReward", "x"], r"weights.GoalReward: expected a number, got x"),
        ([*SCHOOL, "--env.reward.rewards.Bronz.weights.Goal", "2"], r"--env.reward.rewards.Bronz: .*BronzeSkills1\?"),
    ],
)
def test_a_wrong_name_or_number_is_one_line_with_the_flag(words, message):
    with pytest.raises(Exception) as error:
        settings(words)
    assert re.search(message, one_line(str(error.value)))


def test_python():
    reward = envs.CombinedReward([envs.GoalReward(), envs.TouchReward()], {"TouchReward": 0.5})
    assert reward.factors == (1.0, 0.5)
    states = envs.MixedStates([envs.Kickoff(), envs.Kickoff(), envs.RandomState()], {"Kickoff_2": 2})
    assert states.shares.tolist() == [0.25, 0.5, 0.25]
    lanes = MechanicsLanes(envs.Kickoff(), weights={"kickoff": 4})
    assert lanes.shares.tolist() == [0.1] * 6 + [0.4]
    with pytest.raises(ValueError, match=r"weights.TouchRewrd: there is none; did you mean TouchReward\?"):
        envs.CombinedReward([envs.TouchReward()], {"TouchRewrd": 1})
    with pytest.raises(ValueError, match="TouchReward"):
        envs.CombinedReward([envs.TouchReward()], {"TouchReward": "much"})
