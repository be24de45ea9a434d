"""Processors and GPUs: threads of torch, bfloat16 where it works, copies between memories."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

MULTIPLICATIONS_FOR_THREADS = 2**24
"""Of a minibatch on its way through the networks; below, one thread is used. Two threads of
a net as small as CartPole's were six to ten times slower than one where other programs took their cores."""
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
"""More than a measurement ever takes."""


@contextmanager
def one_thread(if_small: bool = True) -> Iterator[None]:
    """Lets torch use one thread where dividing the work costs more than it brings, above all on a busy machine."""
    before = torch.get_num_threads()
    if if_small:
        torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def is_small(module: nn.Module, rows: int) -> bool:
    """Return whether one thread learns from `rows` steps at once as fast as several."""
    return sum(p.numel() for p in module.parameters()) * rows < MULTIPLICATIONS_FOR_THREADS


def to_device(array: NDArray[Any], device: torch.device) -> Tensor:
    """The array as a tensor on `device`.

    For a GPU it goes through page-locked memory and is only queued on the current stream: the host goes on at once, and
    what is queued behind it sees it. Elsewhere it may share memory with `array`.
    """
    tensor = torch.from_numpy(np.ascontiguousarray(array))
    if device.type == "cuda":  # torch's allocator keeps a page-locked block until its copies are done
        return tensor.pin_memory().to(device, non_blocking=True)
    return tensor.to(device)


def to_host(tensor: Tensor) -> NDArray[Any]:
    """The tensor as an array; waits for what the current stream of its GPU has queued so far, not for other streams."""
    if tensor.device.type != "cuda":
        return cast(NDArray[Any], tensor.cpu().numpy())
    host = torch.empty(tensor.shape, dtype=tensor.dtype, pin_memory=True)
    host.copy_(tensor, non_blocking=True)
    torch.cuda.current_stream(tensor.device).synchronize()
    return cast(NDArray[Any], host.numpy())


def check_bfloat16() -> None:
    """Try a small layer in bfloat16 on the CPU, in a process of its own, which the processor may stop there.

    Some report tiles (AMX) that their system does not let programs use. The variable ONEDNN_MAX_CPU_ISA tells oneDNN to
    do without them.

    Raises:
        ValueError: The processor has stopped it, which would have happened to this process in the middle of a run.
    """
    if sys.platform == "win32" or _ISA in os.environ:
        return
    probe = subprocess.run([sys.executable, "-c", _PROBE], capture_output=True, check=False)
    if probe.returncode == -signal.SIGILL:
        raise ValueError(
            "--precision bf16-mixed: this machine does not run the bfloat16 tile instructions that its processor "
            f"reports; set {_ISA}=AVX512_CORE_BF16 before Python starts, which is slower than 32-true, or use 32-true"
        )


def gain_of_bfloat16(device: str = "cpu") -> float:
    """Measure in a process of its own how many times as fast as float32 bfloat16 multiplies; 0 if it cannot."""
    command = [sys.executable, "-c", _PRODUCTS, device]
    try:
        probe = subprocess.run(command, capture_output=True, text=True, check=True, timeout=_SECONDS)
        return float(probe.stdout.split()[-1])
    except (subprocess.SubprocessError, ValueError, IndexError):
        return 0.0
