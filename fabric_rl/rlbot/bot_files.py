"""Files that turn the folder of an exported policy into a bot for RLBot v5."""

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
from string import Template
from typing import Any

import numpy as np
import yaml
from rlgym.rocket_league import common_values

from envs.actions import ActionParser
from envs.adapters.rlbot_packets import MISSING_FIELDS, format_team_sizes
from envs.obs import ObsBuilder
from envs.pool.rocket_pool import RocketSimPool
from envs.state.game_state import GameState
from fabric_rl.base import settings
from fabric_rl.base.files import json_text, write_text
from fabric_rl.import_names import INSTALLED, shipped

BOT_FILES = ("bot.py", "bot.json", "bot.toml", "loadout.toml", "requirements.txt", "README.txt")
_MODULES = ("obs/*.py", "actions/*.py", "state/*.py", "checks.py", "component.py", "sim/__init__.py")
_BASE = ("__init__.py", "settings.py", "text.py", "state_schema.py")
_ADAPTERS = ("adapters/__init__.py", "adapters/rlbot_packets.py", "adapters/rlbot_bot.py")
_LEFT_OUT = ("__main__.py", "nearest.py")
_OURS = re.compile(rb"(?<![\w.])fabric_rl\.(?=envs\b)")


def check_rlbot(what: str) -> None:
    """Raise an ImportError if RLBot cannot be used here."""
    if sys.version_info < (3, 11):
        raise ImportError(f"{what} needs Python 3.11 or later, as RLBot does; this is {sys.version.split()[0]}")
    if find_spec("rlbot") is None:
        raise ImportError(f"{what} needs rlbot; pip install --pre rlbot")


def write_bot(
    folder: Path, name: str, settings: str, env: RocketSimPool, run: str, team_sizes: Sequence[Sequence[int]]
) -> None:
    """Add the files of a bot to the folder of an exported policy, and start it once as a check.

    `settings` is the YAML that describes `env`; `team_sizes` are the (blue, orange) sizes of the training.

    Raises:
        ValueError: The bot's observations or actions need data that the game does not send, or it does not start.
    """
    if asked := fields_not_sent(env):
        raise ValueError(f"--format rlbot: the game does not send data that this agent needs: {', '.join(asked)}")
    given = _pool_settings(yaml.safe_load(settings)["env"])
    classes, agent_id = set[str](), f"fabric-rl/{name}"
    parts = (("obs", "envs.DefaultObs.rlgym_guide"), ("action", "envs.LookupTable"))
    parts_said = {part: _portable(given.get(part) or {"class_path": default}, classes) for part, default in parts}
    write_text(folder / "bot.json", json_text({"agent_id": agent_id} | parts_said))
    said = {"agent_id": agent_id, "name": name, "description": f"Trained with fabric-rl: {run}"}
    said = {key: json.dumps(text, ensure_ascii=False).replace("\x7f", r"\u007f") for key, text in said.items()}
    said |= {"bot": name, "teams": format_team_sizes(team_sizes)}
    for file in BOT_FILES:
        if file != "bot.json":
            write_text(folder / file, Template(_source(file)).substitute(said))
    _write_library(folder / "lib", classes)
    clean = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    line = [sys.executable, "bot.py", "--check"]
    tried = subprocess.run(line, cwd=folder, env=clean, capture_output=True, text=True, timeout=300)
    if tried.returncode:
        raise ValueError(f"--format rlbot: the bot does not start: {(tried.stderr.strip() or '?').splitlines()[-1]}")
    for cache in folder.rglob("__pycache__"):
        shutil.rmtree(cache)


class _Watched(GameState):
    """State that records which of the `MISSING_FIELDS` are read."""

    asked: set[str]

    def __getattribute__(self, name: str) -> Any:  # noqa: ANN401
        if name in MISSING_FIELDS:
            self.asked.add(name)
        return super().__getattribute__(name)


def fields_not_sent(env: RocketSimPool) -> list[str]:
    """Return the `MISSING_FIELDS` (absent from RLBot's packets) that observations and actions read."""
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
    return [name for name in MISSING_FIELDS if name in state.asked]


def _pool_settings(section: Any) -> dict[str, Any]:  # noqa: ANN401 - part of a configuration
    """Return the settings of the pool in an `env` section, even inside a `ProcessPool`."""
    given = (section.get("init_args") or {}) if isinstance(section, dict) else {}
    return _pool_settings(given["factory"]) if "factory" in given else given


def _portable(section: Any, classes: set[str]) -> Any:  # noqa: ANN401 - part of a configuration
    """Return a section with each class path as the `module:name` of its definition; add the modules to `classes`."""
    if isinstance(section, list):
        return [_portable(each, classes) for each in section]
    if not isinstance(section, dict):
        return section
    said = {key: _portable(value, classes) for key, value in section.items()}
    if "class_path" in section:
        found = resolve_name(section["class_path"])
        if not issubclass(getattr(found, "__self__", found), (ObsBuilder, ActionParser)):
            raise ValueError(f"--format rlbot: {section['class_path']} is not an envs.ObsBuilder or envs.ActionParser")
        module = found.__module__
        if INSTALLED and module.partition(".")[0] == "envs":
            raise ValueError(
                f"--format rlbot: {module}: in a bot's folder, envs is fabric-rl's package; rename your own package"
            )
        module = module.removeprefix("fabric_rl.")
        classes.add(module)
        said["class_path"] = f"{module}:{found.__qualname__}"
    return said


def _source(file: str) -> str:
    """Return the template for a file of a bot."""
    return Path(__file__).with_name("files").joinpath(f"{file}.in").read_text(encoding="utf-8")


def _copy(source: str | Path, target: str | Path) -> None:
    """Copy a file; in source code, rename `fabric_rl.envs` to `envs`, the package's name in a bot's folder."""
    content = Path(source).read_bytes()
    Path(target).write_bytes(_OURS.sub(b"", content) if Path(source).suffix == ".py" else content)


def _write_library(lib: Path, classes: set[str]) -> None:
    """Write the source code that the bot needs: parts of `envs`, RLGym's constants, and the modules in `classes`."""
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
    write_text(lib / "envs" / "sim" / "arena.py", _source("arena.py"))
    exported = _OURS.sub(b"", (home / "__init__.py").read_bytes()).decode()
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
