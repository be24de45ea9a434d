"""RolesAgent: several agents in one; each acts for the sub-environments of its own role."""

from collections.abc import Iterator, Mapping
from typing import Any

import gymnasium
import torch
from torch import Tensor, nn
from torch.distributions import Distribution

from fabric_rl.types import ActorCritic, ActOutput, AgentFactory, TeamAgent, accepts_action_mask


class RolesAgent(ActorCritic):
    """One agent for each role, each with its own class, networks and settings, trained by `fabric_rl.train_roles`.

    The last column of the observations is the number of the role, 0, 1, ...; `envs.TeamRoleObs` (blue and orange) and
    `envs.SlotRoleObs` (first and second car of a team) add it. The agents do not see that column. Each agent acts for
    the cars of its role, and only learns from them, with its own algorithm (docs/two_policies.md).

    Attributes:
        roles: Dictionary from role name to agent.
    """

    def __init__(
        self,
        observation_space: gymnasium.Space[Any],
        action_space: gymnasium.Space[Any],
        roles: Mapping[str, AgentFactory],
        normalize_advantages: bool = False,
    ) -> None:
        """Build the agents; raise a ValueError if they do not fit the observations.

        Args:
            observation_space: Observation space of one sub-environment, a Box with one axis whose last number is the
                role.
            action_space: Action space of one sub-environment.
            roles: Role name -> agent class with its settings, in the order of the role numbers.
            normalize_advantages: No effect, only for runs from before roles had separate trainers; advantages are
                always normalized for each role.
        """
        super().__init__(observation_space, action_space)
        space = observation_space
        if not isinstance(space, gymnasium.spaces.Box) or len(space.shape) != 1 or space.low[-1] != 0:
            raise ValueError(
                "RolesAgent: the observations must be vectors that end with the role's number, such as those of "
                f"envs.TeamRoleObs, got {space}"
            )
        if not roles or len(roles) != space.high[-1] + 1:
            raise ValueError(
                f"RolesAgent: --agent.roles has {len(roles)} roles ({', '.join(roles)}), but the observations "
                f"have {int(space.high[-1]) + 1}"
            )
        inner = gymnasium.spaces.Box(space.low[:-1], space.high[:-1], dtype=space.dtype.type)
        self.roles = nn.ModuleDict({name: build(inner, action_space) for name, build in roles.items()})
        if any(isinstance(agent, TeamAgent) for agent in self.agents):
            raise ValueError("RolesAgent: a role cannot be an agent that learns as a team, such as POCAAgent")
        self.memory_size = max(agent.memory_size for agent in self.agents)

    @property
    def agents(self) -> list[ActorCritic]:
        """The agents of the roles, in the order of their numbers."""
        return list(self.roles.values())  # type: ignore[arg-type]

    def act(
        self, obs: Tensor, state: Tensor | None = None, deterministic: bool = False, action_mask: Tensor | None = None
    ) -> ActOutput:
        every = [
            (rows, agent.act(deterministic=deterministic, **inputs))
            for rows, agent, inputs in self._by_role(obs, state, action_mask)
        ]
        memories = None
        if self.memory_size:
            memories = obs.new_zeros((len(obs), self.memory_size), dtype=torch.float32)
            for rows, out in every:
                if out.state is not None:
                    memories[rows, : out.state.shape[1]] = out.state
        actions = self._scatter_rows(obs, [(rows, out.action) for rows, out in every])
        log_probs = self._scatter_rows(obs, [(rows, out.log_prob) for rows, out in every])
        return ActOutput(actions, log_probs, state=memories)

    def value(self, obs: Tensor, state: Tensor | None = None) -> Tensor:
        """Return the values `[N]`, summed over the value heads of each agent."""
        return self._scatter_rows(
            obs,
            [
                (rows, agent.value(**inputs).reshape(len(rows), -1).sum(dim=1))
                for rows, agent, inputs in self._by_role(obs, state, None)
            ],
        )

    def probabilities(
        self, obs: Tensor, state: Tensor | None = None, action_mask: Tensor | None = None
    ) -> Tensor | None:
        """Return action probabilities, see `ActorCritic`; None unless the agents of all roles have them."""
        every = [
            (rows, agent.probabilities(**inputs)) for rows, agent, inputs in self._by_role(obs, state, action_mask)
        ]
        return None if any(found is None for _, found in every) else self._scatter_rows(obs, every)

    def distributions(self, obs: Tensor, state: Tensor | None, action_mask: Tensor | None) -> list[Distribution]:
        return [
            distribution
            for _, agent, inputs in self._by_role(obs, state, action_mask)
            for distribution in agent.distributions(inputs["obs"], inputs.get("state"), inputs.get("action_mask"))
        ]

    def configure_optimizers(self) -> torch.optim.Optimizer:
        """Raise a TypeError, because each role has its own optimizer."""
        raise TypeError("--agent RolesAgent: each role has its own optimizer; train it with fabric_rl.train_roles")

    training_step = configure_optimizers  # type: ignore[assignment]

    def _by_role(
        self, obs: Tensor, state: Tensor | None, action_mask: Tensor | None
    ) -> Iterator[tuple[Tensor, ActorCritic, dict[str, Tensor]]]:
        """Yield the rows, the agent and the agent's inputs for each role that has rows."""
        for number, agent in enumerate(self.agents):
            rows = (obs[:, -1] == number).nonzero().squeeze(1)
            if not len(rows):
                continue
            inputs = {"obs": obs[rows, :-1]}
            if state is not None and agent.memory_size:
                inputs["state"] = state[rows, : agent.memory_size]
            if action_mask is not None and accepts_action_mask(agent):
                inputs["action_mask"] = action_mask[rows]
            yield rows, agent, inputs

    @staticmethod
    def _scatter_rows(obs: Tensor, parts: list[tuple[Tensor, Any]]) -> Tensor:
        """Scatter the parts' rows into one tensor `[N, ...]`."""
        first = parts[0][1]
        joined: Tensor = first.new_empty((len(obs), *first.shape[1:]))
        for rows, part in parts:
            joined[rows] = part
        return joined
