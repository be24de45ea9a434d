"""Trainings that a command starts: processes of `train_fabric.py`, several at once, each on cores of its own."""

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import suppress
from importlib import import_module
from itertools import count
from pathlib import Path
from queue import SimpleQueue
from typing import TypeVar

from filelock import FileLock, Timeout

from envs.cores import available_cores
from fabric_rl.base.argv import DEFAULT_CONFIG, names_of
from fabric_rl.cli.command_line import Settings, read_settings
from fabric_rl.ranks.processes import ENDS_WITH_PARENT
from fabric_rl.runs.provenance import Provenance
from fabric_rl.runs.records import RunRecord, is_worked_on, load_run
from fabric_rl.session.stopping import STOP_NAMES

Item = TypeVar("Item")
_OUTPUT = ".output"
"""Below the folder of all runs: what trainings print."""
BUSY = "another process trains it"
"""Why a run is not trained."""
_OURS = ("--run_id", "--seed", "--resume", "--force", "--inference")
_LARGEST_SEED, _MOST_SEEDS = 2**32 - 1, 10_000
_LOOK_SECONDS, _LOOKS_TO_ASK, _PATIENCE_SECONDS = 0.2, 5, 70


def settings_of(words: Sequence[str], command: str) -> Settings:
    """Return what flags of `train_fabric.py` say; a ValueError or ArgumentError if they are wrong or not allowed."""
    if taken := [name for name in _OURS if name in names_of(words)]:
        raise ValueError(f"{', '.join(taken)}: fabric-rl {command} decides that for every run; leave it out")
    return read_settings(import_module("train_fabric").main, words, "", DEFAULT_CONFIG)


def seeds_of(text: str) -> list[int]:
    """Return the numbers of `0..4,7`: 0 to 4, and 7; a ValueError for anything else."""
    found: list[int] = []
    for part in text.replace(" ", "").split(","):
        first, dots, last = part.partition("..")
        if not (first.isdecimal() and (last.isdecimal() if dots else True)):
            raise ValueError(f"--seeds {text}: give numbers as in 0..4 or 0,1,5..7")
        numbers = range(int(first), int(last or first) + 1)
        if numbers.stop > _LARGEST_SEED + 1 or len(found) + len(numbers) > _MOST_SEEDS:
            raise ValueError(f"--seeds {text}: give at most {_MOST_SEEDS:,} numbers, each up to {_LARGEST_SEED}")
        found += numbers
    if not found:
        raise ValueError(f"--seeds {text}: holds no number")
    return list(dict.fromkeys(found))


