"""Rollout buffers `[T, N]` and collect(), which fills them."""

from collections import deque
from typing import Any

import numpy as np
import torch
from gymnasium.vector import AutoresetMode, VectorEnv
from numpy.typing import NDArray
from torch import Tensor

from fabric_rl.types import ActorCritic, Minibatch, NonFiniteError


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


class Rollout:
    """`T` steps of `N` sub-environments, time-major, on the agent's device.

    Attributes:
        obs: `[T + 1, N, ...]` float32; row `T` is the observation after the last step.
        action: `[T, N, ...]`.
        log_prob: `[T, N]` float32 under the policy that acted.
        value: `[T, N]` float32.
        next_value: `[T, N]` float32, value of the same episode's true next state.
        reward: `[T, N]` float32.
        terminated: `[T, N]` bool.
        done: `[T, N]` bool, terminated or truncated.
    """

    def __init__(self, num_steps: int, env: VectorEnv, device: torch.device | str = "cpu") -> None:
        """Allocates the buffers.

        Args:
            num_steps: `T`.
            env: Vector environment with SAME_STEP autoreset.
            device: Where the tensors live.

        Raises:
            ValueError: The environment resets in another way, or has observations that are not arrays.
        """
        if env.metadata.get("autoreset_mode") != AutoresetMode.SAME_STEP:
            raise ValueError(
                f"{type(env).__name__}: metadata['autoreset_mode'] must be AutoresetMode.SAME_STEP, "
                f"got {env.metadata.get('autoreset_mode')}"
            )
        obs_shape, action_space = env.single_observation_space.shape, env.single_action_space
        if obs_shape is None or action_space.shape is None:
            raise ValueError(
                f"{type(env).__name__}: observations and actions must be single arrays, got "
                f"{env.single_observation_space} and {action_space}"
            )
        size = (num_steps, env.num_envs)
        discrete = np.issubdtype(action_space.dtype, np.integer)
        self.num_steps, self.num_envs = size
        self.obs = torch.zeros(num_steps + 1, env.num_envs, *obs_shape, device=device)
        self.action = torch.zeros(
            *size, *action_space.shape, dtype=torch.int64 if discrete else torch.float32, device=device
        )
        self.log_prob, self.value, self.next_value, self.reward = (torch.zeros(size, device=device) for _ in range(4))
        self.terminated = torch.zeros(size, dtype=torch.bool, device=device)
        self.done = torch.zeros(size, dtype=torch.bool, device=device)

    def begin(self, obs: NDArray[Any]) -> None:
        """Takes the first observations `[N, ...]` of all, from `env.reset()`.

        Raises:
            NonFiniteError: They hold NaN or infinity.
        """
        obs = np.asarray(obs, np.float32)
        _require_finite("an observation", obs, "at reset")
        self.obs[-1] = torch.from_numpy(obs)

    def flat(self, advantage: Tensor) -> Minibatch:
        """The rollout as one batch of `T * N` steps; `advantage [T, N]` also gives the value targets."""
        steps = Minibatch(self.obs[:-1], self.action, self.log_prob, self.value, advantage, advantage + self.value)
        return Minibatch(*(x.flatten(0, 1) for x in steps))


def collect(env: VectorEnv, agent: ActorCritic, rollout: Rollout, episodes: EpisodeStats | None = None) -> None:
    """Fills `rollout` with the next `T` steps; call it under `torch.no_grad()`.

    Goes on where the last call ended (after `rollout.begin(obs)` the first time). Truncated steps are bootstrapped
    from the value of their episode's own last observation.

    Args:
        env: Vector environment with SAME_STEP autoreset.
        agent: The bare module, not Fabric's wrapper.
        rollout: Buffers, overwritten.
        episodes: Tracks episode returns if given.

    Raises:
        NonFiniteError: The environment returned NaN or infinity; the rollout holds what came before.
        ValueError: The environment truncated an episode and did not say what its last observation was.
    """
    device = rollout.obs.device
    rewards = np.zeros((rollout.num_steps, rollout.num_envs), np.float32)
    terminated = np.zeros(rewards.shape, np.bool_)
    truncated = np.zeros(rewards.shape, np.bool_)
    last_obs: list[tuple[int, NDArray[np.intp], NDArray[Any]]] = []  # of truncated episodes: step, sub-envs, rows

    rollout.obs[0] = rollout.obs[-1]
    for t in range(rollout.num_steps):
        chosen = agent.act(rollout.obs[t])
        rollout.action[t], rollout.log_prob[t], rollout.value[t] = chosen.action, chosen.log_prob, chosen.value
        obs, rewards[t], terminated[t], truncated[t], infos = env.step(chosen.action.cpu().numpy())
        obs = np.asarray(obs, np.float32)
        _require_finite("an observation", obs, f"rollout step {t}")
        _require_finite("a reward", rewards[t], f"rollout step {t}")
        rollout.obs[t + 1] = torch.from_numpy(obs).to(device, non_blocking=True)
        cut = np.flatnonzero(truncated[t] & ~terminated[t])
        if len(cut):
            if "final_obs" not in infos:
                raise ValueError(f"{type(env).__name__}.step(): an episode was truncated, but infos lacks 'final_obs'")
            final_obs = np.asarray(infos["final_obs"], np.float32)[cut]
            _require_finite("a final observation", final_obs, f"rollout step {t}", cut)
            last_obs.append((t, cut, final_obs))
        if episodes is not None:
            episodes.update(rewards[t], terminated[t] | truncated[t])

    rollout.reward.copy_(torch.from_numpy(rewards))
    rollout.terminated.copy_(torch.from_numpy(terminated))
    rollout.done.copy_(torch.from_numpy(terminated | truncated))
    rollout.next_value[:-1] = rollout.value[1:]
    rollout.next_value[-1] = agent.value(rollout.obs[-1])
    if last_obs:
        steps = torch.from_numpy(np.concatenate([np.full(len(cut), t) for t, cut, _ in last_obs]))
        envs = torch.from_numpy(np.concatenate([cut for _, cut, _ in last_obs]))
        rows = torch.from_numpy(np.concatenate([rows for _, _, rows in last_obs])).to(device)
        rollout.next_value[steps.to(device), envs.to(device)] = agent.value(rows)


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


def _require_finite(what: str, array: NDArray[Any], when: str, sub_envs: NDArray[np.intp] | None = None) -> None:
    found = find_non_finite(array, sub_envs)
    if found:
        raise NonFiniteError(f"the environment returned {what} that is {found}, {when}")
