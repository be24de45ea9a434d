"""How differently policies act on the same observations."""

from collections.abc import Sequence
from itertools import permutations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.distributions import Distribution, kl_divergence

from fabric_rl.types import ActorCritic, Minibatch, reads_masks

PROBES = 512
"""Observations that policies are compared on."""
MOST = 1e6
"""Nats that policies are apart, at most."""


def probe_of(batch: Minibatch) -> tuple[Tensor, Tensor | None]:
    """Up to `PROBES` observations `[P, ...]` of a batch, evenly spread, and their action masks `[P, n]` or None."""
    axes = 1 if batch.episode_start is None else 2  # [B], or [L, S]
    obs = batch.obs.flatten(0, axes - 1)
    rows = torch.linspace(0, len(obs) - 1, min(PROBES, len(obs)), dtype=torch.float64).long().to(obs.device)
    mask = None if batch.action_mask is None else batch.action_mask.flatten(0, axes - 1)[rows]
    return obs[rows], mask


@torch.no_grad()
def distributions_on(agent: ActorCritic, obs: Tensor, mask: Tensor | None) -> list[Distribution] | None:
    """Of an agent's actions, at the first step of an episode if it has memory; None where they cannot be compared."""
    state = torch.zeros(len(obs), agent.memory_size, device=obs.device) if agent.memory_size else None
    found = agent.distributions(obs, state, mask if reads_masks(agent) else None)
    try:
        compared = [kl_divergence(each, each) for each in found]
    except NotImplementedError:
        return None
    return found if sum(len(each) for each in compared) == len(obs) else None


def divergence(policies: Sequence[Sequence[Distribution]]) -> NDArray[np.float64]:
    r"""`[K, K]`: :math:`D_{ij} = \frac 1 P \sum_p KL(\pi_i(\cdot|s_p) \| \pi_j(\cdot|s_p))`, nats.

    Args:
        policies: `K`, see `distributions_on`, on the same P observations.
    """
    found = np.zeros((len(policies), len(policies)))
    for i, j in permutations(range(len(policies)), 2):
        apart = torch.cat([kl_divergence(p, q) for p, q in zip(policies[i], policies[j], strict=True)])
        # Rounding leads below 0; what the other never does, to infinity; huge weights, to NaN.
        found[i, j] = apart.nan_to_num(nan=MOST).mean().clamp(0, MOST).item()
    return found


def diversity(apart: NDArray[np.float64]) -> float:
    """The mean of `divergence` over all pairs of two; 0 for fewer than two policies."""
    count = len(apart)
    return float(apart.sum() / max(1, count * (count - 1)))
