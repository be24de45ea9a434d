r"""SAC's mathematics, pure functions of tensors.

Haarnoja et al. 2018, "Soft Actor-Critic Algorithms and Applications" (arXiv 1812.05905): equations 5 and 6 (critics), 9
(policy) and 18 (temperature). Christodoulou 2019, "Soft Actor-Critic for Discrete Action Settings" (arXiv 1910.07207):
exact expectations over the actions. Fujimoto et al. 2018 (arXiv 1802.09477): the smaller of two critics.
"""

import torch
from torch import Tensor

_LEAST_LOG_PROB = -100.0  # e^-100 is 0 in float32; below, 0 times a huge temperature times minus infinity is NaN


def soft_value(q: Tensor, log_prob: Tensor, temperature: Tensor) -> Tensor:
    r"""One-sample estimate of :math:`V(s) = E_a[\min_k Q_k(s, a) - \alpha \log \pi(a|s)]`.

    Args:
        q: `[2, B]`, both critics of an action drawn from the policy.
        log_prob: `[B]`, of that action.
        temperature: 0-dim, alpha.

    Returns:
        `[B]`.
    """
    return q.amin(dim=0) - temperature * log_prob


def expected_soft_value(q: Tensor, log_probs: Tensor, temperature: Tensor) -> Tensor:
    r"""The same, exactly: :math:`V(s) = \sum_i \sum_a \pi_i(a|s) (\min_k Q_{k,i}(s, a) - \alpha \log \pi_i(a|s))`.

    An action of several independent parts i has the Q-value :math:`\sum_i Q_i(s, a_i)`.

    Args:
        q: `[2, B, P, n]`, both critics of every choice of each of the P parts.
        log_probs: `[B, P, n]`; what is forbidden or does not exist has probability 0.
        temperature: 0-dim, alpha.

    Returns:
        `[B]`.
    """
    each = q.amin(dim=0) - temperature * log_probs.clamp_min(_LEAST_LOG_PROB)
    return (log_probs.exp() * each).sum(dim=(-2, -1))


def entropy_of(log_probs: Tensor) -> Tensor:
    """Entropies `[B]` of independent categoricals, `log_probs [B, P, n]`."""
    return -(log_probs.exp() * log_probs.clamp_min(_LEAST_LOG_PROB)).sum(dim=(-2, -1))


def critic_loss(q: Tensor, reward: Tensor, discount: Tensor, next_value: Tensor) -> Tensor:
    r"""The sum over the critics of :math:`\frac{1}{2} E[(Q_k(s, a) - (r + d V(s')))^2]`.

    Args:
        q: `[2, B]`, both critics of the replayed actions.
        reward: `[B]`, of up to n steps.
        discount: `[B]`, d: gamma to the number of these steps, 0 where the episode has terminated.
        next_value: `[B]`, of the target networks; no gradient goes through it.
    """
    if not q.shape[1:] == reward.shape == discount.shape == next_value.shape:
        shapes = ", ".join(str(list(x.shape)) for x in (q, reward, discount, next_value))
        raise ValueError(f"critic_loss: q must be [K, B], reward, discount and next_value [B]; got {shapes}")
    target = reward + discount * next_value.detach()
    return 0.5 * (q - target).square().mean(dim=1).sum()


def temperature_loss(log_temperature: Tensor, entropy: Tensor, target_entropy: float) -> Tensor:
    r""":math:`\alpha E[H(\pi(\cdot|s)) - \bar H]`: alpha rises where the entropy is below its target.

    Args:
        log_temperature: 0-dim, the logarithm of alpha, which is learned.
        entropy: `[B]`, or samples `-log_prob` of it; no gradient goes through it.
        target_entropy: In nats.
    """
    return log_temperature.exp() * (entropy.detach() - target_entropy).mean()


@torch.no_grad()
def polyak(targets: list[Tensor], sources: list[Tensor], tau: float) -> None:
    """`target += tau (source - target)`, in place."""
    torch._foreach_lerp_(targets, sources, tau)
