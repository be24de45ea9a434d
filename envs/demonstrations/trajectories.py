"""trajectories(): what one player saw and did, as an agent of some environment would have seen and done it."""

import copy
from collections.abc import Iterator
from typing import Any, NamedTuple

import gymnasium
import numpy as np
from numpy.typing import NDArray

from envs.actions import ActionParser, DelayAction, StickyButtons
from envs.actions.base import mask_by, unwrapped
from envs.bots.actions import nearest_actions, soft_labels
from envs.demonstrations.file import MEANT, WEIGHT, Demonstration, Episode, states_of
from envs.obs import ObsBuilder
from envs.obs.base import build_named
from envs.rewards import Reward, RewardSignals
from envs.state.game_state import GameState
from envs.state.layout import Bool, Float


class Trajectory(NamedTuple):
    """One episode of one player, T steps."""

    obs: NDArray[Any]
    """`[T + 1, ...]` as in the environment, the last one is where it ended."""
    action: NDArray[Any]
    """`[T, ...]` as the action space wants it: int64, or float32 for a Box."""
    weight: Float
    """`[T]` how much each step counts, 0..1; less than 1 where what was done is inferred, 0 where it says nothing."""
    terminated: bool
    """Whether the episode ended for good."""
    action_mask: Bool | None = None
    """`[T, n]` what was allowed; None where the environment gives no masks."""
    soft: Float | None = None
    """`[T, n]` how well each row of an action table fits what was done, sums of 1; only if asked for."""
    reward: Float | None = None
    """`[T]`, or `[T, K]` of K reward signals, where it is known."""
    episode: str = ""
    """File and number of the episode, that of all its players; empty: it has this one alone."""


def trajectories(
    demonstration: Demonstration,
    num_blue: int,
    obs: ObsBuilder,
    action: ActionParser,
    soft: bool = False,
    reward: Reward | None = None,
) -> Iterator[Trajectory]:
    """What the demonstrators of a file of states would have seen and done in a pool with these parts.

    Args:
        demonstration: Of states.
        num_blue: Blue slots of its arenas.
        obs: Builds the observations; a copy of it.
        action: Says what they could do; a copy of it. What they did is the action that comes closest, see
            `envs.bots.actions.nearest_actions`.
        soft: Give `soft`, too, where `action` is a table.
        reward: Pays for the steps; a copy of it. Actions are those that it paid for then, also where the player meant
            another one. None: nobody pays.

    Yields:
        One trajectory for each demonstrating car of each episode.

    Raises:
        ValueError: A damaged file, or a parser whose actions cannot be found out.
    """
    for parser in unwrapped(action):
        if isinstance(parser, DelayAction | StickyButtons):
            name = type(parser).__name__
            raise ValueError(f"{name}: controls do not tell what was chosen; imitate with the parser inside it")
    demonstrators = [int(car) for car in demonstration.about["demonstrators"]]
    for number, episode in enumerate(demonstration.episodes()):
        seen = _Replayed(episode, num_blue, copy.deepcopy(obs), copy.deepcopy(action), soft, reward is None)
        paid = None if reward is None else seen.paid(copy.deepcopy(reward))
        for car in demonstrators:
            if seen.states.present[0, car]:
                worth = None if paid is None else paid[:, car]
                yield seen.trajectory(car)._replace(episode=f"{demonstration.path}:{number}", reward=worth)


class _Replayed:
    """An episode gone through once, step by step, since builders and parsers remember."""

    def __init__(
        self, episode: Episode, num_blue: int, obs: ObsBuilder, action: ActionParser, soft: bool, as_meant: bool
    ) -> None:
        self.episode, self.states = episode, states_of(episode.columns, num_blue)
        frames, cars = self.states.present.shape
        meant = episode.columns.get(MEANT if as_meant else "controls", self.states.controls)
        self.obs = np.empty((frames, cars, *(obs.space(num_blue, cars - num_blue).shape)), np.float32)
        found: list[tuple[NDArray[Any], Bool | None, Float | None]] = []
        for number in range(frames):
            state = self.states.select(np.array([number]))
            state.arena_index[:] = 0
            if number == 0:
                obs.reset(np.ones(1, np.bool_), state)
                action.reset(np.ones(1, np.bool_), state)
            build_named(obs, state, self.obs[number : number + 1])
            if number + 1 < frames:
                found.append(self._decided(action, state, meant[number + 1], soft))
                done = nearest_actions(action, self.states.controls[number + 1], state.on_ground[0])
                action.parse(done, state)  # what it remembers
        self.action = np.stack([each[0] for each in found])  # [T, C, ...]
        self.mask, self.soft = (
            None if found[0][column] is None else np.stack([each[column] for each in found])  # type: ignore[misc]
            for column in (1, 2)
        )

    @staticmethod
    def _decided(
        action: ActionParser, state: GameState, controls: Float, soft: bool
    ) -> tuple[NDArray[Any], Bool | None, Float | None]:
        mask = mask_by(action, state)
        allowed = None if mask is None else mask[0]
        fits = soft_labels(action, controls, state.on_ground[0], allowed) if soft else None
        return nearest_actions(action, controls, state.on_ground[0], allowed), allowed, fits

    def paid(self, reward: Reward) -> Float:
        """`[T, C]`, or `[T, C, K]` of K reward signals: what the reward pays for the steps, as in the pool."""
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
        """That of one car; what a demolished one was told says nothing."""
        weight = self.episode.columns[WEIGHT][1:, car] * ~self.states.is_demoed[:-1, car]
        mask = None if self.mask is None else self.mask[:, car]
        soft = None if self.soft is None else self.soft[:, car]
        return Trajectory(self.obs[:, car], self.action[:, car], weight, self.episode.terminated, mask, soft)


def of_observations(
    demonstration: Demonstration, obs: gymnasium.Space[Any], action: gymnasium.Space[Any]
) -> Iterator[Trajectory]:
    """What is in a file of observations, in the dtypes of these spaces."""
    dtype = np.uint8 if obs.dtype == np.uint8 else np.float32
    acts = np.float32 if isinstance(action, gymnasium.spaces.Box) else np.int64
    for episode in demonstration.episodes():
        columns = episode.columns
        done = (saved := columns["action"][1:]).astype(acts)
        there = (saved == done).all() and all(map(action.contains, done))
        if not isinstance(action, gymnasium.spaces.Box) and not there:
            raise ValueError(f"{demonstration.path}: an action that is not in {action}")
        mask = columns["action_mask"][:-1] > 0 if "action_mask" in columns else None
        weight, reward = np.ones(len(done), np.float32), columns["reward"][1:]
        yield Trajectory(columns["obs"].astype(dtype), done, weight, episode.terminated, mask, None, reward)
