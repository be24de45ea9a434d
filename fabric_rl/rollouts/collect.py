"""collect(): fill a rollout with the steps of a policy; EpisodeStats: returns and lengths of its episodes."""

from collections import deque
from typing import Any

import numpy as np
import torch
from gymnasium.vector import VectorEnv
from numpy.typing import NDArray
from torch import Tensor

from fabric_rl.metrics.timers import Timers
from fabric_rl.ranks.devices import single_thread, to_device, to_host
from fabric_rl.rollouts.rollout import Rollout
from fabric_rl.rollouts.step_checks import BOOLS, NUMBERS, Step, check_array, check_step, clip_actions, require_finite
from fabric_rl.types import ActorCritic, ActOutput, HasGroups, OffPolicyAgent

EPISODE_RETURN, RECENT_RETURN = "reward/episode_return", "recent/episode_return"
RECENT_EPISODES = 20
"""Number of most recent episodes, over all ranks, of `mean_return_last_20` in the summary."""
VALUE_NUMBERS = 2**22
"""Maximum number of observation entries in one call of the value function."""
MULTIPLICATIONS_FOR_THREADS = 2**28
"""Multiplications per call of the policy below which one thread, in addition to the physics threads, was faster."""
_Ended = tuple[int, NDArray[np.intp], NDArray[Any]]
"""Ended episodes: the step, their sub-environments, their last observations."""


