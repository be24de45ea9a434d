"""Reader of Unity ML-Agents' trainer, curriculum and sampler files, of the old and the new layout."""

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fabric_rl.base.config_files import place_of, read_yaml
from fabric_rl.base.foreign_names import foreign_table, is_curriculum, is_ml_agents, ml_agents_settings
from fabric_rl.base.settings import is_number
from fabric_rl.base.text import did_you_mean, escape_control_characters

_TRAINERS = ("ppo", "sac", "poca")
_WITHOUT_NAME = ("hyperparameters", "network_settings", "memory")
"""Sections of the new layout whose settings stand alone in the old one."""
_CURRICULUM = ("measure", "thresholds", "min_lesson_length", "signal_smoothing", "parameters")
_OF_RUN = ("env_settings", "engine_settings", "checkpoint_settings", "torch_settings", "debug")
_LARGEST = 1e18


@dataclass(frozen=True)
class Given:
    """A setting that was found in a file."""

    value: Any
    file: str
    names: tuple[str, ...] = ()
    """Names of the sections and of the setting, from outside in."""

    def fail(self, problem: str) -> ValueError:
        """Return an error with file and line."""
        place = place_of("--" + ".".join(self.names), self.file) or self.file
        return ValueError(f"{place}: {' > '.join(self.names)}: {problem}")

    def section(self) -> "dict[str, Given]":
        """Return the settings of a section, which may be empty; raise a ValueError if it is none."""
        if not isinstance(self.value, Mapping | None):
            raise self.fail(f"must be a section with settings, got {as_text(self.value)}")
        return {
            str(name): Given(value, self.file, (*self.names, str(name))) for name, value in (self.value or {}).items()
        }


Settings = dict[str, Given]
"""Path of a setting, as in `foreign_names.yaml` -> the setting."""


@dataclass
class Project:
    """Everything that ML-Agents' files say."""

    behaviors: dict[str, Settings] = field(default_factory=dict)
    run: Settings = field(default_factory=dict)
    """Settings of the whole run."""
    curricula: dict[str, Settings] = field(default_factory=dict)
    """Behavior -> its curriculum, in the old layout."""
    lessons: dict[str, Given] = field(default_factory=dict)
    """Parameter -> list of lessons, in the new layout."""
    samplers: dict[str, Given] = field(default_factory=dict)
    """Parameter -> sampler."""


def read_project(files: Sequence[Path]) -> Project:
    """Read files of ML-Agents; a folder stands for the files in it, as with its metacurricula.

    Raises:
        ValueError: A file is malformed or not of ML-Agents, or has a setting that ML-Agents does not know; the message
            begins with file and line.
    """
    project = Project()
    for path in files:
        inside = sorted(each for each in path.glob("*") if each.suffix in (".json", ".yaml", ".yml"))
        for file in inside if path.is_dir() else [path]:
            try:
                content = read_yaml(file, foreign=True)
            except ValueError as error:
                raise ValueError(str(error).removeprefix("--config ")) from error
            if not is_ml_agents(content):
                raise ValueError(f"{file}, line 1: this is not a trainer, curriculum or sampler file of ML-Agents")
            if is_curriculum(content):  # one file per behavior
                project.curricula[file.stem] = _curriculum(Given(content, str(file)))
            else:
                _add_file(project, Given(content, str(file)))
    return project


def _add_file(project: Project, whole: Given) -> None:
    new = not {"behaviors", "default_settings"}.isdisjoint(whole.value)
    trainers: dict[str, Given] = {}
    default = Given({}, whole.file)
    for name, given in whole.section().items():
        own = foreign_table("renamed").get(name, name)
        parts = given.section() if isinstance(given.value, dict) else {}
        while isinstance(given.value, str) and given.value in whole.value and given.value != given.names[-1]:
            given = whole.section()[given.value]  # another name for a behavior
        if own in ("default", "default_settings"):
            default = given
        elif own == "behaviors":
            trainers |= given.section()
        elif own == "curriculum":
            project.curricula |= {each: _curriculum(part) for each, part in parts.items()}
        elif own in ("environment_parameters", "parameter_randomization"):
            for each, part in parts.items():
                _add_parameter(project, each, part)
        elif own in _OF_RUN:
            project.run |= _flat(given, (own,))
        elif is_curriculum(parts):
            project.curricula[name] = _curriculum(given)
        elif own == "resampling_interval" or not {"sampler-type", "sampler_type"}.isdisjoint(parts):
            _add_parameter(project, name, given)
        elif isinstance(given.value, dict) and not new:
            trainers[name] = given
        else:
            hint = did_you_mean(name, ["behaviors", "default_settings", "environment_parameters", *_OF_RUN])
            raise given.fail(f"ML-Agents has no such section{hint}")
    defaults = _flat(default)
    for name, given in trainers.items():
        settings = _flat(given)
        replaced = set() if new else {path.partition(".")[0] for path in settings if "." in path}
        kept = {path: each for path, each in defaults.items() if path.partition(".")[0] not in replaced}
        project.behaviors[name] = _checked({**kept, **settings})
    for path, given in project.run.items():
        if path not in ml_agents_settings("ppo"):
            raise given.fail("ML-Agents has no such setting")


