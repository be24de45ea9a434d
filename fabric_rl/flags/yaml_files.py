"""YAML files of settings, which may be a stranger's."""

from pathlib import Path
from typing import Any

import yaml

_MOST, _DEEPEST = 100_000, 100
"""Settings of a file, and levels in it, that nobody has."""


def read_yaml(path: str | Path) -> Any:  # noqa: ANN401 - whatever the file holds
    """What a YAML file holds.

    Raises:
        OSError, UnicodeDecodeError, yaml.YAMLError: It cannot be read.
        ValueError: It would never end, since parts of it hold themselves or one another many times.
    """
    refused = ValueError(f"--config {path}: the settings are nested too deeply, hold themselves, or are too many")
    try:
        settings = yaml.safe_load(Path(path).read_text(encoding="utf-8"))
    except RecursionError as error:
        raise refused from error
    waiting, seen = [(settings, 0)], 0
    while waiting:
        value, depth = waiting.pop()
        seen += 1
        if seen > _MOST or depth > _DEEPEST:
            raise refused
        if isinstance(value, dict | list):
            waiting += [(inner, depth + 1) for inner in (value.values() if isinstance(value, dict) else value)]
    return settings
