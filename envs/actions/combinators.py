"""Parsers that wrap another parser and change the timing or the range of its controls."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import gymnasium
import numpy as np
from numpy.typing import NDArray

from envs.actions.base import ANALOGUE, BUTTONS, ActionParser, Controls, RowControls, nested_parsers
from envs.actions.situations import StateAwareTable
from envs.state.game_state import GameState
from envs.state.layout import Bool
from fabric_rl.base.settings import Count


@dataclass(eq=False, repr=False)
class _Combinator(ActionParser):
    """Wrapper of the parser `inner` with a memory per arena, zeroed when an episode begins."""

    _in_state_dict: ClassVar[dict[str, str]] = {"inner/": "inner"}

    inner: ActionParser
    """Parser inside."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self._memory: dict[str, NDArray[Any]] = {}
        """Arrays `[A, ...]` by name."""
        self._cars: tuple[int, int] | None = None
        self._controls = RowControls()

    @property
    def action_space(self) -> gymnasium.Space[Any]:
        return self.inner.action_space

    def mask(self, state: GameState) -> Bool | None:
        return self.inner.mask(state)

    def look_ahead(self, tick_skip: int, action_delay_ticks: int, steps: int = 1) -> None:
        self.inner.look_ahead(tick_skip, action_delay_ticks, self._steps_ahead(steps))

    def _steps_ahead(self, steps: int) -> int:
        """Return the number of steps from the inner parser's choice to the end of its effect."""
        return steps

    def reset(self, mask: Bool, state: GameState) -> None:
        super().reset(mask, state)
        for array in self._remembered(state).values():
            array[mask] = 0

    def state_dict(self) -> dict[str, NDArray[Any]]:
        return {name: array.copy() for name, array in self._memory.items()} | super().state_dict()

    def load_state_dict(self, state: dict[str, NDArray[Any]]) -> None:
        names = self._memory or [name for name in state if not name.startswith("inner/")]
        self._memory, self._cars = {name: state[name].copy() for name in names}, None
        super().load_state_dict(state)

    def _new_memory(self, num_arenas: int, num_cars: int) -> dict[str, NDArray[Any]]:
        """Return the memory for `num_arenas` arenas: arrays `[num_arenas, ...]` of zeros, by name."""
        return {}

    def _remembered(self, state: GameState) -> dict[str, NDArray[Any]]:
        """Return the memory, or a new one if it does not match the arenas and cars of `state`."""
        cars = state.num_arenas, state.num_cars
        if self._cars != cars:
            fresh = self._new_memory(*cars)
            shapes = [{name: array.shape for name, array in memory.items()} for memory in (self._memory, fresh)]
            if shapes[0] != shapes[1]:
                self._memory = fresh
            self._cars = cars
        return self._memory


@dataclass(eq=False, repr=False)
class RepeatAction(_Combinator):
    """Take a new action only on every `steps`-th step of an episode, and repeat it in between.

    The inner parser is called on every step with the repeated action, so a state-aware table uses the current state. If
    the inner parser has masks (`StateAwareTable`, `HybridTable`), the mask allows only the repeated action while it is
    repeated, because no other action would have an effect. Without masks, the agent cannot know which of its actions
    were taken; use a table with masks if that matters.
    """

    steps: Count
    """Steps that a choice lasts, at least 1."""

    def _steps_ahead(self, steps: int) -> int:
        return steps * self.steps

    def parse(self, actions: NDArray[Any], state: GameState) -> Controls:
        """Parse the repeated actions; ignored actions must also be in the action space, for a `ProcessPool`."""
        memory = self._remembered(state)
        held = memory["actions"]
        if actions.shape != (held.shape[0] * held.shape[1], *held.shape[2:]) or not _same_kind(actions, held):
            return self.inner.parse(actions, state)  # which raises the error
        choosing = memory["age"] % self.steps == 0
        choice = np.where(_like(choosing, held), actions.reshape(held.shape), held)
        controls = self.inner.parse(choice.reshape(actions.shape), state)
        held[:] = choice
        memory["age"] += 1
        return controls

    def mask(self, state: GameState) -> Bool | None:
        mask = self.inner.mask(state)
        if mask is None:
            return None
        memory = self._remembered(state)
        holding = memory["age"] % self.steps != 0
        return np.where(_like(holding, mask), memory["actions"][..., None] == np.arange(mask.shape[-1]), mask)

    def _new_memory(self, num_arenas: int, num_cars: int) -> dict[str, NDArray[Any]]:
        space = self.action_space
        return {
            "age": np.zeros(num_arenas, np.int64),
            "actions": np.zeros((num_arenas, num_cars, *(space.shape or ())), space.dtype),
        }


