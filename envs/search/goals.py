"""Goals of a search. A goal measures how near each attempt has come."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from rlgym.rocket_league.common_values import BACK_WALL_Y, GOAL_CENTER_TO_POST, GOAL_HEIGHT, TICKS_PER_SECOND

from envs.component import Component, begin_rows
from envs.state.game_state import GameState
from envs.state.layout import BLUE, ORANGE, Bool, Float
from envs.state.quantities import length
from fabric_rl.base.settings import Positive, describe_value

_ONE, _HALF = np.float32(1), np.float32(0.5)
_MOUTH = np.array([GOAL_CENTER_TO_POST, BACK_WALL_Y, GOAL_HEIGHT], np.float32)


class Goal(Component, ABC):
    """Base class: the goal of a search for the first blue car, which attacks +y.

    Implement `progress`, and `reset` if the goal stores something about an attempt.
    """

    @abstractmethod
    def progress(self, state: GameState, ended: Bool) -> Float:
        """Return how near every attempt is to the goal.

        Args:
            state: State after the current step.
            ended: `[A]` True in the last step of an attempt.

        Returns:
            `[A]`, 0..1, and 1 where the goal is reached. The maximum over its steps decides whether an attempt is
            varied further, so it should grow on the way to the goal.
        """


class Score(Goal):
    """Score a goal. Progress: nearness to the ball, up to 0.5; after a touch, nearness of the ball to the goal."""

    def reset(self, mask: Bool, state: GameState) -> None:
        self._touched = begin_rows(mask, np.zeros(len(mask), np.bool_), getattr(self, "_touched", None))

    def progress(self, state: GameState, ended: Bool) -> Float:
        self._touched |= state.quantities.touched[:, 0]
        ball = state.world.ball_pos
        mouth = np.clip(ball, _MOUTH * (-1, 1, 0), _MOUTH)
        near = np.where(
            self._touched, _HALF + nearness(length(ball - mouth)) * np.float32(0.49), _to_ball(state) * _HALF
        )
        return np.where(state.scoring_team == BLUE, _ONE, near)


class Save(Goal):
    """Concede no goal. Progress: nearness to the ball, up to 0.5; after a touch, the ball's speed toward +y."""

    def reset(self, mask: Bool, state: GameState) -> None:
        self._touched = begin_rows(mask, np.zeros(len(mask), np.bool_), getattr(self, "_touched", None))

    def progress(self, state: GameState, ended: Bool) -> Float:
        self._touched |= state.quantities.touched[:, 0]
        near = np.where(self._touched, _HALF + _forward(state) * np.float32(0.49), _to_ball(state) * _HALF)
        return np.where(ended & (state.scoring_team != ORANGE), _ONE, near)


@dataclass(eq=False, repr=False)
class TouchInAir(Goal):
    """Touch the ball in the air. Progress: nearness to the ball times its height."""

    height: Positive = 300.0
    """Minimum height of the ball, uu."""

    def progress(self, state: GameState, ended: Bool) -> Float:
        high = np.minimum(state.world.ball_pos[:, 2] / np.float32(self.height), _ONE)
        reached = state.quantities.touched[:, 0] & ~state.on_ground[:, 0] & (high >= 1)
        return np.where(reached, _ONE, _to_ball(state) * high * np.float32(0.99))


class FirstToBall(Goal):
    """Touch the ball no later than any other car; a second or more later it is in the other half and moves toward +y.

    Touches in the same step count as simultaneous.

    Progress: nearness to the ball, up to 0.5; after the first touch, the ball's speed toward +y.
    """

    def reset(self, mask: Bool, state: GameState) -> None:
        self._at = begin_rows(mask, np.full(len(mask), -1), getattr(self, "_at", None))

    def progress(self, state: GameState, ended: Bool) -> Float:
        touched, ticks = state.quantities.touched, state.episode_ticks
        for first, at in ((touched[:, 0], ticks), (touched[:, 1:].any(axis=1), -2)):  # -2: another car was first
            self._at = np.where((self._at == -1) & first, at, self._at)
        ball, velocity = state.world.ball_pos[:, 1], state.world.ball_vel[:, 1]
        cleared = (ticks - self._at >= TICKS_PER_SECOND) & (ball > 0) & (velocity > 0)
        near = np.where(self._at < 0, _to_ball(state) * _HALF, _HALF + _forward(state) * np.float32(0.49))
        return np.where(self._at == -2, np.float32(0), np.where((self._at >= 0) & cleared, _ONE, near))


def check_progress(goal: Goal, state: GameState, ended: Bool) -> Float:
    """Return `goal.progress(...)`; raise a ValueError naming its class unless that is `[A]` and finite."""
    progress: Any = goal.progress(state, ended)
    if isinstance(progress, np.ndarray) and progress.shape == ended.shape and np.isfinite(progress).all():
        return progress
    expected = f"expected finite numbers of shape [arenas] = [{len(ended)}]"
    raise ValueError(f"{type(goal).__name__}: progress() returned {describe_value(progress)}, {expected}")


GOALS: dict[str, Callable[[], Goal]] = {
    "score": Score,
    "save": Save,
    "touch_in_air": TouchInAir,
    "first_to_ball": FirstToBall,
}
"""Goals by the name that `fabric-rl search --goal` uses."""


def nearness(distance: Float) -> Float:
    """Return `exp(-distance / 1500)`, for distances in uu."""
    near: Float = np.exp(-distance / np.float32(1500))
    return near


def _to_ball(state: GameState) -> Float:
    return nearness(state.quantities.ball_distance[:, 0])


def _forward(state: GameState) -> Float:
    """Return the ball's speed toward +y, from -2000 uu/s (0) to 2000 uu/s (1)."""
    forward: Float = np.clip(state.world.ball_vel[:, 1] / np.float32(4000) + _HALF, 0, 1)
    return forward
