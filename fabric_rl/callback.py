"""Callback: the hooks into the training loop, and TrainState: what they see."""

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from gymnasium.vector import VectorEnv
from lightning import Fabric

from fabric_rl.types import ActorCritic, Minibatch

if TYPE_CHECKING:
    from fabric_rl.args import TrainArgs


@dataclass
class TrainState:
    """What callbacks see.

    Attributes:
        fabric: The Fabric of this rank.
        agent: The bare module.
        env: This rank's environment.
        args: The settings of the run; `batch_size` is always given, defaults are worked out.
        iteration: Iterations finished.
        steps: Agent-steps collected so far, over all ranks.
        metrics: Metrics of the last iteration, the same on every rank; what a callback adds on rank 0 before the log
            is written is logged too.
        sums: The same as (sum, count) over all ranks, without speeds; for figures over several iterations.
        stop: Set it on any rank to end training after this iteration; then it is set on every rank.
        signalled: A stop signal has come.
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
            `on_iteration_end`; not to be changed.
    """

    fabric: Fabric
    agent: ActorCritic
    env: VectorEnv
    args: "TrainArgs"
    iteration: int = 0
    steps: int = 0
    metrics: dict[str, float] = field(default_factory=dict)
    sums: dict[str, tuple[float, float]] = field(default_factory=dict)
    stop: bool = False
    signalled: bool = False
    phase: str = "main"
    learning_rate: float | None = None
    save: bool = False
    minibatch_size: int = 0
    run_id: str | None = None
    learns: bool = True
    batch: Minibatch | None = None


class Callback:
    """Override what you need; every hook runs on every rank."""

    def on_train_start(self, state: TrainState) -> None:
        """Everything is built, nothing is collected yet."""

    def on_iteration_start(self, state: TrainState) -> None:
        """The iteration before is logged and saved; the next rollout is about to be collected."""

    def on_learn_start(self, state: TrainState) -> None:
        """The rollout is collected; learning from it is about to begin. Not called with `--inference`."""

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


def drained(callback: Callback) -> dict[str, tuple[float, float]]:
    """What `callback.drain_metrics` gives.

    Raises:
        TypeError: Something that is no sum and count.
    """
    metrics = callback.drain_metrics()
    where = f"--callbacks {type(callback).__name__}.drain_metrics()"
    if not isinstance(metrics, dict):
        raise TypeError(f"{where}: must return a dict of name -> (sum, count), got {type(metrics).__name__}")
    for name, pair in metrics.items():
        if not (isinstance(pair, tuple | list) and len(pair) == 2 and all(hasattr(x, "__float__") for x in pair)):
            raise TypeError(f"{where}: {name} must be two numbers (sum, count), got {pair!r}")
    return metrics


@contextmanager
def failures_told(state: TrainState, callbacks: Sequence[Callback]) -> Iterator[None]:
    """Calls `on_exception` of all callbacks when the block fails; the error is raised on whatever they do."""
    try:
        yield
    except BaseException as error:
        for callback in callbacks:
            try:
                callback.on_exception(state, error)
            except Exception as another:  # must not hide what went wrong first
                message = f"{type(callback).__name__}.on_exception() failed ({type(another).__name__}: {another})"
                warnings.warn(message, RuntimeWarning, stacklevel=2)
        raise
