"""YAML files of settings, which may be a stranger's."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from fabric_rl.import_names import spelt_here

_MOST, _DEEPEST, _LONGEST, _LARGEST = 100_000, 100, 10_000, 2**20
"""Settings of a file, levels in it, letters of a setting and bytes of a file that nobody has."""
_OF_A_CLASS = ("class_path", "init_args", "dict_kwargs")


def read_yaml(path: str | Path) -> Any:  # noqa: ANN401 - whatever the file holds
    """What a YAML file holds.

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
        loader = yaml.SafeLoader(spelt_here(Path(path).read_text(encoding="utf-8")))
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
    """Whether it is of a size that can be meant, each part counted as often as it stands there by its alias."""
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
    """Where a file of settings has the one that `--a.b.c` names: `<path>, line n`; None where it has none of it."""
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
