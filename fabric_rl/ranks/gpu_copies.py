"""Copies between the environment's memory and a GPU that do not make either of them wait for more than it needs."""

from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor


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
