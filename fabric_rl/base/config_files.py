"""Configuration files, including untrusted ones: safe reading, sections, and line numbers in errors."""

import json
import os
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import yaml
from jsonargparse import ArgumentError

from fabric_rl.base.argv import config_files, flag_names, flag_values, remove_flags
from fabric_rl.base.files import MOST_CONFIG_BYTES, read_text
from fabric_rl.base.foreign_names import is_ml_agents
from fabric_rl.base.messages import one_line

_MAX_NODES, _MAX_DEPTH, _MAX_LETTERS = 100_000, 100, 10_000
"""Limits of a file, far above those of real configurations; `_MAX_LETTERS` applies to each name and value."""
_FLAG = re.compile(r"--[A-Za-z][\w.]*")
_SETTINGS_OF_ENV_ID = {"env_id": "env_id", "num_envs": "num_envs", "env_kwargs": "settings", "wrappers": "wrappers"}
"""Flag of `train_fabric.py` -> setting of `envs.GymnasiumEnvs`."""


class _Dumper(yaml.SafeDumper):  # type: ignore[misc]  # PyYAML has no types
    """Dumper that quotes texts such as `1e-4`, which PyYAML reads as text, but the parser as a number."""


_Dumper.add_implicit_resolver("tag:yaml.org,2002:float", re.compile(r"[-+]?[\d_.]+[eE][-+]?\d+$"), [*"-+.0123456789"])


def dump_yaml(settings: Any) -> str:  # noqa: ANN401 - any YAML
    """Return settings as YAML, in their order."""
    text: str = yaml.dump(settings, Dumper=_Dumper, default_flow_style=False, allow_unicode=True, sort_keys=False)
    return text


def read_yaml(path: str | Path, foreign: bool = False) -> Any:  # noqa: ANN401 - any YAML
    """Return the content of a YAML file.

    Args:
        path: The file.
        foreign: Accept files of Unity ML-Agents, too.

    Raises:
        OSError: The file cannot be read.
        ValueError: The file is not UTF-8 text or not YAML, has a setting of a class next to `class_path` instead of
            under `init_args`, or is too large: each alias counts as a copy of its anchor, so a small file may expand to
            billions of settings; or, unless `foreign`, it is a file of ML-Agents.
    """
    path = Path(path)
    if path.exists() and not path.is_file():
        raise ValueError(f"--config {path} is not a file")
    too_large = f"--config {path}: the settings are too many, are nested too deeply, or contain themselves"
    if path.stat().st_size > MOST_CONFIG_BYTES:
        raise ValueError(too_large)
    try:
        loader = yaml.SafeLoader(read_text(path, MOST_CONFIG_BYTES))
        node = loader.get_single_node()
        small = _is_small(node)
        settings = loader.construct_document(node) if node is not None and small else None
    except UnicodeDecodeError as error:
        raise ValueError(f"--config {path}: this is not UTF-8 text; save the file as UTF-8") from error
    except RecursionError as error:
        raise ValueError(too_large) from error
    except (yaml.YAMLError, ValueError) as error:  # ValueError: an impossible date
        mark = getattr(error, "problem_mark", None)
        line, reason = f", line {mark.line + 1}" if mark else "", getattr(error, "problem", None) or str(error)
        raise ValueError(f"--config {path}{line}: this is not a YAML file of settings: {one_line(reason)}") from error
    if not small:
        raise ValueError(too_large)
    _refuse_misplaced_settings(node, str(path))
    if not foreign and is_ml_agents(settings):
        raise ValueError(
            f"--config {path}: this is a file of Unity ML-Agents; convert it: fabric-rl import {path} --env_id ID "
            "--out ours.yaml"
        )
    return settings