def make_folder(flag: str, folder: Path) -> None:
    """Make the folder that a flag names; a ValueError if it cannot be made."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ValueError(f"{flag} {folder}: cannot be made a folder ({error.strerror}); choose another") from error


def done(folder: Path) -> RunRecord | None:
    """Return the run of a folder if it has nothing left to do: it came to its end, or a callback has ended it."""
    record = load_run(folder) if folder.is_dir() else None
    ended = record is not None and (record.status == "finished" or ended_by(record) is not None)
    return record if ended else None


def ended_by(record: RunRecord) -> str | None:
    """Return the callback that has ended a run early, None without."""
    by = record.summary.get("stopped_by")
    return None if by in STOP_NAMES.values() else by


def check_same_settings(folder: Path, settings: str) -> None:
    """Raise ValueError if a run of that folder has other settings (YAML) than its next seed would have."""
    lines = Provenance(folder).changed_settings(settings)
    lines = [line for line in lines if not line.startswith(("seed:", "num_threads:"))]
    if lines:
        raise ValueError(
            f"{folder} is there with other settings ({'; '.join(lines[:3])}{'; ...' if lines[3:] else ''}); "
            "choose another --group, or delete it"
        )


class Trainings:
    """Runs trainings, each as a process of its own, which all end with this one.

    Attributes:
        runs_dir: Folder of all runs.
        stopping: Set when all are to end: each saves itself and can go on another time.
    """

    def __init__(self, parallel: int, runs_dir: str | Path, grace_seconds: float = 600.0) -> None:
        """Divides the cores of this process.

        Args:
            parallel: Trainings at the same time, at least 1.
            runs_dir: Folder that holds all runs.
            grace_seconds: What a training that is to end has to save itself; then it is killed.
        """
        self._grace = grace_seconds
        if parallel < 1:
            raise ValueError(f"--parallel must be at least 1, got {parallel}")
        self.stopping, self.parallel, self.runs_dir = threading.Event(), parallel, Path(runs_dir)
        known = hasattr(os, "sched_getaffinity")
        cores = sorted(os.sched_getaffinity(0)) if known else list(range(available_cores()))
        if parallel > len(cores):
            print(f"--parallel {parallel}: more than there are cores ({len(cores)}), which they share", flush=True)
        share = max(1, len(cores) // parallel)
        self._free: SimpleQueue[list[int]] = SimpleQueue()
        for place in range(parallel):
            begin = place * share % len(cores)
            self._free.put(cores[begin : begin + share])

    def train(
        self, run_id: str, words: Sequence[str], hopeless: Callable[[], bool] = lambda: False
    ) -> tuple[RunRecord | None, str]:
        """Start or resume a run, and wait until it ends; for several threads at once.

        Args:
            run_id: Name of the run.
            words: Flags of `train_fabric.py`, without those that name the run.
            hopeless: Asked every second or so whether the run is to end early.

        Returns:
            The run if it has come to its end, or None; and in the latter case why, in one line, or nothing where it was
            told to stop.
        """
        output = self.runs_dir / _OUTPUT / f"{run_id}.txt"
        output.parent.mkdir(parents=True, exist_ok=True)
        lock = FileLock(output.with_suffix(".lock"), timeout=0)
        try:
            lock.acquire()
        except Timeout:
            return None, BUSY
        except (OSError, NotImplementedError):  # a file system without locks
            pass
        try:
            return self._train(run_id, output, words, hopeless)
        finally:
            lock.release()

    def _train(
        self, run_id: str, output: Path, words: Sequence[str], hopeless: Callable[[], bool]
    ) -> tuple[RunRecord | None, str]:
        folder, began = self.runs_dir / run_id, time.monotonic()
        while done(folder) is None and is_worked_on(folder):  # by a process that a killed command has left
            if self.stopping.wait(_LOOK_SECONDS) or time.monotonic() - began > _PATIENCE_SECONDS:
                break
        if (record := done(folder)) is not None or self.stopping.is_set():  # it may have come to its end meanwhile
            return record, ""
        command = [sys.executable, "-m", "train_fabric", *words, f"--runs_dir={self.runs_dir}", f"--run_id={run_id}"]
        command += ["--resume=true"] if (folder / "checkpoints").is_dir() else []
        cores = self._free.get()
        try:
            status, was_ended = self._run(command, output, cores, hopeless)
        finally:
            self._free.put(cores)
        if (record := done(folder)) is not None:
            output.unlink()
            return record, ""
        if was_ended:
            return None, ""
        printed = output.read_text(encoding="utf-8", errors="replace").splitlines()
        last = next((line for line in reversed(printed) if line.strip()), "nothing")
        return None, f"{last.removeprefix('train_fabric.py: error: ')} (status {status}; all it said is in {output})"

    def _run(
        self, command: Sequence[str], output: Path, cores: Sequence[int], hopeless: Callable[[], bool]
    ) -> tuple[int, bool]:
        variables = os.environ | {ENDS_WITH_PARENT: "1"}
        if not hasattr(os, "sched_setaffinity") and self.parallel > 1:  # elsewhere ranks find and divide `cores`
            variables["OMP_NUM_THREADS"] = str(len(cores))
        with output.open("w", encoding="utf-8") as file:
            streams = {"stdin": subprocess.DEVNULL, "stdout": file, "stderr": subprocess.STDOUT}
            child = subprocess.Popen(command, env=variables, start_new_session=True, **streams)  # type: ignore[call-overload]
        if hasattr(os, "sched_setaffinity"):
            os.sched_setaffinity(child.pid, cores)
        killed_at: float | None = None
        for looks in count(1):
            with suppress(subprocess.TimeoutExpired):
                child.wait(_LOOK_SECONDS)
                break
            asks = looks % _LOOKS_TO_ASK == 0
            if killed_at is None and (self.stopping.is_set() or (asks and hopeless())):
                child.terminate()  # it saves itself; Windows ends it at once, and it goes on from its checkpoint
                killed_at = time.monotonic() + self._grace
            elif killed_at is not None and time.monotonic() > killed_at:
                child.kill()  # its other ranks end with it
        return child.returncode, killed_at is not None

    def each(self, work: Callable[[Item], None], items: Iterable[Item]) -> None:
        """Call `work`, which trains, for every item; Ctrl+C ends the trainings in order, and then this.

        Raises:
            BaseException: What `work` raises; the other trainings have ended.
        """
        with ThreadPoolExecutor(self.parallel) as pool:
            futures = [pool.submit(work, item) for item in items]
            try:
                for future in as_completed(futures):
                    future.result()
            except BaseException:
                self.stopping.set()
                pool.shutdown(cancel_futures=True)
                raise
