"""Two machines, which are two network namespaces here: one training, whatever happens to one of them."""

import os
import signal
import subprocess
import sys
import time
from contextlib import ExitStack

import gymnasium
import numpy as np
import pytest

from fabric_rl.base.seeding import stream_seed
from fabric_rl.runs.checkpoint import read
from fabric_rl.runs.records import list_checkpoints
from tests.runs import (
    CPU,
    FABRIC,
    PAUSING,
    STEPS,
    TASK,
    Launched,
    assert_same_weights,
    kill,
    pause,
    reached,
    saved,
    until,
)

pytestmark = pytest.mark.slow
FOREVER = ["--total_timesteps", 100_000_000]
CORES = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 0
HIDE = 'mount -t tmpfs tmpfs "$0" && exec "$@"'
"""For sh -c: an empty folder in place of the one that the other machine writes; only in this namespace."""


def ip(*words):
    subprocess.run(["ip", *words], check=True, capture_output=True, text=True)


class Hosts:
    """Two network namespaces with a cable between them."""

    def __init__(self):
        self.names = [f"frl{os.getpid()}{letter}" for letter in "ab"]  # network devices have 15 letters at most

    def open(self):
        a, b = self.names
        ip("link", "add", a, "type", "veth", "peer", "name", b)
        for number, name in enumerate(self.names, start=1):
            ip("netns", "add", name)
            ip("link", "set", name, "netns", name)
            ip("-n", name, "addr", "add", f"10.213.7.{number}/24", "dev", name)
            for device in ("lo", name):
                ip("-n", name, "link", "set", device, "up")

    def start(self, node, folder, pauses, fabric_flags, flags, hide=None):
        """`fabric run` on a machine (0 or 1)."""
        launcher = [FABRIC, "run", *CPU, "--num-nodes=2", f"--node-rank={node}", "--main-address=10.213.7.1"]
        command = [*launcher, "--main-port=29400", *fabric_flags, "train_fabric.py", *flags]
        if hide is not None:
            hide.mkdir(exist_ok=True)
            command = ["sh", "-c", HIDE, hide, *command]
        name = self.names[node]
        return Launched(
            folder / f"node{node}", "ip", "netns", "exec", name, *command, GLOO_SOCKET_IFNAME=name, PAUSES=str(pauses)
        )

    def pids(self, node):
        listed = subprocess.run(["ip", "netns", "pids", self.names[node]], capture_output=True, text=True)
        return [int(word) for word in listed.stdout.split()]

    def end(self, node):
        for pid in self.pids(node):
            kill(pid)

    def cable(self, state):
        ip("-n", self.names[1], "link", "set", self.names[1], state)

    def close(self):
        for node, name in enumerate(self.names):
            self.end(node)
            subprocess.run(["ip", "netns", "del", name], capture_output=True)
            subprocess.run(["ip", "link", "del", name], capture_output=True)


@pytest.fixture(scope="module")
def hosts():
    if sys.platform != "linux":
        pytest.skip("network namespaces are Linux's")
    with ExitStack() as stack:
        try:
            made = Hosts()
            stack.callback(made.close)
            made.open()
        except (OSError, subprocess.CalledProcessError) as error:
            pytest.skip(
                f"no network namespaces here ({getattr(error, 'stderr', None) or error}); they need root and ip"
            )
        yield made


@pytest.fixture
def both(hosts, tmp_path):
    """Starts the same command line on both machines."""
    with ExitStack() as stack:

        def both(fabric_flags, *flags, hide=None):
            folders = tmp_path / f"output{time.monotonic_ns()}", tmp_path / "pauses"
            nodes = [hosts.start(0, *folders, fabric_flags, flags), hosts.start(1, *folders, fabric_flags, flags, hide)]
            return [stack.enter_context(node) for node in nodes]

        yield both
        for node in (0, 1):
            hosts.end(node)


@pytest.fixture(scope="module")
def one_machine(forks, tmp_path_factory):
    """The last checkpoint of two ranks on one machine that were never disturbed."""
    runs = tmp_path_factory.mktemp("one")
    ranks = forks.srun(*TASK, "--total_timesteps", STEPS, "--runs_dir", runs, "--run_id", "r")
    statuses, out, err = forks.wait(ranks)
    assert statuses == [0, 0], err
    assert "2 ranks on cpu" in out
    return saved(runs / "r")