def _is_small(node: yaml.Node | None) -> bool:
    waiting, count = [(node, 0)], 0
    while waiting:
        node, depth = waiting.pop()
        count += 1
        if count > _MAX_NODES or depth > _MAX_DEPTH:
            return False
        if isinstance(node, yaml.ScalarNode) and len(node.value) > _MAX_LETTERS:
            return False
        if isinstance(node, yaml.CollectionNode):
            parts = [part for each in node.value for part in (each if isinstance(each, tuple) else [each])]
            waiting += [(part, depth + 1) for part in parts]
    return True


def _refuse_misplaced_settings(node: yaml.Node | None, path: str, flag: str = "-") -> None:
    if isinstance(node, yaml.SequenceNode):
        for item in node.value:
            _refuse_misplaced_settings(item, path, flag)
    elif isinstance(node, yaml.MappingNode):
        of_class = "class_path" in (key.value for key, _ in node.value)
        for key, value in node.value:
            own = flag if key.value == "init_args" else f"{flag}.{key.value}".replace("-.", "--")
            if of_class and key.value not in ("class_path", "init_args", "dict_kwargs", "<<"):
                place = f"{path}, line {key.start_mark.line + 1}"
                raise ValueError(f"{own}: this setting belongs under init_args, not next to class_path ({place})")
            _refuse_misplaced_settings(value, path, own)


def place_of(flag: str, path: str) -> str | None:
    """Return the location of the setting `--a.b.c` in a file, `<path>, line n`; None if the file does not have it."""
    node: yaml.Node | None = yaml.compose(read_text(path, MOST_CONFIG_BYTES), yaml.SafeLoader)
    line = None
    for name in flag.removeprefix("--").split("."):
        found = next((pair for pair in _pairs(node) if pair[0].value == name), None)
        if found is None:
            return None
        line, node = found[0].start_mark.line + 1, found[1]
    return f"{path}, line {line}"


def _pairs(node: yaml.Node | None) -> Iterator[tuple[yaml.Node, yaml.Node]]:
    """Yield (name, value) of the settings of a mapping, of a class, or of all components in a list."""
    if isinstance(node, yaml.SequenceNode):
        for item in node.value:
            if isinstance(item, yaml.MappingNode):
                yield from _pairs(item)
    elif isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            yield key, value
            if key.value == "init_args" and isinstance(value, yaml.MappingNode):
                yield from value.value


def refuse_code_beside(config: Path, settings: Any) -> None:  # noqa: ANN401 - any YAML
    """Check that settings of a run or an export name no module in the folder that holds it: both may be a stranger's.

    The current folder is on `sys.path`, so a run in `downloads/their_bot` could name `downloads.their_bot.agent`.

    Raises:
        ValueError: They do.
    """
    texts = [*_texts(settings)]
    for entry in {*sys.path, os.getcwd()}:
        for root, file in ((Path(entry).absolute(), config.absolute()), (Path(entry).resolve(), config.resolve())):
            if not file.is_relative_to(root) or root / "fabric_rl" in file.parents:  # shipped agents are ours
                continue
            top, *deeper = file.relative_to(root).parts
            names = [re.escape(each.name.partition(".")[0]) for each in (root / top).glob("*")] if deeper else []
            module = rf"(?:(?<![\w.])|(?<=fabric_rl\.)){re.escape(top)}\.(?:{'|'.join(names)})[.:][\w.]*"
            for found in filter(None, (re.search(module, text) for text in texts if names)):
                raise ValueError(
                    f"{config}: {found[0]} is code in {root / top}, the folder that also holds this run or export; as "
                    "it could be a stranger's, it is not imported. If it is yours, move it, or use another --runs_dir"
                )


def _texts(settings: Any) -> Iterator[str]:  # noqa: ANN401 - any YAML
    """Yield all names and values that are texts, also of YAML within a text, each once."""
    waiting, seen = [settings], dict[Any, Any]()  # it keeps what it has seen, or another one could get its id
    while waiting:
        each = waiting.pop()
        key = each if isinstance(each, str) else id(each)
        if key in seen:
            continue
        seen[key] = each
        if isinstance(each, str):
            yield each
            with suppress(yaml.YAMLError, ValueError, RecursionError):
                waiting.append(yaml.compose(each, yaml.SafeLoader))
        elif isinstance(each, yaml.Node):
            waiting += [each.value] if isinstance(each, yaml.ScalarNode) else each.value
        elif isinstance(each, dict):
            waiting += [*each, *each.values()]
        elif isinstance(each, (list, tuple)):  # a tuple: name and value of a node
            waiting += each


