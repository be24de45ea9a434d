"""The environment of a configuration file, for commands that look at it without training."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml
from jsonargparse import ArgumentError

from fabric_rl.flags import FlagParser, normalise, one_line
from fabric_rl.types import EnvFactory


def load_env(config: str | None, flags: Sequence[str] = (), default: str = "") -> EnvFactory:
    """What builds the `env` of a configuration for `train_fabric.py`.

    Args:
        config: The YAML file; None for `default` with its own settings.
        flags: Command-line flags `--env...` that change the settings.
        default: Class path of the environment without a configuration, or of one that names none.

    Raises:
        ValueError: The file cannot be read, or its settings or the flags are wrong; one line.
    """
    section: Any = {"class_path": default}
    if config is not None:
        try:
            settings = yaml.safe_load(Path(config).read_text(encoding="utf-8")) or {}
        except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
            raise ValueError(f"--config {config}: {one_line(str(error))}") from error
        if not isinstance(settings, dict):
            raise ValueError(f"--config {config}: this is no YAML file of settings")
        if settings.get("env_id") is not None:
            raise ValueError(f"--config {config}: env_id {settings['env_id']} is another environment; this needs env")
        section = settings.get("env", section)
        section = {"class_path": section} if isinstance(section, str) else section
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.append(here)  # as `python train_fabric.py` in this folder: classes of the user's own
    parser = FlagParser(prog="fabric-rl", exit_on_error=False)
    parser.add_argument("--env", type=EnvFactory)
    try:
        found = parser.parse_args([f"--env={json.dumps(section)}", *normalise(flags, ())])
        env: EnvFactory = parser.instantiate(found).env
    except (ArgumentError, ValueError, TypeError, OSError, ImportError) as error:
        raise ValueError(one_line(str(error))) from error
    return env
