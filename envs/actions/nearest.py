"""Conversion of a bot's controls to the actions of an action parser."""

import copy
from typing import Any
from weakref import WeakKeyDictionary

import gymnasium
import numpy as np
from numpy.typing import NDArray

from envs.actions import ActionParser, ActionTable, ContinuousAction, MultiDiscreteAction
from envs.actions.base import ANALOGUE, BUTTONS, JUMP, nested_parsers
from envs.state.game_state import GameState
from envs.state.layout import Bool, Float

# Weights of the controls' differences: throttle, steer, pitch, yaw, roll, jump, boost, handbrake. On wheels, pitch, yaw
# and roll have no effect; in the air, steer has none. The direction matters for a jump, which may be a flip.
_ON_WHEELS = np.array([2, 2, 0.01, 0.01, 0.01, 20, 1, 0.5], np.float32)
_OFF_WHEELS = np.array([0.05, 0.01, 2, 2, 2, 20, 1, 0.1], np.float32)
_MATTERS = 0.5

_tables: "WeakKeyDictionary[ActionParser, Float]" = WeakKeyDictionary()
"""Cached rows of parsers without a table."""


def nearest_actions(
    parser: ActionParser, controls: Float, on_ground: Bool, allowed: Bool | None = None
) -> NDArray[Any]:
    """Return the actions that come closest to `controls`.

    Tables: the index of the row with the least weighted squared distance; controls without effect on the ground or in
    the air have small weights there. `ContinuousAction`: the numbers themselves. `MultiDiscreteAction`: each control's
    nearest value. Combinators such as `RepeatAction`: actions of the inner parser.

    Args:
        parser: The pool's action parser.
        controls: `[N, 8]` float32, see `Bot.act`.
        on_ground: `[N]` bool, True where the car's wheels touch something.
        allowed: `[N, n]` bool, rows of a table that may be chosen; default: all.

    Returns:
        `[N]` int64 for discrete actions, `[N, 8]` int64 or float32 for other action spaces.

    Raises:
        ValueError: The parser is of another kind, and its action space is not discrete.
    """
    inner = nested_parsers(parser)[-1]
    if isinstance(inner, ContinuousAction):
        numbers = np.clip(controls, -1, 1).astype(np.float32)
        numbers[:, BUTTONS] = np.where(controls[:, BUTTONS] > 0.5, 1, -1)
        return numbers
    if isinstance(inner, MultiDiscreteAction):
        choices = (controls > 0.5).astype(np.int64)
        bins = np.rint((np.clip(controls[:, ANALOGUE], -1, 1) + 1) / 2 * (inner.bins - 1))
        choices[:, ANALOGUE] = bins.astype(np.int64)
        return choices
    _, distances, _ = _distances(inner, controls, on_ground, allowed)
    nearest: NDArray[np.int64] = distances.argmin(axis=1)
    return nearest


def soft_labels(parser: ActionParser, controls: Float, on_ground: Bool, allowed: Bool | None = None) -> Float | None:
    r"""Return soft labels of `controls` over a table's rows, in which in-between values are split between two.

    .. math:: p_r \propto \prod_k h_k(r_k), \qquad \sum_v h_k(v) = 1, \qquad \sum_v h_k(v) v = c_k

    over the controls :math:`k` that matter on the ground or in the air, where :math:`h_k` divides :math:`c_k` between
    the two nearest values in the table. Of rows that are equal in these controls, only the nearest one counts. Thus the
    mean of the mixture is `controls` if the table has all combinations of these values. If it has none of them, the
    label is the nearest row alone.

    Args:
        parser: Any action parser, see `nearest_actions`.
        controls: `[N, 8]`.
        on_ground: `[N]`.
        allowed: `[N, n]`.

    Returns:
        `[N, n]` float32 whose rows sum to 1; None if the parser has no table.
    """
    inner = nested_parsers(parser)[-1]
    if isinstance(inner, ContinuousAction | MultiDiscreteAction):
        return None
    table, distances, weights = _distances(inner, controls, on_ground, allowed)
    matters = weights >= _MATTERS
    fits, alike = _interpolation_weights(table, controls, matters), _equivalence_classes(table, matters)
    labels: Float = np.zeros(distances.shape, np.float32)
    for number, order in enumerate(distances.argsort(axis=1, kind="stable")):
        rows = order[np.isfinite(distances[number, order])]  # the nearest one first
        best = rows[np.unique(alike[number, rows], return_index=True)[1]]  # one of those that do the same
        total = fits[number, best].sum()
        if total > 1e-3:
            labels[number, best] = fits[number, best] / total
        else:
            labels[number, rows[0]] = 1
    return labels


def _interpolation_weights(table: Float, controls: Float, matters: Bool) -> NDArray[np.float64]:
    """Return interpolation weights `[N, n]`: products over the controls in `matters [N, 8]`."""
    fits = np.ones((len(controls), len(table)))
    for column in range(8):
        values, place = np.unique(table[:, column], return_inverse=True)
        shares = np.stack([np.interp(controls[:, column], values, each) for each in np.eye(len(values))], axis=1)
        fits *= np.where(matters[:, column, None], shares[:, place], 1)
    return fits


def _equivalence_classes(table: Float, matters: Bool) -> NDArray[np.int64]:
    """Return class numbers `[N, n]`, shared by rows that are equal in all controls in `matters [N, 8]`."""
    patterns, which = np.unique(matters, axis=0, return_inverse=True)
    classes = [np.unique(table[:, pattern], axis=0, return_inverse=True)[1].reshape(-1) for pattern in patterns]
    numbers: NDArray[np.int64] = np.array(classes)[which.reshape(-1)]
    return numbers


def _distances(parser: ActionParser, controls: Float, on_ground: Bool, allowed: Bool | None) -> tuple[Float, ...]:
    """Return the parser's table `[n, 8]`, the distance of each row `[N, n]` and the weight of each control `[N, 8]`."""
    table = parser.table if isinstance(parser, ActionTable) else _rows_of(parser)
    driving = on_ground & (controls[:, JUMP] <= 0.5)
    difference, weights = controls[:, None] - table, np.where(driving[:, None], _ON_WHEELS, _OFF_WHEELS)
    distances = np.einsum("nrk,nk->nr", difference * difference, weights)
    return table, distances if allowed is None else np.where(allowed, distances, np.inf), weights


def _rows_of(parser: ActionParser) -> Float:
    """Return the controls `[n, 8]` of each of a parser's discrete actions, for a car on the ground."""
    if parser not in _tables:
        space = parser.action_space
        if not isinstance(space, gymnasium.spaces.Discrete) or space.start != 0:
            raise ValueError(
                f"{type(parser).__name__}: bots can play with action tables, ContinuousAction, MultiDiscreteAction and "
                f"other parsers whose space is Discrete(n); this one has {space}"
            )
        count = int(space.n)
        state = GameState(1, count, 0)
        state.clear(np.array([0]))
        _tables[parser] = copy.deepcopy(parser).parse(np.arange(count), state).rows.copy()
    return _tables[parser]
