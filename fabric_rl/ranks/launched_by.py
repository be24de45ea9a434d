"""Launcher of this process (`fabric run`, torchrun, SLURM, or Fabric itself), and what depends on it."""

import atexit
import difflib
import os
import shutil
import socket
import sys
import time
from dataclasses import dataclass
from datetime import timedelta
from functools import cache
from pathlib import Path
from typing import Any

import torch
from lightning import Fabric
from lightning.fabric.plugins.environments.slurm import SLURMEnvironment
from lightning.fabric.plugins.environments.torchelastic import TorchElasticEnvironment
from torch.distributed.distributed_c10d import _set_pg_timeout

from fabric_rl.base.processes import cores
from fabric_rl.ranks.collectives import all_gather_object

_distributed: Any = torch.distributed  # its type hints hide the stores
_PATIENCE = timedelta(minutes=30)
"""Timeout for connecting, the default in torch.distributed."""
_MOST_RANKS, _MOST_RANKS_PER_CORE = 16, 4
"""Limits of the ranks on one machine, of which the larger counts; more ranks would only fill the memory."""
_OF_RANK_0 = ("runs_dir:", "plain:")
"""Settings that may differ between machines: only rank 0 uses them."""


@dataclass(frozen=True)
class Launch:
    """Launcher, and the position of this process among those that it started."""

    by: str | None
    """`torchrun`, `srun`, or None if Fabric starts the ranks from this process."""
    is_rank_0: bool
    """True if this process reads and writes the run."""
    local_rank: int
    rank: int | None = None
    ranks: int | None = None
    machines: int = 1
    restarts: int = 0
    """Restarts of all ranks by torchrun so far."""
    most_restarts: int = 0


def detect_launcher() -> Launch:
    """Return the launcher of this process, from environment variables, so even before the ranks are connected."""

    def number(name: str, default: int = 0) -> int:
        return int(os.environ.get(name, default))

    if TorchElasticEnvironment.detect():
        rank, restarts = number("RANK"), number("TORCHELASTIC_RESTART_COUNT")
        place = (rank == 0, number("LOCAL_RANK"), rank, number("WORLD_SIZE"), number("GROUP_WORLD_SIZE", 1))
        return Launch("torchrun", *place, restarts, number("TORCHELASTIC_MAX_RESTARTS"))
    if SLURMEnvironment.detect():
        rank = number("SLURM_PROCID")
        place = (rank == 0, number("SLURM_LOCALID"), rank, number("SLURM_NTASKS"), number("SLURM_NNODES", 1))
        return Launch("srun", *place)
    local = number("LOCAL_RANK")
    return Launch(None, local == 0 and number("NODE_RANK") == 0, local)


def is_rank_0() -> bool:
    """Return whether this process reads and writes the run."""
    return detect_launcher().is_rank_0


def used_fabric_run() -> bool:
    """Return whether `fabric run` started the ranks, and thus set the devices and the precision."""
    return os.environ.get("LT_CLI_USED") == "1"


def in_notebook() -> bool:
    """Return whether this process runs a notebook."""
    return "ipykernel.kernelapp" in sys.modules  # `ipykernel` alone is imported by programs that execute notebooks


def resolve_devices_and_nodes(devices: int | str, num_nodes: int) -> dict[str, int | str]:
    """Return `--devices` and `--num_nodes`; under torchrun and SLURM, the launched processes replace the defaults."""
    launched = detect_launcher()
    ranks, machines = launched.ranks, launched.machines
    if ranks is None:
        return {"devices": devices, "num_nodes": num_nodes}
    if ranks % machines:
        raise ValueError(f"{ranks} ranks on {machines} machines: every machine needs the same number of ranks")
    each = ranks // machines
    return {
        "devices": each if str(devices) in ("1", "auto") else devices,
        "num_nodes": machines if num_nodes == 1 else num_nodes,
    }


