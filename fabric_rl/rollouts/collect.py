"""collect(): fill a rollout with the steps of a policy; EpisodeStats: returns and lengths of its episodes."""

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from gymnasium.vector import VectorEnv
from numpy.typing import NDArray
from torch import Tensor

from fabric_rl.metrics.timers import Timers
from fabric_rl.ranks.devices import single_thread, to_device, to_host
from fabric_rl.rollouts.rollout import VALUE_NUMBERS, Rollout
from fabric_rl.rollouts.step_checks import BOOLS, NUMBERS, Step, check_array, check_step, clip_actions, require_finite
from fabric_rl.types import ActorCritic, ActOutput, HasGroups, OffPolicyAgent, TeamAgent

EPISODE_RETURN, RECENT_RETURN = "reward/episode_return", "recent/episode_return"
RECENT_EPISODES = 20
"""Number of most recent episodes, over all ranks, of `mean_return_last_20` in the summary."""
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


class Actor(NamedTuple):
    """An agent that acts for some of the sub-environments of an environment."""

    agent: ActorCritic
    """The agent itself, not Fabric's wrapper."""
    rollout: Rollout
    """Buffers of the agent's own sub-environments."""
    episodes: EpisodeStats | None = None
    """If given, updated with the returns and lengths of episodes."""
    first: int = 0
    """Step of the rollout to start at; above 0, earlier calls have filled the steps before it."""
    rows: NDArray[np.intp] | None = None
    """`[n]` the agent's sub-environments in ascending order; None: all of them."""
    select: Callable[[tuple[Any, ...], NDArray[np.intp], int], tuple[Any, ...]] | None = None
    """With `rows`: function of the results of a step, the rows to return, and the number of rows in the results."""


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
    collect_together(env, [Actor(agent, rollout, episodes)], rollout.num_steps, timers)


