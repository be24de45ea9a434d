"""Policy heads: the last layer of a policy and its distribution, in closed form and in float32.

A head turns features `[..., inputs]` into the parameters `[..., P]` of a distribution over one action space, samples
from them, and evaluates actions. Leading dimensions are arbitrary: `[N]` in a rollout, `[B]` or `[L, S]` in training.
The log-probability of a sample is computed from the action as returned, by the same operations as in `evaluate`, so
PPO's first ratios are 1 up to the rounding of the network itself. If a mask forbids all choices of a categorical, all
are equally likely.
"""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import gymnasium
import numpy as np
import torch
from gymnasium.spaces import Box, Discrete, MultiBinary, MultiDiscrete
from torch import Tensor, nn
from torch.distributions import Bernoulli, Categorical, Distribution, Independent, Normal
from torch.nn.functional import pad, softplus

from fabric_rl.learning.imitation import DemonstrationBatch


def linear(inputs: int, outputs: int, gain: float | None) -> nn.Linear:
    """Build a linear layer, with orthogonal weights and zero biases, or torch's defaults if `gain` is None."""
    layer = nn.Linear(inputs, outputs)
    if gain is not None:
        nn.init.orthogonal_(layer.weight, gain)
        nn.init.zeros_(layer.bias)
    return layer


