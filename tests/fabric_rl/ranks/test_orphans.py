"""No rank outlives what has started it, whenever that is killed."""

import os
import signal
import socket
import subprocess
import sys

import pytest

from tests.forks import ROOT, environment, free_port, kill
from tests.runs import CPU, TASK, TORCHRUN, Launched, descendants, until

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="/proc")
RANK = """
import sys, time
from fabric_rl.ranks.processes import exit_with_launcher
assert "torch" not in sys.modules
exit_with_launcher()
print("watches", flush=True)
time.sleep(2)
"""
STARTS_ONE = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {RANK!r}])"
TORCHELASTIC = {"TORCHELASTIC_RUN_ID": "x", "TORCHELASTIC_USE_AGENT_STORE": "True", "MASTER_ADDR": "127.0.0.1"}
GONE = "train_fabric.py: the launcher is gone; stopping this rank\n"


def start(code, **variables):
    variables = {name: str(value) for name, value in variables.items()}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen([sys.executable, "-c", code], cwd=ROOT, env=environment(**variables), **pipes)


@pytest.mark.slow
def test_a_rank_whose_launcher_is_killed_ends():
    launcher = start(STARTS_ONE, LOCAL_RANK=1)
    assert launcher.stdout.readline() == "watches\n"
    (rank,) = descendants(launcher.pid)
    kill(launcher.pid)
    assert launcher.stderr.read() == GONE  # until the rank has closed it, too
    until(lambda: not os.path.exists(f"/proc/{rank}"))
    launcher.communicate()


@pytest.mark.parametrize(
    "variables",
    [{"LOCAL_RANK": 1, "FABRIC_RL_RANK_0": 2**22 + 1}, TORCHELASTIC | {"LOCAL_RANK": 0}],
    ids=["rank 0", "torchrun"],
)
def test_a_launcher_that_was_gone_before_the_rank_could_look_is_noticed(variables):
    rank = start(RANK, MASTER_PORT=free_port(), **variables)
    _, err = rank.communicate(timeout=60)
    assert (rank.returncode, err) == (-signal.SIGTERM, GONE)


def test_a_rank_ends_where_nobody_listens_any_more():
    rank = start(RANK, LOCAL_RANK=1, FABRIC_RL_RANK_0=2**22 + 1)
    rank.stderr.close()
    assert rank.wait(timeout=60) == -signal.SIGTERM
    rank.stdout.close()


@pytest.mark.slow
def test_ranks_of_a_launcher_that_lives_go_on():
    with socket.create_server(("127.0.0.1", 0)) as store:
        ranks = [
            start(RANK, LOCAL_RANK=1, MASTER_PORT=store.getsockname()[1], **TORCHELASTIC),
            start(RANK, LOCAL_RANK=1, FABRIC_RL_RANK_0=os.getpid()),
            start(RANK, LOCAL_RANK=0, FABRIC_RL_RANK_0=2**22 + 1),  # is rank 0 itself
        ]
        for rank in ranks:
            assert rank.communicate(timeout=60) == ("watches\n", "") and rank.returncode == 0


@pytest.mark.slow
@pytest.mark.parametrize("launcher", [[sys.executable], [*TORCHRUN, "--nproc-per-node", 2]], ids=["fabric", "torchrun"])
@pytest.mark.parametrize("seconds", [0, 1, 4])
def test_killed_during_start_up_a_launcher_leaves_nobody(tmp_path, launcher, seconds):
    """They would wait for it for half an hour."""
    devices = ["--devices", 2] if launcher == [sys.executable] else []
    flags = [*TASK, *CPU, *devices, "--total_timesteps", 10**9, "--runs_dir", tmp_path / "runs"]
    with Launched(tmp_path, *launcher, "train_fabric.py", *flags) as launched:
        until(lambda: descendants(launched.process.pid), launched)
        with pytest.raises(subprocess.TimeoutExpired):
            launched.wait(seconds=seconds)
        ranks = descendants(launched.process.pid)
        kill(launched.process.pid)
        launched.wait()
        until(lambda: not any(os.path.exists(f"/proc/{pid}") for pid in ranks), seconds=15)