def check_devices(devices: int | str) -> None:
    """Raise ValueError if this process is to start far more ranks than the machine has room for."""
    here = len(cores())
    most = max(_MOST_RANKS, _MOST_RANKS_PER_CORE * here)
    if str(devices).isdecimal() and int(devices) > most and detect_launcher().by is None:
        raise ValueError(
            f"--devices {devices}: each is a process that needs half a gigabyte, but this machine has {here} "
            f"core{'s' if here > 1 else ''}; one per core is fastest, and at most {most} are allowed"
        )


def program_command(name: str) -> str:
    """Return the command of a program of this Python environment: its name if PATH finds it, else its path."""
    own, found = Path(sys.executable).with_name(name), shutil.which(name)
    return name if found and (not own.exists() or Path(found).samefile(own)) else str(own)


def training_command(alone: bool = False) -> list[str]:
    """Return the first words of a command that starts training in the same way, or in one process if `alone`.

    These are the words of the launcher, then `fabric-rl train` or the path of the script.
    """
    by_name, script = Path(sys.argv[0]).stem == "fabric-rl", sys.argv[0]
    launcher = [] if alone else _launcher()
    if launcher[:1] in ([], ["srun"]):
        program = [program_command("fabric-rl")] if by_name else [program_command("python"), script]
    else:
        program = [script]
    return [*launcher, *program, *(["train"] if by_name else [])]


def _launcher() -> list[str]:
    """Return the words of a command that starts the same number of ranks in the same way; empty without a launcher."""
    launched = detect_launcher()
    machines = launched.machines
    if used_fabric_run():
        names = ("accelerator", "strategy", "devices", "precision")
        given = {name: os.environ.get(f"LT_{name.upper()}") for name in names}
        if machines > 1:
            given |= {"num-nodes": str(machines), "node-rank": "0"}
            given |= {"main-address": os.environ["MASTER_ADDR"], "main-port": os.environ["MASTER_PORT"]}
        return [program_command("fabric"), "run", *(f"--{name}={value}" for name, value in given.items() if value)]
    if launched.by == "torchrun" and launched.ranks is not None:
        flags = [f"--nproc-per-node={launched.ranks // machines}"]
        if machines > 1:
            flags += [f"--nnodes={machines}", "--rdzv-backend=c10d", "--rdzv-endpoint=HOST:29400"]
        return [program_command("torchrun"), *flags, f"--max-restarts={launched.most_restarts}"]
    return ["srun"] if launched.by == "srun" else []


# ---------------------------------------------------------------- after the ranks are connected


def set_timeout(fabric: Fabric, minutes: float) -> None:
    """Set the time after which this rank stops waiting for other ranks."""
    if fabric.world_size > 1:
        _set_pg_timeout(timedelta(minutes=minutes))  # `fabric run` connects the ranks before Fabric gets a strategy


@cache
def disconnect_at_exit() -> None:
    """Make this process close its connections to other ranks when it exits; call it after success only.

    torch does not close them itself, and one exit in forty aborts because gloo's threads are still running (PyTorch
    issue 190489). After an error, closing might wait for a rank that does not answer.
    """
    atexit.register(lambda: _distributed.is_initialized() and _distributed.destroy_process_group())


def ranks_on_these_cores(fabric: Fabric) -> int:
    """Count the ranks that share cores with this one, itself included; every rank calls it.

    Usually these are all ranks of the machine, but a launcher (SLURM, numactl) may bind ranks to separate cores. If the
    user (not torchrun) has set `LOCAL_WORLD_SIZE`, that number is returned.
    """
    if "LOCAL_WORLD_SIZE" in os.environ and detect_launcher().by != "torchrun":
        return max(1, int(os.environ["LOCAL_WORLD_SIZE"]))
    if fabric.world_size == 1:
        return 1
    own = cores()
    everyone = all_gather_object(fabric, (fabric.node_rank, own))
    return sum(node == fabric.node_rank and not own.isdisjoint(theirs) for node, theirs in everyone)


