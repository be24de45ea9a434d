"""States of torch's random generators, as checkpoints hold them."""

import struct
from typing import Any

import torch
from torch import Tensor

from fabric_rl.base.state_schema import check_like, fitting

_HEAD = "<QiiQ"
"""Seed, numbers left until the next 624 are made, a flag, and which is next; they must fit one another: torch would
read what lies behind the 624."""


def generator_state(saved: Any, where: str = "the state of a random generator") -> Any:  # noqa: ANN401
    """Return what was saved of a generator on the CPU; a ValueError unless torch may read it."""
    generator = torch.Generator()
    new = generator.get_state()
    check_like(saved, new, where)
    with fitting(where):
        generator.set_state(saved)
    if not torch.equal(generator.get_state(), saved) or (_in_step(new) and not _in_step(saved)):
        raise ValueError(f"{where} is no state of a generator")
    return saved


def _in_step(state: Tensor) -> bool:
    _, left, _, following = struct.unpack_from(_HEAD, bytes(state[:24].tolist()))
    return left + following == 625 or (left, following) == (1, 0)  # the latter before the first number
