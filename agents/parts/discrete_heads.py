"""Policy heads of discrete action spaces: categorical, several categoricals, coins.

Where a mask allows nothing of a categorical, all its choices are equally likely: there is nothing to learn from it.
"""

import math

import numpy as np
import torch
from gymnasium.spaces import Discrete, MultiBinary, MultiDiscrete
from torch import Tensor
from torch.distributions import Bernoulli, Categorical, Distribution, Independent
from torch.nn.functional import pad, softplus

from agents.parts.policy_head import PolicyHead

_NO_CHOICE = torch.finfo(torch.float32).min  # finite, unlike -inf: 0 * log 0 is 0 and no gradient is NaN
"""Logit of the places that make parts equally long. Also beside forbidden choices alone it has probability 0."""
_FORBIDDEN = _NO_CHOICE / 2
"""Logit of what a mask forbids."""


class CategoricalHead(PolicyHead):
    """Discrete actions; `P = n` logits."""

    def __init__(self, inputs: int, action_space: Discrete, gain: float | None = 0.01) -> None:
        super().__init__(inputs, int(action_space.n), gain)
        self.start = int(action_space.start)

    def sample(
        self, params: Tensor, deterministic: bool = False, action_mask: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        log_probs = torch.log_softmax(_masked(params, action_mask), dim=-1)
        index = log_probs.argmax(dim=-1) if deterministic else draw(log_probs.exp())
        return index + self.start, _pick(log_probs, index)

    def evaluate(self, params: Tensor, action: Tensor, action_mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
        log_probs = torch.log_softmax(_masked(params, action_mask), dim=-1)
        return _pick(log_probs, action - self.start), _entropy(log_probs)

    def distribution(self, params: Tensor, action_mask: Tensor | None = None) -> Distribution:
        return Independent(Categorical(logits=self.log_probs(params, action_mask), validate_args=False), 1)

    def log_probs(self, params: Tensor, action_mask: Tensor | None = None) -> Tensor:
        """`[..., 1, n]` of all actions, as those of `MultiCategoricalHead`."""
        return torch.log_softmax(_masked(params, action_mask), dim=-1).unsqueeze(-2)

    def index(self, action: Tensor) -> Tensor:
        """`[..., 1]`, where actions `[...]` stand in `log_probs`."""
        return (action - self.start).unsqueeze(-1)

    def probabilities(self, params: Tensor, action_mask: Tensor | None = None) -> Tensor:
        """`[..., n]` of all actions, for `params [..., n]` and the mask that `sample` gets."""
        return torch.softmax(_masked(params, action_mask), dim=-1)


class MultiCategoricalHead(PolicyHead):
    """MultiDiscrete actions as independent categoricals; `P = sum(nvec)` logits, those of the first action first."""

    def __init__(self, inputs: int, action_space: MultiDiscrete, gain: float | None = 0.01) -> None:
        sizes: list[int] = action_space.nvec.flatten().tolist()
        super().__init__(inputs, sum(sizes), gain)
        self.sizes, self.shape = sizes, action_space.shape
        self.start: Tensor | None
        start = torch.from_numpy(np.asarray(action_space.start, np.int64).flatten())
        self.register_buffer("start", start if start.any() else None, persistent=False)

    def sample(
        self, params: Tensor, deterministic: bool = False, action_mask: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        log_probs = self.log_probs(params, action_mask)
        index = log_probs.argmax(dim=-1) if deterministic else draw(log_probs.exp())
        action = index if self.start is None else index + self.start
        return action.reshape(*action.shape[:-1], *self.shape), _pick(log_probs, index).sum(dim=-1)

    def evaluate(self, params: Tensor, action: Tensor, action_mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
        log_probs = self.log_probs(params, action_mask)
        return _pick(log_probs, self.index(action)).sum(dim=-1), _entropy(log_probs).sum(dim=-1)

    def distribution(self, params: Tensor, action_mask: Tensor | None = None) -> Distribution:
        return Independent(Categorical(logits=self.log_probs(params, action_mask), validate_args=False), 1)

    def index(self, action: Tensor) -> Tensor:
        """`[..., len(nvec)]`, where actions `[..., *nvec.shape]` stand in `log_probs`."""
        index = action.flatten(-len(self.shape))
        return index if self.start is None else index - self.start

    def log_probs(self, params: Tensor, action_mask: Tensor | None = None) -> Tensor:
        """`[..., len(nvec), max(nvec)]`; the places beyond an action's own number have probability 0."""
        logits, most = _masked(params, action_mask), max(self.sizes)
        if min(self.sizes) == most:
            logits = logits.reshape(*logits.shape[:-1], len(self.sizes), most)
        else:
            parts = [
                pad(part, (0, most - part.shape[-1]), value=_NO_CHOICE)
                for part in torch.split(logits, self.sizes, dim=-1)
            ]
            logits = torch.stack(parts, dim=-2)
        return torch.log_softmax(logits, dim=-1)


class BernoulliHead(PolicyHead):
    """MultiBinary actions as independent coins; `P = n` logits of a 1. What a mask forbids stays 0."""

    def __init__(self, inputs: int, action_space: MultiBinary, gain: float | None = 0.01) -> None:
        super().__init__(inputs, math.prod(action_space.shape), gain)
        self.shape = action_space.shape

    def sample(
        self, params: Tensor, deterministic: bool = False, action_mask: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        logits = _masked(params, action_mask)
        ones = logits > 0 if deterministic else torch.rand_like(logits) < logits.sigmoid()
        action = ones.long().reshape(*params.shape[:-1], *self.shape)
        return action, self.evaluate(params, action, action_mask)[0]

    def evaluate(self, params: Tensor, action: Tensor, action_mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
        logits = _masked(params, action_mask)
        log_total = softplus(logits)  # log(e^0 + e^logit)
        log_prob = action.reshape(logits.shape) * logits - log_total
        return log_prob.sum(dim=-1), (log_total - logits.sigmoid() * logits).sum(dim=-1)

    def distribution(self, params: Tensor, action_mask: Tensor | None = None) -> Distribution:
        return Independent(Bernoulli(logits=_masked(params, action_mask), validate_args=False), 1)


def draw(probs: Tensor) -> Tensor:
    """Draws one index per row of `probs [..., n]` (float32, rows sum to 1) with torch's global generator.

    Inversion of the cumulative distribution in integers: probabilities count in units of 2**-30, so the sum is exact
    and monotone on every device, and an index of probability 0 is never drawn. One random number per row instead of
    one per entry makes it 8 to 20 times as fast on a CPU as `torch.multinomial` or an exponential race (90 actions); it
    never waits for a GPU, which `torch.multinomial` does. A row with NaN gives some valid index.

    Returns:
        `[...]` int64.
    """
    counts = (probs * 2**30).int().cumsum(dim=-1, dtype=torch.int32)
    total = counts[..., -1:].contiguous()
    point = torch.randint(2**31, total.shape, device=probs.device) * total >> 31  # uniform on 0..total - 1
    index = torch.searchsorted(counts, point.int(), right=True).squeeze(-1)  # the first one whose count exceeds it
    return index.clamp(max=probs.shape[-1] - 1)


def _masked(logits: Tensor, action_mask: Tensor | None) -> Tensor:
    return logits if action_mask is None else logits.masked_fill(action_mask.logical_not(), _FORBIDDEN)


def _pick(log_probs: Tensor, index: Tensor) -> Tensor:
    return log_probs.gather(-1, index.unsqueeze(-1)).squeeze(-1)


def _entropy(log_probs: Tensor) -> Tensor:
    return -(log_probs.exp() * log_probs).sum(dim=-1)
