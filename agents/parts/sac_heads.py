"""Policy heads for SAC: the policy of an action space, and the inputs and outputs of its critics.

Both heads have the same interface. A critic is a function of the action; for discrete actions, it takes no action and
returns the Q-values of all choices at once.
"""

import math
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
import torch
from gymnasium.spaces import Box, Discrete, MultiDiscrete
from torch import Tensor, nn
from torch.distributions import Distribution, Independent, Normal

from agents.parts.heads import HALF_LOG_2PI, CategoricalHead, bounds_of, linear, squash_log_det
from fabric_rl.learning.sac import entropy_of, expected_q

Critics = Callable[[Tensor | None], Tensor]
"""Function of actions `[B, inputs]` (None: all choices) that returns Q-values `[2, B, K outputs]` for K signals."""
Mask = Tensor | None
Pair = tuple[Tensor, Tensor]
_MOST = 0.99
"""Largest demonstrated action, in units of half the Box's width."""
_LOG_STD_MIDDLE, _LOG_STD_HALF = -1.5, 3.5  # within -5..2


class SquashedGaussianHead(nn.Module):
    r"""Box actions: a Gaussian squashed by tanh, in units of half the Box's width (Haarnoja et al. 2018, appendix C).

    `u = mean + exp(log_std) noise`, `a = tanh u`, :math:`\log \pi(a) = \log N(u) - \sum_i \log (1 - \tanh^2 u_i)`.
    Gradients flow through the sample. In these units, target entropies have the same meaning in every Box.

    Attributes:
        inputs: Size of the action that is an input of the critics.
        outputs: Number of a critic's outputs for each reward signal.
        greatest_entropy: Entropy of the uniform distribution.
    """

    squash = True

    def __init__(self, features: int, space: Box) -> None:
        """Build the layer; raise a ValueError for a Box without dimensions or finite bounds."""
        super().__init__()
        if not (np.isfinite(space.low).all() and np.isfinite(space.high).all()):
            raise ValueError(f"tanh needs an action Box with finite bounds, got {space}")
        low, high = bounds_of(space)
        if not len(low):
            raise ValueError(f"the action Box has no dimensions: {space}")
        self.inputs, self.outputs, self.shape = len(low), 1, space.shape
        self.greatest_entropy = len(low) * math.log(2)
        self.layer = linear(features, 2 * len(low), None)
        self.low: Tensor
        self.high: Tensor
        self.register_buffer("low", low, persistent=False)
        self.register_buffer("high", high, persistent=False)
        self.centre: Tensor
        self.reach: Tensor
        self.register_buffer("centre", (high + low) / 2, persistent=False)
        self.register_buffer("reach", (high - low) / 2, persistent=False)

    def forward(self, features: Tensor) -> Tensor:
        """Return means and logarithms of the deviations of `u`, `[B, 2 d]` float32."""
        mean, spread = self.layer(features).float().chunk(2, dim=-1)
        log_std = _LOG_STD_MIDDLE + _LOG_STD_HALF * spread.tanh()
        return torch.cat((mean, log_std), dim=-1)

    def sample_unit(self, params: Tensor, deterministic: bool = False) -> Pair:
        """Sample actions `[B, d]` within -1..1 (or use the means); return them and their log-probabilities `[B]`."""
        mean, log_std = params.chunk(2, dim=-1)
        noise = torch.zeros_like(mean) if deterministic else torch.randn_like(mean)
        u = mean + log_std.exp() * noise
        log_prob = -0.5 * noise.square() - log_std - HALF_LOG_2PI - squash_log_det(u)
        return u.tanh(), log_prob.sum(dim=-1)

    def sample(self, params: Tensor, deterministic: bool = False, mask: Mask = None) -> Pair:
        """Return actions in the Box `[B, *shape]` and their log-probabilities `[B]`; raise a ValueError for a mask."""
        if mask is not None:
            raise ValueError("Box actions do not support action masks")
        unit, log_prob = self.sample_unit(params, deterministic)
        return self._in_box(unit), log_prob - self.reach.log().sum()

    def evaluate(self, params: Tensor, action: Tensor, mask: Mask = None) -> Pair:
        """Return log-probabilities `[...]` of actions `[..., *shape]` in the Box, and entropies of `u`.

        Actions are moved to at least 0.5 % of the Box's width from its bounds, where `u` is infinite.
        """
        mean, log_std = params.chunk(2, dim=-1)
        u = ((action.reshape(mean.shape) - self.centre) / self.reach).clamp(-_MOST, _MOST).atanh()
        normal = -0.5 * ((u - mean) * (-log_std).exp()).square() - log_std - HALF_LOG_2PI
        log_prob = (normal - squash_log_det(u) - self.reach.log()).sum(dim=-1)
        return log_prob, (0.5 + HALF_LOG_2PI + log_std).sum(dim=-1)

    def sample_evenly(self, params: Tensor, mask: Mask = None) -> Pair:
        """Sample uniformly, with the outputs of `sample`; only the shape of `params` matters."""
        unit = 2 * torch.rand_like(params[..., : self.inputs]) - 1
        return self._in_box(unit), -(self.high - self.low).log().sum().expand(len(params))

    def distribution(self, params: Tensor, mask: Mask = None) -> Distribution:
        """Return the distribution of `u`, see `PolicyHead.distribution`."""
        mean, log_std = params.chunk(2, dim=-1)
        return Independent(Normal(mean, log_std.exp()), 1)

    def value(self, params: Tensor, mask: Mask, critics: Critics, mean: bool = False) -> Pair:
        """Return the smaller Q-values `[B, K]` and entropies `[B]`, estimated from one sample each (or the `mean`)."""
        unit, log_prob = self.sample_unit(params, mean)
        return critics(unit).amin(dim=0), -log_prob

    def default_target_entropy(self, params: Tensor, mask: Mask = None) -> float | Tensor:
        """Return the default target entropy: minus the number of dimensions."""
        return -float(self.inputs)

    def q_of(self, action: Tensor, critics: Critics) -> Tensor:
        """Return the Q-values `[2, B, K]` of actions `[B, *shape]` in the Box."""
        return critics((action.reshape(len(action), -1) - self.centre) / self.reach)

    def _in_box(self, unit: Tensor) -> Tensor:
        action = self.centre + self.reach * unit
        return action.clamp(self.low, self.high).detach().reshape(*unit.shape[:-1], *self.shape)  # rounding


