"""What agents share: building MLPs and reading spaces."""

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import gymnasium
from torch import nn


def mlp(
    inputs: int,
    hidden_sizes: Sequence[int],
    outputs: int,
    activation: type[nn.Module],
    layer_norm: bool,
    ortho_init: bool,
    output_gain: float,
) -> nn.Sequential:
    """A multi-layer perceptron: linear, layer norm (if asked for), activation, ..., linear.

    Args:
        inputs: Size of the input vector.
        hidden_sizes: Sizes of the hidden layers.
        outputs: Size of the output vector.
        activation: Class of the activation between layers.
        layer_norm: Normalise before each activation.
        ortho_init: Orthogonal weights with gain sqrt(2) (hidden) and `output_gain` (last), zero biases.
        output_gain: Gain of the last layer: 0.01 for a policy, 1 for a value.
    """
    layers: list[nn.Module] = []
    sizes = [inputs, *hidden_sizes]
    for size_in, size_out in pairwise(sizes):
        layers.append(_linear(size_in, size_out, math.sqrt(2) if ortho_init else None))
        if layer_norm:
            layers.append(nn.LayerNorm(size_out))
        layers.append(activation())
    layers.append(_linear(sizes[-1], outputs, output_gain if ortho_init else None))
    return nn.Sequential(*layers)


def vector_size(agent: str, space: gymnasium.Space[Any]) -> int:
    """The length of a vector observation.

    Raises:
        ValueError: The observations are not vectors.
    """
    if not isinstance(space, gymnasium.spaces.Box) or len(space.shape) != 1:
        raise ValueError(
            f"{agent} reads vector observations (Box with one axis), but the environment has {space}; "
            "choose another --agent, --env or --env_id"
        )
    return int(space.shape[0])


def _linear(inputs: int, outputs: int, gain: float | None) -> nn.Linear:
    layer = nn.Linear(inputs, outputs)
    if gain is not None:
        nn.init.orthogonal_(layer.weight, gain)
        nn.init.zeros_(layer.bias)
    return layer
