"""Runs a program for a benchmark: a time limit, the moment of every line it prints, the memory of all its processes."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from fabric_rl.ranks.processes import ENDS_WITH_PARENT

ROOT = Path(__file__).parent.parent
FABRIC_RL = [sys.executable, "-c", "from fabric_rl.commands.main import main; main()"]
"""The command `fabric-rl` of this Python, wherever it is installed."""
SAMPLE_SECONDS = 1.0
"""Between two looks at the memory."""


@dataclass(frozen=True)
class Finished:
    """What became of a program."""

    lines: list[tuple[float, str]]
    """What it printed, line by line, each with `time.perf_counter()` when it came."""
    errors: str
    """The last 4,000 characters of its standard error."""
    status: int | None
    """Exit status; None when it was ended after the time limit."""
    memory_mib: int | None
    """Peak of the memory of the program and all its descendants, MiB, memory that several share counted once
    (proportional set size); None where the system does not tell."""
    processes: int
    """The most processes it had at once."""

    @property
    def reason(self) -> str:
        """Why it failed, in one line."""
        if self.status is None:
            return "took longer than --timeout"
        told = [line.strip() for line in self.errors.splitlines() if line.strip()]
        return f"ended with status {self.status}: {told[-1] if told else 'nothing on standard error'}"


def run_child(
    command: Sequence[str], timeout: float, cwd: Path | str, extra_env: Mapping[str, str | None] | None = None
) -> Finished:
    """Runs a program to its end, or to the time limit; then it and its descendants are ended.

    Args:
        command: Program and arguments.
        timeout: Seconds.
        cwd: Its working directory.
        extra_env: Added to the environment of this process; None takes a variable away.
    """
    variables = os.environ | dict(extra_env or {})
    lines: list[tuple[float, str]] = []
    began = time.perf_counter()
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as errors:
        child = subprocess.Popen(
            command,
            cwd=cwd,
            env={name: value for name, value in variables.items() if value is not None},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            encoding="utf-8",
            errors="replace",
        )
        reader = threading.Thread(target=_read, args=(child, lines), daemon=True)
        reader.start()
        family = _Family(child.pid)
        try:
            while child.poll() is None and time.perf_counter() - began < timeout:
                family.look()
                try:
                    child.wait(SAMPLE_SECONDS)
                except subprocess.TimeoutExpired:
                    continue
            status = child.poll()
        finally:
            family.end()
            if child.poll() is None:
                child.kill()
            child.wait()
            reader.join(5)  # a descendant that lives on could hold the pipe open
        errors.seek(0)
        told = errors.read()[-4000:]
    return Finished(list(lines), told, status, family.peak_mib, family.most)


def cores() -> int:
    """Cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def environment() -> dict[str, str]:
    """That of this process, in which programs also find what benchmarks define: agents, callbacks."""
    paths = [str(ROOT), str(ROOT / "benchmarks"), os.environ.get("PYTHONPATH", "")]
    return os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, paths))}


def train(flags: Sequence[str], log: Path | None = None) -> None:
    """Runs train_fabric.py to its end; it ends with this process, however that ends.

    Args:
        flags: Its flags.
        log: What it prints is written there; None throws it away, but for errors.

    Raises:
        subprocess.CalledProcessError: The training failed.
    """
    variables = environment() | {ENDS_WITH_PARENT: "1"}
    command = [sys.executable, "train_fabric.py", *flags]
    if log is None:
        subprocess.run(command, cwd=ROOT, env=variables, check=True, stdout=subprocess.DEVNULL)
        return
    with open(log, "w", encoding="utf-8") as out:
        subprocess.run(command, cwd=ROOT, env=variables, check=True, stdout=out, stderr=subprocess.STDOUT)


def processor_minutes(minutes: float) -> str:
    """The flag that ends a training by the processor's clock: who collects more in that time has more of it."""
    clock = {"minutes": minutes, "processor": True}
    return f"--callbacks+={json.dumps([{'class_path': 'fabric_rl.callbacks.StopAfter', 'init_args': clock}])}"


@contextmanager
def only_cores(count: int) -> Iterator[None]:
    """Children that start in this block may use `count` of this process's cores.

    Raises:
        ValueError: The system cannot do that, or there are not so many.
    """
    if count == cores():
        yield
        return
    if count > cores() or not hasattr(os, "sched_setaffinity"):
        raise ValueError(f"cannot run on {count} cores: this process has {cores()}, and only Linux can choose fewer")
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, sorted(before)[:count])
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def _read(child: "subprocess.Popen[str]", lines: list[tuple[float, str]]) -> None:
    assert child.stdout is not None
    for line in child.stdout:
        lines.append((time.perf_counter(), line.rstrip("\n")))


class _Family:
    """A process and its descendants, also those whose parent has ended meanwhile. Linux; elsewhere it sees nothing."""

    def __init__(self, pid: int) -> None:
        self.root = pid
        self.members: dict[int, str] = {}  # pid -> when it began, so that a pid used again is told apart
        self.peak_mib: int | None = None
        self.most = 1

    def look(self) -> None:
        """Finds new members and measures."""
        if not sys.platform.startswith("linux"):
            return
        found = dict(_stats())
        children: dict[int, list[int]] = {}
        for pid, (parent, _) in found.items():
            children.setdefault(parent, []).append(pid)
        known = [self.root, *self.alive(found)]
        while known:
            pid = known.pop()
            if pid in found:
                self.members[pid] = found[pid][1]
                known += [child for child in children.get(pid, ()) if child not in self.members]
        alive = self.alive(found)
        total = sum(_proportional_kib(pid) for pid in alive)
        self.peak_mib = max(self.peak_mib or 0, round(total / 1024))
        self.most = max(self.most, len(alive))

    def alive(self, found: Mapping[int, tuple[int, str]]) -> list[int]:
        """Members that still run."""
        return [pid for pid, start in self.members.items() if pid in found and found[pid][1] == start]

    def end(self) -> None:
        """Ends all members that still run: asked first, then forced."""
        if not sys.platform.startswith("linux"):
            return
        self.look()
        for how in (signal.SIGTERM, signal.SIGKILL):
            alive = self.alive(dict(_stats()))
            if not alive:
                return
            for pid in alive:
                try:
                    os.kill(pid, how)
                except ProcessLookupError:
                    continue
            for _ in range(30):
                if not self.alive(dict(_stats())):
                    return
                time.sleep(0.1)


def _stats() -> Iterator[tuple[int, tuple[int, str]]]:
    """Pid -> (parent, when it began) of all processes but zombies."""
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                fields = Path(f"/proc/{entry}/stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if fields[0] != "Z":
                yield int(entry), (int(fields[1]), fields[19])


def _proportional_kib(pid: int) -> int:
    try:
        text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in text.splitlines() if line.startswith("Pss:")), 0)
