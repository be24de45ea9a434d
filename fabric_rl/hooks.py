"""`Hooks` calls all callbacks of a run; `Callbacks` is a composite callback for users."""

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import wraps
from types import TracebackType
from typing import Any, TypeVar, cast

from fabric_rl.base.state_schema import state_error_context
from fabric_rl.callback import Callback, TrainState
from fabric_rl.metrics.log import logger
from fabric_rl.ranks.collectives import raised_on_all_ranks
from fabric_rl.ranks.sharding import unsharded
from fabric_rl.types import EnvFactory, Minibatch


class Hooks:
    """All callbacks of a run, called in order, first those that come first; a context manager around training.

    Entering it calls `on_train_start`; an exception in the block calls `on_exception`. In `on_train_start`,
    `on_iteration_end` and `on_train_end`, a sharded agent is gathered, so that a callback may play on a single rank.
    """

    def __init__(self, state: TrainState, callbacks: Sequence[Callback], learns: bool = True) -> None:
        self.state, self.learns = state, learns
        self.callbacks = tuple(sorted(callbacks, key=lambda each: not each.comes_first))

    def __enter__(self) -> "Hooks":
        """Call `on_train_start`; raise a ValueError of one rank on all ranks."""
        try:
            with unsharded(self.state.agent):
                for callback in self.callbacks:
                    # only players have environments to check
                    with raised_on_all_ranks(self.state.fabric), self._noted(callback):
                        callback.on_train_start(self.state)
        except BaseException as error:
            self.__exit__(type(error), error, None)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Call `on_exception` of all callbacks if training failed; their own failures only cause warnings."""
        if error is None:
            return
        for callback in self.callbacks:
            try:
                callback.on_exception(self.state, error)
            except Exception as another:  # must not hide the first error
                message = f"{type(callback).__name__}.on_exception() failed ({type(another).__name__}: {another})"
                warnings.warn(message, RuntimeWarning, stacklevel=2)

    @contextmanager
    def _noted(self, callback: Callback) -> Iterator[None]:
        """Note the name of the callback that stops training."""
        stopping = self.state.stop
        yield
        if self.state.stop and not stopping:
            self.state.asked_by = type(callback).__name__

    def on_iteration_start(self) -> None:
        """Call the hook before a rollout is collected."""
        for callback in self.callbacks:
            with self._noted(callback):
                callback.on_iteration_start(self.state)

    def on_learn_start(self, batch: Minibatch) -> Minibatch:
        """Return the batch to learn from; call the hook only in a run that learns."""
        self.state.batch = batch
        for callback in self.callbacks if self.learns else ():
            with self._noted(callback):
                other = callback.on_learn_start(self.state)
            if other is not None:
                self.state.batch = batch = _checked(other, callback)
        return batch

    def on_iteration_end(self) -> None:
        """Call the hook after learning, and drop the batch."""
        for callback in self.callbacks:
            with unsharded(self.state.agent), self._noted(callback):  # for each: saving the agent shards it again
                callback.on_iteration_end(self.state)
        self.state.batch = None

    def on_train_end(self) -> None:
        """Call the hook at the end of a run that did not fail."""
        with unsharded(self.state.agent):
            for callback in self.callbacks:
                callback.on_train_end(self.state)

    def drain_metrics(self) -> dict[str, tuple[float, float]]:
        """Return the metrics of all callbacks since the last call, as (sum, count) of this rank."""
        return {name: pair for callback in self.callbacks for name, pair in _drained(callback).items()}

    def state_dict(self) -> dict[str, Any]:
        """Return the states of all callbacks, in order, and their names."""
        return {
            "callbacks": [callback.state_dict() for callback in self.callbacks],
            "callback_names": [type(callback).__qualname__ for callback in self.callbacks],
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore each callback from the saved state with its class name; callbacks may be added, removed or reordered.

        Saved states without a callback are logged.

        Raises:
            ValueError: A state does not fit its callback.
        """
        kept = list(zip(state["callback_names"], state["callbacks"], strict=True))
        for callback in self.callbacks:
            same = next((pair for pair in kept if pair[0] == type(callback).__qualname__), None)
            if same is not None:
                with state_error_context(f"the saved state of {same[0]}"):
                    callback.load_state_dict(same[1])
                kept.remove(same)
        for name in (name for name, saved in kept if saved):
            logger.info("%s is in the checkpoint, but not in this run, which continues without it", name)


