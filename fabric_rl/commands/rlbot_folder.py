"""What `fabric-rl export --format rlbot` adds to a policy: the folder becomes a bot for RLBot v5."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

import numpy as np
import yaml
from rlgym.rocket_league import common_values

from envs.actions import ActionParser
from envs.adapters.rlbot_packets import UNSENT, format_team_sizes
from envs.obs import ObsBuilder
from envs.pool.rocket_pool import RocketSimPool
from envs.state.game_state import GameState
from fabric_rl.base import settings
from fabric_rl.base.files import json_text, write_bytes, write_text
from fabric_rl.import_names import INSTALLED, shipped, spelt_here

BOT_FILES = ("bot.py", "bot.json", "bot.toml", "loadout.toml", "requirements.txt", "README.txt")
_MODULES = ("obs/*.py", "actions/*.py", "state/*.py", "checks.py", "component.py", "sim/__init__.py")
_BASE = ("__init__.py", "settings.py", "state_schema.py")
_ADAPTERS = ("adapters/__init__.py", "adapters/rlbot_packets.py", "adapters/rlbot_bot.py")
_LEFT_OUT = ("__main__.py", "fields.py")
_OURS = re.compile(rb"(?<![\w.])fabric_rl\.(?=envs\b)")
_BOT = '''"""The bot that RLBot starts; `python bot.py --check` tells whether everything that it needs is here."""

import json
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "lib"))

try:
    from envs.adapters.rlbot_bot import run
    from play import Policy
except ModuleNotFoundError as missing:
    sys.exit(f"{missing.name} is missing; first: python -m pip install -r requirements.txt")

if __name__ == "__main__":
    run(Policy(HERE), json.loads((HERE / "bot.json").read_text(encoding="utf-8")), "--check" in sys.argv)
'''
_CONTROLS = '''"""In the game controls are rows of numbers: nobody needs RocketSim's."""


def make_controls(row):
    return row