def read_sections(configs: Sequence[str], name: str) -> list[Any]:
    """Return the section `env` or `agent` of each file, or None; later ones override earlier ones.

    An `env_id` in any of them replaces every `env`, as in training.

    Raises:
        ValueError: A file cannot be read.
    """
    files: list[dict[str, Any]] = []
    for config in configs:
        try:
            files.append(read_yaml(config) or {})
        except OSError as error:
            raise ValueError(f"--config {config}: {one_line(str(error))}") from error
        if not isinstance(files[-1], dict):
            raise ValueError(f"--config {config}: this is not a YAML file of settings")
    of_id = {key: each[key] for each in files for key in _SETTINGS_OF_ENV_ID if key in each}
    if name == "env" and of_id.get("env_id") is not None:
        own = {_SETTINGS_OF_ENV_ID[key]: value for key, value in of_id.items() if value is not None}
        return [{"class_path": "envs.GymnasiumEnvs", "init_args": own}]
    return [each.get(name) for each in files]


def to_flag(name: str, section: Any) -> str:  # noqa: ANN401 - any YAML
    """Return a section as a flag: a class path, or a class with its settings as JSON."""
    return f"--{name}={section if isinstance(section, str) else json.dumps(section)}"


def expand_config(flags: Sequence[str], names: Sequence[str], preset: str | None = None) -> list[str]:
    """Replace each `--config FILE` with the file's sections as flags; later files override earlier ones.

    Args:
        flags: Command line.
        names: Names of the sections, such as `env` and `agent`.
        preset: File for command lines with neither `--config` nor `--env`; `--agent` replaces the preset's agent.

    Raises:
        ValueError: The file cannot be read.
    """
    configs, given = [value for value in flag_values(flags, "--config") if value], flag_names(flags)
    if not configs:
        if preset is None or "--env" in given:
            return list(flags)
        configs, names = [preset], [name for name in names if f"--{name}" not in given]
    sections = [(name, each) for name in names for each in read_sections(configs, name)]
    command, *others = remove_flags(flags, ["--config"])
    return [command, *(to_flag(name, each) for name, each in sections if each is not None), *others]


@contextmanager
def locate_config_errors(argv: Sequence[str]) -> Iterator[None]:
    """Add the file and line to an error about a setting in a configuration file.

    Args:
        argv: Command line; errors about flags given on it are not changed.

    Raises:
        ValueError: The original error, with file and line.
    """
    try:
        yield
    except (ArgumentError, ValueError, TypeError) as error:
        line = one_line(str(error))
        flag = _FLAG.search(line)
        if flag is None or any(f"{flag[0]}.".startswith(f"{name}.") for name in flag_names(argv)):
            raise
        places = (place_of(flag[0], file) for file in reversed(config_files(argv)))
        place = next(filter(None, places), None)
        if place is None or place in line:
            raise
        raise ValueError(f"{line} ({place})") from error


def read_configs(flags: Sequence[str]) -> list[dict[str, Any]]:
    """Return the settings in all files and YAML texts after `--config`; the parser reports unreadable ones.

    Raises:
        ValueError: `read_yaml` refuses a file.
    """
    found = []
    for value in filter(None, flag_values(flags, "--config")):
        is_file = os.path.isfile(value)
        with suppress(OSError, yaml.YAMLError):
            settings = read_yaml(value) if is_file else yaml.safe_load(value)
            if isinstance(settings, dict):
                found.append(settings)
            elif is_file:
                raise ValueError(f"--config {value}: this is not a YAML file of settings (name: value)")
    return found
