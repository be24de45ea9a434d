"""Base class of action parsers, and conversion of rows of numbers to RocketSim controls."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, NamedTuple

import gymnasium
import numpy as np
from numpy.typing import NDArray

from envs.component import Component
from envs.sim.arena import make_controls
from envs.state.game_state import GameState
from envs.state.layout import Bool, Float
from fabric_rl.base.settings import describe_value

THROTTLE, STEER, PITCH, YAW, ROLL, JUMP, BOOST, HANDBRAKE = range(8)
ANALOGUE, BUTTONS = slice(THROTTLE, ROLL + 1), slice(JUMP, HANDBRAKE + 1)


REVERSED = [STEER, YAW, ROLL]
"""Controls that change their sign in the mirror image at x = 0."""


def mirror_controls(rows: Float) -> Float:
    """Return the controls `[..., 8]` of the mirror image at x = 0."""
    other = rows.copy()
    other[..., REVERSED] *= -1
    return other


class Controls(NamedTuple):
    """Controls of every car for one step."""

    rows: Float
    """`[N, 8]` float32 in the order of the constants above; kept as `GameState.controls`."""
    cars: Sequence[Any]
    """The same controls as `N` `RocketSim.CarControls`, read-only because cars may share them."""


class ActionParser(Component, ABC):
    """Parser that converts the actions of all cars to controls."""

    @property
    @abstractmethod
    def action_space(self) -> gymnasium.Space[Any]:
        """The action space of one car."""

    @abstractmethod
    def parse(self, actions: NDArray[Any], state: GameState) -> Controls:
        """Return the controls of every car.

        Args:
            actions: `[N, ...]` actions of all slots, N = arenas x cars, arena by arena, blue before orange; zero in
                slots without a car.
            state: The state in which the actions were chosen.

        Raises:
            ValueError: The actions have the wrong shape or dtype, or one is outside the action space.
        """

    def mask(self, state: GameState) -> Bool | None:
        """Return `[A, C, n]` bool, True for the discrete actions with a distinct effect in `state`.

        By default, return None: every action always has one. The pool returns the mask as `infos["action_mask"]`.
        """
        return None

    def look_ahead(self, tick_skip: int, action_delay_ticks: int, steps: int = 1) -> None:
        """Set how long an action has effect: `steps` steps of `tick_skip` ticks, after `action_delay_ticks` ticks."""


def nested_parsers(parser: ActionParser) -> list[ActionParser]:
    """Return this parser and the parsers nested in it as `inner`, outermost first."""
    found = [parser]
    while isinstance(inner := getattr(found[-1], "inner", None), ActionParser):
        found.append(inner)
    return found


def parse_actions(parser: ActionParser, actions: NDArray[Any], state: GameState) -> Controls:
    """Return the controls of all slots; raise a ValueError that names the parser if it returned something else."""
    controls = parser.parse(actions, state)
    if not isinstance(controls, Controls):
        name = type(parser).__name__
        raise ValueError(f"{name}: parse() must return envs.actions.Controls, got {type(controls).__name__}")
    return controls


def get_action_mask(parser: ActionParser, state: GameState) -> Bool | None:
    """Return the parser's mask, `[A, C, n]`; raise a ValueError that names the parser if it returned something else."""
    mask = parser.mask(state)
    bools = isinstance(mask, np.ndarray) and mask.dtype == np.bool_ and mask.ndim == 3
    if mask is None or (bools and mask.shape[:2] == (state.num_arenas, state.num_cars)):
        return mask
    expected = f"must return bools [arenas, cars, actions] or None, got {describe_value(mask)}"
    raise ValueError(f"{type(parser).__name__}: mask() {expected}")


class RowControls:
    """Converter of rows to `RocketSim.CarControls` that reuses the objects of slots whose row has not changed."""

    def __init__(self) -> None:
        self._rows: Float = np.zeros((0, 8), np.float32)
        self._cars: list[Any] = []

    def __call__(self, rows: Float) -> Controls:
        """Return the controls of `rows [N, 8]` float32; a button is pressed when its number is above 0.5."""
        if len(rows) == len(self._rows):
            changed = np.flatnonzero((rows != self._rows).any(axis=1)).tolist()
            cars = self._cars.copy()  # the list returned earlier must not change
        else:
            changed, cars = range(len(rows)), [None] * len(rows)
        for slot, row in zip(changed, rows[changed].tolist(), strict=True):
            cars[slot] = make_controls(row)
        self._rows, self._cars = rows.copy(), cars
        return Controls(rows, cars)
