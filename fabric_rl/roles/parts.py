"""Parts of a run with several roles: the sub-environments of a role, its trainer, and a collector for all roles."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import gymnasium
import numpy as np
import torch
from gymnasium.vector import VectorEnv
from lightning import Fabric
from numpy.typing import NDArray
from torch import Tensor

from fabric_rl.args import SACArgs
from fabric_rl.learning.learner import FrozenLearner
from fabric_rl.metrics.timers import Timers
from fabric_rl.ranks.collectives import Sums
from fabric_rl.ranks.sharding import whole_state
from fabric_rl.rollouts.collect import RECENT_RETURN, Actor, collect_together
from fabric_rl.rollouts.collectors import Collector
from fabric_rl.rollouts.rollout import reward_signals
from fabric_rl.rollouts.step_checks import select_rows
from fabric_rl.session.session import Session
from fabric_rl.signals.signals import add_value_heads
from fabric_rl.types import ActorCritic, OffPolicyAgent

_POOLED = ("reward/", "game/episode_length")
"""First letters of metrics that are also logged for all roles together."""


class RoleEnv(VectorEnv):
    """The sub-environments of one role, without the column of the role's number.

    A `step` gives all other sub-environments the action 0; it is only used to try the agent before training.
    """

    def __init__(self, envs: VectorEnv, rows: NDArray[np.intp], number: int) -> None:
        """Wrap the sub-environments `rows [n]`, in ascending order, which have the role `number`."""
        self.envs, self.rows, self.number = envs, rows, number
        self.num_envs, self.metadata, self.render_mode = len(rows), envs.metadata, None
        whole = cast(gymnasium.spaces.Box, envs.single_observation_space)
        self.single_observation_space = gymnasium.spaces.Box(whole.low[:-1], whole.high[:-1], dtype=whole.dtype.type)
        self.single_action_space = envs.single_action_space
        self.reward_signals = reward_signals(envs)

    def reset(self, *, seed: Any = None, options: Any = None) -> tuple[NDArray[Any], dict[str, Any]]:  # noqa: ANN401
        """Reset all sub-environments."""
        return self.started(*self.envs.reset(seed=seed, options=options))

    def started(self, obs: NDArray[Any], infos: dict[str, Any]) -> tuple[NDArray[Any], dict[str, Any]]:
        """Return the role's part of the results of a `reset` of all sub-environments."""
        return obs[self.rows, :-1], select_rows(infos, self.rows, len(obs))

    def step(self, actions: NDArray[Any]) -> tuple[Any, ...]:
        """Step all sub-environments."""
        size = self.envs.num_envs
        joint = np.zeros((size, *np.shape(actions)[1:]), np.asarray(actions).dtype)
        joint[self.rows] = actions
        return self.select(self.envs.step(joint), self.rows, size)

    def select(self, results: tuple[Any, ...], rows: NDArray[np.intp], size: int) -> tuple[Any, ...]:
        """Return the part of a step's results that belongs to `rows`, among `size` sub-environments of a group.

        Raises:
            ValueError: A sub-environment changed its role.
        """
        obs, reward, terminated, truncated, infos = results
        own = np.asarray(obs)[rows]
        if (own[:, -1] != self.number).any():
            raise ValueError(
                f"--agent RolesAgent: a sub-environment with the role {self.number} changed its role to "
                f"{own[own[:, -1] != self.number][0, -1]:g}; roles must stay the same for a whole run, and so must the "
                "sizes of the teams"
            )
        found = select_rows(infos, rows, size)
        if "final_obs" in found:
            found["final_obs"] = found["final_obs"][..., :-1]
        return own[:, :-1], *(np.asarray(each)[rows] for each in (reward, terminated, truncated)), found

    def state_dict(self) -> dict[str, Any]:
        """Return an empty state, because the run saves the whole environment."""
        return {}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Do nothing."""

    def close_extras(self, **kwargs: Any) -> None:  # noqa: ANN401 - Gymnasium's signature
        """Close the whole environment."""
        self.envs.close()


@dataclass
class Role:
    """A role with its trainer.

    Attributes:
        filled: Steps of the role's rollout that are collected; it learns when the rollout is full.
    """

    name: str
    env: RoleEnv
    session: Session
    """Agent, rollout, learner and signals, with the settings of the role; its collector does not collect."""
    sac: SACArgs | None
    """Settings of the replay buffer; None for PPO."""
    filled: int = 0

    def own(self, weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Return the role's part of the weights of all roles."""
        prefix = f"roles.{self.name}."
        return {name.removeprefix(prefix): x for name, x in weights.items() if name.startswith(prefix)}

    def begin_iteration(self) -> None:
        """Choose whether the agent acts at random."""
        agent, sac, steps = self.session.agent, self.sac, self.session.state.steps
        if sac is not None and isinstance(agent, OffPolicyAgent):
            agent.acts_at_random = not self.session.inference and steps < sac.buffer_init_steps
            agent.holds_actions = sac.hold_random_actions and agent.acts_at_random

    def learn(self) -> dict[str, float]:
        """Learn from the role's rollout if it is full, and return metrics as `<role>/<name>`."""
        session, size = self.session, self.session.state.minibatch_size
        if isinstance(session.agent, OffPolicyAgent):
            session.agent.acts_at_random = session.agent.holds_actions = False
        if self.filled < session.collector.rollout.num_steps:
            return {}
        self.filled = 0
        session.state.advance()
        if session.inference:
            return {}
        rollout = session.collector.scale_rewards()
        session.signals.add_intrinsic_rewards(rollout)
        if self.sac is not None:
            losses = session.learner.learn(rollout.flat(rollout.reward), size)
        else:
            losses = session.learner.learn(rollout.flat(*session.estimate(rollout)), size)
            losses |= session.signals.learn(rollout, size)
        return {f"{self.name}/{name}": value for name, value in losses.items()}


