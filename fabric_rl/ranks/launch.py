"""Who has started this process, and what is already decided: `fabric run`, torchrun, SLURM, or Fabric itself."""

import atexit
import os
import shutil
import socket
import sys
import time
from datetime import timedelta
from functools import cache
from pathlib import Path
from typing import Any

import torch
from lightning import Fabric
from lightning.fabric.plugins.environments.slurm import SLURMEnvironment
from lightning.fabric.plugins.environments.torchelastic import TorchElasticEnvironment
from torch.distributed.distributed_c10d import _set_pg_timeout

from fabric_rl.ranks.collectives import gather_everywhere
from fabric_rl.ranks.cores import cores

_distributed: Any = torch.distributed  # whose types hide the stores
_PATIENCE = timedelta(minutes=30)
"""How long ranks wait for one another before training, as torch.distributed does."""
_MOST_RANKS, _MOST_RANKS_PER_CORE = 16, 4
"""More ranks than both allow on one machine are no trial of something: they only fill the memory."""
_OF_RANK_0 = ("runs_dir:", "plain:")
"""Settings that may differ between machines: only rank 0 uses them."""


def in_notebook() -> bool:
    """Whether this process serves a notebook."""
    return "ipykernel" in sys.modules


def used_fabric_run() -> bool:
    """Whether `fabric run` has started this process; then it has decided about devices and precision."""
    return os.environ.get("LT_CLI_USED") == "1"


def used_torchrun() -> bool:
    """Whether torchrun has, which `fabric run` calls, too."""
    return TorchElasticEnvironment.detect()


def used_srun() -> bool:
    """Whether SLURM's srun has."""
    return not used_torchrun() and SLURMEnvironment.detect()


def is_rank_0() -> bool:
    """Whether this process is the one that reads and writes the run; known before the ranks are connected."""
    if used_torchrun():
        return os.environ["RANK"] == "0"
    if used_srun():
        return os.environ.get("SLURM_PROCID", "0") == "0"
    return all(os.environ.get(name, "0") == "0" for name in ("NODE_RANK", "LOCAL_RANK"))


def is_local_rank_0() -> bool:
    """Whether this process is the first one of its machine."""
    return os.environ.get("SLURM_LOCALID" if used_srun() else "LOCAL_RANK", "0") == "0"


def machines() -> int:
    """How many machines the launcher has started processes on; 1 where it does not say."""
    if used_torchrun():
        return int(os.environ.get("GROUP_WORLD_SIZE", "1"))
    return int(os.environ.get("SLURM_NNODES", "1")) if used_srun() else 1


def devices_and_nodes(devices: int | str, num_nodes: int) -> dict[str, int | str]:
    """`--devices` and `--num_nodes`, which torchrun and SLURM decide about where the user has left their defaults."""
    if used_torchrun():
        ranks = int(os.environ["WORLD_SIZE"])
    elif used_srun():
        ranks = int(os.environ["SLURM_NTASKS"])
    else:
        return {"devices": devices, "num_nodes": num_nodes}
    if ranks % machines():
        raise ValueError(f"{ranks} ranks on {machines()} machines: every machine needs the same number of ranks")
    each = ranks // machines()
    return {
        "devices": each if str(devices) in ("1", "auto") else devices,
        "num_nodes": machines() if num_nodes == 1 else num_nodes,
    }


def check_devices(devices: int | str) -> None:
    """Raises ValueError for far more ranks than this machine has room for, where this process is to start them."""
    here = len(cores())
    most = max(_MOST_RANKS, _MOST_RANKS_PER_CORE * here)
    if str(devices).isdecimal() and int(devices) > most and not (used_torchrun() or used_srun()):
        raise ValueError(
            f"--devices {devices}: each is a process with half a gigabyte of its own, but this machine has {here} "
            f"core{'s' if here > 1 else ''}; as many as cores are fastest, more than {most} are refused"
        )


def installed(name: str) -> str:
    """How this Python's program of that name is called from here: by its name where that is found."""
    own, found = Path(sys.executable).with_name(name), shutil.which(name)
    return name if found and (not own.exists() or Path(found).samefile(own)) else str(own)


def command(alone: bool = False) -> list[str]:
    """The beginning of a command line that starts training again in the same way; `alone`: by itself, as one process.

    It is `fabric-rl train`, or the script where it lies, behind what has started the ranks.
    """
    by_name, script = Path(sys.argv[0]).stem == "fabric-rl", sys.argv[0]
    launcher = [] if alone else _launcher()
    if launcher[:1] in ([], ["srun"]):
        program = [installed("fabric-rl")] if by_name else [installed("python"), script]
    else:
        program = [script]
    return [*launcher, *program, *(["train"] if by_name else [])]


def _launcher() -> list[str]:
    """What starts the same number of ranks in the same way."""
    if used_fabric_run():
        names = ("accelerator", "strategy", "devices", "precision")
        given = {name: os.environ.get(f"LT_{name.upper()}") for name in names}
        if machines() > 1:
            given |= {"num-nodes": str(machines()), "node-rank": "0"}
            given |= {"main-address": os.environ["MASTER_ADDR"], "main-port": os.environ["MASTER_PORT"]}
        return [installed("fabric"), "run", *(f"--{name}={value}" for name, value in given.items() if value)]
    if used_torchrun():
        flags = [f"--nproc-per-node={int(os.environ['WORLD_SIZE']) // machines()}"]
        if machines() > 1:
            flags += [f"--nnodes={machines()}", "--rdzv-backend=c10d", "--rdzv-endpoint=HOST:29400"]
        return [installed("torchrun"), *flags, f"--max-restarts={os.environ.get('TORCHELASTIC_MAX_RESTARTS', '0')}"]
    return ["srun"] if used_srun() else []


