"""What launchers have decided, read from what they set; torchrun's memory on a real store; what processors refuse."""

import os
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from jupyter_client.manager import start_new_kernel
from lightning import Fabric
from lightning.fabric.plugins import MixedPrecision
from torch.distributed import TCPStore

from agents import PPOLightningAgent
from envs import GymnasiumEnvs
from fabric_rl import TrainArgs, train
from fabric_rl.ranks import launched_by
from fabric_rl.ranks.devices import _bfloat16_crashes, check_bfloat16
from fabric_rl.ranks.processes import describe_lost_rank

TORCHRUN = {"TORCHELASTIC_RUN_ID": "none", "RANK": "3", "WORLD_SIZE": "4", "LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "2"}
TORCHRUN |= {"GROUP_WORLD_SIZE": "2", "TORCHELASTIC_RESTART_COUNT": "1", "TORCHELASTIC_MAX_RESTARTS": "3"}
TORCHRUN |= {"TORCHELASTIC_USE_AGENT_STORE": "True"}
FABRIC_RUN = TORCHRUN | {"LT_CLI_USED": "1", "LT_ACCELERATOR": "cpu", "LT_DEVICES": "2", "LT_NUM_NODES": "2"}
FABRIC_RUN |= {"MASTER_ADDR": "10.0.0.1", "MASTER_PORT": "29400", "TORCHELASTIC_MAX_RESTARTS": "0"}
SLURM = {"SLURM_NTASKS": "6", "SLURM_NNODES": "2", "SLURM_PROCID": "4", "SLURM_LOCALID": "1", "SLURM_JOB_NAME": "x"}
SLURM |= {"RANK": "0", "LOCAL_RANK": "0"}  # not srun's
NODE = {"NODE_RANK": "1"}


@pytest.fixture
def launched(monkeypatch):
    """Sets the variables of a launcher."""

    def launched(variables):
        for name in list(os.environ):
            if name.startswith(("LT_", "TORCHELASTIC_", "SLURM_", "MASTER_", "GROUP_")) or name.endswith("RANK"):
                monkeypatch.delenv(name)
        for name, value in variables.items():
            monkeypatch.setenv(name, value)

    yield launched
    launched_by._agents.cache_clear()
    launched_by._own_server.cache_clear()


@pytest.mark.parametrize(
    ("variables", "rank_0", "local_rank_0", "machines", "decided"),
    [
        ({}, True, True, 1, (1, 1)),
        ({"LOCAL_RANK": "1"}, False, False, 1, (1, 1)),
        (NODE, False, True, 1, (1, 1)),
        (TORCHRUN, False, False, 2, (2, 2)),
        (TORCHRUN | {"RANK": "0", "LOCAL_RANK": "0"}, True, True, 2, (2, 2)),
        (SLURM, False, False, 2, (3, 2)),
        (SLURM | {"SLURM_PROCID": "0", "SLURM_LOCALID": "0"}, True, True, 2, (3, 2)),
        (SLURM | {"SLURM_JOB_NAME": "bash"}, True, True, 1, (1, 1)),  # a shell on a node: nobody has started ranks
    ],
)
def test_what_the_launcher_has_decided(launched, variables, rank_0, local_rank_0, machines, decided):
    launched(variables)
    found = launched_by.detect_launcher()
    assert (found.is_rank_0, found.local_rank == 0, found.machines) == (rank_0, local_rank_0, machines)
    assert tuple(launched_by.resolve_devices_and_nodes(1, 1).values()) == decided


@pytest.mark.parametrize(("cores", "most"), [(1, 16), (2, 16), (8, 32)])
def test_more_ranks_than_a_machine_has_room_for_are_refused_where_they_are_started(launched, monkeypatch, cores, most):
    monkeypatch.setattr(launched_by, "cores", lambda: set(range(cores)))
    launched({})
    for devices in (1, most, str(most), "auto", "0,99", -1):
        launched_by.check_devices(devices)
    with pytest.raises(
        ValueError, match=f"--devices {most + 1}: .* {cores} cores?; one per core .* at most {most} are"
    ):
        launched_by.check_devices(most + 1)
    for variables in (TORCHRUN, SLURM):
        launched(variables)
        launched_by.check_devices(1000)  # they have been started


def test_what_the_user_says_is_left_to_fabric_which_compares(launched):
    launched(TORCHRUN)
    assert launched_by.resolve_devices_and_nodes("0,3", 4) == {"devices": "0,3", "num_nodes": 4}


def test_machines_of_different_size_are_refused(launched):
    launched(TORCHRUN | {"WORLD_SIZE": "5"})
    with pytest.raises(ValueError, match="5 ranks on 2 machines"):
        launched_by.resolve_devices_and_nodes(1, 1)


@pytest.mark.parametrize(
    ("variables", "words"),
    [
        ({}, "python train_fabric.py"),
        (SLURM, "srun python train_fabric.py"),
        (
            TORCHRUN,
            "torchrun --nproc-per-node=2 --nnodes=2 --rdzv-backend=c10d --rdzv-endpoint=HOST:29400 --max-restarts=3 "
            "train_fabric.py",
        ),
        (TORCHRUN | {"GROUP_WORLD_SIZE": "1"}, "torchrun --nproc-per-node=4 --max-restarts=3 train_fabric.py"),
        (
            FABRIC_RUN,
            "fabric run --accelerator=cpu --devices=2 --num-nodes=2 --node-rank=0 --main-address=10.0.0.1 "
            "--main-port=29400 train_fabric.py",
        ),
        (FABRIC_RUN | {"GROUP_WORLD_SIZE": "1"}, "fabric run --accelerator=cpu --devices=2 train_fabric.py"),
    ],
)
def test_the_command_that_does_it_again(launched, monkeypatch, variables, words):
    launched(variables)
    monkeypatch.setattr("sys.argv", ["train_fabric.py", "--resume"])
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent), prepend=os.pathsep)
    assert " ".join(launched_by.training_command()) == words
    assert launched_by.training_command(alone=True) == ["python", "train_fabric.py"]


