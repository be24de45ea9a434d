"""Training runs that a command starts: parallel processes of `train_fabric.py`, each on its own cores."""

import math
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import suppress
from pathlib import Path
from queue import SimpleQueue
from typing import TypeVar

from filelock import FileLock, Timeout
from torch import Tensor

from fabric_rl.base.processes import cores
from fabric_rl.base.text import escape_control_characters
from fabric_rl.ranks.processes import ENDS_WITH_PARENT
from fabric_rl.runs.provenance import Provenance
from fabric_rl.runs.records import RunRecord, is_training, list_checkpoints, load_run
from fabric_rl.session.stopping import STOP_NAMES

Item = TypeVar("Item")
BUSY = "another process is training it"
"""Reason of a run that is not trained."""
_LARGEST_SEED, _MOST_SEEDS = 2**32 - 1, 10_000
_POLL_SECONDS, _POLLS_TO_ASK, _PATIENCE_SECONDS = 0.2, 5, 70


def seeds_of(text: str) -> list[int]:
    """Return the numbers in a text such as `0..4,7` (0 to 4, and 7); raise a ValueError for other texts."""
    found: list[int] = []
    for part in text.replace(" ", "").split(","):
        first, dots, last = part.partition("..")
        if not (first.isdecimal() and (last.isdecimal() if dots else True)):
            raise ValueError(f"--seeds {text}: write numbers as in 0..4 or 0,1,5..7")
        numbers = range(int(first), int(last or first) + 1)
        if numbers.stop > _LARGEST_SEED + 1 or len(found) + len(numbers) > _MOST_SEEDS:
            raise ValueError(f"--seeds {text}: use at most {_MOST_SEEDS:,} numbers, each up to {_LARGEST_SEED}")
        found += numbers
    if not found:
        raise ValueError(f"--seeds {text} contains no numbers")
    return list(dict.fromkeys(found))


