"""Runs that tests start: launchers, terminals, waiting; and what can be read in a run's folder."""

import csv
import os
import select
import subprocess
import sys
import sysconfig
import time
from contextlib import suppress
from pathlib import Path

import torch
import yaml
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from fabric_rl import Callback, load_checkpoint
from fabric_rl.runs.checkpoint import read
from fabric_rl.runs.records import list_checkpoints
from tests.forks import ROOT, environment, kill

FABRIC = Path(sysconfig.get_path("scripts"), "fabric")
TORCHRUN = [sys.executable, "-m", "torch.distributed.run"]
TASK = ["--env_id", "CartPole-v1", "--num_envs", 2, "--num_steps", 32, "--minibatch_size", 32, "--update_epochs", 2]
TASK += ["--agent.actor_hidden_sizes", "[16]", "--agent.critic_hidden_sizes", "[16]", "--agent.normalize_obs", "true"]
TASK += ["--seed", 10, "--checkpoint_every_timesteps", 1280, "--exact_resume"]
CPU = ["--accelerator", "cpu"]
CARTPOLE = ["--env_id", "CartPole-v1", "--num_envs", 2, "--num_steps", 32, "--minibatch_size", 64, "--update_epochs", 1]
"""Iterations of 64 steps."""
POOL = ["--env", "envs.RocketSimPool", "--env.num_arenas", "2", "--total_timesteps", "64", "--num_steps", "16"]
POOL += ["--accelerator", "cpu", "--plain"]
"""One iteration of Rocket League."""
HIDDEN = ["--agent.actor_hidden_sizes", "[16]", "--agent.critic_hidden_sizes", "[16]"]
STACKED = ["--env.obs", "envs.StackedObs", "--env.obs.inner", "envs.AdvancedObs", "--env.obs.num_frames", "2"]
HELD = ["--env.action", "envs.RepeatAction", "--env.action.inner", "envs.HybridTable", "--env.action.steps", "2"]
MEMORY = ["--agent", "agents.RecurrentPPOAgent", "--agent.memory_size", "8", "--agent.sequence_length", "4"]
STEPS = 5120
"""Of 128 each for two ranks: 40 iterations, with a checkpoint after every tenth."""
PAUSING = ["--callbacks+=tests.runs.Pause"]


class Pause(Callback):
    """Stops a rank for good where a test has asked for it: `pause` made a file in the folder `PAUSES`."""

    def on_iteration_end(self, state):
        path = Path(os.environ.get("PAUSES", "."), f"rank{state.fabric.global_rank}-{state.iteration}")
        if path.exists():
            path.with_name("reached").write_text(str(os.getpid()))
            path.unlink()
            while True:
                time.sleep(1)


def pause(folder, rank, iteration):
    """Asks for it; `reached` knows who has."""
    folder.mkdir(exist_ok=True)
    (folder / f"rank{rank}-{iteration}").touch()


def reached(folder, *launched):
    """Waits for the rank that stops; its process id."""
    path = folder / "reached"
    until(lambda: path.exists() and path.read_text(), *launched)
    pid = int(path.read_text())
    path.unlink()
    return pid


class Launched:
    """A command line whose output goes to files; it and all that it has started end with the `with` block."""

    def __init__(self, folder, *command, **more):
        folder.mkdir(parents=True, exist_ok=True)
        self.out_file, self.err_file = folder / "out", folder / "err"
        with open(self.out_file, "w") as out, open(self.err_file, "w") as err:
            self.process = subprocess.Popen(
                list(map(str, command)),
                cwd=ROOT,
                env=environment(**more),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                start_new_session=True,
            )

    @property
    def out(self):
        return self.out_file.read_text()

    @property
    def err(self):
        return self.err_file.read_text()

    @property
    def errors(self):
        """The lines of train_fabric.py, without the report of the launcher."""
        return [line for line in self.err.splitlines() if line.startswith("train_fabric.py: ")]

    def wait(self, seconds=100):
        return self.process.wait(timeout=seconds)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for pid in self.workers():
            kill(pid)
        kill(self.process.pid)
        self.process.wait()

    def workers(self):
        """Process ids of the ranks that are alive, in the order in which they were started."""
        return [pid for pid in descendants(self.process.pid) if b"train_fabric.py" in command_of(pid)]


