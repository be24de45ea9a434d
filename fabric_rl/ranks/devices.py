"""CPUs and GPUs: threads of torch, checks of bfloat16, copies between host and device."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

MULTIPLICATIONS_FOR_THREADS = 2**24
"""Multiplications per minibatch below which torch uses one thread. With a network as small as CartPole's, two threads
were six to ten times slower than one while other programs used the cores."""
_SHORT_NAMES = {"32": "32-true", "bf16": "bf16-mixed", "16": "16-mixed"}
_ISA = "ONEDNN_MAX_CPU_ISA"
_PROBE = """
import torch
layer, x = torch.nn.Linear(64, 64), torch.randn(64, 64)
with torch.autocast("cpu", torch.bfloat16):
    layer(x).float().sum().backward()
"""
_PRODUCTS = """
import sys, time, torch

def seconds(dtype):
    one, other = (torch.randn(1024, 1024).to(sys.argv[1], dtype) for _ in range(2))
    taken = []
    for _ in range(10):
        began = time.perf_counter()
        (one @ other).sum().item()
        taken.append(time.perf_counter() - began)
    return min(taken)

print(seconds(torch.float32) / seconds(torch.bfloat16))
"""
_SECONDS = 60.0
"""Timeout of the measurement, in seconds."""


@contextmanager
def single_thread(if_small: bool = True) -> Iterator[None]:
    """Make torch use one thread in the block, for work that is too small to be divided."""
    before = torch.get_num_threads()
    if if_small:
        torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def is_small(module: nn.Module, rows: int) -> bool:
    """Return whether one thread processes `rows` steps at least as fast as several."""
    return sum(p.numel() for p in module.parameters()) * rows < MULTIPLICATIONS_FOR_THREADS


def to_device(array: NDArray[Any], device: torch.device) -> Tensor:
    """Return the array as a tensor on `device`.

    A copy to a GPU goes through page-locked memory and is only queued on the current stream, so the host does not wait.
    On the CPU the tensor may share memory with `array`.
    """
    tensor = torch.from_numpy(np.ascontiguousarray(array))
    if device.type == "cuda":  # torch's allocator keeps a page-locked block until its copies are done
        return tensor.pin_memory().to(device, non_blocking=True)
    return tensor.to(device)


def to_host(tensor: Tensor) -> NDArray[Any]:
    """Return the tensor as an array; on a GPU, wait for the current stream only."""
    if tensor.device.type != "cuda":
        return cast(NDArray[Any], tensor.cpu().numpy())
    host = torch.empty(tensor.shape, dtype=tensor.dtype, pin_memory=True)
    host.copy_(tensor, non_blocking=True)
    torch.cuda.current_stream(tensor.device).synchronize()
    return cast(NDArray[Any], host.numpy())


def choose_precision(precision: str, accelerator: str) -> str:
    """Return the precision that `auto` stands for on this machine; any other one unchanged."""
    if precision != "auto":
        return precision
    if accelerator != "cpu" and torch.cuda.is_available():
        fast = torch.cuda.is_bf16_supported(including_emulation=False)
    else:
        fast = torch.cpu._is_avx512_bf16_supported() or torch.cpu._is_amx_tile_supported()
        fast = fast and not _bfloat16_crashes(os.environ.get(_ISA))
    return "bf16-mixed" if fast else "32-true"


def check_precision(precision: str, device_type: str) -> str:
    """Return the full name of a precision of Fabric (`16` is `16-mixed`).

    Raises:
        ValueError: Agents do not work with it, or it needs a GPU (`cuda`) and the type of the device is another.
    """
    precision = _SHORT_NAMES.get(precision, precision)
    if precision not in _SHORT_NAMES.values():
        raise ValueError(f"--precision {precision} is not supported; use {', '.join(_SHORT_NAMES.values())}")
    if precision == "16-mixed" and device_type != "cuda":
        raise ValueError(f"--precision {precision} needs a GPU; use bf16-mixed or 32-true on the CPU")
    return precision


@cache
def _bfloat16_crashes(instructions: str | None) -> bool:
    """Try a small bfloat16 layer on the CPU, once, in a separate process; `instructions` is ONEDNN_MAX_CPU_ISA."""
    if sys.platform == "win32" or instructions is not None:
        return False
    probe = subprocess.run([sys.executable, "-c", _PROBE], capture_output=True, check=False)
    return probe.returncode == -signal.SIGILL


def check_bfloat16() -> None:
    """Try whether this process could use bfloat16 on the CPU.

    Some processors report tile instructions (AMX) that the operating system does not let programs use. The variable
    ONEDNN_MAX_CPU_ISA makes oneDNN do without them.

    Raises:
        ValueError: A separate process crashed, as this one would in the middle of a run.
    """
    if _bfloat16_crashes(os.environ.get(_ISA)):
        raise ValueError(
            "--precision bf16-mixed: this machine does not run the bfloat16 tile instructions that its processor "
            f"reports; set {_ISA}=AVX512_CORE_BF16 before Python starts (slower than 32-true), or use 32-true"
        )


def bfloat16_speedup(device: str = "cpu") -> float:
    """Measure the speed of bfloat16 products relative to float32 in a separate process; 0 if that fails."""
    command = [sys.executable, "-c", _PRODUCTS, device]
    try:
        probe = subprocess.run(command, capture_output=True, text=True, check=True, timeout=_SECONDS)
        return float(probe.stdout.split()[-1])
    except (subprocess.SubprocessError, ValueError, IndexError):
        return 0.0