@dataclass(eq=False, repr=False)
class StickyButtons(_Combinator):
    """Keep jump, boost and handbrake pressed for at least `hold_steps` steps once they are pressed."""

    hold_steps: Count
    """Steps that a button stays down, at least 1."""

    def _steps_ahead(self, steps: int) -> int:
        return steps + self.hold_steps - 1

    def parse(self, actions: NDArray[Any], state: GameState) -> Controls:
        rows = self.inner.parse(actions, state).rows.copy()
        down_for = self._remembered(state)["down_for"]
        buttons = rows[:, BUTTONS].reshape(down_for.shape)
        down = (buttons > 0.5) | ((down_for > 0) & (down_for < self.hold_steps))
        down_for[:] = np.where(down, down_for + 1, 0)
        rows[:, BUTTONS] = down.reshape(-1, 3)
        return self._controls(rows)

    def _new_memory(self, num_arenas: int, num_cars: int) -> dict[str, NDArray[Any]]:
        return {"down_for": np.zeros((num_arenas, num_cars, 3), np.int64)}


@dataclass(eq=False, repr=False)
class ClipAction(_Combinator):
    """Limits on throttle, steer, pitch, yaw and roll, for example to keep a beginner from turning too sharply."""

    low: float | Sequence[float]
    """Lower limit of all five, or one for each; -1..1."""
    high: float | Sequence[float]
    """Upper limit of all five, or one for each; -1..1."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not {np.shape(self.low), np.shape(self.high)} <= {(), (5,)}:
            raise ValueError("ClipAction: low and high must be one number or five (throttle, steer, pitch, yaw, roll)")
        least, greatest = (np.broadcast_to(np.asarray(bound, np.float32), 5) for bound in (self.low, self.high))
        if not ((least >= -1) & (least <= greatest) & (greatest <= 1)).all():
            found = f"low={self.low}, high={self.high}"
            raise ValueError(f"ClipAction: limits must satisfy -1 <= low <= high <= 1, got {found}")
        self._bounds = least, greatest

    def parse(self, actions: NDArray[Any], state: GameState) -> Controls:
        rows = self.inner.parse(actions, state).rows.copy()
        np.clip(rows[:, ANALOGUE], *self._bounds, out=rows[:, ANALOGUE])
        return self._controls(rows)


@dataclass(eq=False, repr=False)
class DelayAction(_Combinator):
    """Delay controls by `steps` steps; controls are zero in the first `steps` steps of an episode.

    An inner state-aware table looks further ahead by the same number of steps, and no row falls back on the floor,
    which the car may leave by a jump that is still waiting.
    """

    steps: Count
    """Steps from a choice to its effect, at least 1."""

    def look_ahead(self, tick_skip: int, action_delay_ticks: int, steps: int = 1) -> None:
        super().look_ahead(tick_skip, action_delay_ticks, steps)
        for part in nested_parsers(self):
            if isinstance(part, StateAwareTable):
                part.choices_wait = True

    def _steps_ahead(self, steps: int) -> int:
        return steps + self.steps

    def parse(self, actions: NDArray[Any], state: GameState) -> Controls:
        chosen = self.inner.parse(actions, state).rows
        waiting = self._remembered(state)["waiting"]
        rows = waiting[:, 0].reshape(-1, 8).copy()
        waiting[:, :-1] = waiting[:, 1:].copy()
        waiting[:, -1] = chosen.reshape(waiting[:, -1].shape)
        return self._controls(rows)

    def _new_memory(self, num_arenas: int, num_cars: int) -> dict[str, NDArray[Any]]:
        return {"waiting": np.zeros((num_arenas, self.steps, num_cars, 8), np.float32)}


def _same_kind(actions: NDArray[Any], held: NDArray[Any]) -> bool:
    kind = actions.dtype.kind
    return kind == held.dtype.kind or {kind, held.dtype.kind} == {"i", "u"}


def _like(flags: Bool, array: NDArray[Any]) -> Bool:
    """Return `flags [A]` as `[A, 1, ...]`, to be broadcast against `array [A, ...]`."""
    return flags.reshape(-1, *[1] * (array.ndim - 1))
