"""A run on disk: `runs/<run_id>/` with its configuration, checkpoints, milestones, metrics and log."""

import json
import logging
import os
import platform
import shutil
import subprocess
import tempfile
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from importlib import metadata
from pathlib import Path
from typing import Any

import yaml

from fabric_rl import checkpoint
from fabric_rl.log import RunLog, logger
from fabric_rl.timers import Timers

PACKAGES = (
    "fabric-rl",
    "torch",
    "lightning",
    "numpy",
    "rocketsim",
    "rlgym",
    "gymnasium",
    "tensorboard",
    "jsonargparse",
)


class Run:
    """The folder of one run.

    Attributes:
        dir: `runs/<run_id>`.
    """

    def __init__(self, folder: Path) -> None:
        """Takes an existing folder; `create` makes a new one."""
        self.dir = folder

    @classmethod
    def create(cls, runs_dir: str | Path, run_id: str | None = None, force: bool = False) -> "Run":
        """Makes the folder of a new run.

        Args:
            runs_dir: Folder that holds all runs.
            run_id: Name of the run; default: date and time.
            force: Put a run of that name out of the way; `replace` deletes it, `discard_if_empty` brings it back.

        Raises:
            FileExistsError: There is a run of that name already.
            ValueError: The name is a path.
            OSError: The folder cannot be written.
        """
        base = Path(runs_dir)
        name = run_id or datetime.now().strftime("%Y%m%d-%H%M%S")
        check_run_id(name)
        folder = base / name
        try:
            if force and folder.is_dir():
                shutil.rmtree(_replaced(folder), ignore_errors=True)
                os.replace(folder, _replaced(folder))
            base.mkdir(parents=True, exist_ok=True)
            for attempt in range(2, 100):
                try:
                    folder.mkdir()
                    break
                except FileExistsError:
                    if run_id is not None:
                        raise
                    folder = base / f"{name}-{attempt}"
            (folder / "checkpoints").mkdir()
            with tempfile.TemporaryFile(dir=folder):
                pass
        except OSError as error:
            if isinstance(error, FileExistsError) and base.is_dir():
                raise FileExistsError(
                    f"--run_id {name}: {folder} already exists; choose another run id, go on with it (--resume) or "
                    "delete it and start again (--force)"
                ) from error
            raise OSError(f"--runs_dir {base}: cannot write there ({error.strerror}); choose another folder") from error
        return cls(folder)

    @classmethod
    def find(cls, runs_dir: str | Path, run_id: str) -> "Run":
        """An existing run.

        Raises:
            FileNotFoundError: There is none of that name.
        """
        check_run_id(run_id)
        folder = Path(runs_dir) / run_id
        if not (folder / "checkpoints").is_dir():
            known = sorted(path.parent.name for path in Path(runs_dir).glob("[!.]*/checkpoints"))
            there = f"there are {', '.join(known[-5:])}" if known else f"{runs_dir} holds no runs"
            raise FileNotFoundError(f"--run_id {run_id}: no such run to resume; {there}")
        return cls(folder)

    @property
    def name(self) -> str:
        """The run id."""
        return self.dir.name

    @property
    def checkpoints(self) -> Path:
        """Folder of the newest checkpoints."""
        return self.dir / "checkpoints"

    @property
    def milestones(self) -> Path:
        """Folder of full copies, `<phase>/<steps>/`."""
        return self.dir / "milestones"

    @property
    def videos(self) -> Path:
        """Folder of mp4 files."""
        return self.dir / "videos"

    @property
    def newest_checkpoint(self) -> Path | None:
        """The newest checkpoint file, whether it is good or not."""
        found = checkpoint.checkpoints(self.checkpoints)
        return found[-1] if found else None

    def remember_weights(self, path: Path | None, inference: bool) -> None:
        """Writes down that the run does not begin with new weights, and whether it only plays."""
        write_json(self.dir / "weights.json", {"from": str(path), "inference": inference})

    def refuse_to_begin_again(self) -> None:
        """Raises CheckpointError if beginning again, without a checkpoint, would not be the same run."""
        path = self.dir / "weights.json"
        if path.exists():
            kept = json.loads(path.read_text(encoding="utf-8"))
            what = "only plays" if kept["inference"] else "has no checkpoint yet"
            raise checkpoint.CheckpointError(
                f"--resume: run {self.name} {what} and began with the weights of {kept['from']}; start it again with "
                f"--run_id {self.name} --force --initialize_from {kept['from']}"
                f"{' --inference' if kept['inference'] else ''}"
            )

    def read_summary(self) -> dict[str, Any]:
        """`summary.json`; empty if there is none."""
        try:
            summary = json.loads((self.dir / "summary.json").read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        return summary if isinstance(summary, dict) else {}

    def write_timers(self, timers: Timers) -> None:
        """Writes `timers.json`. A full disk is a warning, not the end."""
        try:
            timers.write(self.dir / "timers.json")
        except OSError as error:
            warnings.warn(f"the timers of {self.dir} cannot be written: {error}", RuntimeWarning, stacklevel=2)

    def write_summary(self, summary: dict[str, Any], timers: Timers | None = None) -> None:
        """Writes `summary.json` and `timers.json`, each in one step. A full disk is a warning, not the end."""
        try:
            write_json(self.dir / "summary.json", summary)
        except OSError as error:
            warnings.warn(f"the summary of {self.dir} cannot be written: {error}", RuntimeWarning, stacklevel=2)
        if timers is not None:
            self.write_timers(timers)

    def write_origin(self, config: str | None) -> None:
        """Writes what the run was made with: `config.yaml` and `environment.json` (versions, git state)."""
        if config is not None:
            _write(self.dir / "config.yaml", config)
        write_json(self.dir / "environment.json", describe_environment())

    def changed_settings(self, config: str) -> list[str]:
        """Lines `name: old -> new` for what differs between the run's `config.yaml` and `config`."""
        path = self.dir / "config.yaml"
        if not path.exists():
            return []
        try:
            old, new = (_flat(yaml.safe_load(text) or {}) for text in (path.read_text(encoding="utf-8"), config))
        except (ValueError, yaml.YAMLError):
            return [f"all settings: {path} is damaged"]
        names = [name for name in dict.fromkeys((*old, *new)) if old.get(name) != new.get(name)]
        return [f"{name}: {old.get(name)} -> {new.get(name)}" for name in names]

    @contextmanager
    def open_log(self) -> Iterator[None]:
        """While it is open, what happens and all warnings also go to `log.txt`."""
        handler = RunLog(self.dir / "log.txt", encoding="utf-8", delay=True)
        handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
        level, shown, failed = logger.level, warnings.showwarning, threading.excepthook

        def show(message: Any, category: Any, filename: Any, lineno: Any, file: Any = None, line: Any = None) -> None:  # noqa: ANN401
            logger.warning("%s", message)
            shown(message, category, filename, lineno, file, line)

        def report(failure: threading.ExceptHookArgs) -> None:
            if isinstance(failure.exc_value, OSError):  # of TensorBoard's writer, which is left out then
                warnings.warn(f"a logger cannot write: {failure.exc_value}", RuntimeWarning, stacklevel=2)
            else:
                failed(failure)

        logger.addHandler(handler)
        logger.setLevel(logging.INFO)
        warnings.showwarning, threading.excepthook = show, report
        try:
            yield
        except BaseException as error:
            logger.error("%s: %s", type(error).__name__, error)
            raise
        finally:
            warnings.showwarning, threading.excepthook = shown, failed
            logger.setLevel(level)
            logger.removeHandler(handler)
            handler.close()

    def discard_if_empty(self) -> None:
        """Removes the folder of a run that failed before it wrote anything of worth."""
        made_at_start = {"config.yaml", "weights.json", "environment.json", "log.txt"}
        if not any(path.is_file() and path.name not in made_at_start for path in self.dir.rglob("*")):
            shutil.rmtree(self.dir, ignore_errors=True)
            if _replaced(self.dir).is_dir():
                os.replace(_replaced(self.dir), self.dir)

    def replace(self) -> None:
        """Deletes the run of the same name that `create` has put out of the way; this one has really begun."""
        shutil.rmtree(_replaced(self.dir), ignore_errors=True)

    def go_on_from(self, path: Path, state: dict[str, Any]) -> int:
        """Makes a checkpoint the newest one of the run, so that the run also goes on from it if it is killed now.

        Newer checkpoints (damaged ones, or those of the time after a milestone that the run goes back to) are moved to
        `checkpoints/set_aside`.

        Returns:
            How many were moved.
        """
        steps, moved = state["steps"], 0
        for newer in checkpoint.checkpoints(self.checkpoints):
            if checkpoint.steps_of(newer) >= steps and newer.resolve() != path.resolve():
                aside = self.checkpoints / "set_aside"
                aside.mkdir(exist_ok=True)
                os.replace(newer, aside / newer.name)
                moved += 1
        if path.resolve().parent != self.checkpoints.resolve():
            checkpoint.write(self.checkpoints / checkpoint.file_name(steps), state)
        return moved


def check_run_id(name: str) -> None:
    """Raises ValueError for a name that is a path or hidden."""
    if Path(name).name != name or name.startswith("."):
        raise ValueError(f"--run_id {name}: must be a plain name, not a path, and not begin with a dot")


def describe_environment() -> dict[str, Any]:
    """Versions of Python, the system and the packages that matter, and the state of the git repository."""
    versions: dict[str, str] = {}
    for package in PACKAGES:
        try:
            versions[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    git = {name: _git(*command) for name, command in _GIT.items()}
    return {"python": platform.python_version(), "system": platform.platform(), "packages": versions, "git": git}


def write_json(path: Path, content: dict[str, Any]) -> None:
    """Writes JSON in one step (temporary file, then rename)."""
    _write(path, json.dumps(content, indent=2) + "\n")


def _write(path: Path, text: str) -> None:
    temporary = path.with_name(path.name + ".tmp")
    temporary.write_text(text, encoding="utf-8")
    os.replace(temporary, path)


def _replaced(folder: Path) -> Path:
    """Where `--force` keeps the run of that folder until the new one has begun."""
    return folder.with_name(f".{folder.name}.replaced")


def _flat(settings: Any, prefix: str = "") -> dict[str, Any]:  # noqa: ANN401 - whatever YAML holds
    """Nested settings by their dotted names."""
    if not isinstance(settings, dict):
        return {prefix.rstrip("."): settings}
    flat: dict[str, Any] = {}
    for name, value in settings.items():
        flat |= _flat(value, prefix if name == "init_args" else f"{prefix}{name}.")
    return flat


_GIT = {
    "commit": ("rev-parse", "HEAD"),
    "branch": ("rev-parse", "--abbrev-ref", "HEAD"),
    "changed_files": ("status", "--porcelain"),
}


def _git(*command: str) -> str | None:
    """What git says about this code; None without git or outside of a repository."""
    try:
        folder = Path(__file__).parent
        return subprocess.run(["git", *command], cwd=folder, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return None
