"""Sections of a configuration file, for commands that do not train."""

import json
from collections.abc import Sequence
from typing import Any

import yaml

from fabric_rl.flags.messages import one_line
from fabric_rl.flags.parser import value_of, without
from fabric_rl.flags.yaml_files import read_yaml

_OF_ENV_ID = "envs.GymnasiumEnvs"
"""What `--env_id` and `--num_envs` are settings of."""


def section_of(config: str, name: str) -> Any:  # noqa: ANN401 - whatever the file holds
    """The settings of `env` or `agent` in a configuration for `train_fabric.py`; None where it does not name one.

    An `env_id` takes the place of the `env`, as it does in a training.

    Raises:
        ValueError: The file cannot be read; one line.
    """
    try:
        settings = read_yaml(config) or {}
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise ValueError(f"--config {config}: {one_line(str(error))}") from error
    if not isinstance(settings, dict):
        raise ValueError(f"--config {config}: this is no YAML file of settings")
    if name == "env" and settings.get("env_id") is not None:
        names = ("env_id", "num_envs")
        own = {name: settings[name] for name in names if settings.get(name) is not None}
        return {"class_path": _OF_ENV_ID, "init_args": own}
    return settings.get(name)


def as_flag(name: str, section: Any) -> str:  # noqa: ANN401 - whatever the file holds
    """The flag that says the same: a class path, or a class with its settings."""
    return f"--{name}={section if isinstance(section, str) else json.dumps(section)}"


def with_env_of_config(flags: Sequence[str]) -> list[str]:
    """Puts the `env` of the file after `--config` in its place, for flags `--env...`; errors as `section_of`."""
    config = value_of(flags, "--config")
    if config is None:
        return list(flags)
    section, others = section_of(config, "env"), without(flags, ["--config"])
    return others if section is None else [others[0], as_flag("env", section), *others[1:]]
