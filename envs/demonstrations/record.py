"""Recording of demonstrations: bots in an arena, or any actor in a vector environment."""

from collections.abc import Mapping, Sequence
from contextlib import closing
from itertools import islice
from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector import VectorEnv, VectorWrapper
from numpy.typing import NDArray
from rlgym.rocket_league.common_values import TICKS_PER_SECOND

from envs.demonstrations.file import (
    ACTION_MASK,
    INTENDED_CONTROLS,
    OBSERVATIONS,
    STATES,
    DemonstrationWriter,
    frame_from_state,
)
from envs.dones import GoalCondition, TimeoutCondition
from envs.loggers import StateLogger
from envs.pool.players import TeamBots, play
from envs.pool.replay_format import Column
from envs.pool.rocket_pool import bot_pool
from envs.resets import Kickoff, MixedStates, RandomState
from envs.state.game_state import GameState
from envs.state.layout import Bool

EPISODE_SECONDS = 60.0
"""Game time after which an episode without a goal is truncated."""


def states_header(
    names: Sequence[str], teams: Sequence[int], demonstrators: Sequence[int], tick_skip: int
) -> dict[str, Any]:
    """Return the header of a demonstration of states.

    `names` are the names of the blue and the orange player; `teams` are 0 for blue cars and 1 for orange ones;
    `demonstrators` are the indices of the cars to learn from.
    """
    about = {"names": list(names), "teams": list(teams), "demonstrators": list(demonstrators), "tick_skip": tick_skip}
    return {"demonstration": STATES, **about}


class StateRecorder(StateLogger):
    """Logger that writes every episode of a pool's first arena when it ends.

    Attributes:
        beside: Current values of additional columns.
    """

    def __init__(self, writer: DemonstrationWriter, most_frames: int | None = None) -> None:
        """Set the writer; longer episodes than `most_frames` frames are written in parts, as they are played."""
        self._writer, self._frames = writer, list[Mapping[str, NDArray[Any]]]()
        self._most_frames = most_frames
        self.beside: dict[str, NDArray[Any]] = {}

    def update(self, state: GameState, done: Bool) -> None:
        self._frames.append(frame_from_state(state) | self.beside)
        if done[0]:
            self.end(bool(state.goal_scored[0]))
        elif len(self._frames) == self._most_frames:
            last = self._frames[-1]
            self.end()
            self._frames = [last]

    def reset(self, mask: Bool, state: GameState) -> None:
        if mask[0]:
            self.end()  # an episode that the pool cut off
            self._frames = [frame_from_state(state) | self.beside]

    def end(self, terminated: bool = False) -> None:
        """Write the current episode if it has at least one step."""
        if len(self._frames) > 1:
            self._writer.add(self._frames, {"terminated": terminated})
        self._frames = []


def record_states(
    bots: TeamBots,
    writer: DemonstrationWriter,
    minutes: float,
    team_size: int,
    seed: int,
    tick_skip: int,
    delay: int,
    random_starts: float,
    noise: float = 0.0,
) -> None:
    """Record bots in one arena, from a kickoff or a random state to a goal (or `EPISODE_SECONDS`).

    Args:
        bots: Players of both teams.
        writer: Writer with `columns_of_states`, which are `noisy` if there is noise.
        minutes: Game time.
        team_size: Cars per team.
        seed: Seed of the initial states and the noise.
        tick_skip: Ticks per step.
        delay: Ticks at the start of a step that still run the previous action.
        random_starts: Share of the episodes that begin in a random state, 0..1. Bots and physics are deterministic, so
            kickoffs alone would repeat the same few games.
        noise: Share of the decisions, 0..1, that are replaced by a random action (Laskey et al. 2017, DART).
    """
    recorder, draws = StateRecorder(writer), np.random.default_rng(seed)
    if noise:
        recorder.beside[INTENDED_CONTROLS] = np.zeros((2 * team_size, 8), np.float32)
    setter = MixedStates([Kickoff(), RandomState(grounded_share=0.9)], [1 - random_starts, random_starts])
    done = [GoalCondition(), TimeoutCondition(EPISODE_SECONDS)]
    pool = bot_pool(1, team_size, setter, done, tick_skip, delay, seed=seed, loggers=[recorder])

    def noisy(actions: NDArray[Any]) -> NDArray[Any]:
        if not noise:
            return actions
        recorder.beside = {INTENDED_CONTROLS: pool.action_parser.parse(actions, pool.state).rows.copy()}
        drawn = draws.uniform(-1, 1, actions.shape).astype(np.float32)
        return np.where(draws.random((len(actions), 1)) < noise, drawn, actions)

    steps = max(1, round(minutes * 60 * TICKS_PER_SECOND / tick_skip))
    with closing(pool):
        for _ in islice(play(pool, bots, seed, noisy), steps + 1):
            pass
        recorder.end()


