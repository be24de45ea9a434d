"""Weights and generator states of a checkpoint, compared with those of this run."""

import struct
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from fabric_rl.base.state_schema import check_like, fitting
from fabric_rl.ranks.sharding import class_of
from fabric_rl.types import CheckpointError

_HEAD = "<QiiQ"
"""Seed, numbers left until the next 624 are made, a flag, and which is next; they must fit one another: torch would
read what lies behind the 624."""


def check_weights(weights: Mapping[str, Tensor], agent: nn.Module) -> None:
    """Raise CheckpointError unless the weights have the names, shapes and kinds of the agent's, and are numbers."""
    own = agent.state_dict()
    lines = [
        f"{name}: {_shape(weights, name)} in the checkpoint, {_shape(own, name)} in --agent"
        for name in dict.fromkeys((*own, *weights))
        if _shape(weights, name) != _shape(own, name)
    ]
    if lines:
        more = f" and {len(lines) - 3} more" if len(lines) > 3 else ""
        if len(lines) == len({*own, *weights}):
            more += "; they have no weights in common"
        raise CheckpointError(
            f"the checkpoint is of another agent than {class_of(agent).__name__} with these settings: "
            f"{'; '.join(lines[:3])}{more}"
        )
    try:
        for name, tensor in own.items():
            check_like(weights[name], tensor, name)
    except ValueError as error:
        raise CheckpointError(f"the checkpoint's weights do not fit {class_of(agent).__name__}: {error}") from error


def _shape(weights: Mapping[str, Tensor], name: str) -> str:
    if name not in weights:
        return "missing"
    return str(list(weights[name].shape)) if isinstance(weights[name], Tensor) else f"a {type(weights[name]).__name__}"


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
