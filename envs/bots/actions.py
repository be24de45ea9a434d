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
_MATTERS = 0.5

_tables: "WeakKeyDictionary[ActionParser, Float]" = WeakKeyDictionary()
"""Rows of parsers that had to be asked for them."""


def nearest_actions(
    parser: ActionParser, controls: Float, on_ground: Bool, allowed: Bool | None = None
) -> NDArray[Any]:
    """The actions that come closest to `controls`.

    Tables: the number of the row with the least weighted squared distance; what has no effect on the ground or in the
    air counts little there. `ContinuousAction`: the numbers themselves. `MultiDiscreteAction`: each control's nearest
    value. Combinators such as `RepeatAction`: what the parser inside takes.

    Args:
        parser: Of the pool.
        controls: `[N, 8]` float32, see `Bot.act`.
        on_ground: `[N]` whether the car's wheels are in contact.
        allowed: `[N, n]` which rows of a table may be taken; default: all.

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
    difference, weights = _differences(inner, controls, on_ground)
    distances = np.einsum("nrk,nk->nr", difference * difference, weights)
    nearest: NDArray[np.int64] = (distances if allowed is None else np.where(allowed, distances, np.inf)).argmin(axis=1)
    return nearest


def soft_labels(parser: ActionParser, controls: Float, on_ground: Bool, allowed: Bool | None = None) -> Float | None:
    r"""How well each row of a table fits `controls`: what lies between two rows belongs to both.

    .. math:: p_r \propto \prod_k \max(0, 1 - |c_k - r_k|)

    over the controls that matter on the ground or in the air: for a table with -1, 0 and 1 of each, the only mixture of
    neighbours whose mean is `controls`. Where no row is that near it is the nearest one alone.

    Args:
        parser: As all, see `nearest_actions`.
        controls: `[N, 8]`.
        on_ground: `[N]`.
        allowed: `[N, n]`.

    Returns:
        `[N, n]` float32, rows sum to 1; None if the parser has no table.
    """
    inner = unwrapped(parser)[-1]
    if isinstance(inner, ContinuousAction | MultiDiscreteAction):
        return None
    difference, weights = _differences(inner, controls, on_ground)
    near = np.where((weights >= _MATTERS)[:, None], np.clip(1 - np.abs(difference), 0, 1), 1).prod(axis=2)
    near = near if allowed is None else near * allowed
    alone = np.eye(near.shape[1])[nearest_actions(parser, controls, on_ground, allowed)]
    near = np.where(near.sum(axis=1, keepdims=True) > 1e-3, near, alone)
    labels: Float = (near / near.sum(axis=1, keepdims=True)).astype(np.float32)
    return labels


def _differences(parser: ActionParser, controls: Float, on_ground: Bool) -> tuple[Float, Float]:
    """`[N, n, 8]` controls minus each row of the parser's table, and `[N, 8]` how much each control counts."""
    table = parser.table if isinstance(parser, ActionTable) else _rows_of(parser)
    driving = on_ground & (controls[:, JUMP] <= 0.5)
    return controls[:, None] - table, np.where(driving[:, None], _ON_WHEELS, _OFF_WHEELS)


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