def collect_together(env: VectorEnv, actors: Sequence[Actor], num_steps: int, timers: Timers | None = None) -> None:
    """Collect `num_steps` steps like `collect`, with several agents that act for disjoint sub-environments."""
    timers = timers or Timers(enabled=False)
    grouped = env if isinstance(env, HasGroups) else SingleGroup(env)
    name, space = type(env).__name__, env.single_action_space
    groups = [[_GroupCollector(actor, name, rows, num_steps) for actor in actors] for rows in grouped.group_rows]
    starting = [actor for actor in actors if not actor.first]
    for actor in starting:
        actor.rollout.roll_over()
    with single_thread(if_small=sum(map(_multiplications, actors)) // len(groups) < MULTIPLICATIONS_FOR_THREADS):
        for actor in starting:
            actor.rollout.refresh_memory(actor.agent)
        for t in range(num_steps + 1):
            for number, parts in enumerate(groups):
                if t > 0:
                    with timers("environment"):
                        results = grouped.wait_group(number)
                    with timers("store"):
                        for part in parts:
                            part.store(t - 1, results)
                if t < num_steps:
                    with timers("policy"):
                        actions = _joint_actions(parts, [part.act(t) for part in parts])
                    with timers("start"):
                        grouped.step_group(number, clip_actions(space, actions))
    for actor, own in zip(actors, zip(*groups, strict=True), strict=True):
        for part in own:
            part.finish()
        if not isinstance(actor.agent, OffPolicyAgent):
            _finish_values(actor, own, num_steps, timers)


def _multiplications(actor: Actor) -> int:
    module = actor.agent if isinstance(actor.agent, torch.nn.Module) else torch.nn.Module()
    return sum(p.numel() for p in module.parameters()) * actor.rollout.num_envs


def _joint_actions(parts: "Sequence[_GroupCollector]", actions: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """Return the actions of all sub-environments of a group, given those of each agent."""
    if parts[0].picked is None:
        return actions[0]
    joint = np.zeros((parts[0].size, *actions[0].shape[1:]), actions[0].dtype)
    for part, own in zip(parts, actions, strict=True):
        joint[part.picked] = own
    return joint


def _finish_values(actor: Actor, parts: "Sequence[_GroupCollector]", num_steps: int, timers: Timers) -> None:
    agent, rollout, first, last = actor.agent, actor.rollout, actor.first, actor.first + num_steps
    if isinstance(agent, TeamAgent):
        with timers("values"):
            _fill_team_values(agent, rollout)
        return
    if not all(part.has_values for part in parts):
        with timers("values"):
            _fill_values(agent, rollout, first, last)
    rollout.next_value[first : last - 1] = rollout.value[first + 1 : last]
    memory = {} if rollout.state is None else {"state": rollout.state}
    rollout.next_value[last - 1] = agent.value(rollout.obs[last], **memory)
    for part in parts:
        part.bootstrap()


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
    """The part of an agent's rollout that comes from one group of sub-environments.

    Attributes:
        picked: `[n]` the agent's sub-environments in the group, counted from the first one of the group; None: all.
        size: Number of sub-environments of the group.
        has_values: True if the agent's `act` returned values.
    """

    def __init__(self, actor: Actor, env: str, rows: slice, num_steps: int) -> None:
        self.actor, self.rollout, self.env = actor, actor.rollout, env
        self.size = rows.stop - rows.start
        self.picked: NDArray[np.intp] | None = None
        if actor.rows is not None:
            own = slice(*np.searchsorted(actor.rows, (rows.start, rows.stop)).tolist())
            self.picked, rows = actor.rows[own] - rows.start, own
        self.rows = rows  # of the rollout
        self.steps = slice(actor.first, actor.first + num_steps)
        self.has_values = False
        size = (num_steps, rows.stop - rows.start)
        self._rewards = np.zeros((*size, *self.rollout.env_reward.shape[2:]), np.float32)
        self._terminated, self._truncated = np.zeros((2, *size), np.bool_)
        self._truncated_ends: list[_Ended] = []  # truncated
        self._terminal_ends: list[_Ended] = []  # terminated, where a rollout keeps next observations
        self._truncated_states: list[Tensor] = []
        self._state: Tensor | None = None
        self._held_action: ActOutput | None = None

    def act(self, t: int) -> NDArray[Any]:
        """Return the actions `[n, ...]` of step `t`."""
        rollout, rows, agent, at = self.rollout, self.rows, self.actor.agent, self.steps.start + t
        chosen = agent.act(rollout.obs[at, rows], **rollout.inputs(at, rows))
        if isinstance(agent, OffPolicyAgent) and agent.holds_actions:
            self._held_action = self._held_action or chosen
            chosen = chosen._replace(action=self._held_action.action, log_prob=self._held_action.log_prob)
        rollout.action[at, rows], rollout.log_prob[at, rows] = chosen.action, chosen.log_prob
        if chosen.value is not None:
            rollout.value[at, rows] = chosen.value
        self.has_values, self._state = chosen.value is not None, chosen.state
        return to_host(chosen.action)

    def store(self, t: int, results: tuple[Any, ...]) -> None:
        """Store the environment's results of step `t` of this call."""
        rollout, rows, device, at = self.rollout, self.rows, self.rollout.obs.device, self.steps.start + t
        n, obs_shape, rewards = rows.stop - rows.start, rollout.obs.shape[2:], self._rewards[t]
        if self.picked is not None and self.actor.select is not None:
            results = self.actor.select(results, self.picked, self.size)
        step = check_step(f"--env {self.env}.step()", results, n, obs_shape)
        self._terminated[t], self._truncated[t] = step.terminated, step.truncated
        obs = np.asarray(step.obs, rollout.obs_dtype)
        rewards[:] = step.reward if rewards.ndim == 1 else self._info(step, "reward_signals", rewards.shape)
        require_finite("an observation", obs, f"rollout step {at}", first=rows.start)
        require_finite("a reward", rewards, f"rollout step {at}", first=rows.start)
        rollout.obs[at + 1, rows] = to_device(obs, device)
        if rollout.action_mask is not None:
            mask = self._info(step, "action_mask", (n, *rollout.action_mask.shape[2:]), BOOLS)
            rollout.action_mask[at + 1, rows] = to_device(mask, device)
        if rollout.teacher_action is not None:
            taught = self._info(step, "teacher_action", (n, *rollout.teacher_action.shape[2:]))
            rollout.teacher_action[at + 1, rows] = to_device(taught, device)
        if rollout.present is not None:
            rollout.present[at + 1, rows] = to_device(self._info(step, "present", (n,), BOOLS), device)
        done = self._terminated[t] | self._truncated[t]
        cut = np.flatnonzero(self._truncated[t] & ~self._terminated[t])
        terminal = np.flatnonzero(self._terminated[t]) if rollout.next_obs is not None else cut[:0]
        for ended, kept in ((cut, self._truncated_ends), (terminal, self._terminal_ends)):
            if len(ended):
                final_obs = np.asarray(self._info(step, "final_obs", (n, *obs_shape)), rollout.obs_dtype)[ended]
                require_finite("a final observation", final_obs, f"rollout step {at}", ended, rows.start)
                kept.append((at, rows.start + ended, final_obs))
        if self._state is not None and rollout.state is not None:
            if len(cut):
                self._truncated_states.append(self._state[to_device(cut, device)])
            rollout.state[rows] = self._state.masked_fill(to_device(done, device)[:, None], 0)
        if self.actor.episodes is not None:
            self.actor.episodes.update(rewards if rewards.ndim == 1 else rewards.sum(axis=-1), done, rows)

    def _info(self, step: Step, key: str, shape: tuple[int, ...], kind: str = NUMBERS) -> NDArray[Any]:
        """Return an entry of `infos`; raise a ValueError if it is missing or malformed."""
        if key not in step.infos:
            why = {
                "final_obs": "an episode was truncated, but infos lacks 'final_obs'",
                "action_mask": "reset() returned an action mask, but infos lacks 'action_mask'",
                "teacher_action": "reset() returned the teacher's actions, but infos lacks 'teacher_action'",
                "present": "reset() returned which agents are present, but infos lacks 'present'",
                "reward_signals": "the environment has reward signals, but infos lacks 'reward_signals'",
            }[key]
            raise ValueError(f"--env {self.env}.step(): {why}")
        return check_array(f"--env {self.env}.step(): infos[{key!r}]", step.infos[key], shape, kind)

    def finish(self) -> None:
        """Copy rewards and episode ends into the rollout, all steps at once."""
        rollout, steps, rows, device = self.rollout, self.steps, self.rows, self.rollout.obs.device
        after = slice(steps.start + 1, steps.stop + 1)
        rollout.env_reward[steps, rows] = to_device(self._rewards, device)
        rollout.terminated[steps, rows] = to_device(self._terminated, device)
        rollout.done[steps, rows] = to_device(self._terminated | self._truncated, device)
        rollout.episode_start[after, rows] = rollout.done[steps, rows]
        if rollout.next_obs is not None:
            rollout.next_obs[steps, rows] = rollout.obs[after, rows]
            if ended := self._truncated_ends + self._terminal_ends:
                at, envs, last = self._ends_as_tensors(ended)
                rollout.next_obs[at, envs] = last

    def bootstrap(self) -> None:
        """Set the next values of truncated steps to the values of their last observations."""
        if not self._truncated_ends:
            return
        rollout, (steps, envs, last) = self.rollout, self._ends_as_tensors(self._truncated_ends)
        memory = {"state": torch.cat(self._truncated_states)} if self._truncated_states else {}
        _set_last_values(rollout, steps, envs, self.actor.agent.value(last, **memory))

    def _ends_as_tensors(self, ended: list[_Ended]) -> tuple[Tensor, Tensor, Tensor]:
        """Return the steps, sub-environments and last observations of ended episodes."""
        device = self.rollout.obs.device
        steps = to_device(np.concatenate([np.full(len(envs), t) for t, envs, _ in ended]), device)
        envs = to_device(np.concatenate([envs for _, envs, _ in ended]), device)
        return steps, envs, to_device(np.concatenate([last for _, _, last in ended]), device)


def _fill_values(agent: ActorCritic, rollout: Rollout, first: int, last: int) -> None:
    """Compute the values of the steps from `first` to `last`, excluding it, in chunks to save memory."""
    rows = max(1, VALUE_NUMBERS // max(1, rollout.obs[0].numel()))
    for start in range(first, last, rows):
        obs = rollout.obs[start : min(start + rows, last)]
        values = agent.value(obs.flatten(0, 1))
        rollout.value[start : start + len(obs)] = values.view(len(obs), rollout.num_envs, *values.shape[1:])


def _fill_team_values(agent: TeamAgent, rollout: Rollout) -> None:
    """Compute the values of the teams for the whole rollout; at truncated steps, also those of the last observations.

    There, the agents count that were present at the step.
    """
    values = rollout.team_values(agent)
    rollout.value[:], rollout.next_value[:] = values[:-1], values[1:]
    steps, envs = (rollout.done & ~rollout.terminated).nonzero(as_tuple=True)
    if not len(steps) or rollout.next_obs is None:
        return
    last = rollout.next_obs[steps[:, None], rollout.team_rows[envs]]
    present = rollout.team_present(slice(rollout.num_steps))[steps, envs]
    _set_last_values(rollout, steps, envs, agent.team_value(last, present))


def _set_last_values(rollout: Rollout, steps: Tensor, envs: Tensor, value: Tensor) -> None:
    """Set the next values of truncated steps to the values of the last observations."""
    if rollout.episodic is not None:  # [K]; other signals continue in the next episode
        value = torch.where(rollout.episodic, value, rollout.next_value[steps, envs])
    rollout.next_value[steps, envs] = value
