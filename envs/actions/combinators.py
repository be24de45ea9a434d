"""Parsers made of another parser: they change when its controls act, or how far they go."""

from collections.abc import Sequence
from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray

from envs.actions.base import ANALOGUE, BUTTONS, ActionParser, Controls, RowControls
from envs.checks import check_part, whole_number
from envs.state.game_state import GameState
from envs.state.layout import Bool


class _Combinator(ActionParser):
    """Passes everything on to `inner`, and keeps the memory of the arenas of one pool, zero when an episode begins."""

    def __init__(self, inner: ActionParser) -> None:
        self.inner: ActionParser = check_part(type(self).__name__, "inner", inner, ActionParser)
        self._memory: dict[str, NDArray[Any]] = {}
        """By name, `[A, ...]` each."""
        self._cars: tuple[int, int] | None = None
        self._controls = RowControls()

    @property
    def action_space(self) -> gymnasium.Space[Any]:
        """The inner one."""
        return self.inner.action_space

    def mask(self, state: GameState) -> Bool | None:
        """The inner mask: actions that the inner parser takes for the same stay the same."""
        return self.inner.mask(state)

    def look_ahead(self, tick_skip: int, action_delay_ticks: int, steps: int = 1) -> None:
        """Tells the inner parser how long its choice acts through this one; see `ActionParser.look_ahead`."""
        self.inner.look_ahead(tick_skip, action_delay_ticks, self._steps_ahead(steps))

    def _steps_ahead(self, steps: int) -> int:
        """Steps from the inner parser's choice to the end of its effect."""
        return steps

    def reset(self, mask: Bool, state: GameState) -> None:
        """Forgets the arenas in `mask [A]`; see `ActionParser.reset`."""
        super().reset(mask, state)
        for array in self._remembered(state).values():
            array[mask] = 0

    def state_dict(self) -> dict[str, NDArray[Any]]:
        """Copies of the memory, and what the inner parser remembers."""
        mine = {name: array.copy() for name, array in self._memory.items()}
        return mine | {f"inner/{name}": array for name, array in self.inner.state_dict().items()}

    def load_state_dict(self, state: dict[str, NDArray[Any]]) -> None:
        """Takes what `state_dict` gave; a ValueError for that of a parser with another memory."""
        mine = {name: array for name, array in state.items() if not name.startswith("inner/")}
        for name, array in mine.items():
            if name in self._memory and self._memory[name].shape != array.shape:
                raise ValueError(
                    f"{type(self).__name__}: the saved {name} has shape {list(array.shape)}, this one "
                    f"{list(self._memory[name].shape)}"
                )
        if self._memory and self._memory.keys() != mine.keys():
            raise ValueError(f"{type(self).__name__}: remembers {list(self._memory)}, the saved one {list(mine)}")
        self._memory = {name: array.copy() for name, array in mine.items()}
        self._cars = None
        inside = {name.removeprefix("inner/"): array for name, array in state.items() if name.startswith("inner/")}
        self.inner.load_state_dict(inside)

    def _new_memory(self, num_arenas: int, num_cars: int) -> dict[str, NDArray[Any]]:
        """The memory of that many arenas, all zero, each array `[num_arenas, ...]`."""
        return {}

    def _remembered(self, state: GameState) -> dict[str, NDArray[Any]]:
        """The memory, made new when it does not fit the arenas and cars of `state`."""
        cars = state.num_arenas, state.num_cars
        if self._cars != cars:
            fresh = self._new_memory(*cars)
            shapes = [{name: array.shape for name, array in memory.items()} for memory in (self._memory, fresh)]
            if shapes[0] != shapes[1]:
                self._memory = fresh
            self._cars = cars
        return self._memory


