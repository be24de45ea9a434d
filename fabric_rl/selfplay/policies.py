"""Policies of snapshots that play against the learner, and the divergence between policies."""

from collections.abc import Collection, Sequence
from itertools import permutations
from typing import Any, cast

import gymnasium
import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.distributions import Distribution, kl_divergence

from fabric_rl.selfplay.opponent_pool import LATEST, Weights
from fabric_rl.types import ActorCritic, AgentFactory, Minibatch, accepts_action_mask, set_progress

PROBES = 512
"""Maximum number of observations on which policies are compared."""
MAX_DIVERGENCE = 1e6
"""Upper limit of the divergence between two policies, in nats."""


class SnapshotPolicies:
    """Policies with the weights of snapshots, one module for each snapshot that plays.

    Attributes:
        device: Device of the modules.
        memory: `[M, memory_size]` memory in all sub-environments of a pool.
    """

    def __init__(
        self, agent: AgentFactory, observation_space: gymnasium.Space[Any], action_space: gymnasium.Space[Any]
    ) -> None:
        """Store the factory; modules are built when they are needed."""
        self._agent, self._spaces = agent, (observation_space, action_space)
        self.device, self.memory = torch.device("cpu"), torch.zeros(0, 0)
        self._modules: dict[int, ActorCritic] = {}
        self._spare: list[ActorCritic] = []
        self._progress = 0.0

    def to(self, device: torch.device) -> None:
        """Move modules and memory to a device."""
        self.device, self.memory = device, self.memory.to(device)
        for module in (*self._modules.values(), *self._spare):
            module.to(device)

    def of(self, number: int, weights: Weights | None) -> ActorCritic:
        """Return the policy `number`, built with `weights` (None: new weights) if it does not play yet."""
        if number not in self._modules:
            if self._spare:
                module = self._spare.pop()
            else:
                with torch.random.fork_rng(devices=[]):  # its initial weights must not change the run's random numbers
                    module = cast(ActorCritic, self._agent(*self._spaces)).to(self.device).eval()
            if weights is not None:
                module.load_state_dict(weights)
            set_progress(module, self._progress)
            self._modules[number] = module
        return self._modules[number]

    def refresh(self, weights: Weights, progress: float = 0.0) -> None:
        """Load the current agent's weights into the policy `LATEST`, and set the `progress` of all policies."""
        self._progress = progress
        self.of(LATEST, None).load_state_dict(weights)
        for module in self._modules.values():
            set_progress(module, progress)

    def keep_only(self, numbers: Collection[int]) -> None:
        """Free the modules of all other policies, except `LATEST`."""
        for number in self._modules.keys() - numbers - {LATEST}:
            self._spare.append(self._modules.pop(number))

    def reset_memory(self, num_envs: int) -> None:
        """Begin episodes in all of `num_envs` sub-environments."""
        self.memory = torch.zeros(num_envs, self.of(LATEST, None).memory_size, device=self.device)

    def zero_memory(self, rows: NDArray[np.intp]) -> None:
        """Begin episodes in the sub-environments `rows`."""
        if self.memory.shape[1]:
            self.memory[torch.from_numpy(rows).to(self.device)] = 0

    def act(
        self, number: int, weights: Weights | None, obs: Tensor, rows: NDArray[np.intp], mask: Tensor | None
    ) -> Tensor:
        """Sample actions of a policy (see `of`) with torch's global generator; call it without gradients.

        `obs [n, ...]` and `mask [n, a]` belong to the sub-environments `rows [n]`, whose memory is used and updated.
        """
        module, given = self.of(number, weights), dict[str, Any]()
        own = torch.from_numpy(rows).to(self.device)
        if module.memory_size:
            given["state"] = self.memory[own]
        if mask is not None and accepts_action_mask(module):
            given["action_mask"] = mask
        chosen = module.act(obs, **given)
        if chosen.state is not None:
            self.memory[own] = chosen.state.to(self.memory.dtype)
        return chosen.action


def probe_observations(batch: Minibatch) -> tuple[Tensor, Tensor | None]:
    """Return up to `PROBES` observations `[P, ...]` of a batch, evenly spread, and their masks `[P, n]` or None."""
    axes = 1 if batch.episode_start is None else 2  # [B], or [L, S]
    obs = batch.obs.flatten(0, axes - 1)
    rows = torch.linspace(0, len(obs) - 1, min(PROBES, len(obs)), dtype=torch.float64).long().to(obs.device)
    mask = None if batch.action_mask is None else batch.action_mask.flatten(0, axes - 1)[rows]
    return obs[rows], mask


@torch.no_grad()
def action_distributions(agent: ActorCritic, obs: Tensor, mask: Tensor | None) -> list[Distribution] | None:
    """Return an agent's action distributions from an empty memory; None if they cannot be compared."""
    state = torch.zeros(len(obs), agent.memory_size, device=obs.device) if agent.memory_size else None
    found = agent.distributions(obs, state, mask if accepts_action_mask(agent) else None)
    try:
        compared = [kl_divergence(each, each) for each in found]
    except NotImplementedError:
        return None
    return found if sum(len(each) for each in compared) == len(obs) else None


def divergence(policies: Sequence[Sequence[Distribution]]) -> NDArray[np.float64]:
    r"""Return `[K, K]` divergences in nats: :math:`D_{ij} = \frac 1 P \sum_p KL(\pi_i(\cdot|s_p) \| \pi_j(\cdot|s_p))`.

    Args:
        policies: Distributions of `K` policies on the same P observations, see `action_distributions`.
    """
    found = np.zeros((len(policies), len(policies)))
    for i, j in permutations(range(len(policies)), 2):
        apart = torch.cat([kl_divergence(p, q) for p, q in zip(policies[i], policies[j], strict=True)])
        # Rounding can give values below 0; actions that the other policy never takes, infinity; huge weights, NaN.
        found[i, j] = apart.nan_to_num(nan=MAX_DIVERGENCE).mean().clamp(0, MAX_DIVERGENCE).item()
    return found


def diversity(apart: NDArray[np.float64]) -> float:
    """Return the mean of a `divergence` over all pairs of policies; 0 for fewer than two policies."""
    count = len(apart)
    return float(apart.sum() / max(1, count * (count - 1)))