def _checked(batch: Any, callback: Callback) -> Minibatch:  # noqa: ANN401 - whatever was returned
    """Return the batch of `on_learn_start`; raise a TypeError or ValueError if it is not a valid minibatch."""
    where = f"--callbacks {type(callback).__name__}.on_learn_start()"
    if not isinstance(batch, Minibatch):
        raise TypeError(f"{where} must return a fabric_rl.Minibatch or None, got {type(batch).__name__}")
    axes = 1 if batch.episode_start is None else 2  # [B], or [L, S]
    steps = {name: list(x.shape[:axes]) for name, x in batch._asdict().items() if x is not None}
    for name in ("state", "burn_in_obs", "burn_in_start"):
        steps.pop(name, None)
    other = next((name for name, shape in steps.items() if shape != steps["returns"]), None)
    if other is not None:
        raise ValueError(f"{where}: {other} has {steps[other]} steps, but returns has {steps['returns']}")
    return batch


def _drained(callback: Callback) -> dict[str, tuple[float, float]]:
    """Return the metrics of a callback since the last call; raise a TypeError unless they are pairs (sum, count)."""
    metrics = callback.drain_metrics()
    where = f"--callbacks {type(callback).__name__}.drain_metrics()"
    if not isinstance(metrics, dict):
        raise TypeError(f"{where} must return a dict of name -> (sum, count), got {type(metrics).__name__}")
    for name, pair in metrics.items():
        if not (isinstance(pair, tuple | list) and len(pair) == 2 and all(hasattr(x, "__float__") for x in pair)):
            raise TypeError(f"{where}: {name} must be two numbers (sum, count), got {pair!r}")
    return metrics


Hook = TypeVar("Hook", bound=Callable[..., None])


def _call_all(hook: Hook) -> Hook:
    """Return a method that calls the hook of every callback, in order."""

    @wraps(hook)
    def call(self: "Callbacks", *args: object) -> None:
        for part in self.parts.values():
            getattr(part, hook.__name__)(*args)

    return cast(Hook, call)


class Callbacks(Callback):
    """Several callbacks combined into one, with one place in the order: `comes_first` of its parts has no effect.

    Attributes:
        parts: Name -> callback, called in this order; checkpoints store the state of each callback under its name.
    """

    def __init__(self, parts: Mapping[str, Callback]) -> None:
        self.parts = dict(parts)
        self._of_others: dict[str, Any] = {}

    def play_in(self, env: EnvFactory) -> None:
        """Let parts that play in separate environments, such as `Evaluation`, use the run's environment by default."""
        for part in self.parts.values():
            if hasattr(part, "play_in"):
                part.play_in(env)

    on_train_start = _call_all(Callback.on_train_start)
    on_iteration_start = _call_all(Callback.on_iteration_start)
    on_iteration_end = _call_all(Callback.on_iteration_end)
    on_train_end = _call_all(Callback.on_train_end)
    on_exception = _call_all(Callback.on_exception)

    def on_learn_start(self, state: TrainState) -> Minibatch | None:
        """Return the batch of the last callback that returns one; callbacks after it see that batch."""
        chosen = None
        for part in self.parts.values():
            other = part.on_learn_start(state)
            if other is not None:
                state.batch = chosen = other
        return chosen

    def drain_metrics(self) -> dict[str, tuple[float, float]]:
        return {name: pair for part in self.parts.values() for name, pair in part.drain_metrics().items()}

    def state_dict(self) -> dict[str, Any]:
        """Return the states of all callbacks, and the saved states of callbacks that are missing in this run."""
        return self._of_others | {name: part.state_dict() for name, part in self.parts.items()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore the state that `state_dict` returned; callbacks that are not in it start from scratch."""
        self._of_others = {name: kept for name, kept in state.items() if name not in self.parts}
        for name, part in self.parts.items():
            if name in state:
                part.load_state_dict(state[name])
            elif part.state_dict():
                warnings.warn(f"{name} has no saved state and starts from scratch", RuntimeWarning, stacklevel=2)
