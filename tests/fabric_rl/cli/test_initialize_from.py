"""--initialize_from takes networks, observations and actions from the run that it names."""

import pytest
import yaml

from fabric_rl.base.argv import DEFAULT_CONFIG
from fabric_rl.cli.command_line import read_settings
from train_fabric import main

FROM = ["--initialize_from", "school_1v1"]


def settings(*words):
    config = yaml.safe_load(read_settings(main, [*words, *FROM], "", DEFAULT_CONFIG).arguments["resolved_config"])
    return config["env"]["init_args"], config["agent"]["init_args"]


@pytest.mark.slow
def test_the_run_comes_after_a_preset_and_before_flags(capsys):
    env, agent = settings("--config", "rocket_1v1_quickstart")
    assert agent["actor_hidden_sizes"] == agent["critic_hidden_sizes"] == [256, 256, 256]  # the preset has 256, 256
    assert agent["actor_lr"] == 2e-3  # of the preset
    assert env["obs"]["class_path"] == "envs.AdvancedObsPlus"
    assert settings("--config", "rocket_1v1")[0]["obs"]["class_path"] == "envs.AdvancedObsPlus"
    assert settings("--config", "rocket_1v1", "--agent.actor_hidden_sizes", "[8]")[1]["actor_hidden_sizes"] == [8]
    assert "note" not in capsys.readouterr().out


def test_a_file_of_the_users_own_wins_and_a_line_names_both_values(tmp_path, capsys):
    path = tmp_path / "mine.yaml"
    path.write_text("agent: {init_args: {actor_hidden_sizes: [8], actor_lr: 0.5}}")
    agent = settings("--config", "rocket_1v1", "--config", str(path))[1]
    assert (agent["actor_hidden_sizes"], agent["actor_lr"]) == ([8], 0.5)
    assert agent["critic_hidden_sizes"] == [256, 256, 256]
    said = capsys.readouterr()
    lines = [line for line in (said.out + said.err).splitlines() if "note" in line]
    assert len(lines) == 1 and "--agent.actor_hidden_sizes is [8] in" in lines[0]
    assert "school_1v1 was trained with [256, 256, 256]" in lines[0]
