"""Checks of user input: every mistake is reported in one line that names the argument."""

import importlib
import inspect
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from gymnasium import Space, spaces
from numpy.typing import NDArray

from fabric_rl.base.settings import describe_value, is_whole

MAX_CARS_PER_TEAM = 4


def check_seed(owner: str, value: object, argument: str = "seed") -> int:
    """Return `value` as an int; a ValueError unless it is one integer, 0 or more."""
    if not is_whole(value) or value < 0:
        raise ValueError(f"{owner}: {argument} takes one integer, 0 or more, got {value!r}")
    return int(value)


def check_finite(
    owner: str, what: str, array: NDArray[np.float32], present: NDArray[np.bool_], arena_index: NDArray[np.int64]
) -> None:
    """Check numbers `[A, C, ...]` written by a component.

    Args:
        owner: Name of the component.
        what: Name of the numbers: observations, rewards.
        array: The numbers.
        present: `[A, C]`, True for slots with a car; other slots are ignored.
        arena_index: `[A]`, index of each arena in the pool.

    Raises:
        FloatingPointError: NaN or infinity; the message names arena, car and column.
    """
    if math.isfinite(array.sum()):
        return
    for at in np.argwhere(~np.isfinite(array)).tolist():
        arena, car, column = at[0], at[1], at[2:]
        if present[arena, car]:
            where = f"arena {arena_index[arena]}, car {car}" + (f", column {column}" if column else "")
            raise FloatingPointError(f"{owner}: {array[tuple(at)]} in the {what} of {where}")


def as_actions(owner: str, actions: object) -> NDArray[Any]:
    """Return `actions` as an array of numbers of any shape; a ValueError for anything else."""
    try:
        array = np.asarray(actions)
    except ValueError:  # rows of different lengths
        array = np.empty(0, object)
    if array.dtype.kind not in "biuf":
        raise ValueError(f"{owner}: actions must be an array of numbers, got {_kind_of(actions)}")
    return array


def check_actions(owner: str, actions: object, space: Space[Any], count: int) -> NDArray[Any]:
    """Return actions `[count, ...]` as an array: choices must be in `space`, numbers for a Box only finite.

    Raises:
        ValueError: Another type or shape, or an action outside the space; then the message names the sub-environment.
    """
    actions, expected = as_actions(owner, actions), (count, *(space.shape or ()))
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
            raise ValueError(f"{owner}: {actions[tuple(at)]} among the actions of sub-environment {at[0]}")
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


def from_class_path(class_path: str, kind: type[Any], inner: str = "") -> Any:  # noqa: ANN401 - an object of that kind
    """Create an object from a class path, without arguments except possibly `inner`.

    Args:
        class_path: For example `envs.AdvancedObs`, `AdvancedObs` or `my_module.MyObs`; `envs.` may be left out.
        kind: Required base class.
        inner: Class path of the component to wrap, for a class with a parameter `inner`.

    Raises:
        ValueError: There is no such class, it has another base class, or it needs other arguments.
    """
    path = class_path if "." in class_path or not class_path else f"{__package__}.{class_path}"
    module, _, name = path.rpartition(".")
    try:
        found = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise ValueError(f"no class {class_path!r} ({error})") from error
    if not (isinstance(found, type) and issubclass(found, kind)):
        raise ValueError(f"{class_path} is not a subclass of {kind.__name__}")
    wants_inner = inner and "inner" in inspect.signature(found).parameters
    arguments = [from_class_path(inner, kind)] if wants_inner else []
    try:
        return found(*arguments)
    except TypeError as error:
        raise ValueError(f"{class_path} cannot be built without arguments ({error})") from error


def _kind_of(actions: object) -> str:
    if isinstance(actions, np.ndarray):
        return f"an array of {actions.dtype}"
    if isinstance(actions, list | tuple):
        return f"a {type(actions).__name__} of other values"
    return describe_value(actions)


def team_sizes(team_size: Any) -> list[tuple[int, int]]:  # noqa: ANN401 - checked here
    """Return the (blue, orange) pairs that the arenas use in rotation.

    Raises:
        ValueError: Neither a number, nor a pair, nor a list of pairs; or a team size out of range.
    """
    turns: list[Any]
    if is_whole(team_size):
        turns = [(team_size, team_size)]
    elif isinstance(team_size, Sequence | np.ndarray) and not isinstance(team_size, str):
        turns = list(team_size)
        turns = [turns] if all(is_whole(size) for size in turns) else turns
    else:
        turns = [team_size]
    sizes = []
    for turn in turns:
        pair = list(turn) if isinstance(turn, Sequence | np.ndarray) and not isinstance(turn, str) else []
        fits = len(pair) == 2 and all(is_whole(size) and 0 <= size <= MAX_CARS_PER_TEAM for size in pair)
        if not fits or not sum(pair):
            raise ValueError(
                "RocketSimPool: team_size (--env.team_size) must be one number, [blue, orange] or a list of such "
                f"pairs, 0 to {MAX_CARS_PER_TEAM} cars a team and at least one in all, got {team_size!r}"
            )
        sizes.append((int(pair[0]), int(pair[1])))
    return sizes