def test_the_command_that_does_it_again_by_another_name(launched, monkeypatch):
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent), prepend=os.pathsep)
    monkeypatch.setattr("sys.argv", ["/somewhere/fabric-rl", "train"])
    launched(SLURM)
    assert launched_by.training_command() == ["srun", "fabric-rl", "train"]
    launched(TORCHRUN)
    assert launched_by.training_command()[-2:] == ["/somewhere/fabric-rl", "train"]
    assert launched_by.training_command(alone=True) == ["fabric-rl", "train"]


def test_a_program_that_its_name_does_not_find_is_called_by_its_path(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert launched_by.program_command("python") == str(Path(sys.executable).with_name("python"))


@pytest.mark.slow
def test_a_program_that_executes_notebooks_is_none_itself():
    code = (
        "import sys; from jupyter_client.kernelspec import get_kernel_spec; get_kernel_spec('python3'); "
        "from fabric_rl.ranks.launched_by import in_notebook; print('ipykernel' in sys.modules, in_notebook())"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "True False\n"
    manager, client = start_new_kernel()
    try:
        said = []
        client.execute_interactive(
            "from fabric_rl.ranks.launched_by import in_notebook; print(in_notebook())",
            output_hook=lambda message: said.append(message["content"].get("text")),
        )
        assert "True\n" in said
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


def test_the_run_is_remembered_by_the_launch_and_only_by_it(launched, tmp_path):
    """A folder of that name from long ago is nothing that a restart may go on with."""
    (tmp_path / "r/checkpoints").mkdir(parents=True)
    agents = TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    launched(TORCHRUN | {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(agents.port)})
    assert launched_by.run_before_restart() is None
    launched_by.remember_run(tmp_path / "r")
    assert launched_by.run_before_restart() == tmp_path / "r"
    launched_by.forget_run()
    assert launched_by.run_before_restart() is None
    launched_by.remember_run(tmp_path / "of_another_machine")
    with pytest.raises(FileNotFoundError, match=r"cannot see .*of_another_machine; use a shared folder"):
        launched_by.run_before_restart()


def test_without_restarts_nothing_is_remembered(launched, tmp_path):
    launched(FABRIC_RUN)  # at an address that does not answer
    assert launched_by.detect_launcher().most_restarts == 0
    launched_by.remember_run(tmp_path)
    assert launched_by.run_before_restart() is None


def test_ranks_meet_at_a_new_place_after_each_restart(launched):
    agents = TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    before = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(agents.port)}
    launched(TORCHRUN | before | {"RANK": "0"})
    launched_by.use_new_store()
    port = os.environ["MASTER_PORT"]
    assert port != before["MASTER_PORT"] and os.environ["TORCHELASTIC_USE_AGENT_STORE"] == "False"
    server = launched_by._own_server("127.0.0.1")
    assert server.port == int(port)
    launched_by._agents.cache_clear()
    launched(TORCHRUN | before)
    launched_by.use_new_store()
    assert os.environ["MASTER_PORT"] == port


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (
            RuntimeError("[x/gloo/transport/tcp/pair.cc:553] Connection closed by peer [10.0.0.2]:10411. This is"),
            "another rank (on 10.0.0.2) has died or cannot be reached",
        ),
        (
            RuntimeError("[x/gloo/transport/tcp/unbound_buffer.cc:84] Timed out waiting 90000ms for recv operation"),
            "no answer from another rank for 1.5 minutes (--timeout_minutes)",
        ),
        (torch.distributed.DistNetworkError("failed to recv"), "another rank has died or cannot be reached"),
        (RuntimeError("mat1 and mat2 shapes cannot be multiplied"), None),
        (ValueError("gloo is no sound"), None),
    ],
)
def test_which_errors_mean_that_a_rank_is_lost(error, words):
    assert describe_lost_rank(error) == words