'''
_TOML = """[settings]
agent_id = {}
name = {}
loadout_file = "loadout.toml"
run_command = "python bot.py"
run_command_linux = "python3 bot.py"

[details]
description = {}
fun_fact = ""
source_link = ""
developer = ""
language = "Python"
tags = []
"""
_LOADOUT = """[blue_loadout]
car_id = 23  # Octane: the car of the simulation

[orange_loadout]
car_id = 23
"""
_README = """{} is a Rocket League bot for RLBot v5, trained with fabric-rl for {}.

1. Install Python 3.11 or later (python.org; on Windows tick "Add python.exe to PATH") and RLBot v5 (rlbot.org).
2. In this folder:   python -m pip install -r requirements.txt
3. Then:             python bot.py --check       which says "ready" when everything is here
4. In RLBot's launcher: Add, Load file, choose bot.toml, give it an opponent, start the match.

It is called {} in matches; the name is in bot.toml.
"""
_REQUIREMENTS = "gymnasium>=1.1\nnumpy>=1.26\nonnxruntime>=1.18\nrlbot>=2.0.0b56,<3\n"


def check_rlbot(what: str) -> None:
    """An ImportError of one line, if RLBot cannot be used here."""
    if sys.version_info < (3, 11):
        raise ImportError(f"{what} needs Python 3.11 or later, as RLBot does; this is {sys.version.split()[0]}")
    if find_spec("rlbot") is None:
        raise ImportError(f"{what} needs rlbot; pip install --pre rlbot")


def write_bot(
    folder: Path, name: str, settings: str, env: RocketSimPool, run: str, team_sizes: Sequence[Sequence[int]]
) -> None:
    """Makes a bot of a folder with an exported policy, and starts it once to see that it can.

    Args:
        folder: With all files of the policy.
        name: Of the bot.
        settings: YAML that says how `env` is built.
        env: What the agent plays in.
        run: What the agent comes from.
        team_sizes: (blue, orange) that it knows.

    Raises:
        ValueError: Its observations or actions need what the game does not send, or cannot be built in the folder.
    """
    asked = unsent(env)
    if asked:
        raise ValueError(f"--format rlbot: the game does not send what this agent sees or acts by: {', '.join(asked)}")
    given = _pool_settings(yaml.safe_load(settings)["env"])
    classes, agent_id = set[str](), f"fabric-rl/{name}"
    parts = (("obs", "envs.DefaultObs.rlgym_guide"), ("action", "envs.LookupTable"))
    said = {part: _portable(given.get(part) or {"class_path": default}, classes) for part, default in parts}
    write_text(folder / "bot.json", json_text({"agent_id": agent_id} | said))
    texts = (json.dumps(text, ensure_ascii=False) for text in (agent_id, name, f"Trained with fabric-rl: {run}"))
    write_text(folder / "bot.toml", _TOML.format(*texts).replace("\x7f", r"\u007f"))  # which JSON has as it is
    write_text(folder / "README.txt", _README.format(name, format_team_sizes(team_sizes), name))
    for file, text in (("bot.py", _BOT), ("loadout.toml", _LOADOUT), ("requirements.txt", _REQUIREMENTS)):
        write_bytes(folder / file, _alone(text.encode()))
    _write_library(folder / "lib", classes)
    clean = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    line = [sys.executable, "bot.py", "--check"]
    tried = subprocess.run(line, cwd=folder, env=clean, capture_output=True, text=True, timeout=300)
    if tried.returncode:
        raise ValueError(f"--format rlbot: the bot does not start: {(tried.stderr.strip() or '?').splitlines()[-1]}")
    for cache in folder.rglob("__pycache__"):
        shutil.rmtree(cache)


class _Watched(GameState):
    """A state that notes which of `UNSENT` it is asked for."""

    asked: set[str]

    def __getattribute__(self, name: str) -> Any:  # noqa: ANN401
        if name in UNSENT:
            self.asked.add(name)
        return super().__getattribute__(name)


def unsent(env: RocketSimPool) -> list[str]:
    """What observations and actions read of a state that RLBot's packets do not tell, in the order of `UNSENT`."""
    pool = env.state
    state = _Watched(pool.num_arenas, pool.num_blue, pool.num_orange, pool.present)
    state.asked = set()
    state.load_state_dict(pool.state_dict())
    every, space = np.ones(pool.num_arenas, np.bool_), env.single_action_space
    for part in (env.obs_builder, env.action_parser):
        part.reset(every, state)
    shape = (*pool.present.shape, *(env.single_observation_space.shape or ()))
    env.obs_builder.build(state, np.empty(shape, np.float32))
    env.action_parser.mask(state)
    env.action_parser.parse(np.zeros((pool.present.size, *(space.shape or ())), space.dtype), state)
    return [name for name in UNSENT if name in state.asked]


def _pool_settings(section: Any) -> dict[str, Any]:  # noqa: ANN401 - of a configuration
    """The settings of the pool in an `env` section, which may lie in those of a `ProcessPool`."""
    given = (section.get("init_args") or {}) if isinstance(section, dict) else {}
    return _pool_settings(given["factory"]) if "factory" in given else given


def _portable(section: Any, classes: set[str]) -> Any:  # noqa: ANN401 - of a configuration
    """The same with class paths `module:name` of where things are defined; notes the modules in `classes`."""
    if isinstance(section, list):
        return [_portable(each, classes) for each in section]
    if not isinstance(section, dict):
        return section
    said = {key: _portable(value, classes) for key, value in section.items()}
    if "class_path" in section:
        found = resolve_name(spelt_here(section["class_path"]))
        if not issubclass(getattr(found, "__self__", found), (ObsBuilder, ActionParser)):
            raise ValueError(f"--format rlbot: {section['class_path']} is no envs.ObsBuilder or envs.ActionParser")
        module = found.__module__
        if INSTALLED and module.partition(".")[0] == "envs":
            raise ValueError(
                f"--format rlbot: {module}: in a bot's folder envs is fabric-rl's; rename your own package"
            )
        module = module.removeprefix("fabric_rl.")
        classes.add(module)
        said["class_path"] = f"{module}:{found.__qualname__}"
    return said


def _alone(source: bytes) -> bytes:
    """Source with imports of `envs`, as the package is called in the folder, wherever fabric-rl had it."""
    return _OURS.sub(b"", source)


def _copy(source: str | Path, target: str | Path) -> None:
    """Copies a file; a module as it runs `_alone`."""
    content = Path(source).read_bytes()
    Path(target).write_bytes(_alone(content) if Path(source).suffix == ".py" else content)


def _write_library(lib: Path, classes: set[str]) -> None:
    """The source that the bot needs: of this project as it is, of RLGym its numbers, of others what has `classes`."""
    home = shipped("envs")
    copied = {file for pattern in (*_MODULES, *_ADAPTERS) for file in home.glob(pattern) if file.name not in _LEFT_OUT}
    for file in copied:
        target = lib / "envs" / file.relative_to(home)
        target.parent.mkdir(parents=True, exist_ok=True)
        _copy(file, target)
    base = lib / "fabric_rl" / "base"
    base.mkdir(parents=True)
    write_text(base.parent / "__init__.py", "")
    for name in _BASE:
        _copy(Path(settings.__file__).with_name(name), base / name)
    write_text(lib / "envs" / "sim" / "arena.py", _CONTROLS)
    exported = _alone((home / "__init__.py").read_bytes()).decode()
    exports = re.findall(r"^from envs\.(?:actions|obs|state\.\w+) import .*$", exported, re.MULTILINE)
    write_text(lib / "envs" / "__init__.py", "\n".join(exports) + "\n")
    numbers = [f"{name} = {value!r}" for name, value in vars(common_values).items() if name.isupper()]
    league = lib / "rlgym" / "rocket_league"
    league.mkdir(parents=True)
    for file in (league.parent / "__init__.py", league / "__init__.py"):
        file.touch()
    write_text(league / "common_values.py", "\n".join(numbers) + "\n")
    for module in {name.partition(".")[0] for name in classes} - {"envs"}:
        source = Path(str(import_module(module).__file__))
        if source.name == "__init__.py":
            ignored = shutil.ignore_patterns("__pycache__")
            shutil.copytree(source.parent, lib / module, ignore=ignored, copy_function=_copy)
        else:
            _copy(source, lib / source.name)