class Terminal:
    """A pseudo terminal for one command line, which gets its `variables`."""

    def __init__(self):
        self.master, self.slave = os.openpty()
        self.variables = {"TERMINAL": os.ttyname(self.slave), "TERM": "dumb", "COLUMNS": "100"}
        self.screen = ""

    def until(self, text, times=1):
        while self.screen.count(text) < times:
            assert self._read(seconds=60), f"no {text} after {self.screen}"

    def types(self, keys):
        os.write(self.master, keys.encode())

    def read(self):
        while self._read(seconds=0):
            pass
        return self.screen

    def _read(self, seconds):
        ready = select.select([self.master], [], [], seconds)[0]
        if ready:
            self.screen += os.read(self.master, 65536).decode().replace("\r\n", "\n")
        return bool(ready)


def command_of(pid):
    """The words of a command line; empty when it has ended."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return []


def descendants(pid):
    """Process ids of all that it has started, oldest first."""
    parents = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            parents[int(stat.parent.name)] = int(stat.read_text().rpartition(")")[2].split()[1])
    found = [pid]
    for child in sorted(parents):  # process ids grow; a child that comes before its parent is found by the next call
        if parents[child] in found:
            found.append(child)
    return found[1:]


def until(condition, *launched, seconds=100):
    """Waits; a run that ends in the meantime is a failure with its output."""
    began = time.monotonic()
    while not condition():
        for run in launched:
            assert run.process.poll() is None, run.out + run.err
        assert time.monotonic() - began < seconds, "".join(run.out + run.err for run in launched)
        time.sleep(0.05)


# ---------------------------------------------------------------- a run's folder


def saved(run):
    """The newest checkpoint."""
    return read(list_checkpoints(run / "checkpoints")[-1])


def weights_of(run):
    """The weights of the newest good checkpoint."""
    return load_checkpoint(run)[1]["agent"]


def equal(one, other):
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


def settings_of(run):
    return yaml.safe_load((run / "config.yaml").read_text())


def rows_of(run):
    """All metrics but speeds."""
    with open(run / "metrics.csv", newline="") as file:
        return [{k: v for k, v in row.items() if not k.startswith("speed/")} for row in csv.DictReader(file)]


def steps_in(run):
    return [int(row["step"]) for row in rows_of(run)]


def names_in(folder):
    """The file names of its checkpoints."""
    return [path.name for path in list_checkpoints(folder)]


def events(run):
    """What TensorBoard reads."""
    accumulator = EventAccumulator(str(run / "tensorboard"))
    accumulator.Reload()
    return accumulator


def assert_equal(one, other):
    """Of tensors by name."""
    assert one.keys() == other.keys()
    assert [name for name in one if not torch.equal(one[name], other[name])] == []


def assert_same_weights(one, other):
    """Of two checkpoints."""
    assert (one["steps"], one["iteration"], one["exact"]) == (other["steps"], other["iteration"], other["exact"])
    assert_equal(one["agent"], other["agent"])


def outcome(runs):
    """Of run r: the last checkpoint without what a clock decided, and all metrics but speeds."""
    state = saved(runs / "r")
    state["seconds"] = None
    state["metrics"] = {name: value for name, value in state["metrics"].items() if not name.startswith("speed/")}
    return state, rows_of(runs / "r")


def assert_same(a, b, where="state"):
    assert type(a) is type(b), where
    if isinstance(a, dict):
        assert list(a) == list(b), where
        for key in a:
            assert_same(a[key], b[key], f"{where}[{key!r}]")
    elif isinstance(a, list | tuple):
        assert len(a) == len(b), where
        for i, (x, y) in enumerate(zip(a, b, strict=True)):
            assert_same(x, y, f"{where}[{i}]")
    elif isinstance(a, torch.Tensor):
        assert a.dtype == b.dtype and torch.equal(a, b), where
    elif hasattr(a, "tobytes"):
        assert a.dtype == b.dtype and a.tolist() == b.tolist(), where
    else:
        assert a == b or (a != a and b != b), where
