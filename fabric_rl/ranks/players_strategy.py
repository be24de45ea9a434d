"""DDP with ranks that train and ranks that play, and their process groups, for `fabric_rl.rollouts.players`."""

import os
from contextlib import AbstractContextManager, nullcontext
from datetime import timedelta
from typing import Any, cast

import torch
import torch.distributed as dist
from lightning import Fabric
from lightning.fabric.strategies.ddp import DDPStrategy
from lightning.fabric.utilities.distributed import _init_dist_connection
from torch import Tensor, nn

from fabric_rl.ranks import launched_by

OF_FABRIC_RUN = ("LT_STRATEGY", "LT_ACCELERATOR", "LT_DEVICES")
"""Environment variables of `fabric run` that would contradict `fabric_kwargs`."""


class PlayersStrategy(DDPStrategy):
    """DDP over the trainers, the first ranks; each of the last `num_players` ranks has a bare module on the CPU.

    All ranks are connected by gloo, and trainers on GPUs also by NCCL, so collectives over all ranks run on the CPU.
    """

    def __init__(self, num_players: int, devices: list[torch.device], patience: timedelta) -> None:
        """Assign the ranks.

        Args:
            num_players: K, less than the number of ranks.
            devices: One for each rank of this machine; this rank uses only its own.
            patience: Timeout of collective operations within a group.
        """
        # NCCL cannot start without a GPU, so a player only uses gloo; that part is the same on all ranks.
        backend = "cpu:gloo,cuda:nccl" if devices[0].type == "cuda" else "cpu:gloo"
        super().__init__(parallel_devices=devices, process_group_backend=backend)
        self.num_players, self.patience = num_players, patience
        self.peer_group: Any = None
        self.weights_group: Any = None

    @property
    def num_trainers(self) -> int:
        """Number of trainers; their ranks are 0 to `num_trainers - 1`."""
        return self.world_size - self.num_players

    @property
    def plays(self) -> bool:
        """True if this rank plays, False if it trains."""
        return self.global_rank >= self.num_trainers

    def setup_module(self, module: nn.Module) -> nn.Module:  # type: ignore[override]  # not all are wrapped
        """Wrap the module on the trainers if there are several; return it unchanged otherwise."""
        return module if self.plays or self.num_trainers == 1 else super().setup_module(module)

    def all_reduce(self, tensor: Any, group: Any = None, reduce_op: Any = "mean") -> Any:  # noqa: ANN401 - Lightning's
        """Reduce over all ranks on the CPU, as some may have no GPU."""
        return tensor.copy_(_all_reduce(tensor.cpu(), group, reduce_op)) if isinstance(tensor, Tensor) else tensor

    def describe_roles(self) -> str:
        """Return a text that says which ranks train and which play."""
        trainers, device = self.num_trainers, "" if self.root_device.type == "cpu" else " on the CPU"
        return f"{_ranks(0, trainers, 'train')}, {_ranks(trainers, self.world_size, 'play')}{device}"

    def _setup_distributed(self) -> None:
        self._set_world_ranks()
        # Not with super(), which binds the ranks to their devices: NCCL would connect all of them at once.
        environment = self.cluster_environment
        assert environment is not None
        _init_dist_connection(environment, cast(str, self.process_group_backend), timeout=self._timeout)
        trainers, players = list(range(self.num_trainers)), list(range(self.num_trainers, self.world_size))
        groups = [dist.new_group(ranks, timeout=self.patience) for ranks in (trainers, players, [0, *players])]
        self.peer_group, self.weights_group = groups[self.plays], groups[2]
        self._ddp_kwargs = {"process_group": groups[0]}


