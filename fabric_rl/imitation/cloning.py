"""Cloning: behavioural cloning beside PPO, a little after each of its updates."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from fabric_rl.base.settings import Count, CountOrZero, NonNegative, check_settings
from fabric_rl.callback import Callback, TrainState
from fabric_rl.imitation.batches import Trajectory, check_imitates, learn_pass, shown
from fabric_rl.learning.imitation import Shown
from fabric_rl.learning.learner import load_optimizer
from fabric_rl.ranks.devices import is_small, one_thread
from fabric_rl.ranks.sharding import is_sharded
from fabric_rl.types import NonFiniteError


@dataclass(eq=False, repr=False)
class Cloning(Callback):
    """After each update of PPO the agent learns what demonstrations show, with an Adam of its own.

    Its learning rate is `strength` times the agent's, and falls in a line to 0 over `steps`; then it is over.
    """

    demos: Sequence[str]
    """Files that `fabric-rl demos` makes."""
    strength: NonNegative = 1.0
    """Factor for the agent's learning rate."""
    steps: Count | None = None
    """Agent-steps (over all ranks) after which cloning ends. Default: it never ends, and its rate stays."""
    samples_per_update: CountOrZero = 0
    """Steps of the demonstrations, drawn anew for each pass. 0: all of them."""
    num_epoch: Count | None = None
    """Passes in each update. Default: `--update_epochs`."""
    batch_size: Count | None = None
    """Steps per optimizer step and rank. Default: `--batch_size`."""
    soft_labels: bool = False
    """Count what lies between two rows of an action table for both of them, not for the nearer one alone."""

    def __post_init__(self) -> None:
        check_settings(self)
        self._trajectories: Sequence[Trajectory] = ()
        self._saved: dict[str, Any] | None = None
        self._optimizer: Any = None

    def show(self, trajectories: Sequence[Trajectory]) -> "Cloning":
        """Takes what the demonstrations hold, as `fabric_rl.evaluation.demonstrations.trajectories_of` reads them."""
        self._trajectories = trajectories
        return self

    def on_train_start(self, state: TrainState) -> None:
        """Builds the optimizer.

        Raises:
            ValueError: There is nothing to learn from, or the agent is sharded.
            TypeError: An agent that cannot imitate.
        """
        check_imitates(state.agent, "--cloning")
        if is_sharded(state.agent):
            raise ValueError("--strategy fsdp: an agent that clones cannot be sharded; use ddp")
        if not self._trajectories:
            raise ValueError("--cloning: nothing is shown; name files with --cloning.demos, or call show()")
        if not state.learns:
            return
        self._shown: Shown = shown(self._trajectories, state.agent)
        state.model.mark_forward_method("imitate")
        self._rate = self.strength * state.optimizer.param_groups[0]["lr"]
        self._optimizer = state.fabric.setup_optimizers(
            torch.optim.Adam(state.agent.parameters(), self._rate, eps=1e-5)
        )
        if self._saved is not None:
            load_optimizer(self._optimizer, self._saved, "--cloning")

    def on_iteration_end(self, state: TrainState) -> None:
        """Learns; an order of its own for every update and rank."""
        left = 1.0 if self.steps is None else max(0.0, 1 - state.steps / self.steps)
        state.metrics |= {"cloning/learning_rate": 0.0, "cloning/loss": 0.0}
        if self._optimizer is None or not left * self.strength:
            return
        rate = self._optimizer.param_groups[0]["lr"] = self._rate * left
        length, fabric = state.agent.sequence_length, state.fabric
        own_seed = state.args.seed * 2**31 + state.steps * fabric.world_size + fabric.global_rank
        draws = torch.Generator().manual_seed(own_seed)
        most = max(1, self.samples_per_update // length) if self.samples_per_update else self._shown.size
        size = max(1, (self.batch_size or state.args.batch_size or self._shown.size) // length)
        losses = []
        with one_thread(if_small=is_small(state.agent, size * length)):
            for _ in range(self.num_epoch or state.args.update_epochs):
                rows = torch.randperm(self._shown.size, generator=draws)[:most]
                passed = (fabric, state.model, self._optimizer, self._shown, rows, size, state.args.max_grad_norm)
                losses.append(learn_pass(*passed))
        loss = sum(losses) / len(losses)
        if not math.isfinite(loss):
            raise NonFiniteError(f"--cloning: the loss became {loss}")
        state.metrics |= {"cloning/learning_rate": rate, "cloning/loss": loss}

    def state_dict(self) -> dict[str, Any]:
        return {"optimizer": self._saved or {} if self._optimizer is None else self._optimizer.state_dict()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        super().load_state_dict(state)
        self._saved = state["optimizer"] or None
