r"""SAC's mathematics, pure functions of tensors.

Haarnoja et al. 2018, "Soft Actor-Critic Algorithms and Applications" (arXiv 1812.05905): equations 5 and 6 (critics), 9
(policy) and 18 (temperature). Christodoulou 2019, "Soft Actor-Critic for Discrete Action Settings" (arXiv 1910.07207):
exact expectations over the actions. Fujimoto et al. 2018 (arXiv 1802.09477): the smaller of two critics.
"""

import torch
from torch import Tensor

_LEAST_LOG_PROB = -100.0  # e^-100 is 0 in float32; below, 0 times a huge temperature times minus infinity is NaN


def soft_value(q: Tensor, entropy: Tensor, temperature: Tensor) -> Tensor:
    r""":math:`V_k(s) = E_a[\min_j Q_{jk}(s, a)] + [k = 0] \alpha H(\pi(\cdot|s))` of K reward signals.

    Entropy counts with the first one's rewards.

    Args:
        q: `[B, K]`, the smaller critic's expectation for each reward signal; or that of one action.
        entropy: `[B]`, or `-log_prob` of that action.
        temperature: 0-dim, alpha.

    Returns:
        `[B, K]`.
    """
    return torch.cat((q[:, :1] + (temperature * entropy)[:, None], q[:, 1:]), dim=1)


def expected_q(q: Tensor, log_probs: Tensor) -> Tensor:
    r"""Return the policy's exact expected Q-value, by the smaller of both critics.

    An action of several independent parts i has the Q-value :math:`Q_j(s, a) = \sum_i Q_{ji}(s, a_i)`. Nothing but that
    sum is learned, so the two critics are compared by sums: :math:`\min_j E_a[Q_j(s, a)]`. A single part has a sum for
    each action: :math:`E_a[\min_j Q_j(s, a)]`.

    Args:
        q: `[2, B, K, P, n]`, both critics of every choice of each of the P parts, for K reward signals.
        log_probs: `[B, P, n]`; what is forbidden or does not exist has probability 0.

    Returns:
        `[B, K]`.
    """
    probs = log_probs.exp().unsqueeze(1)
    if q.shape[-2] == 1:
        return (probs * q.amin(dim=0)).sum(dim=(-2, -1))
    return (probs * q).sum(dim=(-2, -1)).amin(dim=0)


def entropy_of(log_probs: Tensor) -> Tensor:
    """Entropies `[B]` of independent categoricals, `log_probs [B, P, n]`."""
    return -(log_probs.exp() * log_probs.clamp_min(_LEAST_LOG_PROB)).sum(dim=(-2, -1))


def critic_loss(q: Tensor, target: Tensor, weight: Tensor | None = None) -> Tensor:
    r"""The sum over critics and reward signals of :math:`\frac{1}{2} E[w (Q_{jk}(s, a) - y_k)^2]`.

    Args:
        q: `[2, B, K]`, both critics of the replayed actions.
        target: `[B, K]`, :math:`y_k = r_k + d_k V_k(s')`, see `Transitions`; no gradient goes through it.
        weight: `[B]`, w; None: 1.
    """
    if q.shape[1:] != target.shape:
        raise ValueError(f"critic_loss: q must be [2, B, K], target [B, K]; got {list(q.shape)}, {list(target.shape)}")
    squares = (q - target.detach()).square().sum(dim=(0, 2))
    return 0.5 * (squares if weight is None else weight * squares).mean()


def temperature_loss(log_temperature: Tensor, entropy: Tensor, target_entropy: float | Tensor) -> Tensor:
    r""":math:`\alpha E[H(\pi(\cdot|s)) - \bar H]`: alpha rises where the entropy is below its target.

    Args:
        log_temperature: 0-dim, the logarithm of alpha, which is learned.
        entropy: `[B]`, or samples `-log_prob` of it; no gradient goes through it.
        target_entropy: In nats, for all or for each `[B]`.
    """
    return log_temperature.exp() * (entropy.detach() - target_entropy).mean()


@torch.no_grad()
def polyak(targets: list[Tensor], sources: list[Tensor], tau: float) -> None:
    """`target += tau (source - target)`, in place."""
    torch._foreach_lerp_(targets, sources, tau)
