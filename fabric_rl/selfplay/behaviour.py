"""How differently policies act on the same observations."""

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from fabric_rl.types import ActorCritic, HasProbabilities, Minibatch, reads_masks

PROBES = 512
"""Observations that policies are compared on."""


def probe_of(batch: Minibatch) -> tuple[Tensor, Tensor | None]:
    """Up to `PROBES` observations `[P, ...]` of a batch, evenly spread, and their action masks `[P, n]` or None."""
    axes = 1 if batch.episode_start is None else 2  # [B], or [L, S]
    obs = batch.obs.flatten(0, axes - 1)
    rows = torch.linspace(0, len(obs) - 1, min(PROBES, len(obs)), dtype=torch.float64).long().to(obs.device)
    mask = None if batch.action_mask is None else batch.action_mask.flatten(0, axes - 1)[rows]
    return obs[rows], mask


@torch.no_grad()
def probabilities_on(agent: ActorCritic, obs: Tensor, mask: Tensor | None) -> Tensor | None:
    """`[P, n]` float64 of an agent's actions, at the first step of an episode if it has memory; None if it has none."""
    if not isinstance(agent, HasProbabilities):
        return None
    state = torch.zeros(len(obs), agent.memory_size, device=obs.device) if agent.memory_size else None
    found = agent.probabilities(obs, state, mask if reads_masks(agent) else None)
    return None if found is None else found.double().cpu()


def divergence(policies: Sequence[Tensor]) -> NDArray[np.float64]:
    r"""`[K, K]`: :math:`D_{ij} = \frac 1 P \sum_p KL(\pi_i(\cdot|s_p) \| \pi_j(\cdot|s_p))`, nats.

    Args:
        policies: `K` of `[P, n]` float64, probabilities of the actions on the same P observations.
    """
    probs = torch.stack(list(policies))
    logs = probs.clamp(min=torch.finfo(probs.dtype).tiny).log()
    own = (probs * logs).sum(dim=-1).mean(dim=-1)  # [K]
    cross = torch.einsum("ipn,jpn->ij", probs, logs) / probs.shape[1]
    found: NDArray[np.float64] = (own[:, None] - cross).clamp(min=0).numpy()
    return found


def diversity(apart: NDArray[np.float64]) -> float:
    """The mean of `divergence` over all pairs of two; 0 for fewer than two policies."""
    count = len(apart)
    return float(apart.sum() / max(1, count * (count - 1)))
