"""Command lines: names and values of flags, and presets given in place of configuration files."""

import os
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path, PurePath
from typing import Any, get_args, get_type_hints

from fabric_rl.base.text import did_you_mean
from fabric_rl.import_names import shipped

PRESETS = shipped("configs")
PRETRAINED = Path(__file__).parents[1] / "pretrained"
"""Folder of the agents that come with fabric-rl."""
DEFAULT_CONFIG = PRESETS / "rocket_1v1.yaml"
"""Preset of `train_fabric.py` and `fabric-rl clone` without `--config`."""


def preset_names() -> list[str]:
    """Return the names of all presets."""
    return sorted(path.stem for path in PRESETS.glob("*.yaml"))


def resolve_preset(path: str | os.PathLike[str]) -> str:
    """Return the path of an existing file or of the preset with that name, or the path unchanged.

    `cartpole`, `cartpole.yaml` and `configs/cartpole.yaml` are names of the same preset.
    """
    parts = PurePath(path).parts
    inside = PRESETS.joinpath(*parts[parts[:1] == ("configs",) :])
    candidates = () if ".." in parts else (path, inside, f"{inside}.yaml")
    return next((str(file) for file in candidates if os.path.isfile(file)), str(path))


def resolve_presets(argv: Sequence[str]) -> list[str]:
    """Replace presets after `--config` with their files.

    Raises:
        ValueError: There is no such file or preset.
    """
    found = list(argv)
    for i, (before, word) in enumerate(zip(["", *argv], argv, strict=False)):
        prefix = "" if before == "--config" else "--config="
        if not word.startswith(prefix):
            continue
        given = word.removeprefix(prefix)
        file = resolve_preset(given)
        if re.fullmatch(r"[\w./\\-]+", file) and not os.path.exists(file):
            names = preset_names()
            hint = f"{did_you_mean(given, names)}; presets: {', '.join(names)}".replace("?;", "?")
            raise ValueError(f"--config {given}: no such file{hint}")
        found[i] = prefix + file
    return found


def normalize_flags(argv: Sequence[str], switches: Collection[str]) -> list[str]:
    """Use underscores in flag names, and write a bare flag `--flag` of `switches` as `--flag=true`.

    Parts of a name that begin with a capital letter are names of phases and classes, and stay.
    """
    flags = []
    for word, following in zip(argv, [*argv[1:], "--"], strict=False):
        if word.startswith("--"):
            name, equals, value = word.partition("=")
            parts = name[2:].split(".")
            name = "--" + ".".join(part if part[:1].isupper() else part.replace("-", "_") for part in parts)
            bare = name in switches and not equals and following.startswith("--")
            word = f"{name}=true" if bare else name + equals + value
        flags.append(word)
    return flags


def boolean_flags(*owners: Any) -> set[str]:  # noqa: ANN401 - functions and classes
    """Return the flags of boolean parameters and fields; without a value, such a flag means true."""
    hints = [hint for owner in owners for hint in get_type_hints(owner).items()]
    return {f"--{name}" for name, hint in hints if hint is bool or bool in get_args(hint)}


def complete_help_flags(flags: Sequence[str], classes: Mapping[str, str]) -> list[str]:
    """Add a class path to each bare `--NAME.help`: the value of the last `--NAME` before it, or the path in `classes`.

    Args:
        flags: Command line.
        classes: Default class path of flags such as `--agent`.
    """
    completed = list(flags)
    for i, (word, following) in enumerate(zip(flags, [*flags[1:], "--"], strict=False)):
        name = word.removesuffix(".help")
        if name != word and name in classes and following.startswith("--"):
            chosen = last_flag_value(flags[:i], name) or ""
            is_path = re.fullmatch(r"[\w.]+", chosen)
            completed[i] = f"{word}={chosen if is_path else classes[name]}"
    return completed


def flag_names(flags: Sequence[str]) -> list[str]:
    """Return the names of the flags without their values and without duplicates."""
    return list(dict.fromkeys(word.partition("=")[0] for word in flags if word.startswith("--")))


def flag_values(flags: Sequence[str], name: str) -> Iterator[str | None]:
    """Yield the value of each flag `name`, None for a bare one. Presets after `--config` become their files."""
    for word, following in zip(flags, [*flags[1:], None], strict=False):
        flag, equals, own = word.partition("=")
        if flag == name:
            value = own if equals else following
            yield resolve_preset(value) if value and name == "--config" else value


def last_flag_value(flags: Sequence[str], name: str) -> str | None:
    """Return the value of the last flag `name`, or None if the flag is bare or missing."""
    return [None, *flag_values(flags, name)][-1]


def config_files(flags: Sequence[str]) -> list[str]:
    """Return the existing files given with `--config`, in order."""
    return [value for value in flag_values(flags, "--config") if value and os.path.isfile(value)]


def remove_flags(flags: Sequence[str], names: Collection[str]) -> list[str]:
    """Return `flags` without the flags in `names` and their values."""
    return [
        word
        for before, word in zip(["", *flags], flags, strict=False)
        if word.partition("=")[0] not in names and (before not in names or word.startswith("--"))
    ]
