"""FSDP2 as a Fabric strategy: parameters, gradients and optimizer state sharded over the ranks.

Zhao et al. 2023, "PyTorch FSDP: Experiences on Scaling Fully Sharded Data Parallel"; torch's `fully_shard`.
"""

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, cast

import torch
import torch.distributed as dist
from lightning.fabric.strategies.model_parallel import ModelParallelStrategy
from torch import Tensor, nn
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.fsdp import FSDPModule, fully_shard, register_fsdp_forward_method
from torch.distributed.tensor import DTensor, distribute_tensor
from torch.optim import Optimizer

UNIT_NUMBERS = 1_000_000
"""Minimum number of parameters for an `nn.Sequential` to be a unit, in an agent that does not name its units."""


class ShardedStrategy(ModelParallelStrategy):
    """`--strategy fsdp`: every rank keeps an equal share of the parameters, their gradients and Adam's moments.

    Weights are gathered unit by unit in each training step, and once for a whole rollout. The units are the submodules
    that the agent names in an attribute `fsdp_units` (`("encoder", "blocks")`; a ModuleList stands for each of its
    elements), else all outermost `nn.Sequential` with at least `UNIT_NUMBERS` parameters. All other parameters belong
    to one more unit, the agent itself. `training_step` must call a unit (`self.encoder(x)`) to use its weights.

    Results equal those of DDP except for rounding, with any number of ranks, on GPUs (NCCL) and CPUs (gloo). Mixed
    precision is autocast, as with DDP: weights and communication stay float32.
    """

    def __init__(self) -> None:
        super().__init__(parallelize_fn=_shard, save_distributed_checkpoint=False)

    def setup_module_and_optimizers(
        self,
        module: nn.Module,
        optimizers: list[Optimizer],
        scheduler: Any = None,  # noqa: ANN401 - Lightning's
    ) -> tuple[nn.Module, list[Optimizer], Any]:
        """Shard the module and replace its parameters in the optimizers.

        Raises:
            ValueError: The agent cannot be sharded.
        """
        names = {parameter: name for name, parameter in module.named_parameters()}
        module = self.setup_module(module)
        sharded = dict(module.named_parameters())
        for optimizer in optimizers:
            for group in optimizer.param_groups:
                group["params"] = [sharded[names[p]] if p in names else p for p in group["params"]]
        return module, optimizers, scheduler

    def clip_gradients_norm(self, *args: Any, **kwargs: Any) -> Tensor:  # noqa: ANN401 - Lightning's
        """Clip as Lightning does, and return the norm over all ranks' shards, 0-dim."""
        return full_tensor(super().clip_gradients_norm(*args, **kwargs))


def is_sharded(module: nn.Module) -> bool:
    """Return whether `ShardedStrategy` has set the module up."""
    return isinstance(module, FSDPModule)


def unsharded_class(module: nn.Module) -> type[nn.Module]:
    """Return the class that a module had before sharding, which replaces the class with a subclass."""
    kind = type(module)
    return kind.__bases__[-1] if is_sharded(module) else kind


@contextmanager
def unsharded(module: nn.Module) -> Iterator[None]:
    """Keep all weights on every rank in the block, so that `act` and `value` need no other rank.

    Entering it is a collective; a module that is not sharded stays as it is. The weights must not change inside, and
    `module.state_dict()` shards them again.
    """
    units = [part for part in module.modules() if isinstance(part, FSDPModule)]
    for unit in units:
        unit.unshard()
        if unit is not module:
            unit.set_reshard_after_forward(False, recurse=False)
    try:
        yield
    finally:
        for unit in units:
            unit.reshard()
            if unit is not module:
                unit.set_reshard_after_forward(True, recurse=False)


@contextmanager
def fsdp_error_context(module: nn.Module) -> Iterator[None]:
    """Explain an error of a training step that fails because of the units of a sharded agent.

    Raises:
        ValueError: The step failed with a RuntimeError of torch, usually because weights are not gathered.
    """
    try:
        yield
    except RuntimeError as error:
        if not is_sharded(module):
            raise
        first = str(error).partition("\n")[0]
        raise ValueError(
            f"--strategy fsdp: {unsharded_class(module).__name__}.training_step() fails with sharded weights "
            f"({first}); in its fsdp_units, name only submodules that are called as functions (() for none), or use "
            "--strategy ddp"
        ) from error