def test_a_machine_that_dies_ends_the_other_and_the_run_goes_on(hosts, both, one_machine, tmp_path):
    """Machine 1 has a runs folder of its own, which stays empty: only rank 0 reads and writes."""
    runs = tmp_path / "runs"
    runs.mkdir()
    flags = [*TASK, *PAUSING, "--runs_dir", runs, "--run_id", "r"]
    pause(tmp_path / "pauses", rank=1, iteration=25)
    nodes = both(["--strategy=ddp", "--devices=1"], *flags, "--total_timesteps", STEPS, hide=runs)
    assert reached(tmp_path / "pauses", *nodes) in hosts.pids(1)
    seen = subprocess.run(
        ["nsenter", "-m", "-t", str(hosts.pids(1)[0]), "ls", "-A", runs], capture_output=True, text=True, check=True
    )
    assert seen.stdout == ""
    hosts.end(1)
    began = time.monotonic()
    assert nodes[0].wait(60) != 0
    print(f"machine 0 ended {time.monotonic() - began:.1f} s after machine 1")
    assert hosts.pids(0) == []
    (line,) = nodes[0].errors
    assert "another rank (on 10.213.7.2) has died or cannot be reached" in line
    assert line.endswith("continue from the last checkpoint with --run_id r --resume")
    assert f"2 ranks on 2 machines (cpu), {CORES} of {CORES} cores each" in nodes[0].out
    assert saved(runs / "r")["steps"] == STEPS // 2

    # The settings are in the run's folder, which machine 1 does not see.
    nodes = both(["--strategy=ddp", "--devices=1"], "--runs_dir", runs, "--run_id", "r", "--resume", hide=runs)
    assert [node.wait() for node in nodes] == [0, 0], nodes[0].err + nodes[1].err
    assert f"resuming run r after {STEPS // 2:,} steps" in nodes[0].out
    assert_same_weights(saved(runs / "r"), one_machine)
    assert "--num-nodes=2 --node-rank=0 --main-address=10.213.7.1 --main-port=29400" in nodes[0].out
    assert nodes[1].out == ""


def test_a_signal_on_one_machine_ends_both_after_the_iteration(hosts, both, tmp_path):
    """Two ranks on each of them."""
    flags = [*TASK, "--runs_dir", tmp_path, "--run_id", "r", *FOREVER, "--keep_checkpoints", 1000]
    nodes = both(["--devices=2"], *flags)
    until(lambda: len(list_checkpoints(tmp_path / "r/checkpoints")) > 1, *nodes)
    workers = nodes[1].workers()
    assert len(workers) == 2 and len(nodes[0].workers()) == 2
    kill(workers[1], signal.SIGTERM)
    assert [node.wait() for node in nodes] == [0, 0], nodes[0].err + nodes[1].err
    assert nodes[0].errors == nodes[1].errors == []
    assert hosts.pids(0) == hosts.pids(1) == []
    assert f"4 ranks on 2 machines (cpu), {max(1, CORES // 2)} of {CORES} cores each" in nodes[0].out
    last = saved(tmp_path / "r")
    assert last["world_size"] == 4 and last["steps"] > read(list_checkpoints(tmp_path / "r/checkpoints")[0])["steps"]

    # At a checkpoint CartPole begins anew: sub-environment i of rank r with the first seed of the iteration + 2 r + i.
    first = read(list_checkpoints(tmp_path / "r/checkpoints")[0])
    env, seed = gymnasium.make("CartPole-v1"), stream_seed(10, "new episodes", first["iteration"])
    expected = np.stack([env.reset(seed=seed + i)[0] for i in range(8)])
    found = np.concatenate([rank["rollout"]["obs"][-1].numpy() for rank in first["ranks"]])
    assert np.array_equal(found, expected)


def test_a_pulled_cable_is_noticed_after_the_timeout(hosts, both, tmp_path):
    nodes = both(["--devices=1"], *TASK, "--runs_dir", tmp_path, "--run_id", "r", *FOREVER, "--timeout_minutes", 0.05)
    until(lambda: len(list_checkpoints(tmp_path / "r/checkpoints")) > 1, *nodes)
    hosts.cable("down")
    try:
        began = time.monotonic()
        assert all(node.wait(90) != 0 for node in nodes)
        print(f"both ended {time.monotonic() - began:.1f} s after the cable was pulled")
    finally:
        hosts.cable("up")
    for node in nodes:
        (line,) = node.errors
        assert "no answer from another rank for 0.05 minutes (--timeout_minutes)" in line
    assert hosts.pids(0) == hosts.pids(1) == []
