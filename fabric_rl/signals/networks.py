"""Networks of the reward signals: features of any observation, and actions of any kind as vectors."""

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import gymnasium
import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

_SIDE = 42
"""Height and width that images are scaled to, as in Pathak et al. 2017."""


def layers(inputs: int, hidden_sizes: Sequence[int], outputs: int) -> nn.Sequential:
    """Linear layers with ELU between them, orthogonal weights of gain sqrt(2): `[..., inputs]` -> `[..., outputs]`."""
    parts: list[nn.Module] = []
    for size_in, size_out in pairwise([inputs, *hidden_sizes, outputs]):
        layer = nn.Linear(size_in, size_out)
        nn.init.orthogonal_(layer.weight, math.sqrt(2))
        nn.init.zeros_(layer.bias)
        parts += [layer, nn.ELU()]
    return nn.Sequential(*parts[:-1])


class Features(nn.Module):
    """Observations `[B, *shape]` -> features `[B, size]`.

    Images, which are uint8 or have three axes or more, are scaled to 42 x 42 and go through the four convolutions of
    Pathak et al. 2017 (32 of 3 x 3, stride 2, ELU); everything else is a vector.
    """

    def __init__(self, space: gymnasium.Space[Any], hidden_sizes: Sequence[int], size: int) -> None:
        super().__init__()
        shape = space.shape or (1,)
        self.is_image = len(shape) > 2 or (len(shape) == 2 and space.dtype == np.uint8)
        if not self.is_image:
            self.convolutions: nn.Module = nn.Flatten()
            self.layers = layers(math.prod(shape), hidden_sizes, size)
            return
        self.channels_first = len(shape) == 2 or shape[-3] < min(shape[-2:])
        channels = math.prod(shape[:-2]) if self.channels_first else math.prod(shape[:-3]) * shape[-1]
        sizes = [channels, 32, 32, 32, 32]
        parts = [(nn.Conv2d(a, b, 3, stride=2, padding=1), nn.ELU()) for a, b in pairwise(sizes)]
        self.convolutions = nn.Sequential(*(part for pair in parts for part in pair), nn.Flatten())
        self.layers = layers(32 * 3 * 3, hidden_sizes, size)

    def forward(self, obs: Tensor) -> Tensor:
        """Features of normalised observations."""
        if self.is_image:
            images = obs if self.channels_first else obs.movedim(-1, -3)
            images = images.reshape(len(obs), -1, *images.shape[-2:])
            obs = functional.interpolate(images, (_SIDE, _SIDE), mode="area")
        features: Tensor = self.layers(self.convolutions(obs))
        return features


class Actions(nn.Module):
    """Actions as vectors `[B, size]`: one-hot where numbered; a Box scaled to -1..1, or as it is where unbounded."""

    start: Tensor
    low: Tensor
    span: Tensor
    limit: Tensor

    def __init__(self, space: gymnasium.Space[Any]) -> None:
        """Reads the space: Discrete, MultiDiscrete, MultiBinary or Box."""
        super().__init__()
        self.choices: list[int] | None = None
        if isinstance(space, gymnasium.spaces.Box):
            low, high = (torch.from_numpy(bound.astype(np.float32)).flatten() for bound in (space.low, space.high))
            bounded = low.isfinite() & high.isfinite() & (high > low)
            self.register_buffer("low", torch.where(bounded, low, -1), persistent=False)
            self.register_buffer("span", torch.where(bounded, high - low, 2), persistent=False)
            self.register_buffer("limit", torch.where(bounded, 1, torch.inf), persistent=False)
            self.size = len(low)
            return
        binary = isinstance(space, gymnasium.spaces.MultiBinary)
        counts: Any = np.full(space.shape or (), 2) if binary else getattr(space, "nvec", getattr(space, "n", None))
        self.choices = [int(count) for count in np.ravel(counts)]
        start = torch.as_tensor(np.ravel(getattr(space, "start", 0)), dtype=torch.int64)
        self.register_buffer("start", start, persistent=False)
        self.size = sum(self.choices)

    def forward(self, action: Tensor) -> Tensor:
        """`action [B, ...]` as a vector, float32."""
        flat = action.reshape(len(action), -1)
        if self.choices is None:
            return ((flat.float() - self.low) / self.span * 2 - 1).clamp(-self.limit, self.limit)
        numbers = (flat.long() - self.start).unbind(dim=1)
        columns = [functional.one_hot(number, count) for number, count in zip(numbers, self.choices, strict=True)]
        return torch.cat(columns, dim=1).float()

    def loss(self, predicted: Tensor, action: Tensor) -> Tensor:
        """How far a prediction is off, a scalar.

        Args:
            predicted: `[B, size]`, logits of numbered actions, else the vector itself.
            action: `[B, ...]`.

        Returns:
            Mean over the steps of the cross-entropy, added up over the numbers of an action; of a Box the mean squared
            error of the vector.
        """
        vector = self(action)
        if self.choices is None:
            return functional.mse_loss(predicted, vector)
        pairs = zip(*(torch.split(x, self.choices, dim=1) for x in (predicted, vector)), strict=True)
        return torch.stack([functional.cross_entropy(logits, true) for logits, true in pairs]).sum()
