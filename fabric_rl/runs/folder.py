"""Folder of a run, `runs/<run_id>/`: configuration, checkpoints, milestones, metrics and log."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from fabric_rl.args import check_run_id
from fabric_rl.base.config_files import refuse_code_beside
from fabric_rl.base.files import read_json, write_json
from fabric_rl.base.tables import finite_or_none
from fabric_rl.metrics.log import logger
from fabric_rl.metrics.timers import Timers
from fabric_rl.runs import checkpoint
from fabric_rl.runs.provenance import CONFIG, ENVIRONMENT, INITIAL, WEIGHTS, Provenance, Weights
from fabric_rl.runs.records import BEST, LOCK, SET_ASIDE, checkpoint_name, checkpoint_steps, list_checkpoints

_CHECKPOINTS = "checkpoints"
_MADE_AT_START = {"code.diff", CONFIG, ENVIRONMENT, WEIGHTS, INITIAL, LOCK, "log.txt"}
_NAMED = 5
"""Maximum number of runs named in a message."""
_PATIENCE = 3.0
"""Seconds to wait for the lock, which a killed process may hold until it has ended completely."""


class Run:
    """The folder of one run.

    Attributes:
        dir: Folder of the run, `runs/<run_id>`.
        name: The run id.
        checkpoints: Folder of the newest checkpoints.
        milestones: Folder of the milestones (full copies), `<phase>/<steps>/`.
        videos: Folder of the mp4 videos.
        provenance: Record of how the run began.
    """

    def __init__(self, folder: Path) -> None:
        self.dir, self.name = folder, folder.name
        self.checkpoints, self.milestones, self.videos = folder / _CHECKPOINTS, folder / "milestones", folder / "videos"
        self.provenance = Provenance(folder)
        self._lock = FileLock(folder / LOCK)

    @classmethod
    def create(
        cls,
        runs_dir: str | Path,
        run_id: str | None = None,
        force: bool = False,
        weights: Weights | None = None,
        config: str | None = None,
    ) -> "Run":
        """Create the folder of a new run, or reuse the incomplete folder of a run that was killed at its start.

        Args:
            runs_dir: Folder that contains all runs.
            run_id: Name of the run; default: date and time.
            force: Move an existing run of that name away; `replace` deletes it later, `discard_if_empty` restores it.
            weights: Initial weights, which are copied into the run; default: new weights.
            config: Settings of the run as YAML; default: unknown.

        Raises:
            FileExistsError: A run of that name already exists.
            ValueError: The name is empty or a path, or the settings name code that the run could not be resumed with.
            CheckpointError: The weights cannot be written.
            BlockingIOError: Another process is using or creating that run.
            OSError: The folder is not writable.
        """
        base = Path(runs_dir)
        name = datetime.now().strftime("%Y%m%d-%H%M%S") if run_id is None else run_id
        check_run_id(name)
        refuse_code_beside(base / name / CONFIG, config)
        made: Run | None = None
        try:
            if force and (base / name).is_dir():
                replaced = cls(base / name)
                replaced.claim()
                replaced.release()  # Windows cannot move a folder with an open file
                shutil.rmtree(_replaced(base / name), ignore_errors=True)
                os.replace(base / name, _replaced(base / name))
            made = cls._claim_new(base, name, exactly=run_id is not None)
            if weights is not None:
                made.provenance.save_initial_weights(weights)
            made.provenance.write(config)
            made.checkpoints.mkdir()  # last: a folder without it is not a run yet, one with it has its settings
        except BaseException as error:
            if made is not None:
                made.discard_if_empty()
            if isinstance(error, FileExistsError) and base.is_dir():
                raise FileExistsError(
                    f"--run_id {name}: {base / name} already exists; choose another run id, resume it (--resume), "
                    "or delete it and start again (--force)"
                ) from error
            if isinstance(error, OSError) and not isinstance(error, BlockingIOError):
                reason = f"cannot write there ({error.strerror}); choose another folder"
                raise OSError(f"--runs_dir {base}: {reason}") from error
            raise
        return made

    @classmethod
    def _claim_new(cls, base: Path, name: str, exactly: bool) -> "Run":
        """Create and lock the folder `name`; if it exists, append a number to the name, unless `exactly`."""
        base.mkdir(parents=True, exist_ok=True)
        folder = base / name
        for attempt in range(2, 100):
            try:
                folder.mkdir()
                break
            except FileExistsError:
                if exactly and not _is_unfinished(folder):
                    raise
                if exactly:
                    break
                folder = base / f"{name}-{attempt}"
        run = cls(folder)
        run.claim()
        if run.checkpoints.is_dir():  # created by another process meanwhile
            raise FileExistsError(folder)
        return run

    @classmethod
    def find(cls, runs_dir: str | Path, run_id: str) -> "Run":
        """Return an existing run.

        Raises:
            FileNotFoundError: There is no run of that name.
        """
        check_run_id(run_id)
        folder = Path(runs_dir) / run_id
        if _is_unfinished(folder):
            raise FileNotFoundError(f"--run_id {run_id}: the run was killed before it began; start it without --resume")
        if not (folder / _CHECKPOINTS).is_dir():
            known = list(Path(runs_dir).glob(f"[!.]*/{_CHECKPOINTS}"))
            newest = sorted(known, key=lambda path: path.stat().st_mtime, reverse=True)[:_NAMED]
            names = ", ".join(path.parent.name for path in newest)
            there = f"the runs in {Path(runs_dir).absolute()} are {names}" if known else f"{runs_dir} contains no runs"
            if len(known) > _NAMED:
                there = f"the newest of {len(known)} are {names}; fabric-rl runs lists all"
            raise FileNotFoundError(f"--run_id {run_id}: no such run to resume; {there}")
        return cls(folder)

    def claim(self) -> None:
        """Lock the run against other processes, until `release` or the end of this process.

        Raises:
            BlockingIOError: Another process is using the run.
        """
        try:
            self._lock.acquire(timeout=_PATIENCE)
        except Timeout as error:
            raise BlockingIOError(
                f"--run_id {self.name}: another process is using {self.dir}; stop it first, or choose another run id"
            ) from error
        except (OSError, NotImplementedError):  # a file system without locks
            pass

    def check_writable(self) -> None:
        """Raise OSError if the run cannot continue because its folders are not writable."""
        for folder in (self.dir, self.checkpoints):
            try:
                with tempfile.TemporaryFile(dir=folder):
                    pass
            except OSError as error:
                raise OSError(
                    f"--resume: cannot write to {folder} ({error.strerror}); make it writable, or start a new run "
                    f"elsewhere with --initialize_from {self.dir}"
                ) from error

    def release(self) -> None:
        """Release the lock, so that other processes can use the run."""
        with suppress(OSError):
            self._lock.release(force=True)

    def read_summary(self) -> dict[str, Any]:
        """Return the content of `summary.json`, or an empty dict if there is none."""
        return read_json(self.dir / "summary.json")

    def write_timers(self, timers: Timers) -> None:
        """Write `timers.json`. A failure, for example a full disk, only causes a warning."""
        with self._warning_of("timers"):
            timers.write(self.dir / "timers.json")

    def write_summary(self, summary: dict[str, Any]) -> None:
        """Write `summary.json` atomically. A full disk only causes a warning."""
        with self._warning_of("summary"):
            write_json(self.dir / "summary.json", summary)

    @contextmanager
    def _warning_of(self, what: str) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            logger.warning("the %s of %s cannot be written: %s", what, self.dir, error)

    def discard_if_empty(self) -> None:
        """Delete the folder of a run that failed before it wrote results; restore a run that `create` moved away."""
        if _holds_nothing(self.dir):
            self.release()
            shutil.rmtree(self.dir, ignore_errors=True)
            if _replaced(self.dir).is_dir():
                os.replace(_replaced(self.dir), self.dir)

    def replace(self) -> None:
        """Delete the run of the same name that `create` moved away, once this run has begun."""
        shutil.rmtree(_replaced(self.dir), ignore_errors=True)

    def rewind_to(self, path: Path, state: dict[str, Any]) -> int:
        """Make a checkpoint the newest one of the run, so that the run continues from it even if it is killed now.

        Newer checkpoints are moved to `checkpoints/set_aside`: damaged ones, or those after a milestone that the run
        returns to. A newer summary is moved to `set_aside`.

        Returns:
            The number of moved checkpoints.
        """
        steps, moved = state["steps"], 0
        for newer in list_checkpoints(self.checkpoints):
            if checkpoint_steps(newer) >= steps and newer.resolve() != path.resolve():
                move_aside(newer, self.checkpoints / "set_aside")
                moved += 1
        if (finite_or_none(self.read_summary().get("total_steps")) or 0) > steps:
            move_aside(self.dir / "summary.json", self.dir / SET_ASIDE)
        if path.resolve().parent != self.checkpoints.resolve():
            checkpoint.write(self.checkpoints / checkpoint_name(steps), state)
        return moved


def _holds_nothing(folder: Path) -> bool:
    """Return whether all files are temporary files, videos, or files written at the start of a run."""
    files = (path for path in folder.rglob("*") if path.is_file() and path.parent != folder / "videos")
    return all(path.name in _MADE_AT_START or path.suffix == ".tmp" for path in files)


def _is_unfinished(folder: Path) -> bool:
    """Return whether the run was killed while its folder was being created."""
    return folder.is_dir() and not (folder / _CHECKPOINTS).is_dir() and _holds_nothing(folder)


def move_aside(path: Path, folder: Path) -> None:
    """Move a file or folder into `folder`; if its name is taken there, append a number."""
    target, number = folder / path.name, 1
    while target.exists():
        number += 1
        target = folder / f"{path.stem}-{number}{path.suffix}"
    folder.mkdir(parents=True, exist_ok=True)
    os.replace(path, target)


def move_newer_best(folder: Path, steps: int) -> None:
    """Move the best weights of the run in `folder` to `set_aside/best` if they are from after `steps`."""
    best = folder / BEST
    if (newer := read_json(best / "meta.json").get("steps") or 0) <= steps:
        return
    try:
        move_aside(best, folder / SET_ASIDE)
        logger.info("newer best weights (%s steps) moved to %s", f"{newer:,}", folder / SET_ASIDE)
    except OSError as error:
        logger.warning("newer best weights of %s cannot be moved to %s: %s", folder, SET_ASIDE, error)


def _replaced(folder: Path) -> Path:
    """Return the folder where `--force` keeps the old run until the new one has begun."""
    return folder.with_name(f".{folder.name}.replaced")