# ---------------------------------------------------------------- once the ranks are connected


def set_timeout(fabric: Fabric, minutes: float) -> None:
    """Sets how long this rank waits for an answer from others before it gives them up."""
    if fabric.world_size > 1:
        _set_pg_timeout(timedelta(minutes=minutes))  # `fabric run` connects the ranks before Fabric takes a strategy


@cache
def disconnect_at_exit() -> None:
    """Has this process close its connections to other ranks before it exits; to be called when all went well.

    torch does not, and one exit in forty then ends in an abort: gloo's threads are still there (PyTorch's issue
    190489). After an error it might wait for a rank that will not answer.
    """
    atexit.register(_disconnect)


def _disconnect() -> None:
    if _distributed.is_initialized():
        _distributed.destroy_process_group()


def ranks_on_these_cores(fabric: Fabric) -> int:
    """How many ranks share the cores of this one; every rank calls it.

    Those of this machine, unless the launcher (SLURM, numactl) has bound each of them to cores of its own. Your own
    `LOCAL_WORLD_SIZE` wins where it is not torchrun's.
    """
    if "LOCAL_WORLD_SIZE" in os.environ and not used_torchrun():
        return max(1, int(os.environ["LOCAL_WORLD_SIZE"]))
    if fabric.world_size == 1:
        return 1
    own = cores()
    everyone = gather_everywhere(fabric, (fabric.node_rank, own))
    return sum(node == fabric.node_rank and not own.isdisjoint(theirs) for node, theirs in everyone)


def check_same_settings(fabric: Fabric, settings: str | None) -> None:
    """Raises the same ValueError on all ranks if one has been started with other settings (YAML) than rank 0."""
    if fabric.world_size == 1:
        return
    everyone = gather_everywhere(fabric, settings or "")
    expected = set(everyone[0].splitlines())
    for rank, text in enumerate(everyone):
        lines = [line.strip() for line in text.splitlines() if line not in expected]
        lines = [line for line in lines if not line.startswith(_OF_RANK_0)]
        if lines:
            raise ValueError(
                f"rank {rank} has other settings than rank 0: {', '.join(lines[:3])}; start every machine with the "
                "same flags and the same --config file"
            )


# ---------------------------------------------------------------- what torchrun's agents keep for all ranks


@cache
def _agents() -> Any:  # noqa: ANN401 - a Store, or None
    """The store that torchrun's agents hold as long as the launch lives; None without."""
    if not used_torchrun() or os.environ.get("TORCHELASTIC_USE_AGENT_STORE") != "True":
        return None
    address, port = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
    store = _distributed.TCPStore(address, port, is_master=False, timeout=_PATIENCE)
    return _distributed.PrefixStore("fabric_rl", store)


@cache
def _own_server(address: str) -> Any:  # noqa: ANN401 - a TCPStore
    """A store that lives as long as this process; `init_process_group` shares it by its port."""
    return _distributed.TCPStore(address, 0, is_master=True, multi_tenant=True, wait_for_workers=False)


def can_restart() -> bool:
    """Whether torchrun starts all ranks again when one has failed."""
    return used_torchrun() and int(os.environ.get("TORCHELASTIC_MAX_RESTARTS", "0")) > 0


def restarts_left() -> bool:
    """Whether it still does."""
    used, most = (os.environ.get(f"TORCHELASTIC_{name}", "0") for name in ("RESTART_COUNT", "MAX_RESTARTS"))
    return can_restart() and int(used) < int(most)


def restarts() -> str:
    """How many of torchrun's restarts have been used, as text."""
    return f"{os.environ['TORCHELASTIC_RESTART_COUNT']} of at most {os.environ['TORCHELASTIC_MAX_RESTARTS']}"


def connect_freshly() -> None:
    """Before Fabric connects the ranks: gives them a store of their own where torchrun can restart them.

    In the agents' store a restarted rank may find the addresses of ranks that have died: torch 2.13 wastes restarts
    with them, or waits for ever.
    """
    agents = _agents() if can_restart() else None
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
        except OSError:  # that of the rank 0 before; the new one is not there yet
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)
    os.environ.update(MASTER_ADDR=address, MASTER_PORT=port, TORCHELASTIC_USE_AGENT_STORE="False")


def remember_run(folder: Path) -> None:
    """Rank 0 has made or taken this run: a restart is to go on with it."""
    agents = _agents() if can_restart() else None
    if agents is not None:
        agents.set("run", str(folder.absolute()))


def forget_run() -> None:
    """The run has failed before it began, and its folder is gone."""
    agents = _agents() if can_restart() else None
    if agents is not None:
        agents.delete_key("run")


def run_before_restart() -> Path | None:
    """The run that this launch had before torchrun started its ranks again; None at the first start.

    Raises:
        FileNotFoundError: Rank 0 was on another machine then, whose run folder this one does not see.
    """
    agents = _agents() if can_restart() else None
    if agents is None or not agents.check(["run"]):
        return None
    folder = Path(agents.get("run").decode())
    if not (folder / "checkpoints").is_dir():
        raise FileNotFoundError(
            f"--runs_dir: torchrun has moved rank 0 to a machine that does not see {folder}; use a shared folder"
        )
    return folder


def share_text(text: str | None) -> str | None:
    """What rank 0 has read, for machines that do not see its files; every rank calls it.

    On one machine, and where torchrun has not started the ranks, every rank gets what it has read itself.
    """
    agents = _agents() if machines() > 1 else None
    if agents is None:
        return text
    if is_rank_0():
        agents.set("text", text or "")
    return agents.get("text").decode() or None