class DiscreteSACHead(nn.Module):
    """Discrete and MultiDiscrete actions: exact expectations over all choices, without sampling.

    The parts of a MultiDiscrete action are independent, and its Q-value is the sum of their Q-values.

    Attributes:
        inputs: 0, because the critics take no action.
        outputs: Number of a critic's outputs for each reward signal, one for each choice of each part.
        greatest_entropy: Entropy of the uniform distribution.
    """

    def __init__(self, features: int, space: Discrete | MultiDiscrete, entropy_share: float) -> None:
        super().__init__()
        self.policy = CategoricalHead(features, space)
        sizes = self.policy.sizes
        self.inputs, self.outputs = 0, len(sizes) * max(sizes)
        self.greatest_entropy, self._share = sum(math.log(size) for size in sizes), entropy_share

    def forward(self, features: Tensor) -> Tensor:
        """Return the logits, see `PolicyHead.forward`."""
        params: Tensor = self.policy(features)
        return params

    def sample(self, params: Tensor, deterministic: bool = False, mask: Mask = None) -> Pair:
        """Return actions and log-probabilities, see `PolicyHead.sample`."""
        return self.policy.sample(params, deterministic, mask)

    def distribution(self, params: Tensor, mask: Mask = None) -> Distribution:
        """Return the distribution of `sample`, see `PolicyHead.distribution`."""
        return self.policy.distribution(params, mask)

    def sample_evenly(self, params: Tensor, mask: Mask = None) -> Pair:
        """Sample uniformly from the allowed choices, with the outputs of `sample`."""
        return self.policy.sample(torch.zeros_like(params), False, mask)

    def value(self, params: Tensor, mask: Mask, critics: Critics, mean: bool = False) -> Pair:
        """Return exact expectations of the smaller Q-values `[B, K]` and entropies `[B]`."""
        log_probs = self.policy.log_probs(params, mask)
        return expected_q(self._of_choices(critics(None)), log_probs), entropy_of(log_probs)

    def default_target_entropy(self, params: Tensor, mask: Mask = None) -> float | Tensor:
        """Return a share of the greatest entropy; with a mask, `[B]` shares, counting allowed choices only."""
        if mask is None:
            return self._share * self.greatest_entropy
        return self._share * entropy_of(self.policy.log_probs(torch.zeros_like(params), mask))

    def q_of(self, action: Tensor, critics: Critics) -> Tensor:
        """Return the Q-values `[2, B, K]` of actions."""
        q = self._of_choices(critics(None))
        index = self.policy.index(action)[None, :, None, :, None].expand(*q.shape[:-1], 1)
        return q.gather(-1, index).sum(dim=(-2, -1))

    def _of_choices(self, q: Tensor) -> Tensor:
        return q.reshape(*q.shape[:-1], -1, len(self.policy.sizes), max(self.policy.sizes))


def make_sac_head(
    agent: str, features: int, space: gymnasium.Space[Any], entropy_share: float
) -> SquashedGaussianHead | DiscreteSACHead:
    """Build the head for an action space; raise a ValueError for unsupported spaces."""
    if isinstance(space, Box) and np.issubdtype(space.dtype, np.floating):
        try:
            return SquashedGaussianHead(features, space)
        except ValueError as error:
            raise ValueError(f"{agent}: {error}") from error
    if isinstance(space, (Discrete, MultiDiscrete)):
        return DiscreteSACHead(features, space, entropy_share)
    raise ValueError(
        f"{agent} supports Discrete, MultiDiscrete and (float) Box actions, but the environment has {space}; choose "
        "another --agent, --env or --env_id"
    )
