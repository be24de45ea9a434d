"""Imitation: steps of demonstrations, and the loss of an agent that imitates them."""

from collections.abc import Callable
from typing import NamedTuple, Protocol, runtime_checkable

import torch
from torch import Tensor

from fabric_rl.types import Stats


class Shown(NamedTuple):
    """`B` steps that somebody has shown, or `S` sequences of L steps, `[L, S, ...]`; all on the agent's device."""

    obs: Tensor
    """`[B, ...]` float32 or uint8."""
    action: Tensor
    """`[B, ...]` what was done, as the action space wants it."""
    weight: Tensor
    """`[B]` float32, how much the step counts, 0..1; 0 for steps that fill up a sequence."""
    action_mask: Tensor | None = None
    """`[B, n]` bool, what was allowed."""
    soft: Tensor | None = None
    """`[B, n]` float32, how well each discrete action fits what was done; in the place of `action`."""
    state: Tensor | None = None
    """`[S, M]` memory before each sequence."""
    episode_start: Tensor | None = None
    """`[L, S]` bool, memory is zeroed before the step."""
    burn_in_obs: None = None
    burn_in_start: None = None

    def map(self, function: Callable[[Tensor], Tensor]) -> "Shown":
        """Applies `function` to every tensor."""
        return Shown(*(None if x is None else function(x) for x in self))  # type: ignore[arg-type]  # None stays None

    @property
    def size(self) -> int:
        """B, or S."""
        return self.weight.shape[-1]

    def take(self, rows: Tensor) -> "Shown":
        """Steps, or sequences, `rows`."""
        if self.episode_start is None:
            return self.map(lambda x: x[rows])
        picked = self._replace(state=None).map(lambda x: x[:, rows])
        return picked._replace(state=None if self.state is None else self.state[rows])


@runtime_checkable
class CanImitate(Protocol):
    """An agent that learns from what it is shown."""

    def imitate(self, shown: Shown) -> tuple[Tensor, Stats]:
        """The loss (a scalar with a graph through all parameters, as DDP needs) and statistics, see `cloning_loss`."""


def cloning_loss(log_prob: Tensor, weight: Tensor) -> Tensor:
    r"""The negative log-likelihood of what was shown, :math:`-\sum_i w_i \log \pi(a_i | s_i) / \sum_i w_i`.

    It is the cross-entropy of discrete actions. Of a Box it is the density's, not the error of an action that is drawn.

    Args:
        log_prob: Any shape.
        weight: Of the same shape; where all are 0 the loss is 0.
    """
    return -(log_prob.float() * weight).sum() / weight.sum().clamp_min(torch.finfo(torch.float32).tiny)
