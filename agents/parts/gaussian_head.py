"""The policy head of Box action spaces: Gaussians, raw or squashed into the Box."""

import math
from dataclasses import dataclass

import numpy as np
import torch
from gymnasium.spaces import Box
from torch import Tensor, nn
from torch.distributions import Distribution, Independent, Normal
from torch.nn.functional import softplus

from agents.parts.policy_head import PolicyHead

_HALF_LOG_2PI = 0.5 * math.log(2 * math.pi)


@dataclass(frozen=True)
class GaussianOptions:
    """How a policy over a Box is parametrised."""

    state_dependent_std: bool = False
    """The network also gives the standard deviation: tanh mapped to 0.1..1 (rlgym-ppo's ContinuousPolicy)."""
    squash: bool = False
    """Samples go through tanh and are scaled to the Box's bounds, which must be finite."""
    log_std_init: float = 0.0
    """Initial logarithm of the standard deviation, if it does not depend on the state."""


class GaussianHead(PolicyHead):
    r"""Box actions as independent Gaussians; `P = 2 d`: means, then logarithms of the standard deviations.

    Not squashed, a sample is the action; it may lie outside of the Box, and whoever hands it to the environment clips
    it. Squashed, `a = center + half_width * tanh(u)` with `u` Gaussian (Haarnoja et al. 2018, appendix C):

    .. math::
        \log p(a) = \log N(u) - \sum_i \log (h_i (1 - \tanh^2 u_i))

    The entropy of a squashed Gaussian, which has no closed form, is not that of the base Gaussian but that plus the
    expectation of the log-determinant, by Gauss-Hermite quadrature with 16 points: without noise and differentiable.

    With `state_dependent_std` the deviations are `0.55 + 0.45 tanh(.)`. In a Box with finite bounds, not squashed, the
    means are then a tanh too, and both are in units of half the Box's width, as in rlgym-ppo.
    """

    def __init__(
        self, inputs: int, action_space: Box, options: GaussianOptions | None = None, gain: float | None = 0.01
    ) -> None:
        """Builds the layer; for `gain` see `linear`.

        Raises:
            ValueError: To squash into a Box without finite bounds.
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
            for name in ("low", "high"):
                bound = np.asarray(getattr(action_space, name), np.float32).flatten()
                self.register_buffer(name, torch.from_numpy(bound), persistent=False)
        if self.squash:
            nodes, weights = np.polynomial.hermite_e.hermegauss(16)  # type: ignore[no-untyped-call, unused-ignore]
            self.register_buffer("nodes", torch.tensor(nodes, dtype=torch.float32), persistent=False)
            weights = weights / math.sqrt(2 * math.pi)
            self.register_buffer("weights", torch.tensor(weights, dtype=torch.float32), persistent=False)

    def forward(self, features: Tensor) -> Tensor:
        """Means and logarithms of the standard deviations `[..., 2 d]`."""
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
        """See `PolicyHead.sample`; actions `[..., *shape]` float32; a mask is a ValueError."""
        mean, log_std = params.chunk(2, dim=-1)
        raw = mean if deterministic else mean + log_std.exp() * torch.randn_like(mean)
        if self.squash:  # rounding may lead outside
            raw = torch.minimum(torch.maximum(self._center + self._half * raw.tanh(), self.low), self.high)
        action = raw.detach().reshape(*params.shape[:-1], *self.shape)  # a draw: log_prob has no path through it
        return action, self._log_prob(params, action, action_mask)

    def evaluate(self, params: Tensor, action: Tensor, action_mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """See `PolicyHead.evaluate`; a mask is a ValueError."""
        mean, log_std = params.chunk(2, dim=-1)
        entropy = (0.5 + _HALF_LOG_2PI + log_std).sum(dim=-1)
        if self.squash:
            points = mean.unsqueeze(-1) + log_std.exp().unsqueeze(-1) * self.nodes
            entropy = entropy + ((squash_log_det(points) * self.weights).sum(dim=-1) + self._half.log()).sum(dim=-1)
        return self._log_prob(params, action, action_mask), entropy

    def distribution(self, params: Tensor, action_mask: Tensor | None = None) -> Distribution:
        """See `PolicyHead.distribution`; of a squashed action before it is squashed."""
        mean, log_std = params.chunk(2, dim=-1)
        return Independent(Normal(mean, log_std.exp(), validate_args=False), 1)

    def _log_prob(self, params: Tensor, action: Tensor, action_mask: Tensor | None) -> Tensor:
        if action_mask is not None:
            raise ValueError("Box actions take no action mask")
        mean, log_std = params.chunk(2, dim=-1)
        raw = action.reshape(mean.shape).float()
        if self.squash:
            # float32 knows u only up to 8.3, where tanh u = 1 - 2**-23; the bounds themselves would give infinity.
            limit = 1 - torch.finfo(torch.float32).eps
            raw = ((raw - self._center) / self._half).clamp(-limit, limit).atanh()
        deviation = (raw - mean) * (-log_std).exp()
        log_prob = -0.5 * deviation.square() - log_std - _HALF_LOG_2PI
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
    r"""Elementwise :math:`\log(1 - \tanh^2 u) = 2 (\log 2 - u - \mathrm{softplus}(-2 u))`, for any `|u|`."""
    return 2 * (math.log(2) - u - softplus(-2 * u))
