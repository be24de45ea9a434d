"""From the controls that a bot wants to the actions that an action parser takes."""

import copy
from typing import Any
from weakref import WeakKeyDictionary

import gymnasium
import numpy as np
from numpy.typing import NDArray

from envs.actions import ActionParser, ActionTable, ContinuousAction, MultiDiscreteAction
from envs.actions.base import ANALOGUE, BUTTONS, JUMP, unwrapped
from envs.state.game_state import GameState
from envs.state.layout import Bool, Float

# How much a difference in each control counts: throttle, steer, pitch, yaw, roll, jump, boost, handbrake. Wheels do not
# care for pitch, yaw and roll, a car in the air not for steer; the direction matters to a jump, which may be a flip.
_ON_WHEELS = np.array([2, 2, 0.01, 0.01, 0.01, 20, 1, 0.5], np.float32)
_OFF_WHEELS = np.array([0.05, 0.01, 2, 2, 2, 20, 1, 0.1], np.float32)

_tables: "WeakKeyDictionary[ActionParser, Float]" = WeakKeyDictionary()
"""Rows of parsers that had to be asked for them."""


def nearest_actions(parser: ActionParser, controls: Float, on_ground: Bool) -> NDArray[Any]:
    """The actions that come closest to `controls`.

    Tables: the number of the row with the least weighted squared distance; what has no effect on the ground or in the
    air counts little there. `ContinuousAction`: the numbers themselves. `MultiDiscreteAction`: each control's nearest
    value. Combinators such as `RepeatAction`: what the parser inside takes.

    Args:
        parser: Of the pool.
        controls: `[N, 8]` float32, see `Bot.act`.
        on_ground: `[N]` whether the car's wheels are in contact.

    Returns:
        `[N]` int64 for discrete actions, `[N, 8]` int64 or float32 for the others.

    Raises:
        ValueError: A parser of another kind whose action space is not discrete.
    """
    inner = unwrapped(parser)[-1]
    if isinstance(inner, ContinuousAction):
        numbers = np.clip(controls, -1, 1).astype(np.float32)
        numbers[:, BUTTONS] = np.where(controls[:, BUTTONS] > 0.5, 1, -1)
        return numbers
    if isinstance(inner, MultiDiscreteAction):
        choices = (controls > 0.5).astype(np.int64)
        bins = np.rint((np.clip(controls[:, ANALOGUE], -1, 1) + 1) / 2 * (inner.bins - 1))
        choices[:, ANALOGUE] = bins.astype(np.int64)
        return choices
    table = inner.table if isinstance(inner, ActionTable) else _rows_of(inner)
    driving = on_ground & (controls[:, JUMP] <= 0.5)
    weights = np.where(driving[:, None], _ON_WHEELS, _OFF_WHEELS)
    difference = controls[:, None] - table
    nearest: NDArray[np.int64] = np.einsum("nrk,nk->nr", difference * difference, weights).argmin(axis=1)
    return nearest


def _rows_of(parser: ActionParser) -> Float:
    """`[n, 8]` what each of a parser's discrete actions does, for a car on the ground."""
    if parser not in _tables:
        space = parser.action_space
        if not isinstance(space, gymnasium.spaces.Discrete) or space.start != 0:
            raise ValueError(
                f"{type(parser).__name__}: bots can play with action tables, ContinuousAction, MultiDiscreteAction and "
                f"other parsers whose space is Discrete(n), this one has {space}"
            )
        count = int(space.n)
        state = GameState(1, count, 0)
        state.clear(np.array([0]))
        _tables[parser] = copy.deepcopy(parser).parse(np.arange(count), state).rows.copy()
    return _tables[parser]
