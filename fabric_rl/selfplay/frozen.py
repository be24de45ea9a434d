"""Frozen: copies of the agent that play, and do not learn."""

from collections.abc import Collection
from typing import Any, cast

import gymnasium
import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from fabric_rl.selfplay.roster import LATEST, Weights
from fabric_rl.types import ActorCritic, AgentFactory, reads_masks


class Frozen:
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
        """What the policy of that number chooses, drawn with torch's global generator; call it without gradients.

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
