"""Both names of the packages beside fabric_rl; tests/integration/test_wheel.py has those of an installed wheel."""

import importlib
import re

import pytest

from agents import PPOLightningAgent
from fabric_rl import StartArgs
from fabric_rl.import_names import class_path, shipped
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


def test_files_have_the_same_path_everywhere():
    assert class_path(PPOLightningAgent) == "agents.ppo.PPOLightningAgent"
    assert class_path(StartArgs) == "fabric_rl.args.StartArgs"
    assert class_path(type("X", (), {"__module__": "fabric_rl.agents.ppo"})) == "agents.ppo.X"
    assert shipped("configs").is_dir() and shipped("template").is_dir()
