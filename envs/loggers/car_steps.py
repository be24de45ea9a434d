"""What each car did in a step: what loggers of games count, defined once."""

from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from envs.component import Component
from envs.state.game_state import GameState
from envs.state.layout import BOOST, IS_DEMOED, ON_GROUND, SAVES, TOUCHED, Bool, Float

_COLUMNS = slice(SAVES, BOOST + 1)
"""Of a car's row, what is looked at; the game's counters come first."""
COUNTED = ("saves", "shots", "demos")
"""What `CarStep.counted` holds, in order."""


class CarStep(NamedTuple):
    """What each car did in a step; `[A, C]` float32, zero in slots without a car."""

    alive: Float
    """1 where the car is not demolished."""
    boost: Float
    """Held after the step, 0..100."""
    on_ground: Float
    """1 with at least three wheels in contact."""
    boost_used: Float
    """How much less boost the car has than before; 0 for one that was or is demolished."""
    touches: Float
    """1 where a contact with the ball begins, however long it lasts."""
    counted: Float
    """`[A, C, 3]` saves, shots and demolitions, as the game counts them."""
    ticks: NDArray[np.int64]
    """`[A]` physics ticks (1/120 s) of the step."""


class CarSteps(Component):
    """Compares each state with the one before."""

    _in_state_dict: ClassVar = {"rows": "_rows", "ticks": "_ticks"}

    def __init__(self) -> None:
        self._rows: Float = np.zeros((0, 0, 0), np.float32)
        self._ticks: NDArray[np.int64] = np.zeros(0, np.int64)

    def update(self, state: GameState) -> CarStep:
        """What has happened since the last state, or since `reset`."""
        now, before = state.car_rows[:, :, 0, _COLUMNS].copy(), self._rows
        boost, touched, demoed = (now[..., column - SAVES] for column in (BOOST, TOUCHED, IS_DEMOED))
        alive = state.present - demoed
        drove = alive * (1 - before[..., IS_DEMOED - SAVES])  # one that returns has another amount
        used = drove * np.maximum(before[..., BOOST - SAVES] - boost, 0)
        begun = (touched > before[..., TOUCHED - SAVES]).astype(np.float32)
        new, old = now[..., : len(COUNTED)], before[..., : len(COUNTED)]
        counted = np.where(new >= old, new - old, new)  # of a restored arena they begin anew
        ticks = state.episode_ticks - self._ticks
        step = CarStep(alive, boost, now[..., ON_GROUND - SAVES], used, begun, counted, ticks)
        self._rows, self._ticks = now, state.episode_ticks.copy()
        return step

    def reset(self, mask: Bool, state: GameState) -> None:
        """Takes the states of the arenas in `mask [A]` as those before the next step."""
        now = state.car_rows[:, :, 0, _COLUMNS]
        if self._rows.shape != now.shape:
            self._rows, self._ticks = now.copy(), state.episode_ticks.copy()
        self._rows[mask], self._ticks[mask] = now[mask], state.episode_ticks[mask]
