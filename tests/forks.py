"""Processes that need not import anything: a server imports once, and forks one for every command line.

Importing takes longer than a small run. Tests use `Forks`; run as a script, this file is the server. It reads one job
per line from standard input as JSON and answers with one line: `[[program, word, ...], folder, variables]` starts a
process with its output in `folder/out` and `folder/err`, and answers with its id; `[id]` answers with the exit status,
or `null` as long as it runs.
"""

import gc
import io
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from contextlib import redirect_stdout, suppress
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import ClassVar

ROOT = Path(__file__).resolve().parents[1]
SECONDS = 100  # far beyond what any process here takes; only one that hangs meets it
PATH = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
PROGRAMS = {
    "train_fabric.py": ("train_fabric", "cli"),
    "fabric-rl": ("fabric_rl.commands.main", "main"),
    "lightning": ("fabric_rl.cli.lightning_run_model", "lightning"),
}
"""Command lines; every other program is a function, `package.module:name`, that gets the words."""


def environment(**more):
    """That of a user's shell, without what launchers set."""
    launchers = ("LT_", "TORCHELASTIC", "SLURM_", "MASTER_", "GROUP_", "LOGLEVEL")
    ranks = {"RANK", "LOCAL_RANK", "NODE_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE"}
    clean = {name: value for name, value in os.environ.items() if not name.startswith(launchers) and name not in ranks}
    return clean | {"PYTHONPATH": str(ROOT), "PATH": PATH, "OMP_NUM_THREADS": "1", "PYTHONFAULTHANDLER": "1"} | more


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def kill(pid, number=signal.SIGKILL):
    with suppress(ProcessLookupError):
        os.kill(pid, number)


@dataclass(eq=False)
class Fork:
    """A process that was started; it finds modules in its folder."""

    pid: int
    folder: Path
    status: int | None = None
    """Known once somebody has waited for it."""

    @property
    def out(self):
        return (self.folder / "out").read_text()

    @property
    def err(self):
        return (self.folder / "err").read_text()


class Child:
    """As much of `subprocess.Popen` as those need who train in processes."""

    def __init__(self, forks, fork):
        self.forks, self.fork, self.pid = forks, fork, fork.pid

    def poll(self):
        self.forks.is_running(self.fork)
        return self.fork.status

    def wait(self, timeout=SECONDS):
        began = time.monotonic()
        while self.forks.is_running(self.fork):
            if time.monotonic() - began > timeout:
                raise subprocess.TimeoutExpired("train_fabric", timeout)
            time.sleep(0.005)
        return self.fork.status

    def kill(self):
        kill(self.pid)

    def terminate(self):
        kill(self.pid, signal.SIGTERM)


