"""Launchers that start ranks again: torchrun after a failure, SLURM when a job is requeued."""

import json
import os
import re
import signal
import sys
from contextlib import nullcontext
from types import SimpleNamespace

import pytest

from fabric_rl.ranks import launched_by
from fabric_rl.runs.records import list_checkpoints
from tests.forks import ROOT, free_port
from tests.runs import (
    CPU,
    PAUSING,
    STEPS,
    TASK,
    TORCHRUN,
    Launched,
    assert_same_weights,
    kill,
    pause,
    reached,
    saved,
    until,
)

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="os.fork, /proc, sched_setaffinity")
TOTAL = ["--total_timesteps", STEPS]
FOREVER = ["--total_timesteps", 100_000_000]


@pytest.fixture(scope="module")
def undisturbed(forks, tmp_path_factory):
    """A run of two ranks that SLURM has started on two nodes."""
    runs = tmp_path_factory.mktemp("undisturbed")
    statuses, out, err = forks.wait(forks.srun(*TASK, *TOTAL, "--runs_dir", runs, "--run_id", "r", nodes=2))
    assert statuses == [0, 0], err
    cores = len(os.sched_getaffinity(0))
    assert f"2 ranks on 2 machines (cpu), {cores} of {cores} cores each" in out
    assert "\n  srun python train_fabric.py " in out
    return runs / "r"


@pytest.mark.slow
def test_torchrun_goes_on_after_ranks_were_killed(undisturbed, tmp_path):
    """First rank 1, then rank 0. The old run of that name is deleted once, not at every restart."""
    run, old = tmp_path / "r", "step_000000000001.ckpt"
    (run / "checkpoints").mkdir(parents=True)
    (run / "checkpoints" / old).write_bytes(b"of a run long ago")
    launcher = [*TORCHRUN, "--nproc-per-node", 2, "--max-restarts", 3]
    flags = [*TASK, *TOTAL, *CPU, "--runs_dir", tmp_path, "--run_id", "r", "--force", *PAUSING]
    pauses = tmp_path / "pauses"
    pause(pauses, rank=1, iteration=15)
    pause(pauses, rank=0, iteration=32)
    with Launched(tmp_path / "output", *launcher, "train_fabric.py", *flags, PAUSES=str(pauses)) as launched:
        for _ in range(2):
            kill(reached(pauses, launched))
        assert launched.wait() == 0, launched.err
        out, errors = launched.out, launched.errors
    assert_same_weights(saved(run), saved(undisturbed))
    assert not (run / "checkpoints" / old).exists()
    for restart in (1, 2):
        assert out.count(f"torchrun has restarted the ranks of run r (restart {restart} of at most 3)\n") == 1
    for steps in (1280, 3840):
        assert out.count(f"resuming run r after {steps:,} steps") == 1
    assert all("has died or cannot be reached; torchrun restarts all ranks" in line for line in errors)
    assert f"torchrun --nproc-per-node=2 --max-restarts=3 train_fabric.py {TASK[0]} " in out
    summary = json.loads((run / "summary.json").read_text())
    assert (summary["world_size"], summary["stopped_early"]) == (2, False)


@pytest.mark.slow
def test_a_slurm_job_is_requeued(forks, tmp_path):
    """SLURM binds each task to a core of its own, and signals all of them before the time is over."""
    run = tmp_path / "train"
    flags = [*TASK, "--runs_dir", tmp_path, "--run_id", "train"]
    cores = sorted(os.sched_getaffinity(0))
    ranks = forks.srun(*flags, *FOREVER, cores=[{cores[0]}, {cores[-1]}])
    until(lambda: len(list_checkpoints(run / "checkpoints")) > 1)
    for rank in ranks:
        kill(rank.pid, signal.SIGUSR1)
    statuses, out, err = forks.wait(ranks)
    assert statuses == [0, 0] and "train_fabric.py: " not in err
    assert "2 ranks on cpu, 1 of 1 cores each" in out
    summary = json.loads((run / "summary.json").read_text())
    assert summary["stopped_early"] is True and summary["total_steps"] == saved(run)["steps"]

    total = summary["total_steps"] + 1280
    statuses, out, err = forks.wait(forks.srun(*flags, "--total_timesteps", total, "--resume"))
    assert statuses == [0, 0], err
    assert f"resuming run train after {summary['total_steps']:,} steps" in out
    assert saved(run)["steps"] == total


def test_a_rank_with_other_settings_is_refused(forks, tmp_path):
    flags = [*TASK, *TOTAL, "--runs_dir", tmp_path, "--run_id", "r", *CPU]
    launch = {"LOCAL_RANK": 0, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": free_port()}
    started = [forks.start(*flags, "--num_nodes", 2, NODE_RANK=0, **launch)]
    started.append(forks.start(*flags, "--num_nodes", 2, "--gamma", 0.5, NODE_RANK=1, **launch))
    statuses, _, err = forks.wait(started)
    assert statuses == [2, 2]
    assert "train_fabric.py: error: rank 1 has different settings from rank 0: gamma: 0.5; start every machine" in err
    assert err.count("train_fabric.py: ") == 1
    assert not (tmp_path / "r").exists()


@pytest.mark.parametrize(
    ("other", "told"),
    [
        ("env:\n  weights:\n  - 2.0\n  - 1.0\nrunds: 1\n", "- 2.0"),  # the same lines in another order
        ("env:\n  weights:\n  - 1.0\nrunds: 1\n", "no - 2.0"),
        ("env:\n  weights:\n  - 1.0\n  - 2.0\nrunds: 1\nplain: true\n", None),  # only rank 0 uses it
    ],
)
def test_settings_are_compared_line_by_line(monkeypatch, other, told):
    own = "env:\n  weights:\n  - 1.0\n  - 2.0\nrunds: 1\nplain: false\n"
    monkeypatch.setattr(launched_by, "all_gather_object", lambda fabric, mine: [mine, other])
    with nullcontext() if told is None else pytest.raises(ValueError, match=f"from rank 0: {told}; start every"):
        launched_by.check_same_settings(SimpleNamespace(world_size=2), own)


@pytest.mark.slow
def test_ranks_close_their_connections_before_they_exit(tmp_path):
    """Else gloo's threads abort one exit in forty."""
    script = tmp_path / "closes.py"
    script.write_text(
        "import atexit\n"
        "import torch.distributed\n"
        "import train_fabric\n"
        'atexit.register(lambda: print("connected:", torch.distributed.is_initialized()))  # what is first runs last\n'
        "train_fabric.cli()\n"
    )
    flags = [*TASK, "--total_timesteps", 256, *CPU, "--runs_dir", tmp_path]
    command = [*TORCHRUN, "--nproc-per-node", 2, script, *flags]
    with Launched(tmp_path / "output", *command, PYTHONPATH=ROOT) as launched:
        assert launched.wait() == 0, launched.err
        assert re.findall("connected: .*", launched.out) == ["connected: False"] * 2
