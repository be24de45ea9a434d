"""Configurations that come with fabric-rl."""

import os
import re
from collections.abc import Sequence
from pathlib import PurePath

from fabric_rl.base.text import did_you_mean
from fabric_rl.import_names import shipped

PRESETS = shipped("configs")
DEFAULT_CONFIG = PRESETS / "rocket_1v1.yaml"
"""Of `train_fabric.py` and `fabric-rl clone` without `--config`."""


def preset_names() -> list[str]:
    """Of all presets."""
    return sorted(path.stem for path in PRESETS.glob("*.yaml"))


def file_of(path: str | os.PathLike[str]) -> str:
    """A file as it is named if it is there; else one that comes with fabric-rl, if it has such a one.

    `cartpole`, `cartpole.yaml` and `configs/cartpole.yaml` are names of the same preset.
    """
    parts = PurePath(path).parts
    inside = PRESETS.joinpath(*parts[parts[:1] == ("configs",) :])
    found = () if ".." in parts else (path, inside, f"{inside}.yaml")
    return next((str(file) for file in found if os.path.isfile(file)), str(path))


def with_files(words: Sequence[str]) -> list[str]:
    """The words of a command line with the file of each preset that they name; a ValueError for a file there is not."""
    found, value = list(words), False
    for i, word in enumerate(words):
        name, equals, own = word.partition("=")
        if value or (equals and name == "--config"):
            file = file_of(given := word if value else own)
            if re.fullmatch(r"[\w./\\-]+", file) and not os.path.exists(file):
                names = preset_names()
                hint = f"{did_you_mean(given, names)}; presets: {', '.join(names)}".replace("?;", "?")
                raise ValueError(f"--config {given}: no such file{hint}")
            found[i] = f"{'' if value else '--config='}{file}"
        value = word == "--config"
    return found