def check_same_settings(fabric: Fabric, settings: str | None) -> None:
    """Raise the same ValueError on all ranks if one was started with different settings (YAML) from rank 0."""
    if fabric.world_size == 1:
        return
    everyone = all_gather_object(fabric, settings or "")
    expected, *others = ([x for x in text.splitlines() if not x.strip().startswith(_OF_RANK_0)] for text in everyone)
    for rank, lines in enumerate(others, 1):
        if lines != expected:
            changes = [line for line in difflib.ndiff(expected, lines) if line[0] in "+-"]
            new = [line[1:].strip() for line in changes if line[0] == "+"]
            gone = [f"no {line[1:].strip()}" for line in changes if line[0] == "-"]
            raise ValueError(
                f"rank {rank} has different settings from rank 0: {', '.join((new or gone)[:3])}; start every machine "
                "with the same flags and the same --config file"
            )


# ---------------------------------------------------------------- the store of torchrun's agents


@cache
def _agents() -> Any:  # noqa: ANN401 - a Store, or None
    """Return the store that torchrun's agents keep across restarts; None without torchrun."""
    if detect_launcher().by != "torchrun" or os.environ.get("TORCHELASTIC_USE_AGENT_STORE") != "True":
        return None
    address, port = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
    store = _distributed.TCPStore(address, port, is_master=False, timeout=_PATIENCE)
    return _distributed.PrefixStore("fabric_rl", store)


@cache
def _own_server(address: str) -> Any:  # noqa: ANN401 - a TCPStore
    """Return a store that lives as long as this process; `init_process_group` finds it by its port."""
    return _distributed.TCPStore(address, 0, is_master=True, multi_tenant=True, wait_for_workers=False)


def _agents_that_restart() -> Any:  # noqa: ANN401 - a Store, or None
    """Return the agents' store if torchrun restarts all ranks after a failure, else None."""
    return _agents() if detect_launcher().most_restarts > 0 else None


def use_new_store() -> None:
    """Give the ranks a new store if torchrun can restart them; call it before Fabric connects them.

    In the agents' store, a restarted rank may find addresses of ranks that have died: torch 2.13 wastes restarts on
    them, or waits forever.
    """
    agents = _agents_that_restart()
    if agents is None:
        return
    if is_rank_0():
        address = os.environ["MASTER_ADDR"]
        agents.set("address", f"{address} {_own_server(address).port}")
    deadline = time.monotonic() + _PATIENCE.total_seconds()
    while True:
        address, port = agents.get("address").decode().split()
        try:
            socket.create_connection((address, int(port)), timeout=5).close()
            break
        except OSError:  # the address of the previous rank 0; that of the new one is not there yet
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)
    os.environ.update(MASTER_ADDR=address, MASTER_PORT=port, TORCHELASTIC_USE_AGENT_STORE="False")


def remember_run(folder: Path) -> None:
    """Store the run that rank 0 created or resumed, for a restart of the ranks by torchrun."""
    agents = _agents_that_restart()
    if agents is not None:
        agents.set("run", str(folder.absolute()))


def forget_run() -> None:
    """Delete what `remember_run` stored, for a run that failed before it began or whose folder no longer exists."""
    agents = _agents_that_restart()
    if agents is not None:
        agents.delete_key("run")


def run_before_restart() -> Path | None:
    """Return the run that the ranks trained before torchrun restarted them; None at the first start.

    Raises:
        FileNotFoundError: Rank 0 was on another machine, and its run folder is not visible from here.
    """
    agents = _agents_that_restart()
    if agents is None or not agents.check(["run"]):
        return None
    folder = Path(agents.get("run").decode())
    if not (folder / "checkpoints").is_dir():
        raise FileNotFoundError(
            f"--runs_dir: torchrun has moved rank 0 to a machine that cannot see {folder}; use a shared folder"
        )
    return folder


def broadcast_text(text: str | None) -> str | None:
    """Return rank 0's text, on machines that cannot see its files, too; every rank calls it.

    On a single machine, or without torchrun, every rank gets its own text back.
    """
    agents = _agents() if detect_launcher().machines > 1 else None
    if agents is None:
        return text
    if is_rank_0():
        agents.set("text", text or "")
    return agents.get("text").decode() or None
