"""AdaptiveBatchSize: minibatches as large as memory allows, with the same optimizer steps."""

import logging
import os
import re
import warnings
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar, cast

import torch

from fabric_rl.base.settings import Between, Count, check_settings
from fabric_rl.callback import Callback, TrainState
from fabric_rl.types import OffPolicyAgent

logger = logging.getLogger("fabric_rl")


def allowed_sizes(batch_size: int, sequence_length: int = 1, smallest: int = 1) -> list[int]:
    """Return the minibatch sizes that divide a batch, in increasing order, or only the batch size if there are none.

    Args:
        batch_size: Steps per optimizer step and rank.
        sequence_length: Steps per training sequence of an agent with memory.
        smallest: Minimum size.
    """
    small = [size for size in range(1, int(batch_size**0.5) + 1) if batch_size % size == 0]
    sizes = sorted({*small, *(batch_size // size for size in small)})
    return [size for size in sizes if size % sequence_length == 0 and size >= smallest] or [batch_size]


def choose_size(free_bytes: float, bytes_per_step: float, sizes: Sequence[int]) -> int:
    """Return the largest size with `size * bytes_per_step <= free_bytes`, or the smallest size if none fits."""
    return max((size for size in sizes if size * bytes_per_step <= free_bytes), default=min(sizes))


@dataclass(eq=False, repr=False)
class AdaptiveBatchSize(Callback):
    """Grow the minibatch while memory allows, and shrink it when memory runs short.

    This changes the number of steps in one forward and backward pass (`--minibatch_size`), never the batch of an
    optimizer step (`--batch_size`, the upper limit): gradients of several minibatches are accumulated, so results
    differ only by rounding. The memory needed for learning is measured in every iteration; all ranks use the largest
    size that fits on each of them. Checkpoints contain the size, but free memory varies, so a resumed run is
    equivalent, not bit-identical, unless the size stays the same.

    Free memory means the memory of the GPU or, without a GPU, of the machine or container (this needs psutil).
    """

    _in_state_dict: ClassVar = {"size": "_size", "growing": "_growing"}

    share: Annotated[float, Between(0, 1, above=True)] = 0.8
    """Maximum share of the free memory that a training step may use, above 0 and at most 1."""
    smallest: Count = 64
    """Minimum number of steps per minibatch, unless the batch itself has fewer."""
    start: Count | None = None
    """Maximum number of steps in the first minibatches; the number then doubles. Default: `--minibatch_size`."""

    def __post_init__(self) -> None:
        check_settings(self)
        self._memory: GPUMemory | RAM | None = None
        self._sizes: list[int] = []
        self._size, self._growing, self._measuring = 0, True, False

    def on_train_start(self, state: TrainState) -> None:
        """Determine the possible sizes, and begin with the size in the checkpoint or with `start`."""
        if isinstance(state.agent, OffPolicyAgent):
            raise ValueError("--callbacks AdaptiveBatchSize: SAC does not divide batches; it is for PPO")
        length = state.agent.sequence_length if state.agent.learns_sequences else 1
        batch = state.args.batch_size or state.minibatch_size
        self._sizes = allowed_sizes(batch, length, self.smallest)
        with suppress(ImportError):  # psutil is not installed
            self._memory = GPUMemory(state.fabric.device) if state.fabric.device.type == "cuda" else RAM()
        if self._memory is None and state.fabric.is_global_zero:
            message = "AdaptiveBatchSize has no effect: without a GPU, it needs psutil (pip install psutil)"
            warnings.warn(message, RuntimeWarning, stacklevel=2)
        if self._size in self._sizes:
            state.minibatch_size = self._size
        elif self.start is not None and self._memory is not None:
            state.minibatch_size = choose_size(self.start, 1, self._sizes)
        self._size = state.minibatch_size
        if self._growing and self._memory is not None and self._size == self._sizes[-1]:
            self._growing = False
            if state.fabric.is_global_zero:
                limit = f"minibatches of {self._size:,} steps already fill --batch_size and cannot grow"
                logger.info("AdaptiveBatchSize: %s; set a larger --batch_size or a smaller start", limit)

    def on_learn_start(self, state: TrainState) -> None:
        self._measuring = True
        if self._memory is not None:
            self._memory.begin()

    def on_iteration_end(self, state: TrainState) -> None:
        if not self._measuring:
            return
        self._measuring = False
        size = wanted = state.minibatch_size
        needed = free = 0.0
        if self._memory is not None:
            needed, free = self._memory.needed(), self._memory.free()
            larger = [other for other in self._sizes if other > size][:1] if self._growing else []
            most = max(2 * size, *larger) if larger else size
            within = [other for other in self._sizes if other <= most]
            wanted = choose_size(self.share * free, needed / size, within or self._sizes[:1])
        if not state.learns:  # a player leaves the choice to the trainers
            wanted = self._sizes[-1]
        if state.fabric.world_size > 1:
            proposal = torch.tensor(wanted, dtype=torch.float64, device=state.fabric.device)
            wanted = int(cast(torch.Tensor, state.fabric.all_reduce(proposal, reduce_op="min")))
        grows = size < wanted < self._sizes[-1]
        if self._growing and not grows and self._memory is not None and state.fabric.is_global_zero:
            logger.info("%s", self._why_no_larger(state, wanted, needed, free))
        self._growing = self._growing and grows  # never try larger sizes again
        if wanted != size and state.fabric.is_global_zero:
            sizes = f"minibatch size {size:,} -> {wanted:,}"
            logger.debug("%s: a training step took %.1f MiB; %.1f MiB are free", sizes, needed / 2**20, free / 2**20)
        self._size = state.minibatch_size = wanted

    def _why_no_larger(self, state: TrainState, size: int, needed: float, free: float) -> str:
        begins = f"AdaptiveBatchSize: minibatches now have {size:,} steps"
        if size == self._sizes[-1]:
            return f"{begins} and fill --batch_size; with a larger --batch_size they could grow further"
        now = f"{needed / 2**20:,.0f} MiB for {state.minibatch_size:,} steps; {free / 2**20:,.0f} MiB free"
        elsewhere = " here, perhaps less on another rank" if state.fabric.world_size > 1 else ""
        return f"{begins}; more would not fit in memory ({now}{elsewhere}, of which {self.share:.0%} may be used)"

    def drain_metrics(self) -> dict[str, tuple[float, float]]:
        """Return the minibatch size as `ppo/minibatch_size`."""
        return {"ppo/minibatch_size": (float(self._size), 1.0)}


class GPUMemory:
    """Memory of one CUDA device, in bytes."""

    def __init__(self, device: torch.device) -> None:
        self._device, self._before = device, 0

    def begin(self) -> None:
        """Start to measure allocations."""
        torch.cuda.reset_peak_memory_stats(self._device)
        self._before = torch.cuda.memory_allocated(self._device)

    def needed(self) -> float:
        """Return the peak of allocated memory since `begin`, minus the memory allocated at `begin`."""
        return float(torch.cuda.max_memory_allocated(self._device) - self._before)

    def free(self) -> float:
        """Return the free memory, including memory that torch reserves without using it."""
        cached = torch.cuda.memory_reserved(self._device) - torch.cuda.memory_allocated(self._device)
        return float(torch.cuda.mem_get_info(self._device)[0] + cached)


class RAM:
    """Memory of this process and machine, in bytes.

    Memory that malloc keeps from earlier steps is not counted as needed again. Only Linux can reset the peak; elsewhere
    it is the peak since the process started, so `needed` may be too high, but never too low.
    """

    _peak = re.compile(r"VmHWM:\s+(\d+) kB")

    def __init__(self, group: Path = Path("/sys/fs/cgroup")) -> None:
        """Import psutil; raise an ImportError if it is not installed."""
        import psutil

        self._available, self._process, self._before = psutil.virtual_memory, psutil.Process(), 0
        self._group = group

    def begin(self) -> None:
        """Start to measure allocations."""
        with suppress(OSError):
            Path("/proc/self/clear_refs").write_text("5")
        self._before = self._process.memory_info().rss

    def needed(self) -> float:
        """Return the peak of resident memory since `begin`, minus the memory resident at `begin`."""
        used = self._process.memory_info()
        highest = max(used.rss, getattr(used, "peak_wset", 0))
        with suppress(OSError):
            found = self._peak.search(Path("/proc/self/status").read_text())
            highest = max(highest, 1024 * int(found[1]) if found else 0)
        return float(max(0, highest - self._before))

    def free(self) -> float:
        """Return this rank's share of the free memory of the machine or container; file caches count as free."""
        left = float(self._available().available)
        with suppress(OSError, ValueError):
            limit = int((self._group / "memory.max").read_text())  # "max" without a limit
            used = int((self._group / "memory.current").read_text())
            cached = re.search(r"^inactive_file (\d+)", (self._group / "memory.stat").read_text(), re.MULTILINE)
            left = min(left, float(limit - used + (int(cached[1]) if cached else 0)))
        return left / max(1, int(os.environ.get("LOCAL_WORLD_SIZE", "1")))
