"""Stateful: how the components of a pool are saved with it."""

import math
from typing import Any, ClassVar

import numpy as np

from envs.checks import is_whole
from envs.saved import check_like, within

NOT_NEGATIVE = (0.0, math.inf)


class Stateful:
    """A component that may remember something between steps.

    One that does names what it is in `_in_state_dict`, or has both methods itself.
    """

    _in_state_dict: ClassVar[dict[str, str]] = {}
    """Key in `state_dict` -> attribute: a number, text or array, another component, or several of these."""
    _state_bounds: ClassVar[dict[str, tuple[float, float]]] = {}
    """Key in `state_dict` -> the least and the greatest number that there can be."""

    def state_dict(self) -> dict[str, Any]:
        """Copies of what it remembers, as numbers and arrays, for an exact resume; nothing by default."""
        return {key: _copied(getattr(self, name)) for key, name in self._in_state_dict.items()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Takes what `state_dict` gave; a ValueError if it came from a component of another shape, or cannot be."""
        owner = type(self).__name__
        check_like(state, self.state_dict(), f"{owner}: its state")
        if missing := self._in_state_dict.keys() - state.keys():
            raise ValueError(f"{owner}: its state lacks {', '.join(sorted(missing))}")
        for key, name in self._in_state_dict.items():
            if type(getattr(self, name)) is int and not is_whole(state[key]):
                raise ValueError(f"{owner}: {key} must be a whole number, got {state[key]!r}")
        for key, (low, high) in self._state_bounds.items():
            within(f"{owner}: {key}", state[key], low, high)
        for key, name in self._in_state_dict.items():
            setattr(self, name, _restored(getattr(self, name), state[key]))


def _copied(value: Any) -> Any:  # noqa: ANN401 - see Stateful._in_state_dict
    if isinstance(value, Stateful):
        return value.state_dict()
    if isinstance(value, dict):
        return {name: _copied(part) for name, part in value.items()}
    if isinstance(value, tuple):
        return [_copied(part) for part in value]
    return value.copy() if isinstance(value, np.ndarray) else value


def _restored(value: Any, saved: Any) -> Any:  # noqa: ANN401 - see Stateful._in_state_dict
    """What `_copied` made `saved` of; components stay the objects that they are."""
    if isinstance(value, Stateful):
        value.load_state_dict(saved)
        return value
    if isinstance(value, dict):
        return {name: _restored(part, saved[name]) for name, part in value.items()}
    if isinstance(value, tuple):
        return tuple(_restored(part, inner) for part, inner in zip(value, saved, strict=True))
    if isinstance(value, np.ndarray):
        return np.array(saved, value.dtype)
    return type(value)(saved) if isinstance(value, int | float) else saved
