"""ActionEncoder: actions of any space as vectors."""

from typing import Any

import gymnasium
import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional


class ActionEncoder(nn.Module):
    """Encoder of actions as vectors `[B, size]`: one-hot if discrete; a Box scaled to -1..1, where it is bounded."""

    start: Tensor
    low: Tensor
    span: Tensor
    limit: Tensor

    def __init__(self, space: gymnasium.Space[Any]) -> None:
        """Prepare for a Discrete, MultiDiscrete, MultiBinary or Box space."""
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
        """Return `action [B, ...]` as vectors, float32."""
        flat = action.reshape(len(action), -1)
        if self.choices is None:
            return ((flat.float() - self.low) / self.span * 2 - 1).clamp(-self.limit, self.limit)
        numbers = (flat.long() - self.start).unbind(dim=1)
        columns = [functional.one_hot(number, count) for number, count in zip(numbers, self.choices, strict=True)]
        return torch.cat(columns, dim=1).float()

    def loss(self, predicted: Tensor, action: Tensor) -> Tensor:
        """Return the error of a prediction: the mean cross-entropy, summed over the components of an action.

        For a Box, it is the mean squared error of the vector.

        Args:
            predicted: `[B, size]` logits of discrete actions, or the vector of a Box.
            action: `[B, ...]` true actions.
        """
        vector = self(action)
        if self.choices is None:
            return functional.mse_loss(predicted, vector)
        pairs = zip(*(torch.split(x, self.choices, dim=1) for x in (predicted, vector)), strict=True)
        return torch.stack([functional.cross_entropy(logits, true) for logits, true in pairs]).sum()