class RolesCollector(Collector):
    """Collector in which the agents of all roles act together, and each fills its own rollout.

    `next_rollout` adds `num_steps` steps to the rollouts of all roles, and returns the first role's.
    """

    def __init__(
        self, fabric: Fabric, envs: VectorEnv, agent: ActorCritic, roles: Sequence[Role], num_steps: int, timers: Timers
    ) -> None:
        own = [role.session.collector for role in roles]
        super().__init__(fabric, fabric, envs, agent, own[0].rollout, None, torch.zeros(()), timers)
        self.roles, self.num_steps = roles, num_steps
        for each in own:  # rollouts that are not full must be saved with their steps
            each._ready = each.rollout.num_steps > num_steps

    def _begin_rollouts(self, obs: NDArray[Any], infos: dict[str, Any], keep: bool = False) -> None:
        for role in self.roles:
            role.session.collector.rollout.begin(*role.env.started(obs, infos))
            role.session.collector.begin_episodes()
            role.filled = 0

    def _load_rollout(self, state: dict[str, Any]) -> None:
        for role in self.roles:  # their own collectors have loaded their rollouts
            role.session.collector._ready = role.session.collector.rollout.num_steps > self.num_steps

    def _collect_steps(self) -> None:
        actors = []
        for role in self.roles:
            own = role.session.collector
            actors.append(Actor(own.agent, own.rollout, own.episodes, role.filled, role.env.rows, role.env.select))
            role.filled += self.num_steps
        collect_together(self.envs, actors, self.num_steps, self._timers)

    def drain_rollout(self, steps: slice = slice(None)) -> Sums:
        found = Sums()
        for role in self.roles:
            own = role.session.collector.drain_rollout(slice(role.filled - self.num_steps, role.filled))
            found |= {f"{role.name}/{name}": pair for name, pair in own.items()}
            for name in (name for name in own if name.startswith(_POOLED)):
                total, count = found.get(name, (0.0, 0.0))
                found[name] = (total + own[name][0], count + own[name][1])
        return found

    def recent_returns(self) -> Sums:
        pairs = [role.session.collector.recent_returns()[RECENT_RETURN] for role in self.roles]
        return {RECENT_RETURN: (sum(total for total, _ in pairs), sum(count for _, count in pairs))}

    def rollout_tensors(self) -> dict[str, Tensor]:
        return _joined({role.name: role.session.collector.rollout_tensors() for role in self.roles})


class RolesLearner(FrozenLearner):
    """The learners of all roles as one, for saving and restoring a run."""

    def __init__(self, fabric: Fabric, agent: ActorCritic, roles: Sequence[Role], num_steps: int) -> None:
        self.fabric, self.agent, self.roles, self.num_steps = fabric, agent, roles, num_steps

    def apply_schedules(self, progress: float, learning_rate: float | None, learning_rate_factor: float) -> None:
        self.agent.progress.fill_(progress)
        for role in self.roles:
            role.session.learner.apply_schedules(progress, learning_rate, learning_rate_factor)

    @property
    def weights_before(self) -> dict[str, Tensor]:
        return _joined({f"roles.{role.name}": role.session.learner.weights_before for role in self.roles})

    def state_dict(self) -> dict[str, Any]:
        roles = {role.name: role.session.state_dict() or {} for role in self.roles}
        for own in roles.values():
            own.pop("agent", None)
        weights = whole_state(self.agent.state_dict(), self.fabric.is_global_zero)
        return {"agent": weights, "optimizer": {}, "precision": {}, "kl_adaptive": None, "roles": roles}

    def load_weights(self, weights: dict[str, Tensor]) -> None:
        for role in self.roles:
            if role.session.signals.signals:
                own = add_value_heads(role.own(weights), role.session.agent)
                weights = weights | _joined({f"roles.{role.name}": own})
        super().load_weights(weights)

    def load_state_dict(self, state: Mapping[str, Any]) -> list[str]:
        if "roles" not in state:
            raise ValueError(
                "its roles shared one optimizer, as in older versions; start a new run with --initialize_from"
            )
        differs = []
        for role in self.roles:
            rest = {name: state[name] for name in ("exact", "seconds")} | {"agent": role.own(state["agent"])}
            try:
                differs += role.session.restore({**state["roles"][role.name], **rest})
            except ValueError as error:
                raise ValueError(f"role {role.name}: {str(error).rpartition('this run: ')[2]}") from error
        return differs

    def rank_state_dict(self) -> dict[str, Any]:
        lost = any(role.sac is not None and not role.sac.save_replay_buffer for role in self.roles)
        return {"filled": {role.name: role.filled for role in self.roles}} | ({"replay": None} if lost else {})

    def load_rank_state_dict(self, state: Mapping[str, Any], iterations: int) -> list[str]:
        if [*state["filled"]] != [role.name for role in self.roles]:
            raise ValueError(f"--agent.roles: the order of the roles must stay {', '.join(state['filled'])}")
        for role in self.roles:
            role.filled = 0 if state["env"] is None else state["filled"][role.name]  # 0 if new episodes begin
            steps = role.session.args.num_steps
            if (steps - role.filled) % self.num_steps:
                raise ValueError(
                    f"--num_steps {self.num_steps}: the role {role.name} has {role.filled} of {steps} steps; resume "
                    "with the num_steps that the run had"
                )
        return []


def _joined(parts: Mapping[str, Mapping[str, Tensor]]) -> dict[str, Tensor]:
    return {f"{part}.{name}": tensor for part, own in parts.items() for name, tensor in own.items()}
