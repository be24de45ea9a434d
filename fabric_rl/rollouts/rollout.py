"""Rollout buffers `[T, N]`."""

import copy
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, cast

import numpy as np
import torch
from gymnasium.vector import AutoresetMode, VectorEnv
from numpy.typing import NDArray
from torch import Tensor

from fabric_rl.base.state_schema import check_structure
from fabric_rl.rollouts.step_checks import check_array, require_finite
from fabric_rl.types import (
    MINIBATCH_FIELDS,
    ActorCritic,
    HasRewardSignals,
    HasTeams,
    Minibatch,
    OffPolicyAgent,
    TeamAgent,
    accepts_action_mask,
)

TENSORS = (
    *("_obs", "_episode_start", "action_mask", "present", "state", "_states", "action", "log_prob"),
    *("value", "next_value", "reward", "terminated", "done", "teacher_action", "next_obs"),
)
VALUE_NUMBERS = 2**22
"""Maximum number of observation entries in one call of the value function."""


class Layout(NamedTuple):
    """Arrangement of a rollout's steps for an agent; in sequences if the agent has memory.

    With burn-in, the last P steps of the previous rollout come first, so that P steps precede every sequence.
    """

    num_steps: int
    """T, steps per sub-environment."""
    length: int = 1
    """L, steps per sequence."""
    burn_in: int = 0
    """P, steps before each sequence."""
    memory: int = 0
    """M, size of the memory."""
    in_sequences: bool = False
    """The agent learns from sequences, not from single steps."""

    @classmethod
    def of(cls, num_steps: int, agent: ActorCritic | None) -> "Layout":
        """Return the layout for an agent; raise a ValueError if its sequences do not fit into `num_steps`."""
        if agent is None or not agent.learns_sequences or isinstance(agent, OffPolicyAgent):
            # An `OffPolicyAgent` has no layout of sequences, because replayed sequences begin at any step.
            return cls(num_steps, memory=0 if agent is None else agent.memory_size)
        name, length, burn_in = type(agent).__name__, agent.sequence_length, agent.burn_in
        if num_steps % length:
            raise ValueError(
                f"--num_steps {num_steps} must be a multiple of {name}'s --agent.sequence_length {length}: a rollout "
                "is cut into whole sequences"
            )
        if burn_in > num_steps:
            raise ValueError(f"{name}'s --agent.burn_in {burn_in} must not exceed --num_steps {num_steps}")
        return cls(num_steps, length, burn_in, agent.memory_size, in_sequences=True)

    @property
    def rows(self) -> int:
        """Number of rows, P + T."""
        return self.burn_in + self.num_steps

    @property
    def num_sequences(self) -> int:
        """T / L, number of sequences of each sub-environment."""
        return self.num_steps // self.length

    @property
    def num_states(self) -> int:
        """Number of stored memories: before every L-th step, counted from the first burn-in step."""
        return -(-self.rows // self.length)

    def sequences(self, x: Tensor) -> Tensor:
        """Cut `x [T, N, ...]` into sequences `[L, T / L * N, ...]`."""
        return x.reshape(self.num_sequences, self.length, *x.shape[1:]).transpose(0, 1).flatten(1, 2)

    def burn_in_steps(self, x: Tensor) -> Tensor | None:
        """Return the burn-in steps `[P, T / L * N, ...]` of all sequences from `x [P + T + 1, N, ...]`."""
        if not self.burn_in:
            return None
        windows = [x[first * self.length : first * self.length + self.burn_in] for first in range(self.num_sequences)]
        return torch.stack(windows, dim=1).flatten(1, 2)


class Rollout:
    """`T` steps of `N` sub-environments, time-major, on the agent's device.

    Attributes:
        obs: `[T + 1, N, ...]` float32, or uint8 for pixels; row `T` is the observation after the last step.
        episode_start: `[T + 1, N]` bool, True for the first step of an episode.
        action_mask: `[T + 1, N, n]` bool, or None if the environment has no action masks or the agent does not use
            them.
        teacher_action: `[T + 1, N, ...]` actions of the environment's teacher, or None unless the agent asks for them.
        state: `[N, M]` float32, the agent's memory before its next step, or None for an agent without memory.
        action: `[T, N, ...]` actions as sampled.
        log_prob: `[T, N]` float32, log-probabilities of the actions under the policy that sampled them.
        value: `[T, N]` float32, or `[T, N, K]` for K > 1 reward signals.
        next_value: Value of the true next state of the same episode, same shape as `value`; undefined where
            `terminated`. For a signal that is not `episodic`: value of the observation that the agent saw next, even if
            it begins another episode.
        reward: Rewards, same shape as `value`; scaled for learning with `--standardize_returns`.
        terminated: `[T, N]` bool, True where the episode terminated.
        done: `[T, N]` bool, True where the episode terminated or was truncated.
        next_obs: `[T, N, ...]` true next observation of the same episode, even at its end, same dtype as `obs`; None
            unless the agent or a signal asks for it.
        episodic: `[K]` bool, True for a signal whose returns end with the episode; None: all do.
        present: `[T + 1, N]` bool, False for agents that have left their episode (`HasTeams`); None: the environment
            does not report it, or the agent is not a `TeamAgent`.
        team_rows: `[N, M]` int64, the sub-environments of the team of each, itself first; padded with itself where the
            team has fewer than M agents. Only for a `TeamAgent`, like `in_team`.
        in_team: `[N, M]` bool, False for padding.
        untaught: Number of rollouts to learn from without the teacher, because the run was saved without its actions.
    """

    def __init__(
        self,
        num_steps: int,
        env: VectorEnv,
        device: torch.device | str = "cpu",
        agent: ActorCritic | None = None,
        signals: Sequence[str] = (),
    ) -> None:
        """Allocate the buffers.

        Args:
            num_steps: Steps per sub-environment, `T`.
            env: Vector environment with SAME_STEP autoreset.
            device: Device of the tensors.
            agent: Agent that determines memory and value heads; default: one value head, no memory.
            signals: Names of the reward signals added to the environment's: the last columns of `reward` and `value`.

        Raises:
            ValueError: The environment uses another autoreset mode or has observations that are not arrays, or its
                reward signals or the number of steps do not fit the agent.
        """
        if env.metadata.get("autoreset_mode") != AutoresetMode.SAME_STEP:
            raise ValueError(
                f"{type(env).__name__}: metadata['autoreset_mode'] must be AutoresetMode.SAME_STEP, "
                f"got {env.metadata.get('autoreset_mode')}"
            )
        obs_space, action_space = env.single_observation_space, env.single_action_space
        if obs_space.shape is None or action_space.shape is None:
            raise ValueError(
                f"{type(env).__name__}: observations and actions must be single arrays, got {obs_space} and "
                f"{action_space}"
            )
        self.num_steps, self.num_envs = num_steps, env.num_envs
        self.obs_dtype = np.uint8 if obs_space.dtype == np.uint8 else np.float32
        self._layout, self._fields = Layout.of(num_steps, agent), _requested_fields(agent)
        self.reward_signals, self._added = reward_signals(env), len(signals)
        heads = self._count_value_heads(env, agent, signals)
        whole, size = (self._layout.rows + 1, env.num_envs), (num_steps, env.num_envs)
        values = (*size, heads) if heads > 1 else size
        numbers = torch.int64 if np.issubdtype(action_space.dtype, np.integer) else torch.float32

        def zeros(*shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
            return torch.zeros(shape, dtype=dtype, device=device)

        self._obs = zeros(*whole, *obs_space.shape, dtype=torch.uint8 if self.obs_dtype is np.uint8 else torch.float32)
        self._episode_start = ~zeros(*whole, dtype=torch.bool)
        memory = (env.num_envs, self._layout.memory)
        self._states = zeros(self._layout.num_states, *memory) if memory[1] else zeros(0)
        self.state = zeros(*memory) if memory[1] else None
        self.action = zeros(*size, *action_space.shape, dtype=numbers)
        self.action += torch.as_tensor(getattr(action_space, "start", 0), dtype=numbers, device=device)
        self.log_prob = zeros(*size)
        self.value, self.next_value, self.reward = zeros(*values), zeros(*values), zeros(*values)
        self.terminated, self.done = zeros(*size, dtype=torch.bool), zeros(*size, dtype=torch.bool)
        self._set_views()
        self._in_teams = isinstance(agent, TeamAgent)
        if self._in_teams:
            self.team_rows, self.in_team = (torch.from_numpy(x).to(device) for x in _teams(env, agent))
        self.present: Tensor | None = None
        needs_next = signals or self._in_teams or "next_obs" in self._fields
        self.next_obs = torch.zeros_like(self.obs[1:]) if needs_next else None
        self.teacher_action: Tensor | None = None
        self.untaught = 0
        if "teacher_action" in self._fields:
            self.teacher_action = zeros(num_steps + 1, env.num_envs, *action_space.shape, dtype=numbers)
        self.action_mask: Tensor | None = None
        self._masked = agent is None or accepts_action_mask(agent)
        self.episodic: Tensor | None = None

    def _set_views(self) -> None:
        """Set `obs` and `episode_start` to the part after the burn-in."""
        self.obs, self.episode_start = self._obs[self._layout.burn_in :], self._episode_start[self._layout.burn_in :]

    def _count_value_heads(self, env: VectorEnv, agent: ActorCritic | None, signals: Sequence[str]) -> int:
        wanted = max(1, len(self.reward_signals)) + len(signals)
        heads = wanted if agent is None else agent.value_heads
        if heads != wanted:
            names = ", ".join(self.reward_signals) or "its reward"
            more = f" and --signals {len(signals)} ({', '.join(signals)})" if signals else ""
            raise ValueError(
                f"{type(env).__name__} has {len(self.reward_signals) or 1} reward signal(s) ({names}){more}, "
                f"but {type(agent).__name__} has value_heads={heads}; set --agent.value_heads {wanted}"
            )
        return heads

    @property
    def env_reward(self) -> Tensor:
        """The environment's part of `reward`, a view: `[T, N]`, or `[T, N, K]` for its K > 1 reward signals."""
        if not self._added:
            return self.reward
        own = self.reward[..., : -self._added]
        return own if self.reward_signals else own[..., 0]

    def begin(self, obs: NDArray[Any], infos: dict[str, Any] | None = None, keep: bool = False) -> None:
        """Store the first observations `[N, ...]` and the infos that `env.reset()` returned.

        With `keep`, the steps in the rollout are kept for learning.

        Raises:
            NonFiniteError: The observations contain NaN or infinity.
            ValueError: The observations have the wrong shape or dtype.
        """
        obs = check_array("--env reset(): the observations", obs, tuple(self.obs.shape[1:]))
        obs = np.asarray(obs, self.obs_dtype)
        require_finite("an observation", obs, "at reset")
        self.obs[-1] = torch.from_numpy(obs)
        self._episode_start[-1 if keep else slice(None)] = True
        if self.state is not None:
            self.state.zero_()
            if not keep:
                self._states.zero_()
        mask = (infos or {}).get("action_mask") if self._masked else None
        if mask is not None:
            if not keep or self.action_mask is None:
                shape = (self.num_steps + 1, *np.shape(mask))
                self.action_mask = torch.ones(shape, dtype=torch.bool, device=self.obs.device)
            self.action_mask[-1] = torch.from_numpy(np.asarray(mask, np.bool_))
        if self._in_teams and "present" in (infos or {}):
            if not keep or self.present is None:
                self.present = torch.ones_like(self.episode_start)
            self.present[-1] = torch.from_numpy(np.asarray((infos or {})["present"], np.bool_))
        if self.teacher_action is not None:
            if infos is None or "teacher_action" not in infos:
                raise ValueError(
                    "--agent wants to imitate a teacher, but --env has none; set --env.teacher, for example to "
                    "envs.KickoffThenShoot, or --agent.teacher_coef 0"
                )
            taught = check_array(
                "--env reset(): infos['teacher_action']", infos["teacher_action"], self.action.shape[1:]
            )
            self.teacher_action[-1] = torch.from_numpy(taught)

    def state_dict(self, whole: bool = False) -> dict[str, Any]:
        """Return the start of the next rollout (last observations, memory, masks), or the `whole` rollout."""
        if whole:
            missing = {name for name in ("next_obs", "present") if getattr(self, name) is None}
            tensors = {name: getattr(self, name) for name in TENSORS if name not in missing}
            return {name: None if x is None else x.detach().clone() for name, x in tensors.items()}
        kept = self._layout.burn_in + 1
        mask = None if self.action_mask is None else self.action_mask[-1]
        state = {"obs": self._obs[-kept:], "episode_start": self._episode_start[-kept:], "action_mask": mask}
        if self.teacher_action is not None:
            state["teacher_action"] = self.teacher_action[-1]
        if self.present is not None:
            state["present"] = self.present[-1]
        if self.state is not None:
            state |= {"memory": self.state, "memories": self._states[self._layout.num_sequences :]}
        return {name: None if x is None else x.detach().clone() for name, x in state.items()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore the state that `state_dict` returned; the sizes must be the same."""
        own = self.state_dict(whole="_obs" in state)
        if "_obs" in state and len(state["_obs"]) != len(own["_obs"]):
            now = self._layout.num_steps
            before = now + len(state["_obs"]) - len(own["_obs"])
            raise ValueError(f"a rollout is half collected (--overlap), so --num_steps must stay {before}, got {now}")
        taught = state.get("teacher_action")  # missing in older checkpoints and without a teacher, which may change
        if taught is None or self.teacher_action is None:
            self.untaught = 2  # a whole rollout, and the first row of the next one
            own, state = ({**each, "teacher_action": None} for each in (own, state))
        check_structure(state, own, "it")
        if "_obs" in state:
            if state["action_mask"] is not None:
                self.action_mask = torch.ones_like(state["action_mask"], device=self.obs.device)
            for name in own:
                if state[name] is not None:
                    getattr(self, name).copy_(state[name])
            return
        if self.teacher_action is not None and taught is not None:
            self.teacher_action[-1] = taught
        if self.present is not None:
            self.present[-1] = state["present"]
        kept = self._layout.burn_in + 1
        self._obs[-kept:], self._episode_start[-kept:] = state["obs"], state["episode_start"]
        if state["action_mask"] is not None:
            shape = (self.num_steps + 1, *state["action_mask"].shape)
            self.action_mask = torch.ones(shape, dtype=torch.bool, device=self.obs.device)
            self.action_mask[-1] = state["action_mask"]
        if self.state is not None:
            self.state = state["memory"].to(self.obs.device)
            self._states[self._layout.num_sequences :] = state["memories"]

    def roll_over(self) -> None:
        """Copy the end of the last rollout to the beginning of the next."""
        self.untaught = max(0, self.untaught - 1)
        kept = self._layout.burn_in + 1
        self._obs[:kept] = self._obs[-kept:].clone()
        self._episode_start[:kept] = self._episode_start[-kept:].clone()
        for each in (self.action_mask, self.teacher_action, self.present):
            if each is not None:
                each[0] = each[-1]
        if self.state is not None:
            kept = len(self._states) - self._layout.num_sequences
            self._states[:kept] = self._states[self._layout.num_sequences :].clone()

    def refresh_memory(self, agent: ActorCritic) -> None:
        """Run the burn-in of the next rollout again, so that it begins with the memory that training will compute.

        The weights and the normalization of the agent have changed since those steps. With the stored memory, PPO's
        first ratios would not be 1 for sequences whose burn-in is in the previous rollout.
        """
        if self.state is None or not self._layout.burn_in:
            return
        state = self._states[0].clone()
        for step, (obs, start) in enumerate(zip(self._obs, self._episode_start[: self._layout.burn_in], strict=False)):
            if step % self._layout.length == 0:
                self._states[step // self._layout.length] = state
            acted = agent.act(obs, state=state.masked_fill(start[:, None], 0), deterministic=True)
            state = cast(Tensor, acted.state)
        self.state = state.masked_fill(self.episode_start[0][:, None], 0)

    def inputs(self, step: int, rows: slice = slice(None)) -> dict[str, Any]:
        """Return the inputs of `agent.act` for the sub-environments `rows`, except the observations.

        At the start of a sequence, this also stores the agent's memory.
        """
        inputs: dict[str, Any] = {}
        if self.state is not None:
            inputs["state"] = self.state[rows]
            if (self._layout.burn_in + step) % self._layout.length == 0:
                self._states[(self._layout.burn_in + step) // self._layout.length, rows] = self.state[rows]
        if self.action_mask is not None:
            inputs["action_mask"] = self.action_mask[step, rows]
        return inputs

    def flat(self, advantage: Tensor, returns: Tensor | None = None) -> Minibatch:
        """Return the rollout as one batch: `T * N` steps, or `T / L * N` sequences for an agent that learns from them.

        Args:
            advantage: Advantages, same shape as `reward`; they are summed over the reward signals.
            returns: Targets of the value function, same shape as `reward`; default: advantage + value.
        """
        returns = advantage + self.value if returns is None else returns
        if advantage.dim() == 3:
            advantage = advantage.sum(dim=-1)
        mask = None if self.action_mask is None else self.action_mask[:-1]
        steps = Minibatch(self.obs[:-1], self.action, self.log_prob, self.value, advantage, returns, mask)
        fields: dict[str, Any] = {name: self._field(name) for name in self._fields}
        steps = steps._replace(**fields)
        layout = self._layout
        if not layout.in_sequences:
            steps = steps._replace(state=None if self.state is None else self._states)
            chosen = self._present_steps()
            return steps.map(lambda x: x.flatten(0, 1) if chosen is None else x.flatten(0, 1)[chosen])
        return steps.map(layout.sequences)._replace(
            state=None if self.state is None else self._states[: layout.num_sequences].flatten(0, 1),
            episode_start=layout.sequences(self.episode_start[:-1]),
            burn_in_obs=layout.burn_in_steps(self._obs),
            burn_in_start=layout.burn_in_steps(self._episode_start),
        )

    def of_team(self, x: Tensor) -> Tensor:
        """Return `x [T, N, ...]` of every agent and its teammates, `[T, N, M, ...]`; see `team_rows`."""
        return x[:, self.team_rows]

    def team_present(self, steps: slice) -> Tensor:
        """Return which agents of the teams are present, `[t, N, M]` bool, as in `Minibatch`."""
        if self.present is None:
            return self.in_team.expand(len(self.obs[steps]), *self.in_team.shape)
        return self.of_team(self.present[steps]) & self.in_team

    def team_values(self, agent: TeamAgent) -> Tensor:
        """Return the values of the teams, as seen from each agent, at all T + 1 observations: `[T + 1, N(, K)]`."""
        return self._of_critic(agent.team_value, self.num_steps + 1, self.obs)

    def team_baselines(self, agent: TeamAgent) -> Tensor:
        """Return the counterfactual baselines of all steps, `[T, N(, K)]`; see `TeamAgent.baseline`."""
        return self._of_critic(agent.baseline, self.num_steps, self.obs, self.action)

    def _of_critic(self, critic: Callable[..., Tensor], steps: int, *inputs: Tensor) -> Tensor:
        """Return what a critic gives for the `inputs [steps, N, ...]` of the teams, in chunks to save memory."""
        size, parts = max(1, VALUE_NUMBERS // max(1, self.obs[0].numel() * self.team_rows.shape[1])), list[Tensor]()
        for first in range(0, steps, size):
            t = slice(first, min(first + size, steps))
            teams = [*(self.of_team(x[t]) for x in inputs), self.team_present(t)]
            parts.append(critic(*(x.flatten(0, 1) for x in teams)))
        values = torch.cat(parts)
        return values.view(steps, self.num_envs, *values.shape[1:])

    def _present_steps(self) -> Tensor | None:
        """Return the flat steps to learn from, `[T * N]`, or None for all of them in order.

        The steps of agents that have left are replaced by steps of present ones, drawn at random: batches keep their
        size, which must be the same on every rank.
        """
        if self.present is None:
            return None
        present = self.present[:-1].flatten()
        numbers = present.nonzero().squeeze(1)
        if len(numbers) in (0, len(present)):
            return None
        generator = torch.Generator().manual_seed(len(numbers))
        drawn = torch.randint(len(numbers), present.shape, generator=generator).to(numbers.device)
        return torch.where(present, torch.arange(len(present), device=numbers.device), numbers[drawn])

    def _field(self, name: str) -> Tensor | None:
        """Return a field that the agent has asked for, `[T, N, ...]`."""
        if name in ("team_obs", "team_action"):
            return self.of_team(self.obs[:-1] if name == "team_obs" else self.action)
        if name == "team_present":
            return self.team_present(slice(self.num_steps))
        if name == "next_action_mask":
            if self.action_mask is None:
                return None
            cut = (self.done & ~self.terminated)[..., None]
            return torch.where(cut, self.action_mask[:-1], self.action_mask[1:])
        if name == "teacher_action":
            return None if self.teacher_action is None or self.untaught else self.teacher_action[:-1]
        if name not in ("time", "sub_env"):
            tensor: Tensor = getattr(self, name)
            return tensor
        numbers = torch.arange(self.num_steps if name == "time" else self.num_envs, device=self.obs.device)
        return (numbers[:, None] if name == "time" else numbers).expand(self.num_steps, self.num_envs)

    def copy(self) -> "Rollout":
        """Return a copy with its own tensors, for collecting while the agent learns from this rollout."""
        own = copy.copy(self)
        for name in TENSORS:
            tensor = getattr(self, name)
            setattr(own, name, None if tensor is None else tensor.clone())
        own._set_views()
        return own


def _teams(env: VectorEnv, agent: ActorCritic | None) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Return `team_rows` and `in_team`, see `Rollout`; raise a ValueError if the environment has no teams."""
    sides = env.sides if isinstance(env, HasTeams) else None
    if sides is None:
        raise ValueError(
            f"--agent {type(agent).__name__} learns as a team, but {type(env).__name__} does not tell which of its "
            "agents are teammates (fabric_rl.types.HasTeams); use an envs.RocketSimPool, or another --agent"
        )
    same = np.logical_and.reduce([side[:, None] == side for side in sides])  # [N, N]
    own = np.arange(len(same))
    order = np.argsort(~same, axis=1, kind="stable")[:, : same.sum(axis=1).max()]  # [N, M], teammates in order
    mates = np.stack([np.concatenate(([i], row[row != i]))[: order.shape[1]] for i, row in enumerate(order)])
    in_team = same[own[:, None], mates]
    return np.where(in_team, mates, own[:, None]), in_team


def reward_signals(env: VectorEnv) -> tuple[str, ...]:
    """Return the names of the environment's reward signals; empty if it has only one reward."""
    names = env.reward_signals if isinstance(env, HasRewardSignals) else ()
    return names if len(names) > 1 else ()


def _requested_fields(agent: ActorCritic | None) -> tuple[str, ...]:
    """Return the agent's `minibatch_fields`; raise a ValueError for unknown ones."""
    names = () if agent is None else tuple(agent.minibatch_fields)
    unknown = [name for name in names if name not in MINIBATCH_FIELDS]
    if unknown:
        raise ValueError(
            f"{type(agent).__name__}.minibatch_fields: a minibatch has no field {unknown[0]!r}; choose from "
            f"{', '.join(MINIBATCH_FIELDS)}"
        )
    of_teams = [name for name in names if name.startswith("team_")]
    if of_teams and not isinstance(agent, TeamAgent):
        raise ValueError(
            f"{type(agent).__name__}.minibatch_fields: {of_teams[0]!r} is for agents of fabric_rl.TeamAgent"
        )
    return names
