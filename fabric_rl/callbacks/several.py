"""Callbacks: several callbacks as one."""

import warnings
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, TypeVar, cast

from fabric_rl.callback import Callback, TrainState
from fabric_rl.types import Minibatch

Hook = TypeVar("Hook", bound=Callable[..., None])


def _of_all(hook: Hook) -> Hook:
    """Calls this hook of every part, in order."""

    @wraps(hook)
    def call(self: "Callbacks", *args: object) -> None:
        for part in self.parts.values():
            getattr(part, hook.__name__)(*args)

    return cast(Hook, call)


class Callbacks(Callback):
    """Several callbacks as one.

    Attributes:
        parts: Name -> callback, called in this order; checkpoints store the state of each callback under its name.
    """

    def __init__(self, parts: Mapping[str, Callback]) -> None:
        self.parts = dict(parts)
        self._of_others: dict[str, Any] = {}

    on_train_start = _of_all(Callback.on_train_start)
    on_iteration_start = _of_all(Callback.on_iteration_start)
    on_iteration_end = _of_all(Callback.on_iteration_end)
    on_train_end = _of_all(Callback.on_train_end)
    on_exception = _of_all(Callback.on_exception)

    def on_learn_start(self, state: TrainState) -> Minibatch | None:
        """Return the batch of the last callback that returns one; callbacks after it see that batch."""
        chosen = None
        for part in self.parts.values():
            other = part.on_learn_start(state)
            if other is not None:
                state.batch = chosen = other
        return chosen

    def drain_metrics(self) -> dict[str, tuple[float, float]]:
        """Return the metrics of all parts."""
        return {name: pair for part in self.parts.values() for name, pair in part.drain_metrics().items()}

    def state_dict(self) -> dict[str, Any]:
        """Return the state of all parts, and the saved state of parts that are missing in this run."""
        return self._of_others | {name: part.state_dict() for name, part in self.parts.items()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore the state that `state_dict` returned; callbacks that are not in it start anew."""
        self._of_others = {name: kept for name, kept in state.items() if name not in self.parts}
        for name, part in self.parts.items():
            if name in state:
                part.load_state_dict(state[name])
            elif part.state_dict():
                warnings.warn(f"nothing was saved of {name}, which starts again", RuntimeWarning, stacklevel=2)
