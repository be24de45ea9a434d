"""Callback: the hooks into the training loop; TrainState: what they see."""

import copy
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from gymnasium.vector import VectorEnv
from lightning import Fabric

from fabric_rl.args import TrainArgs
from fabric_rl.form import check
from fabric_rl.types import ActorCritic, Minibatch


@dataclass
class TrainState:
    """The state of a training run, as callbacks see it.

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
        asked_by: The callback that has set `stop` on this rank, for people.
        stopped_by: What has ended training before its last iteration, for people; the same on every rank.
        phase: What the run works on, a name for milestones.
        learning_rate: Set it to have another initial learning rate than the optimizer's, for all its parameters; the
            schedule continues from it. None keeps the optimizer's.
        learning_rate_factor: Multiplies all learning rates, whatever phase or schedule they are of; the same on all
            ranks.
        save: Set it on any rank to get a checkpoint after this iteration; a run resumed from it is equivalent, not
            bit-identical, as from any checkpoint on demand. Cleared once that is done.
        minibatch_size: Steps per rank that go through the networks at once. May be changed between two iterations,
            on all ranks alike, to a divisor of `args.batch_size`: optimizer steps keep their size, since gradients are
            added up.
        run_id: Name of the run; None where nothing is kept.
        folder: Of the run, likewise.
        learns: This rank trains; False on a player (`--num_players`).
        batch: What this rank has collected and learns from, `[T * N]` steps, from `on_learn_start` to
            `on_iteration_end`; `on_learn_start` may return another one, nothing else may change it. Of an
            `OffPolicyAgent` its values, advantages and returns mean nothing.
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
    asked_by: str | None = None
    stopped_by: str | None = None
    phase: str = "main"
    learning_rate: float | None = None
    learning_rate_factor: float = 1.0
    save: bool = False
    minibatch_size: int = 0
    run_id: str | None = None
    folder: Path | None = None
    learns: bool = True
    batch: Minibatch | None = None

    @property
    def done(self) -> bool:
        """True if the run has ended: all iterations are done, or something has stopped it."""
        return self.iteration >= self.iterations or self.stopped_by is not None

    @property
    def goes_on(self) -> bool:
        """True if another iteration follows the current one."""
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

    _in_state_dict: ClassVar[dict[str, str]] = {}
    """Key in `state_dict` -> attribute to be kept there."""
    _form: ClassVar[Any] = {}
    """What has to be there, see `fabric_rl.form.check`."""

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
        """After the last iteration, also when the run was stopped; who waits here stops when `state.stop` is set."""

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
        """Return the callback's state for checkpoints: numbers, text, tensors, arrays, lists and dicts."""
        return {key: copy.copy(getattr(self, name)) for key, name in self._in_state_dict.items()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore what `state_dict` returned, when a run is resumed."""
        check(state, self._form, "it")
        for key, name in self._in_state_dict.items():
            setattr(self, name, copy.copy(state[key]))