def make_folder(flag: str, folder: Path) -> None:
    """Create the folder that a flag names; raise a ValueError if it cannot be created."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ValueError(f"{flag} {folder}: the folder cannot be created ({error.strerror}); choose another") from error


def finished_run(folder: Path) -> RunRecord | None:
    """Return the run in a folder if it is finished or was stopped by a callback, otherwise None."""
    record = load_run(folder) if folder.is_dir() else None
    stopped = record and record.status == "stopped" and stopped_by_callback(record)
    return record if record and (record.status == "finished" or stopped) else None


def stopped_by_callback(record: RunRecord) -> str | None:
    """Return the name of the callback that stopped a run early, or None."""
    by = record.summary.get("stopped_by")
    return None if by in STOP_NAMES.values() else by


def check_unchanged(folder: Path, settings: str, weights: Mapping[str, Tensor] | None) -> None:
    """Raise a ValueError if a folder's run has other settings (YAML), first weights or code.

    The seed, the number of threads and the folder of all runs may differ.
    """
    provenance = Provenance(folder)
    lines = provenance.changed_settings(settings)
    lines = [line for line in lines if not line.startswith(("seed:", "num_threads:", "runs_dir:"))]
    if provenance.config.exists() and not provenance.has_begun_with(weights):
        lines.append("the weights of --initialize_from")
    trained = list_checkpoints(folder / "checkpoints") or finished_run(folder)
    code = provenance.changed_modules(ever=True) if trained else []
    for kind, found, joint in (("settings", lines, "; "), ("code", code, ", ")):
        if found:
            which = joint.join([*found[:3], *(["..."] if found[3:] else [])])
            raise ValueError(
                f"{folder} already exists with other {kind} ({which}); choose another --group, undo the change, or "
                "delete that folder"
            )


class TrainProcesses:
    """Start training runs as processes, which end with this process.

    Attributes:
        runs_dir: Folder that contains all runs.
        stopping: Event to set in order to stop all runs; they save a checkpoint and can be resumed.
    """

    def __init__(self, parallel: int, runs_dir: str | Path, grace_seconds: float = 600.0) -> None:
        """Divide the cores of this process.

        Args:
            parallel: Number of runs at the same time, at least 1.
            runs_dir: Folder that contains all runs.
            grace_seconds: Seconds that a stopped run has to save a checkpoint before it is killed.
        """
        self._grace = grace_seconds
        if parallel < 1:
            raise ValueError(f"--parallel must be at least 1, got {parallel}")
        self.stopping, self.parallel, self.runs_dir = threading.Event(), parallel, Path(runs_dir)
        all_cores = sorted(cores())
        if parallel > len(all_cores):
            print(f"--parallel {parallel}: more runs than cores ({len(all_cores)}), which the runs share", flush=True)
        share = max(1, len(all_cores) // parallel)
        self._free: SimpleQueue[list[int]] = SimpleQueue()
        for place in range(parallel):
            begin = place * share % len(all_cores)
            self._free.put(all_cores[begin : begin + share])

    def train(
        self, run_id: str, words: Sequence[str], hopeless: Callable[[], bool] = lambda: False
    ) -> tuple[RunRecord | None, str]:
        """Start or resume a run, and wait until it ends; several threads may call this method at the same time.

        Args:
            run_id: Name of the run.
            words: Flags of `train_fabric.py`, without those that name the run.
            hopeless: Called about every second; the run is stopped if it returns True.

        Returns:
            The finished run or None, and the reason for a failure in one line, empty if the run did not fail.
        """
        output = self.runs_dir / ".output" / f"{run_id}.txt"  # what the run prints
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
        while finished_run(folder) is None and is_training(folder):  # in a process that a killed command left behind
            if self.stopping.wait(_POLL_SECONDS) or time.monotonic() - began > _PATIENCE_SECONDS:
                break
        if (record := finished_run(folder)) is not None or self.stopping.is_set():  # it may have finished by now
            return record, ""
        command = [sys.executable, "-m", "train_fabric", *words, f"--runs_dir={self.runs_dir}", f"--run_id={run_id}"]
        command += ["--resume=true"] if (folder / "checkpoints").is_dir() else []
        own_cores = self._free.get()
        try:
            status, was_stopped = self._run(command, output, own_cores, hopeless)
        finally:
            self._free.put(own_cores)
        if (record := finished_run(folder)) is not None:
            output.unlink()
            return record, ""
        if was_stopped:
            return None, ""
        printed = output.read_text(encoding="utf-8", errors="replace").splitlines()
        last = escape_control_characters(next((line for line in reversed(printed) if line.strip()), "no output"))
        return None, f"{last.removeprefix('train_fabric.py: error: ')} (status {status}; full output in {output})"

    def _run(
        self, command: Sequence[str], output: Path, own_cores: Sequence[int], hopeless: Callable[[], bool]
    ) -> tuple[int, bool]:
        variables = os.environ | {ENDS_WITH_PARENT: "1"}
        if not hasattr(os, "sched_setaffinity") and self.parallel > 1:  # ranks cannot see `own_cores`
            variables["OMP_NUM_THREADS"] = str(len(own_cores))
        with output.open("w", encoding="utf-8") as file:
            streams = {"stdin": subprocess.DEVNULL, "stdout": file, "stderr": subprocess.STDOUT}
            child = subprocess.Popen(command, env=variables, start_new_session=True, **streams)  # type: ignore[call-overload]
        if hasattr(os, "sched_setaffinity"):
            os.sched_setaffinity(child.pid, own_cores)
        polls, kill_at = 0, math.inf
        while True:
            with suppress(subprocess.TimeoutExpired):
                return child.wait(_POLL_SECONDS), kill_at < math.inf
            polls += 1
            if time.monotonic() > kill_at:
                child.kill()  # its other ranks end with it
            elif kill_at == math.inf and (self.stopping.is_set() or (polls % _POLLS_TO_ASK == 0 and hopeless())):
                child.terminate()  # it saves a checkpoint; on Windows it ends at once and resumes from the last one
                kill_at = time.monotonic() + self._grace

    def each(self, work: Callable[[Item], None], items: Iterable[Item]) -> None:
        """Call `work`, which calls `train`, for every item, in threads; Ctrl+C stops the runs first, then this process.

        Raises:
            BaseException: An error in `work`, raised once all runs have ended.
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
