"""Imitation: steps of demonstrations, and the loss of an agent that imitates them."""

from collections.abc import Callable
from typing import NamedTuple, Protocol, runtime_checkable

import torch
from torch import Tensor

from fabric_rl.types import Stats


class DemonstrationBatch(NamedTuple):
    """`B` steps of demonstrations, or `S` sequences of L steps, `[L, S, ...]`; all on the agent's device."""

    obs: Tensor
    """`[B, ...]` observations, float32 or uint8."""
    action: Tensor
    """`[B, ...]` demonstrated actions in the format of the action space."""
    weight: Tensor
    """`[B]` float32, weight of the step in the loss, 0..1; 0 for steps that pad a sequence."""
    action_mask: Tensor | None = None
    """`[B, n]` bool, True where an action was allowed."""
    soft: Tensor | None = None
    """`[B, n]` float32, similarity of each discrete action to the demonstrated one; used instead of `action`."""
    state: Tensor | None = None
    """`[S, M]` memory before each sequence."""
    episode_start: Tensor | None = None
    """`[L, S]` bool, True where the memory is zeroed before the step."""
    burn_in_obs: None = None
    burn_in_start: None = None

    def map(self, function: Callable[[Tensor], Tensor]) -> "DemonstrationBatch":
        """Return a copy with `function` applied to every tensor."""
        return DemonstrationBatch(*(None if x is None else function(x) for x in self))  # type: ignore[arg-type]  # None stays None

    @property
    def size(self) -> int:
        """Number of steps B, or of sequences S."""
        return self.weight.shape[-1]

    def select(self, rows: Tensor) -> "DemonstrationBatch":
        """Return only the steps, or sequences, with the indices `rows`."""
        if self.episode_start is None:
            return self.map(lambda x: x[rows])
        picked = self._replace(state=None).map(lambda x: x[:, rows])
        return picked._replace(state=None if self.state is None else self.state[rows])


@runtime_checkable
class CanImitate(Protocol):
    """An agent that can learn from demonstrations."""

    def imitate(self, shown: DemonstrationBatch) -> tuple[Tensor, Stats]:
        """Return the loss and statistics.

        The loss is a mean weighted by `shown.weight`: a scalar with a graph through all parameters, as DDP needs.
        """


def cloning_loss(log_prob: Tensor, weight: Tensor) -> Tensor:
    r"""Return the negative log-likelihood of demonstrations, :math:`-\sum_i w_i \log \pi(a_i | s_i) / \sum_i w_i`.

    For discrete actions, it is the cross-entropy; for a Box, it uses the density, not the error of a sampled action.

    Args:
        log_prob: Log-probabilities of any shape.
        weight: Weights of the same shape; if all are 0, the loss is 0.
    """
    return -(log_prob.float() * weight).sum() / weight.sum().clamp_min(torch.finfo(torch.float32).tiny)