class PolicyHead(nn.Module, ABC):
    """Policy for one action space, computed from features `[..., inputs]`."""

    def __init__(self, inputs: int, outputs: int, gain: float | None) -> None:
        super().__init__()
        self.layer = linear(inputs, outputs, gain)

    def forward(self, features: Tensor) -> Tensor:
        """Return the distribution's parameters `[..., P]`, float32 under any precision."""
        params: Tensor = self.layer(features).float()
        return params

    @abstractmethod
    def sample(
        self, params: Tensor, deterministic: bool = False, action_mask: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Sample actions with torch's global generator, or return the most likely ones if `deterministic`.

        Args:
            params: `[..., P]` from `forward`.
            deterministic: Return the mode (the median of a squashed Gaussian).
            action_mask: `[..., n]`, True where an action is allowed; discrete spaces only.

        Returns:
            Actions `[..., *action_space.shape]`, int64 or (Box) float32, and log-probabilities `[...]` float32.
        """

    @abstractmethod
    def evaluate(self, params: Tensor, action: Tensor, action_mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Return log-probabilities of `action` and entropies, both `[...]` float32.

        Args:
            params: `[..., P]` from `forward`.
            action: `[..., *action_space.shape]` as returned by `sample`.
            action_mask: The mask that was passed to `sample`.
        """

    @abstractmethod
    def distribution(self, params: Tensor, action_mask: Tensor | None = None) -> Distribution:
        """Return the distribution used by `sample`, with batch shape `[...]`, to compare it with similar ones.

        Args:
            params: `[..., P]` from `forward`.
            action_mask: The mask that is passed to `sample`.
        """


_NO_CHOICE = torch.finfo(torch.float32).min  # finite, unlike -inf: 0 * log 0 is 0 and no gradient is NaN
"""Logit of padding. Its probability is 0 even if all other choices are masked."""
_FORBIDDEN = _NO_CHOICE / 2
"""Logit of masked choices."""


class CategoricalHead(PolicyHead):
    """Discrete actions, or MultiDiscrete ones as independent categoricals, with `P` logits for all parts in order."""

    def __init__(self, inputs: int, action_space: Discrete | MultiDiscrete, gain: float | None = 0.01) -> None:
        numbers = action_space.n if isinstance(action_space, Discrete) else action_space.nvec
        sizes: list[int] = np.ravel(numbers).tolist()
        super().__init__(inputs, sum(sizes), gain)
        self.sizes, self.shape = sizes, action_space.shape or ()
        self.start: Tensor | None
        start = torch.from_numpy(np.ravel(np.asarray(action_space.start, np.int64)))
        self.register_buffer("start", start if start.any() else None, persistent=False)

    def sample(
        self, params: Tensor, deterministic: bool = False, action_mask: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        log_probs = self.log_probs(params, action_mask)
        index = log_probs.argmax(dim=-1) if deterministic else sample_categorical(log_probs.exp())
        action = index if self.start is None else index + self.start
        return action.reshape(*action.shape[:-1], *self.shape), _pick(log_probs, index).sum(dim=-1)

    def evaluate(self, params: Tensor, action: Tensor, action_mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
        log_probs = self.log_probs(params, action_mask)
        log_prob = _pick(log_probs, self.index(action)).sum(dim=-1)
        entropies = -(log_probs.exp() * log_probs).sum(dim=-1)
        return log_prob, entropies.sum(dim=-1)

    def distribution(self, params: Tensor, action_mask: Tensor | None = None) -> Distribution:
        return Independent(Categorical(logits=self.log_probs(params, action_mask), validate_args=False), 1)

    def index(self, action: Tensor) -> Tensor:
        """Return the indices `[..., parts]` of actions `[..., *action_space.shape]` in `log_probs`."""
        index = action.flatten(-len(self.shape)) if self.shape else action.unsqueeze(-1)
        return index if self.start is None else index - self.start

    def log_probs(self, params: Tensor, action_mask: Tensor | None = None) -> Tensor:
        """Return log-probabilities `[..., parts, choices]`; padding of parts with fewer choices has probability 0."""
        logits, most = _masked(params, action_mask), max(self.sizes)
        if min(self.sizes) == most:
            logits = logits.reshape(*logits.shape[:-1], len(self.sizes), most)
        else:
            parts = torch.split(logits, self.sizes, dim=-1)
            logits = torch.stack([pad(x, (0, most - x.shape[-1]), value=_NO_CHOICE) for x in parts], dim=-2)
        return torch.log_softmax(logits, dim=-1)


class BernoulliHead(PolicyHead):
    """MultiBinary actions as independent Bernoulli variables, with `P = n` logits of a 1; masked entries stay 0."""

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


def sample_categorical(probs: Tensor) -> Tensor:
    """Sample one index per row of `probs [..., n]` (float32, rows sum to 1) with torch's global generator.

    The cumulative distribution is inverted in integers: probabilities are in units of 2**-30, so the sum is exact and
    monotone on every device, and an index of probability 0 is never drawn. With one random number per row instead of
    one per entry, it is 8 to 20 times as fast on a CPU as `torch.multinomial` or an exponential race (90 actions).
    Unlike `torch.multinomial`, it never waits for a GPU. A row with NaN yields an arbitrary valid index.

    Returns:
        `[...]` int64.
    """
    counts = (probs * 2**30).int().cumsum(dim=-1, dtype=torch.int32)
    total = counts[..., -1:].contiguous()
    point = torch.randint(2**31, total.shape, device=probs.device) * total >> 31  # uniform on 0..total - 1
    index = torch.searchsorted(counts, point.int(), right=True).squeeze(-1)  # first index whose count exceeds it
    return index.clamp(max=probs.shape[-1] - 1)


def _masked(logits: Tensor, action_mask: Tensor | None) -> Tensor:
    return logits if action_mask is None else logits.masked_fill(action_mask.logical_not(), _FORBIDDEN)


def _pick(log_probs: Tensor, index: Tensor) -> Tensor:
    return log_probs.gather(-1, index.unsqueeze(-1)).squeeze(-1)


HALF_LOG_2PI = 0.5 * math.log(2 * math.pi)


@dataclass(frozen=True)
class GaussianOptions:
    """Parametrization of a policy over a Box."""

    state_dependent_std: bool = False
    """The network also computes the standard deviation: tanh mapped to 0.1..1 (rlgym-ppo's ContinuousPolicy)."""
    squash: bool = False
    """Squash samples with tanh and scale them to the Box's bounds, which must be finite."""
    log_std_init: float = 0.0
    """Initial logarithm of the standard deviation, if it does not depend on the state."""


def bounds_of(space: Box) -> tuple[Tensor, Tensor]:
    """Return the lower and the upper bounds of a Box, each `[d]` float32; raise a ValueError if they cannot scale."""
    low, high = (torch.from_numpy(np.asarray(bound, np.float32).flatten()) for bound in (space.low, space.high))
    if not bool(((high - low > 0) & torch.isfinite(high - low)).all()):
        raise ValueError(f"the bounds of an action Box must differ, and by less than 1e38, got {space}")
    return low, high


class GaussianHead(PolicyHead):
    r"""Box actions as independent Gaussians, with `P = 2 d`: means, then logarithms of the standard deviations.

    Without squashing, the sample is the action; it may be outside the Box, and is clipped before it is passed to the
    environment. With squashing, `a = center + half_width * tanh(u)`, `u` Gaussian (Haarnoja et al. 2018, appendix C):

    .. math::
        \log p(a) = \log N(u) - \sum_i \log (h_i (1 - \tanh^2 u_i))

    The entropy of a squashed Gaussian has no closed form. It is computed as the entropy of the base Gaussian plus the
    expectation of the log-determinant by Gauss-Hermite quadrature with 16 points, which is noise-free and
    differentiable. Up to a standard deviation of 1.6, it is exact to 0.01; for wide ones (4 and more) it is off by up
    to 3 %.

    With `state_dependent_std`, the deviations are `0.55 + 0.45 tanh(.)`. If the Box also has finite bounds and samples
    are not squashed, the means are a tanh too, and both are in units of half the Box's width, as in rlgym-ppo.
    """

    def __init__(
        self, inputs: int, action_space: Box, options: GaussianOptions | None = None, gain: float | None = 0.01
    ) -> None:
        """Build the layer; see `linear` for `gain`.

        Raises:
            ValueError: Samples are to be squashed, but the Box has no finite bounds, or bounds that are used are equal.
        """
        options, size = options or GaussianOptions(), math.prod(action_space.shape)
        super().__init__(inputs, 2 * size if options.state_dependent_std else size, gain)
        self.shape, self.squash = action_space.shape, options.squash
        self.log_std = None if options.state_dependent_std else nn.Parameter(torch.full((size,), options.log_std_init))
        bounded = bool(np.isfinite(action_space.low).all() and np.isfinite(action_space.high).all())
        if self.squash and not bounded:
            raise ValueError(f"squash needs an action Box with finite bounds, got {action_space}")
        self.scaled = options.state_dependent_std and bounded and not self.squash
        self.low: Tensor
        self.high: Tensor
        self.nodes: Tensor
        self.weights: Tensor
        if self.squash or self.scaled:
            low, high = bounds_of(action_space)
            self.register_buffer("low", low, persistent=False)
            self.register_buffer("high", high, persistent=False)
        if self.squash:
            nodes, weights = np.polynomial.hermite_e.hermegauss(16)  # type: ignore[no-untyped-call, unused-ignore]
            self.register_buffer("nodes", torch.tensor(nodes, dtype=torch.float32), persistent=False)
            weights = weights / math.sqrt(2 * math.pi)
            self.register_buffer("weights", torch.tensor(weights, dtype=torch.float32), persistent=False)

    def forward(self, features: Tensor) -> Tensor:
        """Return means and logarithms of the standard deviations `[..., 2 d]`."""
        mean = super().forward(features)
        if self.log_std is not None:
            return torch.cat([mean, self.log_std.float().expand_as(mean)], dim=-1)
        mean, spread = mean.chunk(2, dim=-1)
        log_std = (0.55 + 0.45 * spread.tanh()).log()
        if self.scaled:
            mean, log_std = self._center + self._half * mean.tanh(), log_std + self._half.log()
        return torch.cat([mean, log_std], dim=-1)

    def sample(
        self, params: Tensor, deterministic: bool = False, action_mask: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        mean, log_std = params.chunk(2, dim=-1)
        raw = mean if deterministic else mean + log_std.exp() * torch.randn_like(mean)
        if self.squash:  # rounding may exceed the bounds
            raw = torch.minimum(torch.maximum(self._center + self._half * raw.tanh(), self.low), self.high)
        action = raw.detach().reshape(*params.shape[:-1], *self.shape)  # no gradient of log_prob through the sample
        return action, self._log_prob(params, action, action_mask)

    def evaluate(self, params: Tensor, action: Tensor, action_mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
        mean, log_std = params.chunk(2, dim=-1)
        entropy = (0.5 + HALF_LOG_2PI + log_std).sum(dim=-1)
        if self.squash:
            points = mean.unsqueeze(-1) + log_std.exp().unsqueeze(-1) * self.nodes
            entropy = entropy + ((squash_log_det(points) * self.weights).sum(dim=-1) + self._half.log()).sum(dim=-1)
        return self._log_prob(params, action, action_mask), entropy

    def distribution(self, params: Tensor, action_mask: Tensor | None = None) -> Distribution:
        """Return the distribution before squashing, see `PolicyHead.distribution`."""
        mean, log_std = params.chunk(2, dim=-1)
        return Independent(Normal(mean, log_std.exp(), validate_args=False), 1)

    def _log_prob(self, params: Tensor, action: Tensor, action_mask: Tensor | None) -> Tensor:
        if action_mask is not None:
            raise ValueError("Box actions do not support action masks")
        mean, log_std = params.chunk(2, dim=-1)
        raw = action.reshape(mean.shape).float()
        if self.squash:
            # float32 resolves u only up to 8.3, where tanh u = 1 - 2**-23; the bounds themselves would yield infinity.
            limit = 1 - torch.finfo(torch.float32).eps
            raw = ((raw - self._center) / self._half).clamp(-limit, limit).atanh()
        deviation = (raw - mean) * (-log_std).exp()
        log_prob = -0.5 * deviation.square() - log_std - HALF_LOG_2PI
        if self.squash:
            log_prob = log_prob - squash_log_det(raw) - self._half.log()
        return log_prob.sum(dim=-1)

    @property
    def _center(self) -> Tensor:
        return (self.high + self.low) / 2

    @property
    def _half(self) -> Tensor:
        return (self.high - self.low) / 2


def squash_log_det(u: Tensor) -> Tensor:
    r"""Return :math:`\log(1 - \tanh^2 u) = 2 (\log 2 - u - \mathrm{softplus}(-2 u))`, stable for any `|u|`."""
    return 2 * (math.log(2) - u - softplus(-2 * u))


def demonstrated_log_prob(head: Any, params: Tensor, shown: DemonstrationBatch) -> Tensor:  # noqa: ANN401 - a head
    """Return log-probabilities `[...]` of demonstrated actions, or their means over soft labels if there are any."""
    if shown.soft is not None and isinstance(head, CategoricalHead):
        return (shown.soft * head.log_probs(params, shown.action_mask).squeeze(-2)).sum(dim=-1)
    log_prob: Tensor = head.evaluate(params, shown.action, shown.action_mask)[0]
    return log_prob


def policy_head(
    agent: str,
    inputs: int,
    action_space: gymnasium.Space[Any],
    gaussian: GaussianOptions | None = None,
    ortho_init: bool = True,
) -> PolicyHead:
    """Build the policy head for Discrete, MultiDiscrete, MultiBinary or (float) Box actions over `inputs` features.

    With `ortho_init`, the weights are orthogonal with gain 0.01, so that the initial policy explores evenly.

    Raises:
        ValueError: The space is not supported, or the options do not fit it. The message begins with `agent`, the
            agent's class.
    """
    gain = 0.01 if ortho_init else None
    if isinstance(action_space, Box) and np.issubdtype(action_space.dtype, np.floating):
        try:
            return GaussianHead(inputs, action_space, gaussian, gain)
        except ValueError as error:
            raise ValueError(f"{agent}: --agent.{error}") from error
    if isinstance(action_space, (Discrete, MultiDiscrete, MultiBinary)):
        if gaussian not in (None, GaussianOptions()):
            raise ValueError(
                f"{agent}: --agent.state_dependent_std, squash and log_std_init are for Box actions, but the "
                f"environment has {action_space}; leave these settings out"
            )
        if isinstance(action_space, MultiBinary):
            return BernoulliHead(inputs, action_space, gain)
        return CategoricalHead(inputs, action_space, gain)
    raise ValueError(
        f"{agent} supports Discrete, MultiDiscrete, MultiBinary and (float) Box actions, but the environment has "
        f"{action_space}; choose another --agent, --env or --env_id"
    )
