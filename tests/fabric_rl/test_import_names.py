"""Both names of the packages beside fabric_rl; tests/integration/test_wheel.py has those of an installed wheel."""

import importlib

import pytest

from agents import PPOLightningAgent
from fabric_rl import StartArgs
from fabric_rl.import_names import class_path, shipped, spelt_here


@pytest.mark.parametrize("name", ["agents", "agents.parts.heads", "envs", "envs.obs.default", "envs.rewards"])
def test_a_module_exists_once_under_both_names(name):
    module = importlib.import_module(name)
    assert importlib.import_module(f"fabric_rl.{name}") is module
    assert module.__name__ == module.__spec__.name == name


def test_names_can_be_imported_from_it():
    from fabric_rl.agents import PPOLightningAgent as Other
    from fabric_rl.envs import rewards

    assert Other is PPOLightningAgent and rewards.__name__ == "envs.rewards"


def test_a_module_that_there_is_not():
    with pytest.raises(ModuleNotFoundError, match=r"^No module named 'fabric_rl\.agents\.nope'$"):
        importlib.import_module("fabric_rl.agents.nope")
    with pytest.raises(ImportError, match="cannot import name 'Nope'"):
        exec("from fabric_rl.agents import Nope")


@pytest.mark.parametrize(
    ("text", "here"),
    [
        ("fabric_rl.agents.PPOLightningAgent", "agents.PPOLightningAgent"),
        ("env: {class_path: fabric_rl.envs.RocketSimPool}", "env: {class_path: envs.RocketSimPool}"),
        ("fabric_rl.GAE, agents.X, my.fabric_rl.agents.X", "fabric_rl.GAE, agents.X, my.fabric_rl.agents.X"),
        ("runs/fabric_rl.agents.X fabric_rl.agents.X/a", "runs/fabric_rl.agents.X fabric_rl.agents.X/a"),
    ],
)
def test_class_paths_are_spelt_as_in_this_installation(text, here):
    assert spelt_here(text) == here


def test_files_have_the_same_path_everywhere():
    assert class_path(PPOLightningAgent) == "agents.ppo.PPOLightningAgent"
    assert class_path(StartArgs) == "fabric_rl.args.StartArgs"
    assert class_path(type("X", (), {"__module__": "fabric_rl.agents.ppo"})) == "agents.ppo.X"
    assert shipped("configs").is_dir() and shipped("template").is_dir()
