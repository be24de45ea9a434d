"""`Callback`, the hooks into the training loop, and `TrainState`, the state that they see."""

import copy
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from gymnasium.vector import VectorEnv
from lightning import Fabric

from fabric_rl.args import TrainArgs
from fabric_rl.base.seeding import SEED_SCHEME
from fabric_rl.base.state_schema import check_structure
from fabric_rl.types import ActorCritic, Minibatch


@dataclass
class TrainState:
    """State of a training run, which callbacks can read and partly change.

    Attributes:
        fabric: The Fabric of this rank.
        agent: The agent itself, not Fabric's wrapper; use it to play or to read the weights.
        env: This rank's environment.
        args: The settings of the run, with defaults filled in; `batch_size` is always set.
        model: The agent as wrapped by Fabric; only its `training_step` exchanges gradients between ranks.
        optimizer: The agent's optimizer as wrapped by Fabric.
        steps_per_iteration: Agent-steps per iteration, over all ranks.
        iterations: Number of iterations of the whole run.
        iteration: Number of finished iterations.
        steps: Agent-steps collected so far, over all ranks.
        metrics: Metrics of the last iteration, the same on every rank. Metrics that a callback adds on rank 0 before
            the log is written are logged too.
        sums: The metrics of the last iteration, without speeds, as (sum, count) over all ranks; use them to average
            over several iterations.
        stop: Set it to True on any rank to end training after this iteration; it is then set on every rank.
        asked_by: Name of the callback that set `stop` on this rank, for messages.
        stopped_by: Cause of an early end of training, for messages; the same on every rank.
        phase: Name of the phase of the latest iteration; milestones are filed under it.
        learning_rate: Set it to replace the optimizer's initial learning rate, for all its parameters; the schedule
            continues from it. None keeps the optimizer's.
        learning_rate_factor: Factor for all learning rates, in every phase and schedule; the same on all ranks.
        save: Set it to True on any rank to save a checkpoint after this iteration. A run resumed from it is equivalent,
            not bit-identical, as with any checkpoint on demand. Cleared after saving.
        minibatch_size: Steps per rank in one forward and backward pass. Between two iterations you can set it, to the
            same value on all ranks, to a divisor of `args.batch_size`; optimizer steps keep their size because
            gradients are accumulated.
        run_id: Name of the run; None if nothing is saved.
        folder: Folder of the run; None if nothing is saved.
        seed_scheme: Version of the seeds (`fabric_rl.base.seeding`): that of the checkpoint that the run resumed.
        learns: True if this rank trains; False on a rollout worker (`--num_players`).
        batch: The `[T * N]` steps that this rank has collected and learns from, available from `on_learn_start` to
            `on_iteration_end`. To replace it, return another batch from `on_learn_start`; do not modify it otherwise.
            For an `OffPolicyAgent`, its values, advantages and returns are undefined.
        peers: The Fabric of the ranks with the same `learns`; without `--num_players`, that of all ranks.
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
    seed_scheme: int = SEED_SCHEME
    batch: Minibatch | None = None
    peers: Any = None

    @property
    def done(self) -> bool:
        """True if the run has ended: all iterations are done, or it was stopped early."""
        return self.iteration >= self.iterations or self.stopped_by is not None

    @property
    def goes_on(self) -> bool:
        """True if another iteration follows the current one."""
        return self.iteration + 1 < self.iterations

    @property
    def progress(self) -> float:
        """Fraction of the run's steps that are done, 0 to 1."""
        left = max(0, self.iterations - self.iteration) * self.steps_per_iteration
        return self.steps / max(1, self.steps + left)

    def advance(self) -> None:
        """Count one finished iteration and its steps."""
        self.iteration += 1
        self.steps += self.steps_per_iteration


class Callback:
    """Base class of callbacks. Override the hooks that you need; every hook runs on every rank."""

    _in_state_dict: ClassVar[dict[str, str]] = {}
    """Key in `state_dict` -> name of the attribute stored under it."""
    comes_first: ClassVar[bool] = False
    """True for callbacks that measure something that others read in `state.metrics`: they are called before these."""

    def on_train_start(self, state: TrainState) -> None:
        """Called once before training, after agent and environment are built."""

    def on_iteration_start(self, state: TrainState) -> None:
        """Called before a rollout is collected, after the previous iteration was logged and saved."""

    def on_learn_start(self, state: TrainState) -> Minibatch | None:
        """Called before the agent learns from the collected rollout, `state.batch`.

        Return a batch to learn from it instead (of the same size on every rank), or None to keep `state.batch`. Not
        called with `--inference`.
        """

    def on_iteration_end(self, state: TrainState) -> None:
        """Called after learning, when the metrics are reduced and `state.metrics` is about to be logged."""

    def on_train_end(self, state: TrainState) -> None:
        """Called after the last iteration, also if the run was stopped early.

        If you wait for something here, stop waiting when `state.stop` is set.
        """

    def on_exception(self, state: TrainState, error: BaseException) -> None:
        """Called when training fails on this rank, before `error` is raised again; `on_train_end` is not called.

        A second Ctrl+C arrives as KeyboardInterrupt. Do not use collectives here, because other ranks may not know of
        the error yet.
        """

    def drain_metrics(self) -> dict[str, tuple[float, float]]:
        """Return this rank's metrics since the last call as name -> (sum, count).

        They are summed over the ranks and logged. The names must be the same on every rank and in every call.
        """
        return {}

    def state_dict(self) -> dict[str, Any]:
        """Return the callback's state for checkpoints: numbers, text, tensors, arrays, lists and dicts."""
        return {key: copy.copy(getattr(self, name)) for key, name in self._in_state_dict.items()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore the state that `state_dict` returned, when a run is resumed."""
        check_structure(state, {key: getattr(self, name) for key, name in self._in_state_dict.items()}, "it")
        for key, name in self._in_state_dict.items():
            setattr(self, name, copy.copy(state[key]))
