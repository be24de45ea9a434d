"""The words of a command line: names and values of its flags, and the presets that it may name."""

import os
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import PurePath
from typing import Any, get_args, get_type_hints

from fabric_rl.base.text import did_you_mean
from fabric_rl.import_names import shipped

PRESETS = shipped("configs")
DEFAULT_CONFIG = PRESETS / "rocket_1v1.yaml"
"""Of `train_fabric.py` and `fabric-rl clone` without `--config`."""


def preset_names() -> list[str]:
    """Return the names of all presets."""
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


def normalise(argv: Sequence[str], switches: Collection[str]) -> list[str]:
    """Dashes in flag names become underscores, and a bare flag that is one of `switches` means true."""
    flags = []
    for i, word in enumerate(argv):
        if word.startswith("--"):
            name, equals, value = word.partition("=")
            name = "--" + name[2:].replace("-", "_")
            bare = not equals and (i + 1 == len(argv) or argv[i + 1].startswith("--"))
            word = f"{name}=true" if bare and name in switches else name + equals + value
        flags.append(word)
    return flags


def switches(*owners: Any) -> set[str]:  # noqa: ANN401 - functions and classes
    """Flags of parameters and fields that may be true, which is what the bare flag means."""
    hints = [hint for owner in owners for hint in get_type_hints(owner).items()]
    return {f"--{name}" for name, hint in hints if hint is bool or bool in get_args(hint)}


def with_classes_of_help(flags: Sequence[str], classes: Mapping[str, str]) -> list[str]:
    """A bare `--NAME.help` explains the class that the flags choose with `--NAME`, or else that of `classes`.

    Args:
        flags: The command line.
        classes: Class path for flags such as `--agent`.
    """
    completed = list(flags)
    for i, word in enumerate(flags):
        name = word.removesuffix(".help")
        if name != word and name in classes and (i + 1 == len(flags) or flags[i + 1].startswith("--")):
            chosen = value_of(flags[:i], name)
            named = chosen is not None and re.fullmatch(r"[\w.]+", chosen)
            completed[i] = f"{word}={chosen if named else classes[name]}"
    return completed


def names_of(flags: Sequence[str]) -> list[str]:
    """The flags' names without their values, each once."""
    return list(dict.fromkeys(word.partition("=")[0] for word in flags if word.startswith("--")))


def value_of(flags: Sequence[str], name: str) -> str | None:
    """The value of the last flag called `name`; None without it or its value."""
    values = list(values_of(flags, name))
    return values[-1] if values else None


def config_files(flags: Sequence[str]) -> list[str]:
    """The files that are given with `--config`, in order."""
    return [value for value in values_of(flags, "--config") if value and os.path.isfile(value)]


def values_of(flags: Sequence[str], name: str) -> Iterator[str | None]:
    """Yield the value of each flag called `name`, None for one without; of `--config`, the file of a preset."""
    for word, following in zip(flags, [*flags[1:], None], strict=False):
        flag, equals, own = word.partition("=")
        if flag == name:
            value = own if equals else following
            yield file_of(value) if value and name == "--config" else value


def without(flags: Sequence[str], names: Collection[str]) -> list[str]:
    """The flags without those called `names` and without their values."""
    kept: list[str] = []
    drop_value = False
    for word in flags:
        name, equals, _ = word.partition("=")
        if word.startswith("--"):
            drop_value = name in names and not equals
            if name in names:
                continue
        elif drop_value:
            drop_value = False
            continue
        kept.append(word)
    return kept
