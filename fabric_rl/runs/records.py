"""Readers of run folders: list runs, and read the content of each. This module does not import torch."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from datetime import datetime
from pathlib import Path
from typing import Any

import yaml
from filelock import FileLock, Timeout

from fabric_rl.args import Hardware, Saving, StartArgs, TrainArgs
from fabric_rl.base.files import MOST_CONFIG_BYTES, read_json, read_text
from fabric_rl.base.tables import finite_or_none
from fabric_rl.base.text import did_you_mean
from fabric_rl.import_names import short_path
from fabric_rl.metrics.metrics_csv import parse_number, read_rows

CONFIG, ENVIRONMENT = "config.yaml", "environment.json"
DEFAULTS = {field.name: field.default for group in (TrainArgs, StartArgs, Saving, Hardware) for field in fields(group)}
DEFAULTS |= {"estimator.class_path": "fabric_rl.GAE", "self_play": None, "cloning": None, "kickstart": None}
"""Values of settings that older runs lack because they were added later."""
_NAME = re.compile(r"step_(\d+)\.ckpt")
LOCK = ".lock"
"""Lock file of the process that trains a run."""
SET_ASIDE = "set_aside"
"""Subfolder for milestones (and others) that are newer than the checkpoint from which a run was resumed."""
BEST = "best"
"""Subfolder of a run for its best weights."""
FINAL = "final"
"""Subfolder of a run for its final model."""


def flat_settings(settings: Any, prefix: str = "") -> dict[str, Any]:  # noqa: ANN401 - whatever YAML holds
    """Return nested settings by their dotted names, without `init_args`; components of a list are numbered from 1."""
    if isinstance(settings, list) and any(isinstance(part, dict) for part in settings):
        settings = dict(enumerate(settings, 1))
    if not isinstance(settings, dict):
        return {prefix.rstrip("."): short_path(settings) if isinstance(settings, str) else settings}
    flat: dict[str, Any] = {}
    for name, value in settings.items():
        flat |= flat_settings(value, prefix if name == "init_args" else f"{prefix}{name}.")
    return flat


def modules_of(folder: Path) -> dict[str, tuple[str, list[str]]]:
    """Return the user's own modules that a run imported: name -> file, and the digest of each version of it, in order.

    A run has several versions of a module that was edited before the run was resumed. A start does not count if a
    later one began with as many steps or fewer: nothing that it trained was kept.
    """
    found: dict[str, tuple[str, list[str]]] = {}
    last = read_json(folder / ENVIRONMENT)
    earlier = last.get("earlier")
    starts: list[dict[str, Any]] = []
    for start in (*(earlier if isinstance(earlier, list) else ()), last):
        if isinstance(start, dict):
            starts = [*(each for each in starts if not _undone(each, start)), start]
    for start in starts:
        modules = start.get("modules")
        for name, each in modules.items() if isinstance(modules, dict) else ():
            if isinstance(each, dict):
                versions = found.setdefault(name, (str(each.get("file")), []))[1]
                versions += [digest for digest in [str(each.get("sha256"))] if digest not in versions[-1:]]
    return found


def _undone(start: Mapping[str, Any], later: Mapping[str, Any]) -> bool:
    begun, resumed = start.get("steps"), later.get("steps")  # runs of older versions have none
    return isinstance(begun, int) and isinstance(resumed, int) and begun >= resumed


def checkpoint_name(steps: int) -> str:
    """Return the file name of the checkpoint after `steps` agent-steps, e.g. `step_000001000000.ckpt`."""
    return f"step_{steps:012d}.ckpt"


def checkpoint_steps(path: Path) -> int:
    """Return the agent-steps in the name of a checkpoint; raise a ValueError for another name."""
    match = _NAME.fullmatch(path.name)
    if match is None:
        raise ValueError(f"{path} is not named like a checkpoint (step_<steps>.ckpt)")
    return int(match[1])


def list_checkpoints(folder: str | Path) -> list[Path]:
    """Return the finished checkpoints of a folder, oldest first; an empty list if the folder does not exist."""
    return sorted(
        (path for path in Path(folder).glob("step_*.ckpt") if _NAME.fullmatch(path.name)), key=checkpoint_steps
    )


@dataclass(frozen=True)
class Milestone:
    """A full copy of a run, `milestones/<phase>/<steps>/`; values that its `meta.json` lacks are None.

    Attributes:
        folder: Folder of the milestone.
        phase: Phase of the training.
        steps: Agent-steps.
        mean_reward: Mean return, as in `summary.json`, at this point of the run.
        entropy: Entropy of the policy, in nats.
        kl: Estimated KL divergence between the policies before and after the last update, in nats.
        rating: Skill, if a callback measures it.
        timestamp: Local time of writing.
        fingerprint: Description of environment and agent that a resumed run must match; None in old milestones.
    """

    folder: Path
    phase: str
    steps: int
    mean_reward: float | None = None
    entropy: float | None = None
    kl: float | None = None
    rating: float | None = None
    timestamp: datetime | None = None
    fingerprint: dict[str, str] | None = None

    @property
    def run_id(self) -> str:
        """Name of the run that the milestone belongs to."""
        return self.folder.parents[2].name

    @property
    def written(self) -> datetime:
        """Local time of writing: `timestamp`, or else the last change of the folder."""
        return self.timestamp or datetime.fromtimestamp(self.folder.stat().st_mtime)


@dataclass(frozen=True)
class RunRecord:
    """The content of a run folder.

    Attributes:
        folder: `runs/<run_id>`.
        summary: Content of `summary.json`; empty while the run is training.
        steps: Agent-steps: the largest number in summary, metrics and checkpoints.
        changed: Local time of the last change of one of these files.
        milestones: Milestones, sorted by phase, then steps.
        group: Group of the run, from its settings.
        abandoned: Number of milestones in `milestones/set_aside`.
    """

    folder: Path
    summary: dict[str, Any]
    steps: int
    changed: datetime
    milestones: tuple[Milestone, ...]
    abandoned: int = 0
    group: str | None = None

    @property
    def name(self) -> str:
        """The run id."""
        return self.folder.name

    @property
    def status(self) -> str:
        """`finished`, `stopped` (cleanly, before its end), `unfinished` (running, killed, not saved), or `played`."""
        if self.summary.get("inference") is True:
            return "played"
        written = finite_or_none(self.summary.get("total_steps")) or 0
        if not self.summary or self.steps > written or "unsaved_steps" in self.summary:
            return "unfinished"
        return "stopped" if self.summary.get("stopped_early") else "finished"


def list_runs(runs_dir: str | Path) -> list[RunRecord]:
    """Return all runs in a folder, most recently changed first."""
    folders = [folder for folder in Path(runs_dir).iterdir() if _is_run(folder)]
    return sorted((load_run(folder) for folder in folders), key=lambda run: (run.changed, run.name), reverse=True)


def find_run(runs_dir: str | Path, run_id: str) -> RunRecord:
    """Return the run with that name or in that folder; raise a ValueError that names similar ones if there is none."""
    for folder in (Path(runs_dir) / run_id, Path(run_id)):
        if _is_run(folder):
            return load_run(folder)
    hint = (
        did_you_mean(run_id, run_names(runs_dir))
        or "; `fabric-rl runs` lists all runs (--runs_dir FOLDER for another folder)"
    )
    raise ValueError(f"there is no run {run_id} in {runs_dir}{hint}")


def run_names(runs_dir: str | Path) -> list[str]:
    """Return the names of all runs in a folder, which need not exist."""
    return [folder.name for folder in Path(runs_dir).glob("*") if _is_run(folder)]


def load_run(folder: str | Path) -> RunRecord:
    """Read one run folder."""
    folder = Path(folder)
    summary = read_json(folder / "summary.json")
    saved = list_checkpoints(folder / "checkpoints")
    files = [folder / "summary.json", folder / "metrics.csv", *saved[-1:]]
    times = [file.stat().st_mtime for file in files if file.is_file()]
    steps = [
        finite_or_none(summary.get("total_steps")),
        _last_step(folder / "metrics.csv"),
        *map(checkpoint_steps, saved[-1:]),
    ]
    return RunRecord(
        folder=folder,
        summary=summary,
        steps=int(max((step for step in steps if step is not None), default=0)),
        changed=datetime.fromtimestamp(max(times, default=folder.stat().st_mtime)),
        milestones=tuple(sorted(_milestones(folder / "milestones"), key=lambda m: (m.phase, m.steps))),
        abandoned=sum(1 for _ in (folder / "milestones" / SET_ASIDE).glob("*/*/meta.json")),
        group=_group(folder / "config.yaml"),
    )


def _group(config: Path) -> str | None:
    """Return the setting `group`, without parsing the others."""
    try:
        line = re.search(r"^group: *(.+)$", read_text(config, MOST_CONFIG_BYTES), re.MULTILINE)
        value = yaml.safe_load(line[1]) if line else None
    except (OSError, ValueError, yaml.YAMLError):  # reported by code that needs all settings
        return None
    return None if value is None else str(value)


def is_training(folder: Path) -> bool:
    """Return whether a process is training the run in a folder; True if the file system has no locks."""
    if not (folder / LOCK).is_file():
        return False
    try:
        with FileLock(folder / LOCK, timeout=0):
            return False
    except (Timeout, OSError, NotImplementedError):  # the last two: a file system without locks
        return True


def _is_run(folder: Path) -> bool:
    return not folder.name.startswith(".") and (  # hidden: moved away by --force
        (folder / "checkpoints").is_dir() or any((folder / f).is_file() for f in ("summary.json", "metrics.csv"))
    )


def _milestones(folder: Path) -> Iterator[Milestone]:
    for path in folder.glob("*/*"):
        own = path.is_dir() and path.name.isdecimal() and path.parent.name != SET_ASIDE
        if own and ((path / "meta.json").is_file() or list_checkpoints(path)):  # a killed run may leave neither
            meta = read_json(path / "meta.json")
            numbers = {key: finite_or_none(meta.get(key)) for key in ("mean_reward", "entropy", "kl", "rating")}
            time, fingerprint = _time(meta.get("timestamp")), meta.get("fingerprint")
            fingerprint = fingerprint if isinstance(fingerprint, dict) else None
            yield Milestone(path, path.parent.name, int(path.name), timestamp=time, fingerprint=fingerprint, **numbers)


def _last_step(file: Path) -> float | None:
    """Return the step of the last complete row, reading only the end of a long file."""
    try:
        rows = read_rows(file, last_bytes=1 << 16)
    except OSError:
        return None
    return parse_number(rows[-1].get("step")) if rows else None


def _time(value: object) -> datetime | None:
    """Convert seconds since 1970 or ISO 8601 to local time without a zone."""
    try:
        if isinstance(value, str):  # Python 3.10 does not know the Z
            return datetime.fromisoformat(value.replace("Z", "+00:00")).astimezone().replace(tzinfo=None)
        return None if finite_or_none(value) is None else datetime.fromtimestamp(float(value))  # type: ignore[arg-type]
    except (ValueError, OverflowError, OSError):
        return None