def _add_parameter(project: Project, name: str, given: Given) -> None:
    if foreign_table("renamed").get(name, name) == "resampling_interval":
        project.run["resampling_interval"] = Given(_converted(given, 1), given.file, given.names)
    elif isinstance(given.value, dict) and "curriculum" in given.value:
        project.lessons[name] = given.section()["curriculum"]
    else:
        project.samplers[name] = given


def _curriculum(given: Given) -> Settings:
    found = given.section()
    for name, each in found.items():
        if name not in _CURRICULUM:
            raise each.fail(f"a curriculum has no such setting{did_you_mean(name, list(_CURRICULUM))}")
    for name, kind in {"thresholds": list, "parameters": dict}.items():
        if name not in found or not isinstance(found[name].value, kind):
            raise found.get(name, given).fail(f"a curriculum needs {name}")
    lessons = len(found["thresholds"].value) + 1
    for values in found["parameters"].section().values():
        if not isinstance(values.value, list) or len(values.value) != lessons:
            raise values.fail(f"must be a list with one value more than there are thresholds ({lessons - 1})")
    return found


def _flat(given: Given, path: tuple[str, ...] = ()) -> Settings:
    """Return the settings of a section by path; an empty section stands for itself, with the value None."""
    if path and not (isinstance(given.value, dict) and given.value):
        return {".".join(path): Given(None if given.value == {} else given.value, given.file, given.names)}
    found: Settings = {}
    for name, inner in given.section().items():
        own = foreign_table("renamed").get(name, name)
        bare = own in _WITHOUT_NAME and path[:1] != ("reward_signals",) and isinstance(inner.value, dict)
        if own == "memory" and inner.value is not None:
            found["use_recurrent"] = Given(True, inner.file, inner.names)
        found |= _flat(inner, path if bare else (*path, own))
    return found


def _checked(settings: Settings) -> Settings:
    """Return settings with values of the right types; raise a ValueError for those that ML-Agents does not know."""
    rows = ml_agents_settings("sac") | ml_agents_settings("ppo")
    checked: Settings = {}
    for path, given in settings.items():
        if path not in rows and not (given.value is None and any(known.startswith(f"{path}.") for known in rows)):
            hint = did_you_mean(path.rpartition(".")[2], [known.rpartition(".")[2] for known in rows])
            raise given.fail(f"ML-Agents has no such setting{hint}")
        value = None if given.value is None else _converted(given, rows[path].default)
        checked[path] = Given(value, given.file, given.names)
        if path == "trainer" and value not in _TRAINERS:
            raise given.fail(f"must be {', '.join(_TRAINERS[:-1])} or {_TRAINERS[-1]}, got {as_text(value)}")
    return checked


def _converted(given: Given, like: Any) -> Any:  # noqa: ANN401 - of the type of `like`
    """Return the value of a setting as the type of `like`; YAML reads 5.0e5 as a text."""
    value = given.value
    if like is None or (isinstance(like, bool | str) and isinstance(value, type(like))):
        return value
    if isinstance(like, bool | str):
        raise given.fail(f"must be {'a word' if isinstance(like, str) else 'true or false'}, got {as_text(value)}")
    with suppress(TypeError, ValueError):
        number = float(value)
        if not isinstance(value, bool) and abs(number) < _LARGEST:  # not NaN
            return int(number) if isinstance(like, int) else number
    raise given.fail(f"must be a number, got {as_text(value)}")


def read_sampler(given: Given) -> tuple[str, dict[str, Any]]:
    """Return the name of a sampler in ML-Agents, and its settings; raise a ValueError if they are malformed."""
    if is_number(given.value):
        return "constant", {"value": given.value}
    settings = {foreign_table("renamed").get(name, name): each.value for name, each in given.section().items()}
    if "sampler_type" not in settings:
        raise given.fail("needs a sampler-type")
    name = str(settings.pop("sampler_type"))
    kind = foreign_table("renamed").get(name, name)
    settings = settings.pop("sampler_parameters", settings) or {}
    known = foreign_table("samplers").get(kind, {}).get("settings", settings)
    for each in settings:
        if each not in (*known, "seed"):
            raise Given(None, given.file, (*given.names, each)).fail(f"the sampler {kind} has no such setting")
    return kind, known | {each: value for each, value in settings.items() if each != "seed"}


def as_text(value: Any) -> str:  # noqa: ANN401 - any YAML
    """Return a value from a file for messages."""
    return escape_control_characters(json.dumps(value, default=str))[:80]