class PeerFabric(Fabric):
    """A Fabric whose world is the group of this rank: all trainers, or all players.

    Code that reduces over the ranks of a Fabric (advantages, KL, statistics) reduces over the group.
    """

    def __init__(self, fabric: Fabric, group: Any) -> None:  # noqa: ANN401 - a ProcessGroup
        """Share everything but the ranks with `fabric`, which has been launched."""
        vars(self).update(vars(fabric))
        self._group = group

    @property
    def world_size(self) -> int:
        """Number of ranks in the group."""
        return dist.get_world_size(self._group)

    @property
    def global_rank(self) -> int:
        """Rank of this process within the group."""
        return dist.get_rank(self._group)

    def all_reduce(self, data: Any, group: Any = None, reduce_op: Any = "mean") -> Any:  # noqa: ANN401 - Lightning's
        """Reduce a tensor on this rank's device over the group, in place."""
        return _all_reduce(data, self._group, reduce_op)

    def no_backward_sync(self, module: nn.Module, enabled: bool = True) -> AbstractContextManager[Any]:
        """Skip gradient synchronization, as Fabric does; a single trainer has nothing to synchronize."""
        return super().no_backward_sync(cast(Any, module), enabled) if self.world_size > 1 else nullcontext()


def fabric_kwargs(num_players: int, hardware: dict[str, Any], patience: timedelta) -> dict[str, Any]:
    """Return the arguments of Fabric for a run with players.

    Args:
        num_players: K.
        hardware: Arguments of a run without players: accelerator, devices, num_nodes, strategy, precision. Those that
            `fabric run` has set may be missing.
        patience: Timeout of collective operations.

    Raises:
        ValueError: There are too few ranks or GPUs, or other settings cannot be combined with players.
    """
    given = {name: hardware.get(name, os.environ.get(f"LT_{name.upper()}")) for name in ("strategy", "accelerator")}
    if given["strategy"] not in (None, "auto", "ddp"):
        raise ValueError(f"--num_players works only with --strategy ddp, not with {given['strategy']}")
    if given["accelerator"] == "mps":
        raise ValueError("--num_players works with --accelerator cpu or gpu, not with mps")
    if str(hardware.get("precision", os.environ.get("LT_PRECISION"))).startswith("16"):
        raise ValueError("--num_players: --precision 16-mixed is not supported; use bf16-mixed or 32-true")
    each, rank, world_size = _place(hardware)
    trainers = world_size - num_players
    if trainers < 1:
        there = f"are {world_size} ranks" if world_size > 1 else "is 1 rank"
        raise ValueError(
            f"--num_players {num_players} leaves no rank that trains, as there {there} in all; use more ranks "
            "(--devices, --num_nodes) or fewer players"
        )
    wants_gpu = given["accelerator"] in ("gpu", "cuda")
    on_gpu = given["accelerator"] != "cpu" and (wants_gpu or torch.cuda.is_available())
    here = min(each, trainers - rank // each * each)
    if on_gpu and 0 < torch.cuda.device_count() < here:
        raise ValueError(
            f"{here} ranks of this machine train, but it has {torch.cuda.device_count()} GPUs; use more --num_players, "
            "or --accelerator cpu"
        )
    cuda = on_gpu and rank < trainers
    devices = [torch.device("cuda", number) if cuda else torch.device("cpu") for number in range(each)]
    strategy = PlayersStrategy(num_players, devices, patience)
    return hardware | {"accelerator": "auto", "devices": 1, "strategy": strategy}  # the strategy has the devices


def _all_reduce(tensor: Tensor, group: Any, op: Any) -> Tensor:  # noqa: ANN401 - torch's
    mean = op in ("mean", "avg")
    native = (dist.ReduceOp.SUM if mean else getattr(dist.ReduceOp, op.upper())) if isinstance(op, str) else op
    dist.all_reduce(tensor, op=native, group=group)
    return tensor.div_(dist.get_world_size(group)) if mean else tensor


def _place(hardware: dict[str, Any]) -> tuple[int, int, int]:
    """Return the number of ranks per machine, this rank, and the number of ranks, before they are connected."""
    launched = launched_by.detect_launcher()
    if launched.by == "torchrun" and launched.ranks is not None and launched.rank is not None:
        return launched.ranks // launched.machines, launched.rank, launched.ranks
    devices = str(hardware["devices"])
    if not devices.isdecimal() or int(devices) < 1:
        raise ValueError(f"--devices {devices}: with --num_players, set it to the number of ranks per machine")
    each, rank = int(devices), launched.rank
    if rank is None:
        rank = int(os.environ.get("NODE_RANK", 0)) * each + launched.local_rank
    return each, rank, each * hardware["num_nodes"]


def _ranks(first: int, end: int, verb: str) -> str:
    return f"rank {first} {verb}s" if end - first == 1 else f"ranks {first} to {end - 1} {verb}"