class RepeatAction(_Combinator):
    """A new choice is taken only on every `steps`-th step of an episode; in between, the last one is held.

    The inner parser is asked on every step, with the choice that is held, so a state-aware table falls back by the
    present state. If the inner parser has masks (`StateAwareTable`, `HybridTable`), the mask allows a held choice alone
    while it is held, since no other one would act. Around a parser without masks there is none, so that the agent does
    not learn which of its choices were taken: give it a table with masks if that matters.
    """

    def __init__(self, inner: ActionParser, steps: int) -> None:
        """Creates the parser.

        Args:
            inner: Turns the choices into controls.
            steps: Steps that a choice lasts, at least 1.
        """
        super().__init__(inner)
        self.steps = whole_number("RepeatAction", "steps", steps)

    def _steps_ahead(self, steps: int) -> int:
        return steps * self.steps

    def parse(self, actions: NDArray[Any], state: GameState) -> Controls:
        """See `ActionParser.parse`.

        Actions that are not taken may be anything of the right shape and kind; a `ProcessPool` wants them all to be in
        the action space.
        """
        memory = self._remembered(state)
        held = memory["actions"]
        if actions.shape != (held.shape[0] * held.shape[1], *held.shape[2:]) or not _same_kind(actions, held):
            return self.inner.parse(actions, state)  # which says what is wrong
        choosing = memory["age"] % self.steps == 0
        choice = np.where(_like(choosing, held), actions.reshape(held.shape), held)
        controls = self.inner.parse(choice.reshape(actions.shape), state)
        held[:] = choice
        memory["age"] += 1
        return controls

    def mask(self, state: GameState) -> Bool | None:
        """`[A, C, n]` bool: the inner mask in arenas that take a new choice, else only the choice that is held."""
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


class StickyButtons(_Combinator):
    """Jump, boost and handbrake stay pressed for at least `hold_steps` steps from the one in which they go down."""

    def __init__(self, inner: ActionParser, hold_steps: int) -> None:
        """Creates the parser.

        Args:
            inner: Says which buttons are pressed.
            hold_steps: Steps, at least 1.
        """
        super().__init__(inner)
        self.hold_steps = whole_number("StickyButtons", "hold_steps", hold_steps)

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


class ClipAction(_Combinator):
    """Limits throttle, steer, pitch, yaw and roll, for example to keep a beginner from turning too sharply."""

    def __init__(self, inner: ActionParser, low: float | Sequence[float], high: float | Sequence[float]) -> None:
        """Creates the parser.

        Args:
            inner: Its controls are limited.
            low: Least value of all five, or one for each; -1..1.
            high: Greatest value, likewise.
        """
        super().__init__(inner)
        shapes = {np.shape(low), np.shape(high)}
        if not shapes <= {(), (5,)}:
            raise ValueError("ClipAction: low and high must be one number or five (throttle, steer, pitch, yaw, roll)")
        self.low, self.high = (np.broadcast_to(np.asarray(bound, np.float32), 5) for bound in (low, high))
        if not ((self.low >= -1) & (self.low <= self.high) & (self.high <= 1)).all():
            raise ValueError(f"ClipAction: it must be that -1 <= low <= high <= 1, got low={low}, high={high}")

    def parse(self, actions: NDArray[Any], state: GameState) -> Controls:
        rows = self.inner.parse(actions, state).rows.copy()
        np.clip(rows[:, ANALOGUE], self.low, self.high, out=rows[:, ANALOGUE])
        return self._controls(rows)


class DelayAction(_Combinator):
    """Controls act `steps` steps after they were chosen; an episode begins with that many steps without any.

    A state-aware table inside looks that far ahead.
    """

    def __init__(self, inner: ActionParser, steps: int) -> None:
        """Creates the parser.

        Args:
            inner: Its controls are delayed.
            steps: Steps, at least 1.
        """
        super().__init__(inner)
        self.steps = whole_number("DelayAction", "steps", steps)

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
    """`[A]` -> `[A, 1, ...]`, so that it broadcasts against `array [A, ...]`."""
    return flags.reshape(-1, *[1] * (array.ndim - 1))
