"""Checks of user input, which report every mistake in one line that names the argument."""

import math
from typing import Any

import numpy as np
from gymnasium import Space, spaces
from numpy.typing import NDArray

from fabric_rl.base.settings import describe_value, is_integer

MAX_CARS_PER_TEAM = 4


def check_seed(owner: str, value: object, argument: str = "seed") -> int:
    """Return `value` as an int; raise a ValueError unless it is a single integer, 0 or more."""
    if not is_integer(value) or value < 0:
        raise ValueError(f"{owner}: {argument} must be one non-negative integer, got {value!r}")
    return int(value)


def check_finite(
    owner: str, what: str, array: NDArray[np.float32], present: NDArray[np.bool_], arena_index: NDArray[np.int64]
) -> None:
    """Raise a FloatingPointError that names arena, car and column if numbers `[A, C, ...]` are NaN or infinite.

    Slots without a car, where `present [A, C]` is False, are ignored. The message calls the component `owner` and its
    numbers `what` (observations, rewards), and numbers the arenas by `arena_index [A]`.
    """
    if math.isfinite(array.sum()):
        return
    for at in np.argwhere(~np.isfinite(array)).tolist():
        arena, car, column = at[0], at[1], at[2:]
        if present[arena, car]:
            where = f"arena {arena_index[arena]}, car {car}" + (f", column {column}" if column else "")
            raise FloatingPointError(f"{owner}: {array[tuple(at)]} in the {what} of {where}")


def to_action_array(owner: str, actions: object) -> NDArray[Any]:
    """Return `actions` as an array of numbers of any shape; raise a ValueError for anything else."""
    try:
        array = np.asarray(actions)
    except ValueError:  # rows of different lengths
        array = np.empty(0, object)
    if array.dtype.kind not in "biuf":
        raise ValueError(f"{owner}: actions must be an array of numbers, got {describe_value(actions)}")
    return array


def check_actions(owner: str, actions: object, space: Space[Any], count: int) -> NDArray[Any]:
    """Return actions `[count, ...]` as an array; discrete actions must be in `space`, Box actions only finite.

    Raises:
        ValueError: The type or shape is wrong, or an action is outside the space (the message then names the
            sub-environment).
    """
    actions, expected = to_action_array(owner, actions), (count, *(space.shape or ()))
    if actions.shape != expected or not np.can_cast(actions.dtype, space.dtype, "same_kind"):
        raise ValueError(
            f"{owner}: actions must be {space.dtype} of shape {list(expected)}, got {actions.dtype} of shape "
            f"{list(actions.shape)}"
        )
    low: Any
    high: Any
    if isinstance(space, spaces.Discrete):
        low, high = space.start, space.start + space.n - 1
    elif isinstance(space, spaces.MultiDiscrete):
        low, high = space.start, space.start + space.nvec - 1
    elif isinstance(space, spaces.MultiBinary):
        low, high = 0, 1
    else:
        wrong = ~np.isfinite(actions)
        if wrong.any():
            at = np.argwhere(wrong)[0].tolist()
            raise ValueError(f"{owner}: actions must be finite, got {actions[tuple(at)]} for sub-environment {at[0]}")
        return actions
    wrong = (actions < low) | (actions > high)
    if wrong.any():
        at = np.argwhere(wrong)[0].tolist()
        least, most = (np.broadcast_to(bound, actions.shape)[tuple(at)] for bound in (low, high))
        column = f", column {at[1]}," if len(at) > 1 else ""
        raise ValueError(
            f"{owner}: action {actions[tuple(at)]} of sub-environment {at[0]}{column} is outside {least}..{most}"
        )
    return actions


def parse_team_sizes(team_size: Any) -> list[tuple[int, int]]:  # noqa: ANN401 - checked here
    """Return the (blue, orange) pairs that the arenas use in rotation, from a number, a pair or a list of pairs."""
    try:
        sizes = np.array(team_size)
    except ValueError:  # rows of different lengths
        sizes = np.array(None)
    sizes = np.atleast_2d(sizes if sizes.ndim else sizes.repeat(2))
    fits = sizes.dtype.kind in "iu" and sizes.ndim == 2 and sizes.shape[1] == 2
    if not fits or not ((sizes >= 0) & (sizes <= MAX_CARS_PER_TEAM)).all() or not sizes.any(axis=1).all():
        raise ValueError(
            "RocketSimPool: team_size (--env.team_size) must be one number, [blue, orange] or a list of such "
            f"pairs, 0 to {MAX_CARS_PER_TEAM} cars per team and at least one in total, got {team_size!r}"
        )
    return [(blue, orange) for blue, orange in sizes.tolist()]