@pytest.mark.skipif(sys.platform == "win32", reason="there are no such signals")
def test_a_processor_that_refuses_its_own_bfloat16_is_told_before_anything_is_computed(monkeypatch):
    monkeypatch.delenv("ONEDNN_MAX_CPU_ISA", raising=False)
    stopped = SimpleNamespace(returncode=-signal.SIGILL)
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: stopped)
    without_cache = _bfloat16_crashes.__wrapped__
    monkeypatch.setattr("fabric_rl.ranks.devices._bfloat16_crashes", without_cache)
    with pytest.raises(ValueError, match=r"--precision bf16-mixed: .* set ONEDNN_MAX_CPU_ISA=AVX512_CORE_BF16 before"):
        check_bfloat16()
    monkeypatch.setenv("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_BF16")
    check_bfloat16()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"precision": "bf16-true"}, "--precision bf16-true is not supported; use 32-true, bf16-mixed, 16-mixed"),
        ({"precision": 64}, "--precision 64-true is not supported; use 32-true, bf16-mixed, 16-mixed"),
        # Fabric(precision="16-mixed") itself replaces it on the CPU, and warns.
        (
            {"plugins": MixedPrecision("16-mixed", "cpu")},
            "--precision 16-mixed needs a GPU; use bf16-mixed or 32-true on the CPU",
        ),
    ],
)
def test_a_fabric_of_the_users_own_is_checked_like_the_command_line(settings, message):
    fabric = Fabric(accelerator="cpu", devices=1, **settings)
    fabric.launch()
    with pytest.raises(ValueError, match=f"^{message}$"):
        train(fabric, partial(GymnasiumEnvs, "CartPole-v1", 2), PPOLightningAgent, TrainArgs(total_timesteps=100))
