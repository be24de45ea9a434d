"""TrainArgs: the settings of the training loop."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class TrainArgs:
    """Settings of the training loop."""

    total_timesteps: int = 1_000_000
    """Agent-steps to collect over all ranks; the last rollout is always finished."""
    num_steps: int = 128
    """Steps per rollout and sub-environment (T)."""
    update_epochs: int = 10
    """Passes over each rollout."""
    minibatch_size: int | None = None
    """Steps per minibatch and rank: what goes through the networks at once. Default: a sixteenth of the rollout. What
    a whole number of minibatches leaves over is left out of that epoch; every epoch has a permutation of its own."""
    batch_size: int | None = None
    """Steps per optimizer step and rank, a multiple of the minibatch size: the gradients of several minibatches are
    added up, which needs the memory of one; at most a rollout. Default: one minibatch."""
    exp_buffer_size: int | None = None
    """Steps per rank to learn from: the newest rollouts that fit in, older ones with the log-probabilities, advantages
    and value targets of their time. Default: the newest rollout only."""
    gamma: float | tuple[float, ...] = 0.99
    """Discount; or one for each reward signal of the environment."""
    gae_lambda: float = 0.95
    """Lambda of the generalised advantage estimation."""
    normalize_advantages: bool = True
    """Normalise the advantages of each optimizer step to mean 0 and deviation 1, with statistics over all ranks."""
    standardize_returns: bool = False
    """Divide rewards by the running deviation of the discounted returns over all ranks, and clip them to +-10."""
    max_grad_norm: float = 0.5
    """Clip the norm of the gradient to this; 0 does not clip."""
    lr_schedule: Literal["constant", "linear", "cosine", "kl_adaptive"] = "linear"
    """How the learning rates go on from the optimizer's: to zero over the run (linear, cosine), or up and down by 1.5
    so that the policy's change in an epoch stays around `desired_kl` (kl_adaptive)."""
    desired_kl: float = 0.01
    """KL divergence between the policies before and after an epoch that `--lr_schedule kl_adaptive` aims at."""
    target_kl: float | None = None
    """Leave out the remaining epochs of an iteration, on all ranks alike, after one with a larger mean KL divergence.
    Default: never."""
    overlap: bool = False
    """Collect the next rollout while learning from the last one: faster where they need different hardware, with data
    that is one update old."""
    num_players: int = 0
    """The last so many ranks only play, on the CPU, and the others train, on the CPU or GPUs; players collect one
    rollout ahead, as with `overlap` (docs/machines.md). 0: every rank does both."""
    compile: bool = False
    """Compile the agent's act, value and training_step (torch.compile); needs a C++ compiler, and a minute at first."""
    seed: int = 0
    """Seed of weights, sampling and environments (sub-environment i of rank r: seed + r * n + i)."""

    def __post_init__(self) -> None:
        """Rejects settings that cannot work."""
        for name in (
            "total_timesteps",
            "num_steps",
            "update_epochs",
            "minibatch_size",
            "batch_size",
            "exp_buffer_size",
        ):
            number = getattr(self, name)
            if number is not None and number < 1:
                raise ValueError(f"--{name} must be at least 1, got {number}")
        if self.num_players < 0:
            raise ValueError(f"--num_players must not be negative, got {self.num_players}")
        if self.num_players and self.overlap:
            raise ValueError("--num_players always collects one rollout ahead; leave --overlap out")
        if self.lr_schedule not in ("constant", "linear", "cosine", "kl_adaptive"):
            raise ValueError(f"--lr_schedule {self.lr_schedule}: choose constant, linear, cosine or kl_adaptive")
        for name, share in (*(("gamma", gamma) for gamma in self.gammas), ("gae_lambda", self.gae_lambda)):
            if not 0 <= share <= 1:
                raise ValueError(f"--{name} must be between 0 and 1, got {share}")
        if not self.gammas:
            raise ValueError("--gamma needs at least one discount")
        if not self.max_grad_norm >= 0:
            raise ValueError(f"--max_grad_norm must not be negative, got {self.max_grad_norm}")
        for name in ("target_kl", "desired_kl"):
            number = getattr(self, name)
            if number is not None and not number > 0:
                raise ValueError(f"--{name} must be positive, got {number}")

    @property
    def gammas(self) -> tuple[float, ...]:
        """The discounts: one, or one for each reward signal."""
        return tuple(self.gamma) if isinstance(self.gamma, Sequence) else (self.gamma,)

    def minibatch_for(self, rollout_steps: int, sequence_length: int = 1) -> int:
        """The minibatch size for a rollout of so many steps on one rank.

        Args:
            rollout_steps: Steps of all sub-environments of this rank.
            sequence_length: Steps that an agent with memory needs in one piece.

        Raises:
            ValueError: Rollout, minibatch, batch and experience buffer do not fit together.
        """
        default = max(sequence_length, rollout_steps // 16 // sequence_length * sequence_length)
        size = self.minibatch_size or min(default, self.batch_size or default)
        if size > rollout_steps:
            raise ValueError(
                f"--minibatch_size {size} is larger than the rollout of one rank, {rollout_steps} steps "
                f"(--num_steps {self.num_steps} x {rollout_steps // self.num_steps} sub-environments)"
            )
        if size % sequence_length:
            raise ValueError(
                f"--minibatch_size {size} must be a multiple of --agent.sequence_length {sequence_length}, which an "
                "agent with memory learns from in one piece"
            )
        batch = self.batch_size or size
        if batch % size:
            raise ValueError(f"--batch_size {batch} must be a multiple of --minibatch_size {size}")
        self.rollouts_kept(rollout_steps)
        if batch > rollout_steps:  # in the first iteration nothing else is there, whatever --exp_buffer_size
            raise ValueError(
                f"--batch_size {batch} is larger than the rollout of one rank, {rollout_steps} steps "
                f"(--num_steps {self.num_steps} x {rollout_steps // self.num_steps} sub-environments)"
            )
        return size

    def rollouts_kept(self, rollout_steps: int) -> int:
        """How many rollouts of so many steps the experience buffer holds.

        Raises:
            ValueError: None fits in.
        """
        if self.exp_buffer_size is None:
            return 1
        if self.exp_buffer_size < rollout_steps:
            raise ValueError(
                f"--exp_buffer_size {self.exp_buffer_size} is smaller than the rollout of one rank, "
                f"{rollout_steps} steps"
            )
        return self.exp_buffer_size // rollout_steps
