"""Policies of snapshots: those that play, and how differently they act."""

from collections.abc import Collection, Sequence
from itertools import permutations
from typing import Any, cast

import gymnasium
import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.distributions import Distribution, kl_divergence

from fabric_rl.selfplay.roster import LATEST, Weights
from fabric_rl.types import ActorCritic, AgentFactory, Minibatch, reads_masks

PROBES = 512
"""Observations that policies are compared on."""
MOST = 1e6
"""Nats that policies are apart, at most."""


class SnapshotPolicies:
    """Policies with the weights of snapshots, one module for each that plays; each car's memory.

    Attributes:
        device: Where they are.
        memory: `[M, memory_size]` of all sub-environments of a pool.
    """

    def __init__(
        self, agent: AgentFactory, observation_space: gymnasium.Space[Any], action_space: gymnasium.Space[Any]
    ) -> None:
        """Takes what builds the agent; nothing is built before it is needed."""
        self._agent, self._spaces = agent, (observation_space, action_space)
        self.device, self.memory = torch.device("cpu"), torch.zeros(0, 0)
        self._modules: dict[int, ActorCritic] = {}
        self._spare: list[ActorCritic] = []

    def to(self, device: torch.device) -> None:
        """Goes to a device."""
        self.device, self.memory = device, self.memory.to(device)
        for module in (*self._modules.values(), *self._spare):
            module.to(device)

    def of(self, number: int, weights: Weights | None) -> ActorCritic:
        """The policy of that number; `weights` (None: new ones) are only taken where it does not play yet."""
        if number not in self._modules:
            module = self._spare.pop() if self._spare else self._new()
            if weights is not None:
                module.load_state_dict(weights)
            self._modules[number] = module
        return self._modules[number]

    def refresh(self, weights: Weights) -> None:
        """Gives the agent as it is now, which plays under the number `LATEST`, new weights."""
        self.of(LATEST, None).load_state_dict(weights)

    def keep_only(self, numbers: Collection[int]) -> None:
        """Others play no more, but for the latest."""
        for number in self._modules.keys() - numbers - {LATEST}:
            self._spare.append(self._modules.pop(number))

    def forget(self, num_envs: int) -> None:
        """Begins games for so many sub-environments."""
        self.memory = torch.zeros(num_envs, self.of(LATEST, None).memory_size, device=self.device)

    def begin(self, rows: NDArray[np.intp]) -> None:
        """These sub-environments begin episodes."""
        if self.memory.shape[1]:
            self.memory[torch.from_numpy(rows).to(self.device)] = 0

    def act(
        self, number: int, weights: Weights | None, obs: Tensor, rows: NDArray[np.intp], mask: Tensor | None
    ) -> Tensor:
        """Sample actions of the policy of a number with torch's global generator; call it without gradients.

        Args:
            number: Whose.
            weights: See `of`.
            obs: `[n, ...]` what the sub-environments `rows [n]` see.
            rows: Whose memory it has.
            mask: `[n, a]` bool, if the environment masks actions.
        """
        module, given = self.of(number, weights), dict[str, Any]()
        own = torch.from_numpy(rows).to(self.device)
        if module.memory_size:
            given["state"] = self.memory[own]
        if mask is not None and reads_masks(module):
            given["action_mask"] = mask
        chosen = module.act(obs, **given)
        if chosen.state is not None:
            self.memory[own] = chosen.state.to(self.memory.dtype)
        return chosen.action

    def _new(self) -> ActorCritic:
        with torch.random.fork_rng(devices=[]):  # its first weights are nobody's business
            return cast(ActorCritic, self._agent(*self._spaces)).to(self.device).eval()


def probe_of(batch: Minibatch) -> tuple[Tensor, Tensor | None]:
    """Up to `PROBES` observations `[P, ...]` of a batch, evenly spread, and their action masks `[P, n]` or None."""
    axes = 1 if batch.episode_start is None else 2  # [B], or [L, S]
    obs = batch.obs.flatten(0, axes - 1)
    rows = torch.linspace(0, len(obs) - 1, min(PROBES, len(obs)), dtype=torch.float64).long().to(obs.device)
    mask = None if batch.action_mask is None else batch.action_mask.flatten(0, axes - 1)[rows]
    return obs[rows], mask


@torch.no_grad()
def distributions_on(agent: ActorCritic, obs: Tensor, mask: Tensor | None) -> list[Distribution] | None:
    """Return the distributions of an agent's actions, with empty memory; None if they cannot be compared."""
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
