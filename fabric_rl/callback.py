"""Callback: the hooks into the training loop; TrainState: what they see; Hooks: all callbacks of a run as one."""

import warnings
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any

from gymnasium.vector import VectorEnv
from lightning import Fabric

from fabric_rl.args import TrainArgs
from fabric_rl.ranks.collectives import raised_on_all_ranks
from fabric_rl.ranks.sharding import gathered
from fabric_rl.types import ActorCritic, Minibatch


@dataclass
class TrainState:
    """What callbacks see.

    Attributes:
        fabric: The Fabric of this rank.
        agent: The bare module: play with it, read its weights.
        env: This rank's environment.
        args: The settings of the run; `batch_size` is always given, defaults are worked out.
        model: What Fabric made of the agent: only its `training_step` exchanges gradients between ranks.
        optimizer: What Fabric made of the agent's optimizer.
        steps_per_iteration: Agent-steps of all ranks.
        iterations: Of the whole run.
        iteration: Iterations finished.
        steps: Agent-steps collected so far, over all ranks.
        metrics: Metrics of the last iteration, the same on every rank; what a callback adds on rank 0 before the log
            is written is logged too.
        sums: The same as (sum, count) over all ranks, without speeds; for figures over several iterations.
        stop: Set it on any rank to end training after this iteration; then it is set on every rank.
        stopped_by: What has ended training before its last iteration, for people; the same on every rank.
        phase: What the run works on, a name for milestones.
        learning_rate: Set it to have another initial learning rate than the optimizer's, for all its parameters; the
            schedule goes on from it. None keeps the optimizer's.
        save: Set it on any rank to get a checkpoint after this iteration; a run resumed from it is equivalent, not
            bit-identical, as from any checkpoint on demand. Cleared once that is done.
        minibatch_size: Steps per rank that go through the networks at once. May be changed between two iterations,
            on all ranks alike, to a divisor of `args.batch_size`: optimizer steps keep their size, since gradients are
            added up.
        run_id: Name of the run; None where nothing is kept.
        learns: This rank trains; False on a player (`--num_players`).
        batch: What this rank has collected and learns from, `[T * N]` steps, from `on_learn_start` to
            `on_iteration_end`; `on_learn_start` may return another one, nothing else may change it.
    """

    fabric: Fabric
    agent: ActorCritic
    env: VectorEnv
    args: TrainArgs
    model: Any = None
    optimizer: Any = None
    steps_per_iteration: int = 0
    iterations: int = 0
    iteration: int = 0
    steps: int = 0
    metrics: dict[str, float] = field(default_factory=dict)
    sums: dict[str, tuple[float, float]] = field(default_factory=dict)
    stop: bool = False
    stopped_by: str | None = None
    phase: str = "main"
    learning_rate: float | None = None
    save: bool = False
    minibatch_size: int = 0
    run_id: str | None = None
    learns: bool = True
    batch: Minibatch | None = None

    @property
    def done(self) -> bool:
        """Whether the run has ended: all its iterations are done, or something has stopped it."""
        return self.iteration >= self.iterations or self.stopped_by is not None

    @property
    def goes_on(self) -> bool:
        """Whether another iteration is to follow the running one."""
        return self.iteration + 1 < self.iterations

    @property
    def progress(self) -> float:
        """The part of the run's steps that is done, 0 to 1."""
        left = max(0, self.iterations - self.iteration) * self.steps_per_iteration
        return self.steps / max(1, self.steps + left)

    def advance(self) -> None:
        """An iteration is done."""
        self.iteration += 1
        self.steps += self.steps_per_iteration