def full_tensor(tensor: Tensor) -> Tensor:
    """Return a sharded tensor in one piece (a collective), and any other tensor unchanged."""
    return tensor.full_tensor() if isinstance(tensor, DTensor) else tensor


def local_shard(tensor: Tensor) -> Tensor:
    """Return this rank's part of a sharded tensor, and any other tensor unchanged."""
    return tensor.to_local() if isinstance(tensor, DTensor) else tensor


def whole_state(state: Any, keep: bool) -> Any:  # noqa: ANN401 - the structure of its argument
    """Return a `state_dict()` as it would be without sharding; every rank calls it.

    Args:
        state: State of a module or an optimizer.
        keep: Return sharded tensors in one piece on the CPU; if False, return None in their place.
    """
    if isinstance(state, DTensor):
        tensor = full_tensor(state.detach())  # one at a time: all of them together would not fit into memory
        return tensor.cpu() if keep else None
    if isinstance(state, dict):
        same = copy.copy(state)  # torch's state dicts keep the versions of modules in an attribute
        same.update((name, whole_state(item, keep)) for name, item in state.items())
        return same
    return [whole_state(item, keep) for item in state] if isinstance(state, list) else state


def load_full_state_dict(module: nn.Module, state: dict[str, Tensor]) -> None:
    """Load whole tensors into a module, which may be sharded; all ranks pass the same tensors."""
    if is_sharded(module):
        own = module.state_dict()
        state = {name: _like(tensor, own[name]) for name, tensor in state.items()}
    module.load_state_dict(state)


@torch.no_grad()
def copy_into(own: Any, saved: Any) -> Any:  # noqa: ANN401 - optimizers keep other things beside tensors
    """Copy a whole tensor into `own`, which may be sharded, and return it; otherwise return `saved` unchanged."""
    return own.copy_(_like(saved, own)) if isinstance(own, Tensor) else saved


def _like(value: Tensor, own: Tensor) -> Tensor:
    """Return `value` sharded like `own`."""
    if not isinstance(own, DTensor):
        return value
    return distribute_tensor(value.to(own.device, own.dtype), own.device_mesh, own.placements)


def _shard(agent: nn.Module, mesh: DeviceMesh) -> nn.Module:
    """Shard an agent in place, see `ShardedStrategy`."""
    name, device = type(agent).__name__, mesh.device_type
    scalars = [key for key, parameter in agent.named_parameters() if not parameter.dim()]
    if scalars:
        raise ValueError(
            f"--strategy fsdp cannot shard the 0-dimensional parameter {scalars[0]} of {name}; give it the shape [1], "
            "or use --strategy ddp"
        )
    units = _units(agent)
    agent.to(torch.device(device, torch.cuda.current_device()) if device == "cuda" else device)
    with torch.no_grad():
        for tensor in (*agent.parameters(), *agent.buffers()):  # as DDP does
            dist.broadcast(tensor, src=0)
    ranks = init_device_mesh(device, (dist.get_world_size(),))
    for part in reversed(list(agent.modules())):  # inner units before outer ones, the agent itself last
        if part in units or part is agent:
            fully_shard(part, mesh=ranks, reshard_after_forward=part is not agent)
            if device == "cpu":  # some versions of gloo sum when asked for the mean
                cast(Any, part).set_force_sum_reduction_for_comms(True)
    register_fsdp_forward_method(agent, "training_step")
    return agent


def _units(agent: nn.Module) -> set[nn.Module]:
    """Return the submodules that are separate units."""
    named = getattr(agent, "fsdp_units", None)
    if named is None:
        return set(_large_sequentials(agent))
    inner = dict(agent.named_modules())
    units: set[nn.Module] = set()
    for name in (named,) if isinstance(named, str) else named:
        if not isinstance(name, str) or not name or name not in inner:
            raise ValueError(
                f"--strategy fsdp: fsdp_units of {type(agent).__name__} names {name!r}, which is not one of its "
                f"submodules ({', '.join(key for key, _ in agent.named_children())})"
            )
        unit = inner[name]
        units.update(unit if isinstance(unit, nn.ModuleList) else [unit])
    return units


def _large_sequentials(module: nn.Module) -> Iterator[nn.Module]:
    for child in module.children():
        if isinstance(child, nn.Sequential) and sum(p.numel() for p in child.parameters()) >= UNIT_NUMBERS:
            yield child
        elif not isinstance(child, nn.Sequential):
            yield from _large_sequentials(child)
