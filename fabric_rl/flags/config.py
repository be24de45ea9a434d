"""The environment and the agent of a configuration file, for commands that do not train."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import yaml
from jsonargparse import ArgumentError

from fabric_rl.flags.messages import one_line
from fabric_rl.flags.parser import FlagParser, normalise
from fabric_rl.types import AgentFactory, EnvFactory


def load_env(config: str | None, flags: Sequence[str] = (), default: str = "") -> EnvFactory:
    """What builds the `env` of a configuration for `train_fabric.py`.

    Args:
        config: The YAML file; None for `default` with its own settings.
        flags: Command-line flags `--env...` that change the settings.
        default: Class path of the environment without a configuration, or of one that names none.

    Raises:
        ValueError: The file cannot be read, or its settings or the flags are wrong; one line.
    """
    section: Any = None
    if config is not None:
        settings = _read(config)
        if settings.get("env_id") is not None:
            raise ValueError(f"--config {config}: env_id {settings['env_id']} is another environment; this needs env")
        section = settings.get("env")
    return cast(EnvFactory, _factory("env", EnvFactory, {"class_path": default} if section is None else section, flags))


def load_agent_factory(config: str, default: str) -> AgentFactory:
    """What builds the `agent` of a configuration for `train_fabric.py`.

    Args:
        config: The YAML file.
        default: Class path of the agent of a configuration that names none.

    Raises:
        ValueError: The file cannot be read, or its settings are wrong; one line.
    """
    section = _read(config).get("agent")
    return cast(AgentFactory, _factory("agent", AgentFactory, {"class_path": default} if section is None else section))


def _read(config: str) -> dict[str, Any]:
    try:
        settings = yaml.safe_load(Path(config).read_text(encoding="utf-8")) or {}
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise ValueError(f"--config {config}: {one_line(str(error))}") from error
    if not isinstance(settings, dict):
        raise ValueError(f"--config {config}: this is no YAML file of settings")
    return settings


def _factory(name: str, kind: Any, section: Any, flags: Sequence[str] = ()) -> Any:  # noqa: ANN401 - as jsonargparse's
    """What jsonargparse makes of a section of a configuration."""
    section = {"class_path": section} if isinstance(section, str) else section
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.append(here)  # as `python train_fabric.py` in this folder: classes of the user's own
    parser = FlagParser(prog="fabric-rl", exit_on_error=False)
    parser.add_argument(f"--{name}", type=kind)
    try:
        found = parser.parse_args([f"--{name}={json.dumps(section)}", *normalise(flags, ())])
        return parser.instantiate(found)[name]
    except (ArgumentError, ValueError, TypeError, OSError, ImportError) as error:
        raise ValueError(one_line(str(error))) from error
