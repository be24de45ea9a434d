"""Presets: found by their names from any folder, and never in place of a file of the user's own."""

from functools import partial

import pytest

import train_fabric
from envs import GymnasiumEnvs
from fabric_rl.base.argv import DEFAULT_CONFIG, PRESETS, file_of, preset_names
from fabric_rl.base.config_files import section_of
from fabric_rl.cli.command_line import read_settings
from fabric_rl.evaluation.demonstrations import trajectories_of


@pytest.mark.parametrize("name", ["cartpole", "cartpole.yaml", "configs/cartpole.yaml"])
def test_a_preset_has_three_names(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert file_of(name) == str(PRESETS / "cartpole.yaml")
    (tmp_path / "cartpole").mkdir()
    assert file_of(name) == str(PRESETS / "cartpole.yaml")


def test_a_file_of_the_users_own_comes_first(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "cartpole.yaml").write_text("seed: 7")
    assert file_of("cartpole.yaml") == "cartpole.yaml"
    assert file_of("../cartpole") == "../cartpole" and file_of("seed: 7\n") == "seed: 7\n"
    assert file_of("configs/demonstrations/cartpole.frd") == str(PRESETS / "demonstrations" / "cartpole.frd")


@pytest.mark.parametrize("words", [["--config", "cartpole"], ["--config=cartpole"]])
def test_a_command_line_takes_its_name(words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    settings = read_settings(train_fabric.main, words, "", DEFAULT_CONFIG)
    assert settings.given == words  # as it was said, for what is printed
    assert settings.arguments["env"].keywords["env_id"] == "CartPole-v1"
    assert section_of(file_of("cartpole"), "env")["class_path"] == "envs.GymnasiumEnvs"


def test_the_demonstrations_of_a_preset_are_found_from_any_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    env = partial(GymnasiumEnvs, "CartPole-v1", 1)
    assert trajectories_of(["configs/demonstrations/cartpole.frd"], env)


def test_the_error_of_a_file_that_there_is_not_lists_them(capsys):
    with pytest.raises(SystemExit, match=r"^2$"):
        train_fabric.cli(["--config", "cartpol"])
    assert (
        f"--config cartpol: no such file; did you mean cartpole? presets: {', '.join(preset_names())}\n"
        in capsys.readouterr().err
    )


def test_the_help_lists_them(capsys):
    with pytest.raises(SystemExit, match=r"^0$"):
        train_fabric.cli(["--help"])
    words = capsys.readouterr().out.replace(",", " ").replace(".", " ").split()
    assert {"cartpole", "rocket_1v1_quickstart", "two_policies"} <= set(words)
