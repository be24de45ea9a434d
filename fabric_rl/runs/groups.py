"""Groups of runs that differ in nothing but their seed, and in what one group differs from another."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import Path
from typing import Any

from fabric_rl.base.config_files import read_yaml
from fabric_rl.base.text import did_you_mean
from fabric_rl.runs.curves import Curve, read_metrics
from fabric_rl.runs.provenance import CONFIG, DEFAULTS, flat_settings
from fabric_rl.runs.records import RunRecord, find_run, list_runs

_OWN = {"seed", "num_threads", "group", "run_id", "runs_dir", "resume", "force", "inference"}
"""Settings in which runs of a group may differ."""


@dataclass(frozen=True)
class Member:
    """A run of a group."""

    record: RunRecord

    @property
    def name(self) -> str:
        """The run id."""
        return self.record.name

    @cached_property
    def curves(self) -> dict[str, Curve]:
        """Its metrics, by name."""
        return read_metrics(self.record.folder / "metrics.csv")

    @cached_property
    def settings(self) -> dict[str, Any]:
        """By their dotted names; nothing where they cannot be read."""
        with suppress(OSError, ValueError):
            return DEFAULTS | flat_settings(read_yaml(self.record.folder / CONFIG) or {})
        return {}

    @property
    def task(self) -> str:
        """What it was trained on: a Gymnasium id, or the class of its environment."""
        names = ("env_id", "env.env_id", "env.class_path", "env")
        return next((str(self.settings[name]) for name in names if self.settings.get(name)), "unknown")


Group = dict[str, list[Member]]
"""Runs by their task."""


def find_groups(
    wanted: Sequence[str] | Mapping[str, Sequence[str | Path]], runs_dir: str | Path = "runs"
) -> dict[str, Group]:
    """Groups by their labels.

    Args:
        wanted: Names of groups, or patterns of run ids such as `gae_*`; or run ids or folders for each label.
        runs_dir: Folder of all runs.

    Raises:
        ValueError: There is no such folder, group or run; a group has fewer than two runs on a task; or groups were
            trained on different tasks.
    """
    if not Path(runs_dir).is_dir():
        raise ValueError(f"--runs_dir {runs_dir}: there is no such folder")
    found: dict[str, Group] = {}
    known = [] if isinstance(wanted, Mapping) else sorted(list_runs(runs_dir), key=lambda run: run.name)
    for label in wanted:
        if isinstance(wanted, Mapping):
            records = [find_run(runs_dir, str(run)) for run in wanted[label]]
        else:
            records = [run for run in known if run.group == label or fnmatchcase(run.name, label)]
        if not records:
            names = sorted({run.group for run in known if run.group})
            hint = did_you_mean(label, names) or f"; there are {', '.join(names) or 'none'}"
            raise ValueError(f"group {label}: no run in {runs_dir} belongs to it{hint}")
        if len({run.name for run in records}) < len(records):
            raise ValueError(f"group {label}: holds a run twice, or two of the same name")
        found[label] = {}
        for member in map(Member, records):
            found[label].setdefault(member.task, []).append(member)
        for task, members in found[label].items():
            if len(members) < 2:
                raise ValueError(f"group {label} has one run on {task}, {members[0].name}; give it two or more")
    tasks = {label: sorted(group) for label, group in found.items()}
    first = next(iter(tasks))
    for label in tasks:
        if tasks[label] != tasks[first]:
            each = (f"{name} on {', '.join(tasks[name])}" for name in (first, label))
            raise ValueError(f"groups have runs of different tasks: {'; '.join(each)}")
    return found


def differences(groups: Mapping[str, Group]) -> dict[str, dict[str, str]]:
    """The settings that groups do not share: name -> label -> value, several where runs of one group differ."""
    values: dict[str, dict[str, str]] = {}
    every = {label: [run.settings for runs in group.values() for run in runs] for label, group in groups.items()}
    names = dict.fromkeys(name for runs in every.values() for settings in runs for name in settings)
    for name in (name for name in names if name not in _OWN):
        known = {label: [run.get(name) for run in runs] for label, runs in every.items()}
        texts = {label: sorted({"-" if x is None else str(x) for x in each}) for label, each in known.items()}
        values[name] = {label: ", ".join(each) for label, each in texts.items()}
    return {name: each for name, each in values.items() if len(set(each.values())) > 1}
