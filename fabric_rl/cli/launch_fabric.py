"""Launch Fabric: connect the ranks, and divide the cores of a machine between them."""

import os
from datetime import timedelta
from typing import Any

import torch
from lightning import Fabric
from lightning.fabric.loggers.logger import Logger
from lightning.fabric.strategies import STRATEGY_REGISTRY
from lightning.fabric.utilities.exceptions import MisconfigurationException

from fabric_rl.args import Hardware
from fabric_rl.base.processes import cores
from fabric_rl.base.text import did_you_mean
from fabric_rl.metrics.log import logger
from fabric_rl.ranks import launched_by
from fabric_rl.ranks.devices import check_precision, choose_precision
from fabric_rl.ranks.players_strategy import OF_FABRIC_RUN, PlayersStrategy, fabric_kwargs
from fabric_rl.ranks.processes import RANK_0, describe_lost_rank, exit_with_launcher
from fabric_rl.ranks.sharding import ShardedStrategy


def launch_fabric(hardware: Hardware, num_players: int, loggers: list[Logger]) -> Fabric:
    """Build and launch Fabric. Every rank calls this.

    Args:
        hardware: Settings; a launcher such as torchrun overrides them.
        num_players: Number of ranks that only collect.
        loggers: Fabric loggers; only those of rank 0 are used.

    Raises:
        ValueError: The settings contradict each other.
        MisconfigurationException: The hardware is not available.
    """
    if launched_by.in_notebook() and str(hardware.devices) != "1":
        raise ValueError(
            f"devices={hardware.devices}: main() cannot start processes from a notebook; pass a function that calls "
            "fabric_rl.train() to Fabric(...).launch(), as notebooks/03_rewards_and_states.ipynb does"
        )
    launched_by.check_devices(hardware.devices)
    exit_with_launcher()
    arguments: dict[str, Any] = launched_by.resolve_devices_and_nodes(hardware.devices, hardware.num_nodes)
    precision = choose_precision(hardware.precision, hardware.accelerator)
    on_mac = hardware.accelerator == "auto" and torch.backends.mps.is_available()  # not tested on Apple's GPU
    arguments |= {
        "accelerator": "cpu" if on_mac else hardware.accelerator,
        "strategy": hardware.strategy,
        "precision": precision,
    }
    if launched_by.used_fabric_run():
        arguments = {} if "LT_PRECISION" in os.environ else {"precision": precision}  # it has set all others
    launched_by.use_new_store()
    if num_players:
        arguments = fabric_kwargs(num_players, arguments, timedelta(minutes=hardware.timeout_minutes))
    fabric = _fabric(loggers, arguments)
    if not launched_by.used_fabric_run():
        os.environ[RANK_0] = str(os.getpid())  # for the processes that Fabric starts now
        fabric.launch()
        del os.environ[RANK_0]
    launched_by.set_timeout(fabric, hardware.timeout_minutes)
    return fabric


def divide_cores(fabric: Fabric, num_threads: int | None) -> str:
    """Divide the cores between the ranks of this machine (pools read LOCAL_WORLD_SIZE), and return a description.

    Args:
        fabric: Launched Fabric.
        num_threads: Number of torch threads. None: `OMP_NUM_THREADS` (unless torchrun has set it), else one per core
            of this rank.
    """
    ranks = launched_by.ranks_on_these_cores(fabric)
    os.environ["LOCAL_WORLD_SIZE"] = str(ranks)
    here = len(cores())
    share = max(1, here // ranks)
    if ranks > here and fabric.is_global_zero:
        logger.warning("%d ranks share %d cores, and slow each other down; --devices %d is faster", ranks, here, here)
    given = "" if launched_by.detect_launcher().by == "torchrun" else os.environ.get("OMP_NUM_THREADS", "")
    torch.set_num_threads(num_threads or (int(given) if given.isdecimal() else 0) or share)
    threads = torch.get_num_threads()
    torchs = "" if threads == share else f" ({threads} for torch)"
    count = f"{fabric.world_size} rank{'s' if fabric.world_size > 1 else ''}"
    nodes = int(getattr(fabric.strategy, "num_nodes", 1))
    where = f"{nodes} machines ({fabric.device.type})" if nodes > 1 else fabric.device.type
    roles = f"; {fabric.strategy.describe_roles()}" if isinstance(fabric.strategy, PlayersStrategy) else ""
    return f"{count} on {where}, {share} of {here} cores each{torchs}{roles}"


def _fabric(loggers: list[Logger], arguments: dict[str, Any]) -> Fabric:
    names = ("precision", "accelerator", "strategy")
    precision, accelerator, strategy = (arguments.get(name, os.environ.get(f"LT_{name.upper()}")) for name in names)
    on_gpu = accelerator != "cpu" and torch.cuda.is_available()
    precision = check_precision(str(precision), "cuda" if on_gpu else "cpu")  # before Fabric, which would replace it
    contradicting: tuple[str, ...] = ()  # variables of `fabric run`
    if isinstance(strategy, PlayersStrategy):
        contradicting = OF_FABRIC_RUN
    elif strategy == "fsdp":  # Fabric's own "fsdp" needs a GPU and an agent written for it
        if precision == "16-mixed":
            raise ValueError(f"--strategy fsdp: --precision {precision} is not supported; use bf16-mixed or 32-true")
        arguments = arguments | {"strategy": ShardedStrategy()}
        contradicting = ("LT_STRATEGY",)
    elif isinstance(strategy, str) and strategy not in (known := ["auto", *STRATEGY_REGISTRY.available_strategies()]):
        hint = did_you_mean(strategy, known) or "; use auto, ddp or fsdp"
        raise ValueError(f"--strategy {strategy}: no such strategy{hint}")
    kept = {name: os.environ.pop(name) for name in contradicting if name in os.environ}
    try:
        return Fabric(loggers=loggers, **arguments)
    except (RuntimeError, TypeError, ValueError) as error:  # missing or unknown hardware
        if describe_lost_rank(error):
            raise
        flag = next((name for name in ("devices", "num_nodes") if name in arguments and name in str(error)), None)
        named = f"--{flag} {arguments[flag]}: " if flag else ""
        raise MisconfigurationException(f"{named}{error}") from error
    finally:
        os.environ.update(kept)
