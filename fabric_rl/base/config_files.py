"""Configuration files, which may be a stranger's: what they hold, and where a wrong setting stands in them."""

import json
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import yaml
from jsonargparse import ArgumentError

from fabric_rl.base.argv import config_files, names_of, value_of, values_of, without
from fabric_rl.base.messages import one_line

_MOST, _DEEPEST, _LONGEST, _LARGEST = 100_000, 100, 10_000, 2**20
"""Settings of a file, levels in it, letters of a setting and bytes of a file that nobody has."""
_OF_A_CLASS = ("class_path", "init_args", "dict_kwargs")


def read_yaml(path: str | Path) -> Any:  # noqa: ANN401 - whatever the file holds
    """Return the content of a YAML file.

    Raises:
        OSError, UnicodeDecodeError: It cannot be read.
        ValueError: It is no YAML, has a setting of a class in the wrong place, or would never end, since parts of it
            hold themselves or one another many times.
    """
    refused = ValueError(f"--config {path}: the settings are nested too deeply, hold themselves, or are too many")
    if not Path(path).is_file() and Path(path).exists():
        raise ValueError(f"--config {path}: this is no file")
    if Path(path).stat().st_size > _LARGEST:
        raise refused
    try:
        loader = yaml.SafeLoader(Path(path).read_text(encoding="utf-8"))
        node = loader.get_single_node()
        ends = node is None or _ends(node)
        settings = loader.construct_document(node) if node is not None and ends else None
    except UnicodeDecodeError:
        raise
    except RecursionError as error:
        raise refused from error
    except yaml.MarkedYAMLError as error:
        line = "" if error.problem_mark is None else f", line {error.problem_mark.line + 1}"
        raise ValueError(f"--config {path}{line}: this is no YAML file of settings: {error.problem}") from error
    except (yaml.YAMLError, ValueError) as error:  # a control character; a day that there is not
        reason = " ".join(str(error).split())
        raise ValueError(f"--config {path}: this is no YAML file of settings: {reason}") from error
    if not ends:
        raise refused
    waiting = [("", settings)]
    while waiting:
        name, value = waiting.pop()
        if isinstance(value, dict) and "class_path" in value:
            for other in (other for other in value if other not in _OF_A_CLASS):
                flag = f"--{name}.{other}".replace("--.", "--")
                place = place_of(flag, path) or path
                raise ValueError(f"{flag}: belongs under init_args, not beside class_path ({place})")
        if isinstance(value, dict | list):
            inner = value.items() if isinstance(value, dict) else (("", item) for item in value)
            waiting += [(_joined(name, key), item) for key, item in inner]
    return settings


def _ends(node: Any) -> bool:  # noqa: ANN401 - YAML's nodes
    """Returns whether its size can be meant; each part counts as often as it stands there by its alias."""
    waiting, seen = [(node, 0)], 0
    while waiting:
        node, depth = waiting.pop()
        seen += 1
        if seen > _MOST or depth > _DEEPEST:
            return False
        if isinstance(node, yaml.ScalarNode) and len(node.value) > _LONGEST:
            return False
        if isinstance(node, yaml.CollectionNode):
            waiting += [
                (part, depth + 1) for each in node.value for part in (each if isinstance(each, tuple) else [each])
            ]
    return True


def place_of(flag: str, path: str | Path) -> str | None:
    """Return the place of the setting `--a.b.c` in a file, `<path>, line n`; None if the file does not have it."""
    node: Any = yaml.compose(Path(path).read_text(encoding="utf-8"), yaml.SafeLoader)
    line = None
    for name in flag.removeprefix("--").split("."):
        found = next((pair for pair in _settings_of(node) if pair[0].value == name), None)
        if found is None:
            return None
        line, node = found[0].start_mark.line + 1, found[1]
    return f"{path}, line {line}"


def _joined(name: str, key: object) -> str:
    return name if key in ("", "init_args") else f"{name}.{key}" if name else str(key)


def _settings_of(node: Any) -> Iterator[tuple[Any, Any]]:  # noqa: ANN401 - YAML's nodes
    """Nodes of name and value: of a mapping, of the settings of a class, of the components of a list."""
    if isinstance(node, yaml.SequenceNode):
        for item in node.value:
            yield from _settings_of(item) if isinstance(item, yaml.MappingNode) else ()
    elif isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            yield key, value
            if key.value == "init_args" and isinstance(value, yaml.MappingNode):
                yield from value.value


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
    """Add file and line to the message of a block that refuses a setting which stands in a file.

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


def configurations(flags: Sequence[str]) -> list[dict[str, Any]]:
    """Return the settings of all files, or texts, after `--config`; unreadable ones are left out, and told later.

    Raises:
        ValueError: One would never end.
    """
    found = []
    for value in filter(None, values_of(flags, "--config")):
        with suppress(OSError, UnicodeDecodeError, yaml.YAMLError):
            found.append(read_yaml(value) if os.path.isfile(value) else yaml.safe_load(value))
    return [settings for settings in found if isinstance(settings, dict)]
