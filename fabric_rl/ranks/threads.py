"""How many threads torch computes with."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch


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
