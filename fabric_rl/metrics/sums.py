"""Metrics as (sum, count), added up over all ranks once per iteration."""

from collections import deque
from collections.abc import Iterable
from typing import Any, cast

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


START_STEPS, END_STEPS = 50_000, 200_000
"""Agent-steps over which the summary's figures 'at the start' and 'at the end' are taken (at least one iteration)."""


def _mean(trace: Iterable[Sums], name: str) -> float:
    pairs = [sums[name] for sums in trace if name in sums]
    count = sum(pair[1] for pair in pairs)
    return sum(pair[0] for pair in pairs) / count if count else 0.0


class Trace:
    """The metrics of a run's first and last iterations, for the summary."""

    def __init__(self, steps_per_iteration: int) -> None:
        """Keeps as many iterations as make up `START_STEPS` and `END_STEPS` agent-steps."""
        self._first: list[Sums] = []
        self._first_size = max(1, START_STEPS // steps_per_iteration)
        self._last: deque[Sums] = deque(maxlen=max(1, END_STEPS // steps_per_iteration))

    def add(self, sums: Sums) -> None:
        """Adds an iteration."""
        if len(self._first) < self._first_size:
            self._first.append(sums)
        self._last.append(sums)

    def __contains__(self, name: str) -> bool:
        """Whether the newest iteration has that metric."""
        return bool(self._last) and name in self._last[-1]

    def start_and_end(self, name: str) -> dict[str, float]:
        """Means of a metric over the first and over the last iterations."""
        return {"start": _mean(self._first, name), "end": _mean(self._last, name)}

    def state_dict(self) -> dict[str, Any]:
        """Both ends."""
        return {"first": self._first, "last": list(self._last)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Takes what `state_dict` gave."""
        self._first = list(state["first"])
        self._last.clear()
        self._last.extend(state["last"])
