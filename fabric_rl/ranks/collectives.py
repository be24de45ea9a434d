"""Collective operations, by which the ranks of a run share errors, numbers and objects."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, cast

import torch
import torch.distributed as dist
from lightning import Fabric
from lightning.fabric.strategies.ddp import DDPStrategy
from torch import Tensor


@contextmanager
def raised_on_all_ranks(fabric: Fabric) -> Iterator[None]:
    """Raise a ValueError of any rank on all ranks, with the same message; every rank enters the block.

    Otherwise the other ranks would only notice that one is gone.
    """
    if fabric.world_size == 1:
        yield
        return
    problem: ValueError | None = None
    try:
        yield
    except ValueError as error:
        problem = error
    text = "" if problem is None else str(problem) or type(problem).__name__
    for rank in range(fabric.world_size):
        message = fabric.broadcast(text, src=rank)
        if message:
            raise ValueError(message) from problem


def waits_for_all_gradients(fabric: Fabric) -> bool:
    """Return True if each backward pass must reach all parameters, as DDP needs by default."""
    settings = getattr(fabric.strategy, "_ddp_kwargs", {})
    return type(fabric.strategy) is DDPStrategy and not settings.get("find_unused_parameters")


def check_same_on_all_ranks(fabric: Fabric, numbers: dict[str, int]) -> None:
    """Raise the same ValueError on all ranks unless they agree on `numbers` (name -> number)."""
    if fabric.world_size == 1:
        return
    seen = torch.zeros(fabric.world_size, len(numbers), dtype=torch.int64, device=fabric.device)
    seen[fabric.global_rank] = torch.tensor(list(numbers.values()))
    seen = cast(Tensor, fabric.all_reduce(seen, reduce_op="sum"))
    for name, column in zip(numbers, seen.T.tolist(), strict=True):
        if len(set(column)) > 1:
            raise ValueError(f"the ranks must agree on the {name}, but have {', '.join(map(str, column))}")


def all_gather_object(fabric: Fabric, mine: Any) -> list[Any]:  # noqa: ANN401 - anything that can be pickled
    """Return the objects of all ranks, in the order of the ranks, on every rank. A collective."""
    if fabric.world_size == 1:
        return [mine]
    everyone: list[Any] = [None] * fabric.world_size
    dist.all_gather_object(everyone, mine)
    return everyone


def gather_object(fabric: Fabric, mine: Any) -> list[Any] | None:  # noqa: ANN401 - anything that can be pickled
    """Return the objects of all ranks, in the order of the ranks, on rank 0; None on the others. A collective."""
    if fabric.world_size == 1:
        return [mine]
    everyone: list[Any] | None = [None] * fabric.world_size if fabric.is_global_zero else None
    dist.gather_object(mine, everyone, dst=0)
    return everyone


Sums = dict[str, tuple[float, float]]
"""Metric name -> (sum, count) on one rank."""


def fill_missing_names(fabric: Fabric, local: Sums) -> Sums:
    """Return `local` with empty sums for the names that only other ranks have; a collective."""
    everyone = all_gather_object(fabric, list(local))
    return {name: local.get(name, (0.0, 0.0)) for names in everyone for name in names}


def all_reduce_sums(fabric: Fabric, local: Sums) -> Sums:
    """Add up sums and counts over all ranks; every rank passes the same names. A collective."""
    names = sorted(local)
    device = fabric.device if fabric.device.type != "mps" else torch.device("cpu")  # MPS has no float64, and one rank
    pairs = torch.tensor([local[name] for name in names], dtype=torch.float64, device=device).reshape(-1, 2)
    if fabric.world_size > 1:
        pairs = cast(Tensor, fabric.all_reduce(pairs, reduce_op="sum"))
    return {name: (total, count) for name, (total, count) in zip(names, pairs.tolist(), strict=True)}


def metric_means(sums: Sums) -> dict[str, float]:
    """Return sum / count of every metric with a positive count."""
    return {name: total / count for name, (total, count) in sums.items() if count > 0}
