"""Metrics as (sum, count), added up over all ranks once per iteration."""

from typing import cast

import torch
from lightning import Fabric

Sums = dict[str, tuple[float, float]]
"""Metric name -> (sum, count) on one rank."""


def reduce_sums(fabric: Fabric, local: Sums) -> Sums:
    """Adds up sums and counts over all ranks. Every rank must pass the same names."""
    names = sorted(local)
    table = torch.tensor([local[name] for name in names], dtype=torch.float64, device=fabric.device).reshape(-1, 2)
    if fabric.world_size > 1:
        table = cast(torch.Tensor, fabric.all_reduce(table, reduce_op="sum"))
    return {name: (total, count) for name, (total, count) in zip(names, table.tolist(), strict=True)}


def means(sums: Sums) -> dict[str, float]:
    """Sum / count of every metric that has a count."""
    return {name: total / count for name, (total, count) in sums.items() if count > 0}
