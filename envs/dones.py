"""Done conditions: they end episodes, by termination or truncation."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from rlgym.rocket_league.common_values import BALL_RESTING_HEIGHT, GRAVITY, TICKS_PER_SECOND

from envs.component import Component, begin_rows
from envs.state.game_state import GameState
from envs.state.layout import Bool
from fabric_rl.base.settings import Positive, check_value, describe_value

CELEBRATION_SECONDS = 2.0
"""Game time that recordings show after a goal."""


class DoneCondition(Component, ABC):
    """Base class: decide which arenas end their episode."""

    truncates: bool = False
    """False: the episode is over, and its value is zero from here on (terminated). True: it is only cut off, and the
    learner bootstraps from the value of the last observation (truncated)."""

    @abstractmethod
    def check(self, state: GameState) -> Bool:
        """Return `[A]` bool, True where the episode ends. Called once after every step."""


class GoalCondition(DoneCondition):
    """Terminate when a goal is scored."""

    def check(self, state: GameState) -> Bool:
        return state.goal_scored


class PastGoal(DoneCondition):
    """Another condition, but an episode that it ends with a goal goes on for `CELEBRATION_SECONDS`; for recordings.

    Attributes:
        held: `[A]` bool, arenas in which such an episode goes on.
    """

    def __init__(self, condition: DoneCondition) -> None:
        """Hold episodes that `condition` ends with a goal."""
        self.condition, self.truncates = condition, condition.truncates
        self.held, self._until = np.zeros(0, np.bool_), np.zeros(0)

    def check(self, state: GameState) -> Bool:
        done = check_done(self.condition, state)
        new = done & state.goal_scored & ~self.held
        self._until[new] = state.episode_ticks[new] + CELEBRATION_SECONDS * TICKS_PER_SECOND
        self.held |= new
        ended: Bool = np.where(self.held, state.episode_ticks >= self._until, done)
        return ended

    def reset(self, mask: Bool, state: GameState) -> None:
        super().reset(mask, state)
        if len(self.held) != state.num_arenas:
            self.held, self._until = np.zeros(state.num_arenas, np.bool_), np.zeros(state.num_arenas)
        self.held[mask] = False


@dataclass(eq=False, repr=False)
class NoTouchCondition(DoneCondition):
    """Truncate after a time without a touch of the ball."""

    truncates = True

    timeout_seconds: Positive = 30.0
    """Game seconds, above 0, since the last touch, or since the episode began."""

    def check(self, state: GameState) -> Bool:
        ended: Bool = state.ticks_since_touch / TICKS_PER_SECOND >= self.timeout_seconds
        return ended


@dataclass(eq=False, repr=False)
class TimeoutCondition(DoneCondition):
    """Truncate when the episode reaches its maximum length."""

    truncates = True

    timeout_seconds: Positive = 300.0
    """Game seconds, above 0, since the episode began."""

    def check(self, state: GameState) -> Bool:
        ended: Bool = state.episode_ticks / TICKS_PER_SECOND >= self.timeout_seconds
        return ended


@dataclass(eq=False, repr=False)
class BallOnGroundCondition(DoneCondition):
    """Terminate (or truncate) when the ball is on the ground, or has bounced off it since the last step.

    For drills that keep the ball in the air: if it starts on the ground, the first step ends the episode.

    Most bounces happen between two steps. Therefore the ball's flight is traced back to the last step,
    z(-t) = z - v t - g t^2 / 2 (gravity `GRAVITY`), unless a car has touched it since: then its velocity does not
    show where it was, and only its current height counts.
    """

    MARGIN = 2.0
    """uu above the resting height of 93.15 that still count as the ground."""
    _in_state_dict: ClassVar[dict[str, str]] = {"ticks_before": "_ticks_before"}

    truncates: bool = False
    """Truncate the episode instead of terminating it with value zero."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self._ticks_before = np.zeros(0, np.int64)

    def check(self, state: GameState) -> Bool:
        if len(self._ticks_before) != state.num_arenas:
            self._ticks_before = np.zeros(state.num_arenas, np.int64)
        seconds = (state.episode_ticks - self._ticks_before) / TICKS_PER_SECOND
        self._ticks_before = state.episode_ticks.copy()
        height, speed = state.world.ball_pos[:, 2], state.world.ball_vel[:, 2]
        before = height - speed * seconds - GRAVITY / 2 * seconds**2
        lowest = np.where(state.touched.any(axis=1), height, np.minimum(height, before))
        down: Bool = lowest <= BALL_RESTING_HEIGHT + self.MARGIN
        return down

    def reset(self, mask: Bool, state: GameState) -> None:
        self._ticks_before = begin_rows(mask, state.episode_ticks, self._ticks_before)


class _Combined(DoneCondition):
    """Several conditions combined into one."""

    _in_state_dict: ClassVar[dict[str, str]] = {"conditions": "conditions"}

    def __init__(
        self, conditions: DoneCondition | Sequence[DoneCondition], *more: DoneCondition, truncates: bool | None = None
    ) -> None:
        """Combine `(a, b)` or `([a, b])`.

        Args:
            conditions: One or several conditions.
            *more: Further conditions.
            truncates: Kind of the combination; required if some conditions truncate and others terminate.
        """
        first = tuple(conditions) if isinstance(conditions, Sequence) else (conditions,)
        name = type(self).__name__
        self.conditions: tuple[DoneCondition, ...] = check_value(
            f"{name}: conditions", (*first, *more), tuple[DoneCondition, ...]
        )
        if not self.conditions:
            raise ValueError(f"{name}: conditions must contain at least one condition")
        if truncates is None:
            if len({condition.truncates for condition in self.conditions}) > 1:
                kinds = ", ".join(
                    f"{type(c).__name__} {'truncates' if c.truncates else 'terminates'}" for c in self.conditions
                )
                raise ValueError(f"{name}: {kinds}; set truncates to true or false for the combination")
            truncates = self.conditions[0].truncates
        self.truncates = truncates


class AnyOf(_Combined):
    """End when any of several conditions holds; terminate or truncate as they do.

    A pool accepts several conditions directly; use this inside `AllOf`, or to make all of them terminate (or truncate).
    """

    def check(self, state: GameState) -> Bool:
        ended: Bool = np.any([check_done(condition, state) for condition in self.conditions], axis=0)
        return ended


class AllOf(_Combined):
    """End when all of several conditions hold after the same step; terminate or truncate as they do."""

    def check(self, state: GameState) -> Bool:
        ended: Bool = np.all([check_done(condition, state) for condition in self.conditions], axis=0)
        return ended


def check_done(condition: DoneCondition, state: GameState) -> Bool:
    """Return `condition.check(state)`; raise a ValueError that names its class unless the result is `[A]` bool."""
    ended: Any = condition.check(state)
    if isinstance(ended, np.ndarray) and ended.dtype == np.bool_ and ended.shape == (state.num_arenas,):
        return ended
    expected = f"expected bools of shape [arenas] = [{state.num_arenas}]"
    raise ValueError(f"{type(condition).__name__}: check() returned {describe_value(ended)}, {expected}")


def default_dones() -> tuple[DoneCondition, ...]:
    """Return the default conditions: a goal terminates, 30 s without a touch or 300 s in total truncate."""
    return (GoalCondition(), NoTouchCondition(30.0), TimeoutCondition(300.0))
