"""Processors and GPUs: threads of torch, bfloat16 where it works, copies between memories."""

import os
import signal
import subprocess
import sys
import time
import warnings
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
_WITHOUT_TILES = "AVX512_CORE_BF16"
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
_SECONDS = 20.0
"""More than a probe ever takes; a child of a process with threads may hang."""


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
    """Whether one thread learns from `rows` steps at once as fast as several."""
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


def avoid_illegal_instructions() -> None:
    """Makes bfloat16 on the CPU safe; call it before the first computation in bfloat16.

    A small layer is tried in a process of its own. If the processor refuses an instruction there, oneDNN is told to do
    without tiles (environment variable ONEDNN_MAX_CPU_ISA, which wins if it is set already), with a warning: bfloat16
    is slower than float32 then.

    Raises:
        ValueError: It is too late to tell oneDNN, which reads the variable once, because this process has computed
            before. Without oneDNN bfloat16 would be ten times slower.
    """
    if sys.platform == "win32":
        return
    given = _ISA in os.environ
    if not given:
        if not refuses_bfloat16():
            return
        os.environ[_ISA] = _WITHOUT_TILES
    if not _runs_here():
        if not given:
            del os.environ[_ISA]
        raise ValueError(
            "--precision bf16-mixed: this machine does not run the bfloat16 tile instructions that its processor "
            f"reports, and this process has begun to use them; set {_ISA}={_WITHOUT_TILES} before Python starts, or "
            "use 32-true"
        )
    if not given:
        warnings.warn(
            "--precision: this machine does not run the bfloat16 tile instructions that its processor reports; going "
            f"on without them ({_ISA}={_WITHOUT_TILES}), which is slower than --precision 32-true",
            RuntimeWarning,
            stacklevel=2,
        )


def refuses_bfloat16() -> bool:
    """Whether the processor stops a process of its own, as this one would begin, at an instruction for bfloat16."""
    if sys.platform == "win32":
        return False
    probe = subprocess.run([sys.executable, "-c", _PROBE], capture_output=True, check=False)
    return probe.returncode == -signal.SIGILL


def gain_of_bfloat16(device: str = "cpu") -> float:
    """How many times as fast a process of its own multiplies matrices in bfloat16 as in float32; 0 if it cannot."""
    command = [sys.executable, "-c", _PRODUCTS, device]
    try:
        probe = subprocess.run(command, capture_output=True, text=True, check=True, timeout=3 * _SECONDS)
        return float(probe.stdout.split()[-1])
    except (subprocess.SubprocessError, ValueError, IndexError):
        return 0.0


def _runs_here() -> bool:
    """Whether a copy of this process, with all that its libraries have decided, computes in bfloat16."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12 warns of forks of processes with threads
        child = os.fork()
    if child == 0:
        status = 1
        try:
            torch.set_num_threads(1)  # the threads of the pool have stayed in the parent
            exec(_PROBE, {})
            status = 0
        finally:
            os._exit(status)
    end = time.monotonic() + _SECONDS
    while True:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return status == 0
        if time.monotonic() > end:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            return False
        time.sleep(0.01)
