"""Weights of a checkpoint, compared with those of an agent."""

from collections.abc import Mapping

from torch import Tensor, nn

from fabric_rl.base.state_schema import check_like
from fabric_rl.ranks.sharding import class_of
from fabric_rl.types import CheckpointError


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
