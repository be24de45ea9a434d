"""RolesAgent: several agents in one; each acts for and learns from the rows of its own role."""

from collections.abc import Iterator, Mapping
from typing import Any

import gymnasium
import torch
from torch import Tensor, nn
from torch.distributions import Distribution

from fabric_rl.learning.update import index_batch
from fabric_rl.types import ActorCritic, ActOutput, AgentFactory, Minibatch, Stats, accepts_action_mask


class RolesAgent(ActorCritic):
    """One agent for each role, each with its own networks and settings; all learn in one run from the same games.

    The last column of the observations is the number of the role, 0, 1, ...; `envs.TeamRoleObs` (blue and orange) and
    `envs.SlotRoleObs` (first and second car of a team) add it. The agents do not see that column. Each agent learns
    from its own rows of every minibatch, as it would alone; the agents share no parameters. Set `--clip_groups` so that
    one agent's gradient does not shrink another's step. Discount factor, epochs and minibatches are the same for all
    roles. Every row has the same weight, so a role with twice as many rows as another has twice its weight, and
    accumulated minibatches or several ranks act like one large minibatch.

    Statistics are logged for each role as `<role>/<name>`, and their mean as `<name>`.

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
        """Build the agents; raise a ValueError if they or the spaces do not fit together.

        Args:
            observation_space: Observation space of one sub-environment, a Box with one axis whose last number is the
                role.
            action_space: Action space of one sub-environment.
            roles: Role name -> agent class with its settings, in the order of the role numbers.
            normalize_advantages: Also normalize the advantages of each role separately, to mean 0 and standard
                deviation 1 in every minibatch of every rank, for roles with very different rewards. Default: only the
                run's setting applies, to all roles together.
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
        self.normalize_advantages = normalize_advantages
        for name in ("value_heads", "sequence_length", "burn_in", "minibatch_fields"):
            values = [getattr(agent, name) for agent in self.agents]
            if any(value != values[0] for value in values):
                raise ValueError(f"RolesAgent: all roles must have the same {name}, got {values}")
            setattr(self, name, values[0])
        sizes = [agent.memory_size for agent in self.agents]
        if max(sizes) and not min(sizes):
            raise ValueError(f"RolesAgent: either all roles or none must have memory, got memory_size {sizes}")
        self.memory_size = max(sizes)

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
        valued = [out.value is not None for _, out in every]
        if all(valued):
            values: Tensor | None = self._scatter_rows(obs, [(rows, out.value) for rows, out in every])
        else:
            values = self.value(obs, state) if any(valued) else None
        memories = None
        if self.memory_size:
            memories = obs.new_zeros((len(obs), self.memory_size), dtype=torch.float32)
            for rows, out in every:
                if out.state is not None:
                    memories[rows, : out.state.shape[1]] = out.state
        actions = self._scatter_rows(obs, [(rows, out.action) for rows, out in every])
        return ActOutput(
            actions, self._scatter_rows(obs, [(rows, out.log_prob) for rows, out in every]), values, memories
        )

    def value(self, obs: Tensor, state: Tensor | None = None) -> Tensor:
        return self._scatter_rows(
            obs, [(rows, agent.value(**inputs)) for rows, agent, inputs in self._by_role(obs, state, None)]
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

    def training_step(self, minibatch: Minibatch) -> tuple[Tensor, Stats]:  # type: ignore[override]  # as the base's
        """Return the roles' losses over their own rows (or sequences), weighted by their shares of the minibatch."""
        sequences = minibatch.episode_start is not None
        role = minibatch.obs[0, :, -1] if sequences else minibatch.obs[:, -1]
        if sequences and bool((minibatch.obs[..., -1] != role).any()):
            raise ValueError(
                "RolesAgent: a car changed its role within a training sequence; roles of agents with memory must "
                "not change, so leave out --self_play, which swaps sides, or set --agent.sequence_length 1"
            )
        total = minibatch.obs.new_zeros((), dtype=torch.float32)
        stats: Stats = {}
        found: dict[str, list[Tensor]] = {}
        for number, (name, agent) in enumerate(zip(self.roles, self.agents, strict=True)):
            rows = (role == number).nonzero().squeeze(1)
            share = len(rows) / len(role)
            part = index_batch(
                minibatch, rows if share else rows.new_zeros(1)
            )  # without rows: zero gradients and statistics
            part = part._replace(
                obs=part.obs[..., :-1],
                burn_in_obs=None if part.burn_in_obs is None else part.burn_in_obs[..., :-1],
                state=None if part.state is None else part.state[:, : agent.memory_size],
            )
            if self.normalize_advantages and part.advantage.numel() > 1:
                deviation, mean = torch.std_mean(part.advantage)
                part = part._replace(advantage=(part.advantage - mean) / (deviation + 1e-8))
            agent.progress = self.progress
            loss, of_role = agent.training_step(part)
            total = total + len(self.roles) * share * loss
            for key, value in of_role.items():
                stats[f"{name}/{key}"] = value if share else torch.zeros_like(value)
                found.setdefault(key, []).append(value.float() * share)
        return total, {key: torch.stack(values).sum() for key, values in found.items()} | stats

    def configure_optimizers(self) -> torch.optim.Optimizer:
        """Return one optimizer with all agents' parameter groups; raise a ValueError if they use different classes."""
        every = [agent.configure_optimizers() for agent in self.agents]
        kinds = {type(optimizer) for optimizer in every}
        if len(kinds) > 1:
            names = ", ".join(sorted(kind.__name__ for kind in kinds))
            raise ValueError(f"RolesAgent: all roles must use the same class of optimizer, got {names}")
        kind: Any = kinds.pop()
        optimizer: torch.optim.Optimizer = kind([group for each in every for group in each.param_groups])
        return optimizer

    def _by_role(
        self, obs: Tensor, state: Tensor | None, action_mask: Tensor | None
    ) -> Iterator[tuple[Tensor, ActorCritic, dict[str, Tensor]]]:
        """Yield the rows, the agent and the agent's inputs for each role that has rows."""
        for number, agent in enumerate(self.agents):
            rows = (obs[:, -1] == number).nonzero().squeeze(1)
            if not len(rows):
                continue
            inputs = {"obs": obs[rows, :-1]}
            if state is not None:
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
