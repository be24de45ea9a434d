"""Rollout buffers `[T, N]` and collect(), which fills them."""

from collections import deque
from typing import Any

import gymnasium
import numpy as np
import torch
from gymnasium.vector import AutoresetMode, VectorEnv
from numpy.typing import NDArray
from torch import Tensor

from fabric_rl.timers import Timers
from fabric_rl.types import ActorCritic, HasRewardSignals, Minibatch, NonFiniteError

VALUE_NUMBERS = 2**22
"""Numbers of observations that the value function gets at once."""


class EpisodeStats:
    """Returns and lengths of the episodes of this rank, undiscounted.

    Attributes:
        recent: Returns of the last episodes that ended, oldest first.
    """

    def __init__(self, num_envs: int, window: int = 100) -> None:
        """Starts counting; `recent` keeps the last `window` episodes."""
        self._return = np.zeros(num_envs)
        self._length = np.zeros(num_envs)
        self.recent: deque[float] = deque(maxlen=window)
        self._ended = np.zeros(3)

    def update(self, rewards: NDArray[Any], done: NDArray[np.bool_]) -> None:
        """Adds one step of all sub-environments; `rewards [N]`, `done [N]`."""
        self._return += rewards
        self._length += 1
        if done.any():
            self.recent.extend(self._return[done].tolist())
            self._ended += (self._return[done].sum(), self._length[done].sum(), done.sum())
            self._return[done] = 0
            self._length[done] = 0

    def drain_metrics(self) -> dict[str, tuple[float, float]]:
        """Episodes that ended since the last call: name -> (sum, count)."""
        total_return, total_length, count = self._ended.tolist()
        self._ended[:] = 0
        return {"reward/episode_return": (total_return, count), "game/episode_length": (total_length, count)}

    def begin(self) -> None:
        """Forgets the episodes that are running: all sub-environments begin new ones."""
        self._return[:] = 0
        self._length[:] = 0

    def state_dict(self) -> dict[str, Any]:
        """Running and recent episodes."""
        return {"return": self._return.copy(), "length": self._length.copy(), "recent": list(self.recent)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Goes on from what `state_dict` gave."""
        self._return[:], self._length[:] = state["return"], state["length"]
        self.recent.clear()
        self.recent.extend(state["recent"])


class Rollout:
    """`T` steps of `N` sub-environments, time-major, on the agent's device.

    Attributes:
        obs: `[T + 1, N, ...]` float32, or uint8 for pixels; row `T` is the observation after the last step.
        episode_start: `[T + 1, N]` bool, the step is the first one of its episode.
        action_mask: `[T + 1, N, n]` bool, or None if the environment masks no actions.
        state: `[N, M]` float32, the agent's memory before its next step, or None for an agent without memory.
        action: `[T, N, ...]`.
        log_prob: `[T, N]` float32 under the policy that acted.
        value: `[T, N]` float32, or `[T, N, K]` for K > 1 reward signals.
        next_value: As `value`, of the same episode's true next state.
        reward: As `value`.
        terminated: `[T, N]` bool.
        done: `[T, N]` bool, terminated or truncated.
    """

    def __init__(
        self,
        num_steps: int,
        env: VectorEnv,
        device: torch.device | str = "cpu",
        agent: ActorCritic | None = None,
    ) -> None:
        """Allocates the buffers.

        Args:
            num_steps: `T`.
            env: Vector environment with SAME_STEP autoreset.
            device: Where the tensors live.
            agent: Whose memory and value heads the rollout is for; default: one value head, no memory.

        Raises:
            ValueError: The environment resets in another way or has observations that are not arrays, or its reward
                signals or the number of steps do not fit the agent.
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
        self._burn_in, self._length, memory = _memory_settings(num_steps, agent)
        # With burn-in, the last P steps of the rollout before stand in front: all sequences have P steps before them.
        steps, size = self._burn_in + num_steps, (num_steps, env.num_envs)
        dtype = torch.uint8 if self.obs_dtype is np.uint8 else torch.float32
        self._obs = torch.zeros(steps + 1, env.num_envs, *obs_space.shape, dtype=dtype, device=device)
        self._episode_start = torch.ones(steps + 1, env.num_envs, dtype=torch.bool, device=device)
        self.obs, self.episode_start = self._obs[self._burn_in :], self._episode_start[self._burn_in :]
        self.state: Tensor | None = None
        if memory:  # the memory before every L-th step, counted from the first burn-in step
            self.state = torch.zeros(env.num_envs, memory, device=device)
            rows = -(-steps // self._length)
            self._states = torch.zeros(rows, env.num_envs, memory, device=device)
        self.action_mask: Tensor | None = None
        discrete = np.issubdtype(action_space.dtype, np.integer)
        self.action = torch.zeros(
            *size, *action_space.shape, dtype=torch.int64 if discrete else torch.float32, device=device
        )
        self.reward_signals = reward_signals(env)
        heads = 1 if agent is None else agent.value_heads
        if agent is not None and heads != max(1, len(self.reward_signals)):
            names = ", ".join(self.reward_signals) or "its reward"
            raise ValueError(
                f"{type(env).__name__} has {max(1, len(self.reward_signals))} reward signals ({names}), "
                f"{type(agent).__name__} {heads} value heads; set --agent.value_heads"
            )
        self.log_prob = torch.zeros(size, device=device)
        values = (*size, heads) if heads > 1 else size
        self.value, self.next_value, self.reward = (torch.zeros(values, device=device) for _ in range(3))
        self.terminated = torch.zeros(size, dtype=torch.bool, device=device)
        self.done = torch.zeros(size, dtype=torch.bool, device=device)

    def begin(self, obs: NDArray[Any], infos: dict[str, Any] | None = None) -> None:
        """Takes the first observations `[N, ...]` of all, and what else `env.reset()` returned.

        Raises:
            NonFiniteError: They hold NaN or infinity.
        """
        obs = np.asarray(obs, self.obs_dtype)
        _require_finite("an observation", obs, "at reset")
        self.obs[-1] = torch.from_numpy(obs)
        self._episode_start[:] = True
        if self.state is not None:
            self.state.zero_()
            self._states.zero_()
        mask = (infos or {}).get("action_mask")
        if mask is not None:
            shape = (self.num_steps + 1, *np.shape(mask))
            self.action_mask = torch.ones(shape, dtype=torch.bool, device=self.obs.device)
            self.action_mask[-1] = torch.from_numpy(np.asarray(mask, np.bool_))

    def state_dict(self) -> dict[str, Any]:
        """What the next rollout begins with: last observations, memory, masks."""
        kept = self._burn_in + 1
        mask = None if self.action_mask is None else self.action_mask[-1]
        state = {"obs": self._obs[-kept:], "episode_start": self._episode_start[-kept:], "action_mask": mask}
        if self.state is not None:
            state |= {"memory": self.state, "memories": self._states[self.num_steps // self._length :]}
        return {name: None if x is None else x.detach().clone() for name, x in state.items()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Goes on from what `state_dict` gave; the sizes must be the same."""
        kept = self._burn_in + 1
        self._obs[-kept:], self._episode_start[-kept:] = state["obs"], state["episode_start"]
        if state["action_mask"] is not None:
            shape = (self.num_steps + 1, *state["action_mask"].shape)
            self.action_mask = torch.ones(shape, dtype=torch.bool, device=self.obs.device)
            self.action_mask[-1] = state["action_mask"]
        if self.state is not None:
            self.state = state["memory"].to(self.obs.device)
            self._states[self.num_steps // self._length :] = state["memories"]

    def roll_over(self) -> None:
        """Makes the end of the last rollout the beginning of the next."""
        kept = self._burn_in + 1
        self._obs[:kept] = self._obs[-kept:].clone()
        self._episode_start[:kept] = self._episode_start[-kept:].clone()
        if self.action_mask is not None:
            self.action_mask[0] = self.action_mask[-1]
        if self.state is not None:
            kept = len(self._states) - self.num_steps // self._length
            self._states[:kept] = self._states[self.num_steps // self._length :].clone()

    def inputs(self, step: int) -> dict[str, Any]:
        """What `agent.act` gets for `step` besides the observations; remembers the memory where a sequence begins."""
        inputs: dict[str, Any] = {}
        if self.state is not None:
            inputs["state"] = self.state
            if (self._burn_in + step) % self._length == 0:
                self._states[(self._burn_in + step) // self._length] = self.state
        if self.action_mask is not None:
            inputs["action_mask"] = self.action_mask[step]
        return inputs

    def flat(self, advantage: Tensor) -> Minibatch:
        """The rollout as one batch: `T * N` steps, or `T / L * N` sequences for an agent with memory.

        Args:
            advantage: As `reward`. It also gives the value targets; those of several reward signals are added up.
        """
        returns = advantage + self.value
        if self.value.dim() == 3:
            advantage = advantage.sum(dim=-1)
        mask = None if self.action_mask is None else self.action_mask[:-1]
        steps = Minibatch(self.obs[:-1], self.action, self.log_prob, self.value, advantage, returns, mask)
        if self.state is None:
            return steps.map(lambda x: x.flatten(0, 1))
        length, burn_in = self._length, self._burn_in
        count = self.num_steps // length

        def sequences(x: Tensor) -> Tensor:
            return x.reshape(count, length, *x.shape[1:]).transpose(0, 1).flatten(1, 2)

        def before(x: Tensor) -> Tensor:
            windows = [x[first * length : first * length + burn_in] for first in range(count)]
            return torch.stack(windows, dim=1).flatten(1, 2)

        return steps.map(sequences)._replace(
            state=self._states[:count].flatten(0, 1),
            episode_start=sequences(self.episode_start[:-1]),
            burn_in_obs=before(self._obs) if burn_in else None,
            burn_in_start=before(self._episode_start) if burn_in else None,
        )


def collect(
    env: VectorEnv,
    agent: ActorCritic,
    rollout: Rollout,
    episodes: EpisodeStats | None = None,
    timers: Timers | None = None,
) -> None:
    """Fills `rollout` with the next `T` steps; call it under `torch.no_grad()`.

    Goes on where the last call ended (after `rollout.begin(obs, infos)` the first time). Truncated steps are
    bootstrapped from the value of their episode's own last observation. Actions outside of a Box are clipped for the
    environment; the rollout keeps them as they were sampled.

    Args:
        env: Vector environment with SAME_STEP autoreset.
        agent: The bare module, not Fabric's wrapper.
        rollout: Buffers, overwritten.
        episodes: Tracks episode returns if given.
        timers: Measures policy and environment if given.

    Raises:
        NonFiniteError: The environment returned NaN or infinity; the rollout holds what came before.
        ValueError: The environment truncated an episode and did not say what its last observation was, or left out
            the action mask or the reward signals that it has.
    """
    device, name = rollout.obs.device, type(env).__name__
    rewards = np.zeros(tuple(rollout.reward.shape), np.float32)
    terminated = np.zeros((rollout.num_steps, rollout.num_envs), np.bool_)
    truncated = np.zeros_like(terminated)
    last_obs: list[tuple[int, NDArray[np.intp], NDArray[Any]]] = []  # of truncated episodes: step, sub-envs, rows
    last_states: list[Tensor] = []

    timers = timers or Timers(enabled=False)
    rollout.roll_over()
    for t in range(rollout.num_steps):
        with timers("policy"):
            chosen = agent.act(rollout.obs[t], **rollout.inputs(t))
            rollout.action[t], rollout.log_prob[t] = chosen.action, chosen.log_prob
            if chosen.value is not None:
                rollout.value[t] = chosen.value
            actions = _within(env.single_action_space, chosen.action.cpu().numpy())
        with timers("environment"):
            obs, reward, terminated[t], truncated[t], infos = env.step(actions)
        obs = np.asarray(obs, rollout.obs_dtype)
        rewards[t] = reward if rewards.ndim == 2 else _info(name, infos, "reward_signals")
        _require_finite("an observation", obs, f"rollout step {t}")
        _require_finite("a reward", rewards[t], f"rollout step {t}")
        rollout.obs[t + 1] = torch.from_numpy(obs).to(device, non_blocking=True)
        if rollout.action_mask is not None:
            rollout.action_mask[t + 1] = torch.from_numpy(np.asarray(_info(name, infos, "action_mask"), np.bool_))
        done = terminated[t] | truncated[t]
        cut = np.flatnonzero(truncated[t] & ~terminated[t])
        if len(cut):
            final_obs = np.asarray(_info(name, infos, "final_obs"), rollout.obs_dtype)[cut]
            _require_finite("a final observation", final_obs, f"rollout step {t}", cut)
            last_obs.append((t, cut, final_obs))
        rollout.episode_start[t + 1] = torch.from_numpy(done)
        if chosen.state is not None and rollout.state is not None:
            if len(cut):
                last_states.append(chosen.state[torch.from_numpy(cut).to(device)])
            rollout.state = chosen.state.masked_fill(rollout.episode_start[t + 1][:, None], 0)
        if episodes is not None:
            episodes.update(rewards[t] if rewards.ndim == 2 else rewards[t].sum(axis=-1), done)

    if chosen.value is None:
        with timers("values"):
            _fill_values(agent, rollout)
    rollout.reward.copy_(torch.from_numpy(rewards))
    rollout.terminated.copy_(torch.from_numpy(terminated))
    rollout.done.copy_(torch.from_numpy(terminated | truncated))
    rollout.next_value[:-1] = rollout.value[1:]
    memory = {} if rollout.state is None else {"state": rollout.state}
    rollout.next_value[-1] = agent.value(rollout.obs[-1], **memory)
    if last_obs:
        steps = torch.from_numpy(np.concatenate([np.full(len(cut), t) for t, cut, _ in last_obs])).to(device)
        envs = torch.from_numpy(np.concatenate([cut for _, cut, _ in last_obs])).to(device)
        rows = torch.from_numpy(np.concatenate([rows for _, _, rows in last_obs])).to(device)
        memory = {"state": torch.cat(last_states)} if last_states else {}
        rollout.next_value[steps, envs] = agent.value(rows, **memory)


def _fill_values(agent: ActorCritic, rollout: Rollout) -> None:
    """Values of the whole rollout, in pieces that need little memory."""
    rows = max(1, VALUE_NUMBERS // max(1, rollout.obs[0].numel()))
    for first in range(0, rollout.num_steps, rows):
        obs = rollout.obs[:-1][first : first + rows]
        values = agent.value(obs.flatten(0, 1))
        rollout.value[first : first + rows] = values.view(len(obs), rollout.num_envs, *values.shape[1:])


def reward_signals(env: VectorEnv) -> tuple[str, ...]:
    """The names of the environment's reward signals; empty if it has one reward only."""
    names = env.reward_signals if isinstance(env, HasRewardSignals) else ()
    return names if len(names) > 1 else ()


def find_non_finite(array: NDArray[Any], sub_envs: NDArray[np.intp] | None = None) -> str | None:
    """Describes the first NaN or infinity of `array [N, ...]`, for example `nan: sub-environment 1, column 3`.

    Row `i` belongs to sub-environment `sub_envs[i]`, by default to `i`.
    """
    if np.isfinite(array).all():
        return None
    where = np.argwhere(~np.isfinite(array))[0].tolist()
    sub_env = where[0] if sub_envs is None else sub_envs[where[0]]
    column = f", column {where[1:] if len(where) > 2 else where[1]}" if len(where) > 1 else ""
    return f"{array[tuple(where)]}: sub-environment {sub_env}{column}"


def _memory_settings(num_steps: int, agent: ActorCritic | None) -> tuple[int, int, int]:
    """Burn-in, sequence length and memory size of the agent; (0, 1, 0) without memory."""
    if agent is None or not agent.memory_size:
        return 0, 1, 0
    name, length, burn_in = type(agent).__name__, agent.sequence_length, agent.burn_in
    if num_steps % length:
        raise ValueError(
            f"--num_steps {num_steps} must be a multiple of {name}'s --agent.sequence_length {length}: a rollout is "
            "cut into whole sequences"
        )
    if burn_in > num_steps:
        raise ValueError(f"{name}'s --agent.burn_in {burn_in} must not exceed --num_steps {num_steps}")
    return burn_in, length, agent.memory_size


def _within(space: gymnasium.Space[Any], actions: NDArray[Any]) -> NDArray[Any]:
    return np.clip(actions, space.low, space.high) if isinstance(space, gymnasium.spaces.Box) else actions


def _info(env: str, infos: dict[str, Any], key: str) -> Any:  # noqa: ANN401 - what the environment put there
    if key not in infos:
        why = {
            "final_obs": "an episode was truncated, but infos lacks 'final_obs'",
            "action_mask": "reset() gave an action mask, but the infos of a step lack 'action_mask'",
            "reward_signals": "it names reward signals, but infos lacks 'reward_signals'",
        }[key]
        raise ValueError(f"{env}.step(): {why}")
    return infos[key]


def _require_finite(what: str, array: NDArray[Any], when: str, sub_envs: NDArray[np.intp] | None = None) -> None:
    if array.dtype == np.uint8:
        return
    found = find_non_finite(array, sub_envs)
    if found:
        raise NonFiniteError(f"the environment returned {what} that is {found}, {when}")
