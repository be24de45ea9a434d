"""trajectories: convert demonstrations to the observations and actions of an agent's environment."""

import copy
from collections.abc import Iterator
from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray

from envs.actions import ActionParser, DelayAction, StickyButtons
from envs.actions.base import get_action_mask, nested_parsers
from envs.actions.nearest import nearest_actions, soft_labels
from envs.demonstrations.file import ACTION_MASK, INTENDED_CONTROLS, WEIGHT, Demonstration, Episode, states_from_columns
from envs.obs import ObsBuilder
from envs.obs.base import build_obs
from envs.rewards.base import Reward
from envs.rewards.combinators import RewardSignals
from envs.state.layout import Bool, Float
from fabric_rl.base.trajectory import Trajectory


def trajectories(
    demonstration: Demonstration,
    num_blue: int,
    obs: ObsBuilder,
    action: ActionParser,
    soft: bool = False,
    reward: Reward | None = None,
) -> Iterator[Trajectory]:
    """Yield the observations and actions of the demonstrators in a file of states, for a pool with these components.

    Args:
        demonstration: Demonstration of states.
        num_blue: Blue slots of its arenas.
        obs: Observation builder; it is copied.
        action: Action parser; it is copied. Controls are converted to the nearest actions, see
            `envs.actions.nearest.nearest_actions`.
        soft: Also compute `soft`, if `action` is a table.
        reward: Reward of the steps; it is copied. With a reward, actions are those executed, even if the player chose
            others. None: no rewards.

    Yields:
        One trajectory for each demonstrating car of each episode.

    Raises:
        ValueError: The file is damaged, or the parser's actions cannot be inferred from controls.
    """
    for parser in nested_parsers(action):
        if isinstance(parser, DelayAction | StickyButtons):
            name = type(parser).__name__
            raise ValueError(f"{name}: actions cannot be inferred from controls; use its inner parser to imitate")
    demonstrators = [int(car) for car in demonstration.about["demonstrators"]]
    for number, episode in enumerate(demonstration.episodes()):
        seen = _Replayed(episode, num_blue, copy.deepcopy(obs), copy.deepcopy(action), soft, reward is None)
        paid = None if reward is None else seen.paid(copy.deepcopy(reward))
        for car in demonstrators:
            if seen.states.present[0, car]:
                worth = None if paid is None else paid[:, car]
                yield seen.trajectory(car)._replace(episode=f"{demonstration.path}:{number}", reward=worth)


class _Replayed:
    """Episode that is replayed step by step, because builders and parsers have memory."""

    def __init__(
        self, episode: Episode, num_blue: int, obs: ObsBuilder, action: ActionParser, soft: bool, as_meant: bool
    ) -> None:
        self.episode, self.states = episode, states_from_columns(episode.columns, num_blue)
        frames, cars = self.states.present.shape
        meant = episode.columns.get(INTENDED_CONTROLS if as_meant else "controls", self.states.controls)
        self.obs = np.empty((frames, cars, *(obs.space(num_blue, cars - num_blue).shape)), np.float32)
        found: list[tuple[NDArray[Any], Bool | None, Float | None]] = []
        for number in range(frames):
            state = self.states.select(np.array([number]))
            state.arena_index[:] = 0
            if number == 0:
                obs.reset(np.ones(1, np.bool_), state)
                action.reset(np.ones(1, np.bool_), state)
            build_obs(obs, state, self.obs[number : number + 1])
            if number + 1 < frames:
                controls, on_ground, mask = meant[number + 1], state.on_ground[0], get_action_mask(action, state)
                allowed = None if mask is None else mask[0]
                fits = soft_labels(action, controls, on_ground, allowed) if soft else None
                found.append((nearest_actions(action, controls, on_ground, allowed), allowed, fits))
                done = nearest_actions(action, self.states.controls[number + 1], on_ground)
                action.parse(done, state)  # updates its memory
        self.action = np.stack([each[0] for each in found])  # [T, C, ...]
        self.mask, self.soft = (
            None if found[0][column] is None else np.stack([each[column] for each in found])  # type: ignore[misc]
            for column in (1, 2)
        )

    def paid(self, reward: Reward) -> Float:
        """Return the rewards of the steps, `[T, C]`, or `[T, C, K]` for K reward signals."""
        paid = []
        for number in range(len(self.states.present)):
            state = self.states.select(np.array([number]))
            state.arena_index[:] = 0
            if number == 0:
                reward.reset(np.ones(1, np.bool_), state)
                continue
            total = reward(state)[0]
            paid.append(reward.last[0] if isinstance(reward, RewardSignals) else total)
        return np.array(paid, np.float32)

    def trajectory(self, car: int) -> Trajectory:
        """Return the trajectory of one car; steps of a demolished car have weight 0."""
        weight = self.episode.columns[WEIGHT][1:, car] * ~self.states.is_demoed[:-1, car]
        mask = None if self.mask is None else self.mask[:, car]
        soft = None if self.soft is None else self.soft[:, car]
        return Trajectory(self.obs[:, car], self.action[:, car], weight, self.episode.terminated, mask, soft)


def observation_trajectories(
    demonstration: Demonstration, obs: gymnasium.Space[Any], action: gymnasium.Space[Any]
) -> Iterator[Trajectory]:
    """Yield the trajectories in a file of observations, with the dtypes of these spaces."""
    dtype = np.uint8 if obs.dtype == np.uint8 else np.float32
    acts = np.float32 if isinstance(action, gymnasium.spaces.Box) else np.int64
    for episode in demonstration.episodes():
        columns = episode.columns
        done = (saved := columns["action"][1:]).astype(acts)
        there = (saved == done).all() and all(map(action.contains, done))
        if not isinstance(action, gymnasium.spaces.Box) and not there:
            raise ValueError(f"{demonstration.path} contains an action that is not in {action}")
        mask = columns[ACTION_MASK][:-1] > 0 if ACTION_MASK in columns else None
        weight, reward = np.ones(len(done), np.float32), columns["reward"][1:]
        yield Trajectory(columns["obs"].astype(dtype), done, weight, episode.terminated, mask, None, reward)