class EpisodeStats:
    """Undiscounted returns and lengths of the episodes of this rank.

    Attributes:
        recent: Returns of the last episodes that ended, oldest first.
    """

    def __init__(self, num_envs: int, window: int = RECENT_EPISODES) -> None:
        self._return = np.zeros(num_envs)
        self._length = np.zeros(num_envs)
        self.recent: deque[float] = deque(maxlen=window)
        self._ended = np.zeros(3)

    def update(self, rewards: NDArray[Any], done: NDArray[np.bool_], rows: slice = slice(None)) -> None:
        """Add one step of the sub-environments `rows`, with `rewards [n]` and `done [n]`."""
        returns, lengths = self._return[rows], self._length[rows]
        returns += rewards
        lengths += 1
        if done.any():
            self.recent.extend(returns[done].tolist())
            self._ended += (returns[done].sum(), lengths[done].sum(), done.sum())
            returns[done] = 0
            lengths[done] = 0

    def drain_metrics(self) -> dict[str, tuple[float, float]]:
        """Return the returns and lengths of the episodes that ended since the last call: name -> (sum, count)."""
        total_return, total_length, count = self._ended.tolist()
        self._ended[:] = 0
        return {EPISODE_RETURN: (total_return, count), "game/episode_length": (total_length, count)}

    def begin(self) -> None:
        """Discard the unfinished episodes, because all sub-environments begin new ones."""
        self._return[:] = 0
        self._length[:] = 0

    def state_dict(self) -> dict[str, Any]:
        """Return the unfinished and recent episodes."""
        running = {"return": self._return.copy(), "length": self._length.copy(), "recent": list(self.recent)}
        return running | {"ended": self._ended.copy()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore the state that `state_dict` returned."""
        self._return[:], self._length[:], self._ended[:] = state["return"], state["length"], state["ended"]
        self.recent.clear()
        self.recent.extend(state["recent"])


def collect(
    env: VectorEnv,
    agent: ActorCritic,
    rollout: Rollout,
    episodes: EpisodeStats | None = None,
    timers: Timers | None = None,
) -> None:
    """Fill `rollout` with the next `T` steps. Call it under `torch.no_grad()`.

    Collection continues where the last call ended; before the first call, call `rollout.begin(obs, infos)`. Truncated
    steps are bootstrapped from the value of the last observation of their episode; no values are computed for an
    `OffPolicyAgent`. Actions outside a Box are clipped for the environment; the rollout stores them as sampled. If
    the environment has groups (`HasGroups`), one group is stepped while the policy computes the actions of another,
    always in the same order.

    Args:
        env: Vector environment with SAME_STEP autoreset.
        agent: The agent itself, not Fabric's wrapper.
        rollout: Buffers to overwrite.
        episodes: If given, updated with the returns and lengths of episodes.
        timers: If given, updated with the time of the policy and of the environment (with groups: the time spent
            waiting for it).

    Raises:
        NonFiniteError: The environment returned NaN or infinity; the rollout contains the steps before that.
        ValueError: The environment returned an array of the wrong shape or dtype, or `infos` lacks the last observation
            of a truncated episode, the action mask or the reward signals.
    """
    timers = timers or Timers(enabled=False)
    weights = sum(p.numel() for p in agent.parameters()) if isinstance(agent, torch.nn.Module) else 0
    grouped = env if isinstance(env, HasGroups) else SingleGroup(env)
    groups = [_GroupCollector(rollout, type(env).__name__, rows) for rows in grouped.group_rows]
    rollout.roll_over()
    with single_thread(if_small=weights * rollout.num_envs // len(groups) < MULTIPLICATIONS_FOR_THREADS):
        rollout.refresh_memory(agent)
        for t in range(rollout.num_steps + 1):
            for number, group in enumerate(groups):
                if t > 0:
                    with timers("environment"):
                        results = grouped.wait_group(number)
                    with timers("store"):
                        group.store(t - 1, results, episodes)
                if t < rollout.num_steps:
                    with timers("policy"):
                        actions = group.act(t, agent)
                    with timers("start"):
                        grouped.step_group(number, clip_actions(env.single_action_space, actions))
    for group in groups:
        group.finish()
    if isinstance(agent, OffPolicyAgent):
        return
    if not all(group.has_values for group in groups):
        with timers("values"):
            _fill_values(agent, rollout)
    rollout.next_value[:-1] = rollout.value[1:]
    memory = {} if rollout.state is None else {"state": rollout.state}
    rollout.next_value[-1] = agent.value(rollout.obs[-1], **memory)
    for group in groups:
        group.bootstrap(agent)


class SingleGroup:
    """Adapter that gives any environment a single group, see `fabric_rl.types.HasGroups`."""

    def __init__(self, env: VectorEnv) -> None:
        self.env, self.group_rows = env, (slice(0, env.num_envs),)
        self._actions: NDArray[Any] | None = None

    def step_group(self, group: int, actions: NDArray[Any]) -> None:
        """Store the actions."""
        self._actions = actions

    def wait_group(self, group: int) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any], dict[str, Any]]:
        """Step the environment with the stored actions."""
        return self.env.step(self._actions)


class _GroupCollector:
    """The part of a rollout that comes from one group of sub-environments."""

    def __init__(self, rollout: Rollout, env: str, rows: slice) -> None:
        self.rollout, self.env, self.rows = rollout, env, rows
        self.has_values = False
        size = (rollout.num_steps, rows.stop - rows.start)
        self._rewards = np.zeros((*size, *rollout.env_reward.shape[2:]), np.float32)
        self._terminated, self._truncated = np.zeros((2, *size), np.bool_)
        self._truncated_ends: list[_Ended] = []  # truncated
        self._terminal_ends: list[_Ended] = []  # terminated, where a rollout keeps next observations
        self._truncated_states: list[Tensor] = []
        self._state: Tensor | None = None
        self._held_action: ActOutput | None = None

    def act(self, t: int, agent: ActorCritic) -> NDArray[Any]:
        """Return the actions `[n, ...]` of step `t`."""
        rollout, rows = self.rollout, self.rows
        chosen = agent.act(rollout.obs[t, rows], **rollout.inputs(t, rows))
        if isinstance(agent, OffPolicyAgent) and agent.holds_actions:
            self._held_action = self._held_action or chosen
            chosen = chosen._replace(action=self._held_action.action, log_prob=self._held_action.log_prob)
        rollout.action[t, rows], rollout.log_prob[t, rows] = chosen.action, chosen.log_prob
        if chosen.value is not None:
            rollout.value[t, rows] = chosen.value
        self.has_values, self._state = chosen.value is not None, chosen.state
        return to_host(chosen.action)

    def store(self, t: int, results: tuple[Any, ...], episodes: EpisodeStats | None) -> None:
        """Store the environment's results of step `t`."""
        rollout, rows, device = self.rollout, self.rows, self.rollout.obs.device
        n, obs_shape, rewards = rows.stop - rows.start, rollout.obs.shape[2:], self._rewards[t]
        step = check_step(f"--env {self.env}.step()", results, n, obs_shape)
        self._terminated[t], self._truncated[t] = step.terminated, step.truncated
        obs = np.asarray(step.obs, rollout.obs_dtype)
        rewards[:] = step.reward if rewards.ndim == 1 else self._info(step, "reward_signals", rewards.shape)
        require_finite("an observation", obs, f"rollout step {t}", first=rows.start)
        require_finite("a reward", rewards, f"rollout step {t}", first=rows.start)
        rollout.obs[t + 1, rows] = to_device(obs, device)
        if rollout.action_mask is not None:
            mask = self._info(step, "action_mask", (n, *rollout.action_mask.shape[2:]), BOOLS)
            rollout.action_mask[t + 1, rows] = to_device(mask, device)
        if rollout.teacher_action is not None:
            taught = self._info(step, "teacher_action", (n, *rollout.teacher_action.shape[2:]))
            rollout.teacher_action[t + 1, rows] = to_device(taught, device)
        done = self._terminated[t] | self._truncated[t]
        cut = np.flatnonzero(self._truncated[t] & ~self._terminated[t])
        terminal = np.flatnonzero(self._terminated[t]) if rollout.next_obs is not None else cut[:0]
        for ended, kept in ((cut, self._truncated_ends), (terminal, self._terminal_ends)):
            if len(ended):
                final_obs = np.asarray(self._info(step, "final_obs", (n, *obs_shape)), rollout.obs_dtype)[ended]
                require_finite("a final observation", final_obs, f"rollout step {t}", ended, rows.start)
                kept.append((t, rows.start + ended, final_obs))
        if self._state is not None and rollout.state is not None:
            if len(cut):
                self._truncated_states.append(self._state[to_device(cut, device)])
            rollout.state[rows] = self._state.masked_fill(to_device(done, device)[:, None], 0)
        if episodes is not None:
            episodes.update(rewards if rewards.ndim == 1 else rewards.sum(axis=-1), done, rows)

    def _info(self, step: Step, key: str, shape: tuple[int, ...], kind: str = NUMBERS) -> NDArray[Any]:
        """Return an entry of `infos`; raise a ValueError if it is missing or malformed."""
        if key not in step.infos:
            why = {
                "final_obs": "an episode was truncated, but infos lacks 'final_obs'",
                "action_mask": "reset() returned an action mask, but infos lacks 'action_mask'",
                "teacher_action": "reset() returned the teacher's actions, but infos lacks 'teacher_action'",
                "reward_signals": "the environment has reward signals, but infos lacks 'reward_signals'",
            }[key]
            raise ValueError(f"--env {self.env}.step(): {why}")
        return check_array(f"--env {self.env}.step(): infos[{key!r}]", step.infos[key], shape, kind)

    def finish(self) -> None:
        """Copy rewards and episode ends into the rollout, all steps at once."""
        rollout, rows, device = self.rollout, self.rows, self.rollout.obs.device
        rollout.env_reward[:, rows] = to_device(self._rewards, device)
        rollout.terminated[:, rows] = to_device(self._terminated, device)
        rollout.done[:, rows] = to_device(self._terminated | self._truncated, device)
        rollout.episode_start[1:, rows] = rollout.done[:, rows]
        if rollout.next_obs is not None:
            rollout.next_obs[:, rows] = rollout.obs[1:, rows]
            if ended := self._truncated_ends + self._terminal_ends:
                steps, envs, last = self._ends_as_tensors(ended)
                rollout.next_obs[steps, envs] = last

    def bootstrap(self, agent: ActorCritic) -> None:
        """Set the next values of truncated steps to the values of their last observations."""
        if not self._truncated_ends:
            return
        rollout, (steps, envs, last) = self.rollout, self._ends_as_tensors(self._truncated_ends)
        memory = {"state": torch.cat(self._truncated_states)} if self._truncated_states else {}
        value = agent.value(last, **memory)
        if rollout.episodic is not None:  # [K]; other signals continue in the next episode
            value = torch.where(rollout.episodic, value, rollout.next_value[steps, envs])
        rollout.next_value[steps, envs] = value

    def _ends_as_tensors(self, ended: list[_Ended]) -> tuple[Tensor, Tensor, Tensor]:
        """Return the steps, sub-environments and last observations of ended episodes."""
        device = self.rollout.obs.device
        steps = to_device(np.concatenate([np.full(len(envs), t) for t, envs, _ in ended]), device)
        envs = to_device(np.concatenate([envs for _, envs, _ in ended]), device)
        return steps, envs, to_device(np.concatenate([last for _, _, last in ended]), device)


def _fill_values(agent: ActorCritic, rollout: Rollout) -> None:
    """Compute the values of the whole rollout, in chunks to save memory."""
    rows = max(1, VALUE_NUMBERS // max(1, rollout.obs[0].numel()))
    for first in range(0, rollout.num_steps, rows):
        obs = rollout.obs[:-1][first : first + rows]
        values = agent.value(obs.flatten(0, 1))
        rollout.value[first : first + rows] = values.view(len(obs), rollout.num_envs, *values.shape[1:])
