"""Both names of the packages beside fabric_rl; tests/integration/test_wheel.py has those of an installed wheel."""

import importlib
import re

import pytest

from agents import PPOLightningAgent
from fabric_rl import StartArgs
from fabric_rl.import_names import class_path, shipped, spelt_here, words_here
from tests.forks import ROOT


@pytest.mark.parametrize("name", ["agents", "agents.parts.heads", "envs", "envs.obs.default", "envs.rewards"])
def test_a_module_exists_once_under_both_names(name):
    module = importlib.import_module(name)
    assert importlib.import_module(f"fabric_rl.{name}") is module
    assert module.__name__ == module.__spec__.name == name


def test_no_module_is_imported_by_a_name_that_the_wheel_would_not_bind():
    """The build writes `import fabric_rl.envs`, which binds fabric_rl."""
    sources = [path for name in ("fabric_rl", "agents", "envs", "template") for path in (ROOT / name).rglob("*.py")]
    binds = re.compile(r"^\s*import (?:agents|envs)\b(?!.* as )", re.MULTILINE)
    assert [str(path) for path in sources if binds.search(path.read_text(encoding="utf-8"))] == []


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


@pytest.mark.parametrize(
    ("text", "there"),
    [
        ("agents.PPOLightningAgent", "fabric_rl.agents.PPOLightningAgent"),
        ("[envs.DefaultObs.rlgym_guide, 'envs.rewards.GoalReward']", None),
        ("agents.yaml", "agents.yaml"),
        ("envs.v2", "envs.v2"),
        ("agents.exported", "agents.exported"),
        ("envs.obs", "envs.obs"),  # a module is no class
        ("envs.Kickoff-2 envs.Kickoff.yaml", "envs.Kickoff-2 envs.Kickoff.yaml"),
        ("fabric_rl.envs.v2", "fabric_rl.envs.v2"),
    ],
)
def test_where_it_is_installed_only_classes_that_there_are_get_their_other_name(text, there, monkeypatch):
    monkeypatch.setattr("fabric_rl.import_names.INSTALLED", True)
    assert spelt_here(text) == (text.replace("envs.", "fabric_rl.envs.") if there is None else there)


def test_words_that_are_no_settings_stay(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("fabric_rl.import_names.INSTALLED", True)
    (tmp_path / "envs.Kickoff").touch()
    words = ["envs.Kickoff", "--out=envs.Kickoff", "--run_id", "envs.RandomState", "--config=envs.RandomState", "--obs"]
    words += ["envs.DefaultObs", "--run_id=envs.RandomState", "--resume", "--agent=agents.PPOLightningAgent"]
    assert words_here(words) == [
        *words[:6],
        "fabric_rl.envs.DefaultObs",
        *words[7:9],
        "--agent=fabric_rl.agents.PPOLightningAgent",
    ]


def test_files_have_the_same_path_everywhere():
    assert class_path(PPOLightningAgent) == "agents.ppo.PPOLightningAgent"
    assert class_path(StartArgs) == "fabric_rl.args.StartArgs"
    assert class_path(type("X", (), {"__module__": "fabric_rl.agents.ppo"})) == "agents.ppo.X"
    assert shipped("configs").is_dir() and shipped("template").is_dir()
