"""Configuration files: where a wrong setting stands in them, and sections of one for commands that do not train."""

import json
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from jsonargparse import ArgumentError

from fabric_rl.flags.messages import one_line
from fabric_rl.flags.parser import config_files, names_of, value_of, without
from fabric_rl.flags.yaml_files import place_of, read_yaml

_FLAG = re.compile(r"--[a-z][\w.]*")

_OF_ENV_ID = "envs.GymnasiumEnvs"
_SETTINGS = {"env_id": "env_id", "num_envs": "num_envs", "env_kwargs": "settings", "wrappers": "wrappers"}
"""Setting of a training -> of that class."""


def section_of(config: str, name: str) -> Any:  # noqa: ANN401 - whatever the file holds
    """The settings of `env` or `agent` in a configuration for `train_fabric.py`; None where it does not name one.

    An `env_id` takes the place of the `env`, as it does in a training.

    Raises:
        ValueError: The file cannot be read; one line.
    """
    try:
        settings = read_yaml(config) or {}
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"--config {config}: {one_line(str(error))}") from error
    if not isinstance(settings, dict):
        raise ValueError(f"--config {config}: this is no YAML file of settings")
    if name == "env" and settings.get("env_id") is not None:
        own = {own: settings[name] for name, own in _SETTINGS.items() if settings.get(name) is not None}
        return {"class_path": _OF_ENV_ID, "init_args": own}
    return settings.get(name)


def as_flag(name: str, section: Any) -> str:  # noqa: ANN401 - whatever the file holds
    """The flag that says the same: a class path, or a class with its settings."""
    return f"--{name}={section if isinstance(section, str) else json.dumps(section)}"


def with_sections_of_config(flags: Sequence[str], names: Sequence[str], preset: str | None = None) -> list[str]:
    """Puts `env`, `agent` of the file after `--config` in its place, as flags; errors as `section_of`.

    Args:
        flags: The command line.
        names: Which sections.
        preset: The file where the flags name neither one nor an `env`; an `agent` of theirs replaces that of the file.
    """
    config, given = value_of(flags, "--config"), names_of(flags)
    if config is None:
        if preset is None or "--env" in given:
            return list(flags)
        config, names = preset, [name for name in names if f"--{name}" not in given]
    sections = {name: section_of(config, name) for name in names}
    others = without(flags, ["--config"])
    return [others[0], *(as_flag(name, said) for name, said in sections.items() if said is not None), *others[1:]]


@contextmanager
def naming_the_file(words: Sequence[str]) -> Iterator[None]:
    """Where the block refuses a setting that a file has, its message says which file and line.

    Args:
        words: The command line; the flags on it are no file's fault.

    Raises:
        ValueError: With the place, in place of the error; others as they are.
    """
    try:
        yield
    except (ArgumentError, ValueError, TypeError) as error:
        line = one_line(str(error))
        flag = _FLAG.search(line)
        if flag is None or any(f"{flag[0]}.".startswith(f"{name}.") for name in names_of(words)):
            raise
        places = (place_of(flag[0], file) for file in reversed(config_files(words)))
        place = next(filter(None, places), None)
        if place is None or place in line:
            raise
        raise ValueError(f"{line} ({place})") from error
