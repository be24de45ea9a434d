r"""Losses and targets of SAC, as pure functions of tensors.

Haarnoja et al. 2018, "Soft Actor-Critic Algorithms and Applications" (arXiv 1812.05905): equations 5 and 6 (critics), 9
(policy) and 18 (temperature). Christodoulou 2019, "Soft Actor-Critic for Discrete Action Settings" (arXiv 1910.07207):
exact expectations over the actions. Fujimoto et al. 2018 (arXiv 1802.09477): the smaller of two critics.
"""

import torch
from torch import Tensor

_LEAST_LOG_PROB = -100.0  # e^-100 is 0 in float32; 0 times a huge temperature times minus infinity would be NaN


def soft_value(q: Tensor, entropy: Tensor, temperature: Tensor) -> Tensor:
    r"""Return :math:`V_k(s) = E_a[\min_j Q_{jk}(s, a)] + [k = 0] \alpha H(\pi(\cdot|s))` of K signals, `[B, K]`.

    The entropy belongs to the first signal.

    Args:
        q: `[B, K]` expected Q-value of the smaller critic for each reward signal, or the Q-value of a sampled action.
        entropy: `[B]` entropy, or `-log_prob` of that action.
        temperature: 0-dim temperature alpha.
    """
    return torch.cat((q[:, :1] + (temperature * entropy)[:, None], q[:, 1:]), dim=1)


def expected_q(q: Tensor, log_probs: Tensor) -> Tensor:
    r"""Return the policy's exact expected Q-values `[B, K]`, using the smaller of the two critics.

    An action of several independent parts i has the Q-value :math:`Q_j(s, a) = \sum_i Q_{ji}(s, a_i)`. Only this sum is
    learned, so the two critics are compared by their sums: :math:`\min_j E_a[Q_j(s, a)]`. With a single part, they are
    compared for each action: :math:`E_a[\min_j Q_j(s, a)]`.

    Args:
        q: `[2, B, K, P, n]`, both critics of every choice of each of the P parts, for K reward signals.
        log_probs: `[B, P, n]`; impossible choices have probability 0.
    """
    probs = log_probs.exp().unsqueeze(1)
    if q.shape[-2] == 1:
        return (probs * q.amin(dim=0)).sum(dim=(-2, -1))
    return (probs * q).sum(dim=(-2, -1)).amin(dim=0)


def entropy_of(log_probs: Tensor) -> Tensor:
    """Return the entropies `[B]` of independent categorical distributions, `log_probs [B, P, n]`."""
    return -(log_probs.exp() * log_probs.clamp_min(_LEAST_LOG_PROB)).sum(dim=(-2, -1))


def critic_loss(q: Tensor, target: Tensor, weight: Tensor | None = None) -> Tensor:
    r"""Return the sum over critics and reward signals of :math:`\frac{1}{2} E[w (Q_{jk}(s, a) - y_k)^2]`.

    Args:
        q: `[2, B, K]` Q-values of the replayed actions by both critics.
        target: `[B, K]` targets :math:`y_k = r_k + d_k V_k(s')`, see `Transitions`; detached.
        weight: `[B]` weights w, or None for equal ones.
    """
    if q.shape[1:] != target.shape:
        raise ValueError(f"critic_loss: q must be [2, B, K], target [B, K]; got {list(q.shape)}, {list(target.shape)}")
    squares = (q - target.detach()).square().sum(dim=(0, 2))
    return 0.5 * (squares if weight is None else weight * squares).mean()


def temperature_loss(log_temperature: Tensor, entropy: Tensor, target_entropy: float | Tensor) -> Tensor:
    r"""Return :math:`\alpha E[H(\pi(\cdot|s)) - \bar H]`: alpha rises where the entropy is below its target.

    Args:
        log_temperature: 0-dim logarithm of alpha, which is learned.
        entropy: `[B]` entropies, or samples `-log_prob`; detached.
        target_entropy: Target in nats, for all steps, or `[B]`.
    """
    return log_temperature.exp() * (entropy.detach() - target_entropy).mean()


@torch.no_grad()
def polyak(targets: list[Tensor], sources: list[Tensor], tau: float) -> None:
    """Update the targets in place, `target += tau (source - target)`."""
    torch._foreach_lerp_(targets, sources, tau)
