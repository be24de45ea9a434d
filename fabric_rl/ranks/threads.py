"""How many threads torch computes with."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import nn

MULTIPLICATIONS_FOR_THREADS = 2**24
"""Of a minibatch on its way through the networks; below, one thread is used. Two threads of
a net as small as CartPole's were six to ten times slower than one where other programs took their cores."""


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