def observation_columns(
    observation_space: gymnasium.Space[Any], action_space: gymnasium.Space[Any], masks: bool = False
) -> list[Column]:
    """Return the columns of a demonstration of observations; raise a ValueError for unsupported spaces.

    With `masks`, they include the masks of discrete actions.
    """
    seen, done = observation_space, action_space
    if not isinstance(seen, gymnasium.spaces.Box | gymnasium.spaces.Discrete) or done.shape is None:
        raise ValueError(
            f"demonstrations need observations of a Box and actions that are arrays, got {seen} and {done}"
        )
    obs_type = "|u1" if seen.dtype == np.uint8 else "<f4"
    action_type = "<f4" if isinstance(done, gymnasium.spaces.Box) else "<i4"
    shape = tuple(map(int, seen.shape or ()))
    found = [Column("obs", obs_type, shape), Column("action", action_type, done.shape), Column("reward", "<f4")]
    return [*found, Column(ACTION_MASK, "|u1", (gymnasium.spaces.flatdim(done),))] if masks else found


def observations_header(
    name: str, env: str, observation_space: gymnasium.Space[Any], action_space: gymnasium.Space[Any]
) -> dict[str, Any]:
    """Return the header of a demonstration of observations: name of the player, environment, spaces."""
    spaces = {"observation_space": str(observation_space), "action_space": str(action_space)}
    return {"demonstration": OBSERVATIONS, "names": [name], "env": env, **spaces}


class RecordedEnvs(VectorWrapper):
    """Wrapper that writes the first episode after each `reset` of every sub-environment, up to a number of episodes."""

    def __init__(self, envs: VectorEnv, writer: DemonstrationWriter, episodes: int) -> None:
        """Wrap environments with SAME_STEP autoreset; `writer` has the columns of `observation_columns`."""
        super().__init__(envs)
        self._writer, self._left = writer, episodes
        self._frames: list[list[dict[str, NDArray[Any]]]] = []
        self._ended: list[bool | None] = []

    def reset(self, *, seed: Any = None, options: Any = None) -> tuple[Any, dict[str, Any]]:  # noqa: ANN401
        obs, infos = self.env.reset(seed=seed, options=options)
        nothing = np.zeros(self.single_action_space.shape or ())
        start = {"action": nothing, "reward": np.zeros(())}
        self._frames = [[{"obs": seen.copy()} | start | _own_mask(infos, i)] for i, seen in enumerate(obs)]
        self._ended = [None] * self.num_envs
        return obs, infos

    def step(self, actions: NDArray[Any]) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        obs, rewards, terminated, truncated, infos = self.env.step(actions)
        for i, frames in enumerate(self._frames):
            if self._ended[i] is None:
                over = bool(terminated[i] or truncated[i])
                seen = infos["final_obs"][i] if over else obs[i]
                frame = {"obs": seen.copy(), "action": actions[i].copy(), "reward": np.asarray(rewards[i])}
                frames.append(frame | _own_mask(infos, i))
                self._ended[i] = bool(terminated[i]) if over else None
        if None not in self._ended and self._frames:
            for frames, ended in list(zip(self._frames, self._ended, strict=True))[: self._left]:
                self._writer.add(frames, {"terminated": ended})
            self._left, self._frames = max(0, self._left - self.num_envs), []
        return obs, rewards, terminated, truncated, infos


def _own_mask(infos: Mapping[str, Any], number: int) -> dict[str, NDArray[Any]]:
    """Return the column of a sub-environment's action mask, if it has one."""
    return {ACTION_MASK: infos[ACTION_MASK][number].copy()} if ACTION_MASK in infos else {}