class Forks:
    """Starts processes that have imported everything, each with variables of its own."""

    def __init__(self, folder):
        self.folder, self.started, self.lock = folder, [], threading.Lock()
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        self.server = subprocess.Popen([sys.executable, Path(__file__)], cwd=ROOT, env=environment(), **pipes)

    def ask(self, *job):
        with self.lock:  # commands that train several runs ask from threads
            self.server.stdin.write(json.dumps(job, default=str) + "\n")
            self.server.stdin.flush()
            return json.loads(self.server.stdout.readline())

    def start(self, *words, program="train_fabric.py", files=None, **variables):
        """A command line, or a function; `files` (name: text) lie in its folder.

        Some variables are for this server: TERMINAL names a pseudo terminal that takes the place of all three standard
        streams, nobody reads the standard output after BROKEN_PIPE bytes, OUT and ERR are files for its outputs,
        WORKS_IN is the working folder, which finds modules in PYTHONPATH first, and RANKS are as many processes as
        Fabric's own launcher may ask for: rank 0 is their parent, as always, but they have imported everything.
        """
        folder = Path(tempfile.mkdtemp(dir=self.folder))
        for name, text in {"out": "", "err": "", **(files or {})}.items():
            (folder / name).write_text(text)
        if not {"LOCAL_RANK", "SLURM_PROCID"} & variables.keys() and "LOCAL_WORLD_SIZE" in os.environ:
            variables.setdefault("LOCAL_WORLD_SIZE", os.environ["LOCAL_WORLD_SIZE"])
        variables = {name: str(value) for name, value in variables.items()}
        self.started.append(Fork(self.ask([program, *map(str, words)], folder, variables), folder))
        return self.started[-1]

    def popen(self, command, env, stdout, stderr, **_):
        """Takes the place of `subprocess.Popen` for a training, or a `fabric-rl ...`, that prints into files."""
        program = "train_fabric.py" if command[1:3] == ["-m", "train_fabric"] else "fabric-rl"
        files = {"OUT": stdout.name, "ERR": getattr(stderr, "name", stdout.name)}
        return Child(self, self.start(*command[3:], program=program, **env | files))

    def ranks(self, count, *words, **more):
        """As many ranks of one machine as Fabric's own launcher starts; `--devices`, or what a function asks for."""
        if count == 1:
            return [self.start(*words, **more)]
        launch = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": free_port()}
        return [self.start(*words, LOCAL_RANK=rank, **launch, **more) for rank in range(count)]

    def srun(self, *flags, nodes=1, tasks=2, cores=None):
        """As `srun train_fabric.py` starts tasks on that many nodes, bound to the cores where they are given."""
        own = os.sched_getaffinity(self.server.pid)
        common = {"SLURM_JOB_ID": 70000 + os.getpid() % 10000, "SLURM_JOB_NAME": "train", "SLURM_NODELIST": "localhost"}
        common |= {"SLURM_NTASKS": tasks, "SLURM_NNODES": nodes, "SLURM_NTASKS_PER_NODE": tasks // nodes}
        started = []
        for task in range(tasks):
            node, local = divmod(task, tasks // nodes)
            if cores is not None:
                os.sched_setaffinity(self.server.pid, cores[task])
            ids = {"SLURM_PROCID": task, "SLURM_NODEID": node, "SLURM_LOCALID": local}
            started.append(self.start(*flags, "--accelerator", "cpu", **common, **ids))
        os.sched_setaffinity(self.server.pid, own)
        return started

    def is_running(self, fork):
        if fork.status is None:
            fork.status = self.ask(fork.pid)
        return fork.status is None

    def wait(self, started):
        """The exit status of each, what the first one has printed, and the errors of all."""
        began = time.monotonic()
        while any([self.is_running(fork) for fork in started]):
            assert time.monotonic() - began < SECONDS, "".join(fork.out + fork.err for fork in started)
            time.sleep(0.005)
        statuses = [fork.status for fork in started]
        return statuses, started[0].out if started else "", "".join(fork.err for fork in started)

    def end_all(self):
        """Kills what still runs."""
        left = [fork for fork in self.started if self.is_running(fork)]
        for fork in left:
            kill(fork.pid)
        self.wait(left)

    def close(self):
        self.end_all()
        self.server.stdin.close()
        self.server.wait()


# ---------------------------------------------------------------- the server


def _child(words, folder, variables):
    os.environ.update(variables)
    for number, handler in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
        signal.signal(number, handler)  # a program in the background, or under nohup, hands on that they are ignored
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    for number, name in ((1, "out"), (2, "err")):
        path = variables.get(name.upper(), os.path.join(folder, name))
        os.dup2(os.open(path, os.O_WRONLY | os.O_APPEND), number)
    if "TERMINAL" in variables:
        _take_terminal(variables["TERMINAL"])
    if "BROKEN_PIPE" in variables:
        _break_pipe(after=int(variables["BROKEN_PIPE"]))
    sys.path.append(folder)
    if "WORKS_IN" in variables:
        os.chdir(variables["WORKS_IN"])
    if "PYTHONPATH" in variables:
        sys.path[:0] = variables["PYTHONPATH"].split(os.pathsep)
    _wait_to_be_launched(int(variables.get("RANKS", 1)))
    orphans = sys.modules["fabric_rl.ranks.processes"]
    orphans.PARENT = int(os.environ.pop(orphans.RANK_0, os.getppid()))  # which it has seen when it was imported
    status = _run(words)
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError):
            stream.flush()
    os._exit(status)  # Python's own way out takes longer than all the rest


class _Launched:
    """What Fabric's launcher takes for the process that it has started: one of those that wait for it."""

    waiting: ClassVar[list] = []

    def __init__(self, command, env, cwd):
        self.pid, launch = self.waiting.pop(0)
        self.returncode = None
        with os.fdopen(launch, "w") as pipe:
            json.dump(env, pipe)

    def poll(self):
        if self.returncode is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            self.returncode = os.waitstatus_to_exitcode(status) if pid else None
        return self.returncode

    def send_signal(self, number):
        kill(self.pid, number)


def _wait_to_be_launched(ranks):
    """Rank 0 goes on; the others do once it has launched them, with the variables that it gives them."""
    for _ in range(1, ranks):
        reader, writer = os.pipe()
        pid = os.fork()
        if pid == 0:
            for other in [writer, *(pipe for _, pipe in _Launched.waiting)]:
                os.close(other)
            with os.fdopen(reader) as pipe:
                env = pipe.read()
            if not env:
                os._exit(0)  # rank 0 has ended before
            os.environ.clear()
            os.environ.update(json.loads(env))
            return
        os.close(reader)
        _Launched.waiting.append((pid, writer))
    if ranks > 1:
        import_module("lightning.fabric.strategies.launchers.subprocess_script").subprocess = SimpleNamespace(
            Popen=_Launched
        )


def _take_terminal(path):
    import fcntl
    import termios

    terminal = os.open(path, os.O_RDWR)
    if os.environ.get("LOCAL_RANK", "0") == "0":
        os.setsid()
        fcntl.ioctl(terminal, termios.TIOCSCTTY, 0)  # Ctrl+C is a signal then
    for number in (0, 1, 2):
        os.dup2(terminal, number)
    sys.stdin, sys.stdout, sys.stderr = (os.fdopen(number, mode) for number, mode in ((0, "r"), (1, "w"), (2, "w")))


def _break_pipe(after):
    """Nobody reads the standard output any more after so many bytes."""
    reader, writer = os.pipe()
    if after and os.fork() == 0:
        os.close(writer)
        os.read(reader, after)
        os._exit(0)
    os.close(reader)
    os.dup2(writer, 1)


def _run(words):
    program, *rest = words
    module, name = PROGRAMS.get(program) or program.split(":")
    sys.argv = words
    try:
        answer = getattr(import_module(module), name)(*([] if program in PROGRAMS else rest))
    except SystemExit as end:
        answer = end.code
    except BaseException:
        traceback.print_exc()
        answer = 1
    return answer or 0


def _warm_up():
    """Imports what command lines import, and lets the parser read the signatures and docstrings of the usual parts."""
    for module in [module for module, _ in PROGRAMS.values()] + ["torch.utils.tensorboard", "gymnasium.envs"]:
        import_module(module)
    for flags in (["--env_id", "CartPole-v1"], ["--env", "envs.RocketSimPool", "--agent", "agents.RecurrentPPOAgent"]):
        with redirect_stdout(io.StringIO()):
            _run(["train_fabric.py", *flags, "--print_config"])
    gc.collect()
    gc.freeze()  # a fork that looks through what it has from here copies it


def _serve():
    for line in sys.stdin:
        job = json.loads(line)
        if len(job) == 1:
            pid, status = os.waitpid(job[0], os.WNOHANG)
            answer = os.waitstatus_to_exitcode(status) if pid else None
        else:
            answer = os.fork()
            if answer == 0:
                _child(*job)
        print(json.dumps(answer), flush=True)
    os._exit(0)


if __name__ == "__main__":
    _warm_up()
    _serve()
