"""The clipped-surrogate loss of PPO."""

from typing import NamedTuple

import torch
from torch import Tensor


class PPOStats(NamedTuple):
    """Parts and diagnostics of the loss, as detached scalars."""

    policy_loss: Tensor
    value_loss: Tensor
    entropy: Tensor
    approx_kl: Tensor
    """mean((r - 1) - log r), Schulman's low-variance estimate of KL(old, new)."""
    clip_fraction: Tensor
    """Share of samples whose ratio lies outside 1 +- clip_coef."""


def ppo_loss(
    log_prob: Tensor,
    entropy: Tensor,
    value: Tensor,
    old_log_prob: Tensor,
    old_value: Tensor,
    advantage: Tensor,
    returns: Tensor,
    clip_coef: float | Tensor = 0.2,
    value_coef: float = 0.5,
    entropy_coef: float | Tensor = 0.0,
    clip_value_loss: bool = False,
) -> tuple[Tensor, PPOStats]:
    r"""Compute PPO's clipped loss (Schulman et al. 2017, equation 9) in float32.

    .. math::
        L = -\mathrm{mean}(\min(r A, \mathrm{clip}(r, 1-\epsilon, 1+\epsilon) A))
            + c_v \tfrac12 \mathrm{mean}((V - R)^2) - c_e \mathrm{mean}(H), \qquad r = \pi / \pi_\mathrm{old}

    With `clip_value_loss`, the squared error is the larger of two, computed with V and with V clipped to
    V_old +- clip_coef.

    Args:
        log_prob: `[B]` (or any other shape) log-probabilities of the actions under the current policy.
        entropy: `[B]` entropies of the current policy.
        value: `[B]` current values, or `[B, K]` for K value heads, whose errors are averaged.
        old_log_prob: `[B]` log-probabilities when the actions were taken.
        old_value: Values when the actions were taken, same shape as `value` (only read with `clip_value_loss`).
        advantage: `[B]` advantages; normalize them before the call if you want to.
        returns: Targets of the value function, same shape as `value`.
        clip_coef: Clip range epsilon, > 0.
        value_coef: Weight of the value loss, c_v.
        entropy_coef: Weight of the entropy bonus, c_e.
        clip_value_loss: Also clip the update of the value function.

    Returns:
        The loss and its parts.

    Raises:
        ValueError: The shapes do not match.
    """
    steps = {tuple(x.shape) for x in (log_prob, entropy, old_log_prob, advantage)}
    values = {tuple(x.shape) for x in (value, old_value, returns)}
    if len(steps) != 1 or len(values) != 1 or value.shape[: log_prob.dim()] != log_prob.shape:
        raise ValueError(
            "ppo_loss: log_prob, entropy, old_log_prob and advantage must have the same shape [B], and value, "
            f"old_value and returns that shape or [B, K]; got {sorted(steps)} and {sorted(values)}"
        )
    log_ratio = log_prob.float() - old_log_prob.float()
    ratio = log_ratio.exp()
    clip = torch.as_tensor(clip_coef, device=ratio.device)
    clipped = ratio.clamp(1 - clip, 1 + clip)
    policy_loss = -torch.minimum(ratio * advantage, clipped * advantage).mean()

    value = value.float()
    error = (value - returns).square()
    if clip_value_loss:
        near = old_value + (value - old_value).clamp(-clip, clip)
        error = torch.maximum(error, (near - returns).square())
    value_loss = 0.5 * error.mean()

    mean_entropy = entropy.float().mean()
    loss = policy_loss + value_coef * value_loss - entropy_coef * mean_entropy
    with torch.no_grad():
        approx_kl = (ratio - 1 - log_ratio).mean()
        clip_fraction = ((ratio - 1).abs() > clip).float().mean()
    return loss, PPOStats(policy_loss.detach(), value_loss.detach(), mean_entropy.detach(), approx_kl, clip_fraction)
