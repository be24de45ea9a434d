"""The space of a sweep: which settings are tried, in a YAML file."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fabric_rl.base.config_files import read_yaml
from fabric_rl.base.messages import MISTAKES, one_line
from fabric_rl.sweeps.trainings import settings_of

_DECIDED = ("config", "group", "runs_dir")
"""By the sweep, as the names and seeds of its runs are."""
_LARGEST = 2**53
"""Up to here every whole number is a float, too, which Optuna computes with."""
Choice = str | float | int | bool | None


@dataclass(frozen=True)
class Setting:
    """One setting of `train_fabric.py`: some choices, or a range of numbers."""

    name: str
    choices: Sequence[Choice] = ()
    low: float = 0.0
    high: float = 0.0
    """Included; whole numbers are drawn if both ends are whole."""
    log: bool = False
    """Draw the logarithm evenly."""
    when: Mapping[str, Sequence[Choice]] = field(default_factory=dict)
    """It is only tried where these settings have one of these values."""

    def draw(self, trial: Any, chosen: Mapping[str, Choice]) -> dict[str, Choice]:  # noqa: ANN401 - Optuna's
        """Return what an Optuna trial tries, by name; nothing if `chosen` does not fit `when`."""
        if any(name not in chosen or chosen[name] not in values for name, values in self.when.items()):
            return {}
        if self.choices:
            return {self.name: trial.suggest_categorical(self.name, self.choices)}
        if isinstance(self.low, int) and isinstance(self.high, int):
            return {self.name: trial.suggest_int(self.name, self.low, self.high, log=self.log)}
        return {self.name: trial.suggest_float(self.name, self.low, self.high, log=self.log)}


def flags_of(chosen: Mapping[str, Choice]) -> list[str]:
    """Return settings as flags."""
    return [f"--{name}={text_of(value)}" for name, value in chosen.items()]


def text_of(value: object) -> str:
    """Return a setting's value as a flag has it."""
    return value if isinstance(value, str) else json.dumps(value)


def read_space(path: Path, training: Sequence[str]) -> list[Setting]:
    """Return the settings of a file, each of which `train_fabric.py` takes beside the flags of `training`.

    Raises:
        ValueError: One is unknown, has a wrong value, or is written wrongly; one line that names the file.
    """
    if not path.is_file():
        raise FileNotFoundError(f"--space {path}: there is no such file")
    try:
        content = read_yaml(path)
        if not isinstance(content, dict) or not content:
            raise ValueError("give settings by their flag names, such as gamma: [0.98, 0.99]")
        space: dict[str, Setting] = {}
        for name, said in content.items():
            space[str(name)] = setting = _setting(str(name), said, space)
            needed = _needed(setting, space)
            for value in setting.choices or (setting.low, setting.high):
                settings_of([*training, *flags_of({**needed, setting.name: value})], "sweep")
    except MISTAKES as error:
        raise ValueError(f"--space {path}: {one_line(str(error)).removeprefix(f'--config {path}: ')}") from error
    return list(space.values())


def _setting(name: str, said: object, before: Mapping[str, Setting]) -> Setting:
    if name in _DECIDED:
        raise ValueError(f"{name}: fabric-rl sweep decides that for every run; leave it out")
    said = {"choices": said} if isinstance(said, list) else said
    if not isinstance(said, dict) or len({"low", "high"} & said.keys()) != (0 if said.get("choices") else 2):
        raise ValueError(f"{name}: give choices as [1, 2, 3], or a range as {{low: 1.0e-4, high: 0.01, log: true}}")
    if unknown := [str(key) for key in said if key not in ("choices", "low", "high", "log", "when")]:
        raise ValueError(f"{name}: {', '.join(unknown)} means nothing here; choices, low, high, log and when do")
    when = said.get("when") or {}
    if not isinstance(when, dict) or [] in when.values():
        raise ValueError(f"{name}: give when as {{lr_schedule: kl_adaptive}}, or with a list of values")
    if unknown := [str(key) for key in when if key not in before]:
        raise ValueError(f"{name}: when names {', '.join(unknown)}, which must stand above it in the space")
    when = {key: _choices(values) for key, values in when.items()}
    if said.get("choices"):
        return Setting(name, _choices(said["choices"]), when=when)
    low, high = (_number(name, said[end]) for end in ("low", "high"))
    if not low < high or (said.get("log") and low <= 0):
        raise ValueError(f"{name}: low must be below high, and above 0 with log")
    return Setting(name, (), low, high, bool(said.get("log")), when)


def _number(name: str, end: object) -> float:
    try:
        number = end if type(end) is int else float(str(end))  # 1e-4 is text in YAML
    except ValueError:
        number = math.nan
    if not abs(number) <= _LARGEST:
        raise ValueError(f"{name}: low and high must be numbers up to 2**53, got {end}")
    return number


def _choices(values: object) -> tuple[Choice, ...]:
    """Return one or several choices; what Optuna does not know, such as a list, as the text of its flag."""
    several = values if isinstance(values, list) else [values]
    return tuple(
        value if value is None or isinstance(value, str | int | float) else text_of(value) for value in several
    )


def _needed(setting: Setting, before: Mapping[str, Setting]) -> dict[str, Choice]:
    """Return an example of what has to be chosen for a setting to count."""
    needed: dict[str, Choice] = {}
    for name, values in setting.when.items():
        needed |= {**_needed(before[name], before), name: values[0]}
    return needed