class Callback:
    """Override what you need; every hook runs on every rank."""

    def on_train_start(self, state: TrainState) -> None:
        """Everything is built, nothing is collected yet."""

    def on_iteration_start(self, state: TrainState) -> None:
        """The iteration before is logged and saved; the next rollout is about to be collected."""

    def on_learn_start(self, state: TrainState) -> Minibatch | None:
        """The rollout is collected; learning from it, as `state.batch`, is about to begin.

        Not called with `--inference`. What it returns is learned from instead (on every rank as many steps); None
        leaves the batch as it is.
        """

    def on_iteration_end(self, state: TrainState) -> None:
        """Collected, learned and reduced; `state.metrics` is about to be logged."""

    def on_train_end(self, state: TrainState) -> None:
        """After the last iteration, also when the run was stopped."""

    def on_exception(self, state: TrainState, error: BaseException) -> None:
        """Training has failed on this rank with `error`, which is raised on; `on_train_end` will not be called.

        A second Ctrl+C comes as KeyboardInterrupt. Other ranks may not know yet: no collectives here.
        """

    def drain_metrics(self) -> dict[str, tuple[float, float]]:
        """Metrics of this rank since the last call as name -> (sum, count); summed over the ranks and logged.

        The names must be the same on every rank and every call.
        """
        return {}

    def state_dict(self) -> dict[str, Any]:
        """What the callback remembers, as numbers, text, tensors, arrays, lists and dicts; goes into checkpoints."""
        return {}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Takes what `state_dict` gave, when a run goes on."""


class Hooks:
    """All callbacks of a run, called in order; around training it is a context manager.

    Entering it is `on_train_start`, an exception that leaves it `on_exception`. All weights of a sharded agent are
    there in `on_train_start`, `on_iteration_end` and `on_train_end`, so that a callback may play on one rank alone.
    """

    def __init__(self, state: TrainState, callbacks: Sequence[Callback]) -> None:
        """Takes what the callbacks will see."""
        self.state, self.callbacks = state, tuple(callbacks)
        self._failing = ExitStack()

    def __enter__(self) -> "Hooks":
        """Calls `on_train_start`; a ValueError of one rank is raised on all of them."""
        with ExitStack() as stack:
            stack.enter_context(self._failures_told())
            with gathered(self.state.agent):
                for callback in self.callbacks:
                    with raised_on_all_ranks(self.state.fabric):  # one may look at the environment of players only
                        callback.on_train_start(self.state)
            self._failing = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Calls `on_exception` if training has failed."""
        self._failing.__exit__(kind, error, trace)

    def on_iteration_start(self) -> None:
        """Before a rollout is collected."""
        for callback in self.callbacks:
            callback.on_iteration_start(self.state)

    def on_learn_start(self, batch: Minibatch) -> Minibatch:
        """Before learning; returns what to learn from."""
        self.state.batch = batch
        for callback in self.callbacks:
            other = callback.on_learn_start(self.state)
            if other is not None:
                self.state.batch = batch = _checked(other, callback)
        return batch

    def on_iteration_end(self) -> None:
        """After learning; the batch is gone then."""
        with gathered(self.state.agent):
            for callback in self.callbacks:
                callback.on_iteration_end(self.state)
        self.state.batch = None

    def on_train_end(self) -> None:
        """At the end of a run that did not fail."""
        with gathered(self.state.agent):
            for callback in self.callbacks:
                callback.on_train_end(self.state)

    def drain_metrics(self) -> dict[str, tuple[float, float]]:
        """Metrics of all callbacks since the last call, as (sum, count) of this rank."""
        return {name: pair for callback in self.callbacks for name, pair in _drained(callback).items()}

    def state_dict(self) -> dict[str, Any]:
        """What the callbacks remember, in order, and their names."""
        return {
            "callbacks": [callback.state_dict() for callback in self.callbacks],
            "callback_names": [type(callback).__qualname__ for callback in self.callbacks],
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Gives each callback what one of its name remembered: there may be others now, or in another order."""
        kept = list(zip(state["callback_names"], state["callbacks"], strict=True))
        for callback in self.callbacks:
            same = next((pair for pair in kept if pair[0] == type(callback).__qualname__), None)
            if same is not None:
                callback.load_state_dict(same[1])
                kept.remove(same)

    @contextmanager
    def _failures_told(self) -> Iterator[None]:
        """Calls `on_exception` of all callbacks when the block fails; the error is raised on whatever they do."""
        try:
            yield
        except BaseException as error:
            for callback in self.callbacks:
                try:
                    callback.on_exception(self.state, error)
                except Exception as another:  # must not hide what went wrong first
                    message = f"{type(callback).__name__}.on_exception() failed ({type(another).__name__}: {another})"
                    warnings.warn(message, RuntimeWarning, stacklevel=2)
            raise


class HooksOfInference(Hooks):
    """The same for a run that learns nothing."""

    def on_learn_start(self, batch: Minibatch) -> Minibatch:
        """Calls nobody."""
        self.state.batch = batch
        return batch


def _checked(batch: Any, callback: Callback) -> Minibatch:  # noqa: ANN401 - whatever was returned
    if not isinstance(batch, Minibatch):
        name, got = type(callback).__name__, type(batch).__name__
        raise TypeError(f"--callbacks {name}.on_learn_start(): must return a fabric_rl.Minibatch or None, got {got}")
    return batch


def _drained(callback: Callback) -> dict[str, tuple[float, float]]:
    """What `callback.drain_metrics` gives; a TypeError for something that is no sum and count."""
    metrics = callback.drain_metrics()
    where = f"--callbacks {type(callback).__name__}.drain_metrics()"
    if not isinstance(metrics, dict):
        raise TypeError(f"{where}: must return a dict of name -> (sum, count), got {type(metrics).__name__}")
    for name, pair in metrics.items():
        if not (isinstance(pair, tuple | list) and len(pair) == 2 and all(hasattr(x, "__float__") for x in pair)):
            raise TypeError(f"{where}: {name} must be two numbers (sum, count), got {pair!r}")
    return metrics
