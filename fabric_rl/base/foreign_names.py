"""Names of settings in other trainers (`foreign_names.yaml`), and recognition of Unity ML-Agents' files."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import yaml

SIGNALS = {"curiosity": "Curiosity", "rnd": "RND", "gail": "GAIL"}
"""ML-Agents' reward signals -> classes in `fabric_rl.signals`."""
_OF_RUN = ("behaviors", "default_settings", "environment_parameters", "parameter_randomization", "engine_settings")
_OF_SECTION = ("trainer", "trainer_type", "sampler-type", "sampler_type", "reward_signals", "use_recurrent")


class ForeignSetting(NamedTuple):
    """One setting of ML-Agents' files, and what becomes of it."""

    to: tuple[str, ...] = ()
    """Settings here, such as `agent.actor_lr`; none: `why` says why not."""
    default: Any = None
    """ML-Agents' default, of the setting's type; None: any type, and no default."""
    there: str = ""
    """Its meaning in ML-Agents, if it differs."""
    here: str = ""
    """Its meaning here."""
    why: str = ""
    """Reason why it cannot be taken over, or not always."""
    same: tuple[Any, ...] = ()
    """Values with the same meaning, although others differ."""
    computed: bool = False
    """True if its value here is not simply the value there."""


@cache
def foreign_table(name: str) -> Any:  # noqa: ANN401 - YAML
    """Return one section of `foreign_names.yaml`."""
    return yaml.safe_load(Path(__file__).with_name("foreign_names.yaml").read_text(encoding="utf-8"))[name]


@cache
def ml_agents_settings(trainer: str) -> dict[str, ForeignSetting]:
    """Return the settings of ML-Agents' files by path, for `ppo` or `sac`; see `foreign_names.yaml`."""
    rows = foreign_table("ML-Agents")["all"] | foreign_table("ML-Agents")[trainer]
    signals = {path.replace("*", name): row for path, row in rows.items() if "*" in path for name in SIGNALS}
    made: dict[str, ForeignSetting] = {}
    for path, row in (signals | rows).items():
        settings: dict[str, Any] = row | {key: tuple(row.get(key, ())) for key in ("to", "same")}
        if "*" not in path:
            made[path] = ForeignSetting(**settings)
    return made


@cache
def foreign_names() -> Mapping[str, str]:
    """Return an answer for each name of another trainer: flags here with remarks, or the reason why there are none."""
    names: dict[str, str] = {}
    for path, row in (ml_agents_settings("sac") | ml_agents_settings("ppo")).items():
        flags = " and ".join(f"--{flag}" for flag in row.to)
        answer = f"{flags}, {row.here}".rstrip(", ") if flags else row.why
        names |= {path: answer, path.rpartition(".")[2]: names.get(path.rpartition(".")[2], answer)}
    names |= foreign_table("flags")
    return names


def is_ml_agents(settings: Any) -> bool:  # noqa: ANN401 - any YAML
    """Return whether the content of a file is a trainer, curriculum or sampler file of ML-Agents."""
    if not isinstance(settings, dict) or isinstance(settings.get("env"), dict | str):
        return False
    if any(name in settings for name in (*_OF_RUN, "resampling-interval")) or is_curriculum(settings):
        return True
    sections = [part for part in settings.values() if isinstance(part, dict)]
    return any(is_curriculum(part) or not part.keys().isdisjoint(_OF_SECTION) for part in sections)


def is_curriculum(section: Mapping[str, Any]) -> bool:
    """Return whether a section is one curriculum of ML-Agents' old layout."""
    return {"measure", "thresholds"} <= section.keys() or {"thresholds", "parameters"} <= section.keys()
