"""Settings of a run: frozen dataclasses whose field docstrings are the help of the command line."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from fabric_rl.base.settings import (
    Between,
    Count,
    CountOrZero,
    NonNegative,
    Positive,
    Share,
    check_settings,
    check_value,
)
from fabric_rl.base.text import escape_control_characters

_NOT_IN_NAMES = re.compile(r'[<>:"/\\|?*]|[. ]$')  # of files on Windows
_DEVICES = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)(\..*)?", re.IGNORECASE)  # on Windows, with any suffix
_MAX_NAME = 100
MOST_THREADS = 1024
_YEAR = 525_600  # minutes

LRSchedule = Literal["constant", "linear", "cosine", "kl_adaptive"]
Accelerator = Literal["auto", "cpu", "gpu", "cuda", "mps"]
Precision = Literal["32-true", "bf16-mixed", "16-mixed", "auto"]


@dataclass(frozen=True)
class TrainArgs:
    """Settings of the training loop."""

    total_timesteps: Count = 1_000_000
    """Agent-steps to collect over all ranks, at least 1; the last rollout is always finished."""
    num_steps: Count = 128
    """Length of a rollout: steps per sub-environment (T)."""
    update_epochs: Count = 10
    """Passes over each rollout."""
    minibatch_size: Count | None = None
    """Steps per rank in one forward and backward pass. Default: a sixteenth of the rollout, or the largest divisor of
    `batch_size` up to that. Steps that do not fill a whole batch are left out of that epoch; each epoch shuffles the
    steps again."""
    batch_size: Count | None = None
    """Steps per optimizer step and rank: a multiple of `minibatch_size`, at most a rollout. Gradients of several
    minibatches are accumulated, which needs the memory of only one. Default: one minibatch (SAC: 256)."""
    exp_buffer_size: Count | None = None
    """Steps per rank to learn from: as many of the most recent rollouts as fit. Older rollouts keep the
    log-probabilities, advantages and value targets from the time they were collected. Default: only the most
    recent rollout."""
    gamma: float | tuple[float, ...] = 0.99
    """Discount factor, 0 to 1; or a list with one for each reward signal of the environment."""
    gae_lambda: Share = 0.95
    """Lambda of generalized advantage estimation (GAE), 0 to 1."""
    extrinsic_strength: NonNegative = 1.0
    """Factor for the environment's rewards, 0 or more, when `signals` add other rewards (docs/signals.md)."""
    combine_advantages: Literal["sum", "mean"] = "sum"
    """How to combine the advantages of several reward signals; normalized advantages are the same either way."""
    normalize_advantages: bool = True
    """Normalize the advantages of each optimizer step to mean 0 and standard deviation 1, over all ranks."""
    standardize_returns: bool = False
    """Divide rewards by the running standard deviation of the discounted returns over all ranks, and clip them to
    -10 to 10."""
    max_grad_norm: NonNegative = 0.5
    """Maximum norm of the gradient; 0: no clipping."""
    clip_groups: bool = False
    """Clip the gradient of each parameter group of the optimizer (actor, critic) by its own norm, so that large
    gradients of the critic do not shrink the actor's steps. Default: clip by the norm of all that learn at once."""
    lr_schedule: LRSchedule = "linear"
    """How the learning rates change: not at all (constant), to zero over the run (linear, cosine), or up and down by a
    factor of 1.5 after each epoch, to keep its KL divergence near `desired_kl` (kl_adaptive)."""
    desired_kl: Positive = 0.01
    """Target of `--lr_schedule kl_adaptive` for an epoch's mean KL divergence between the current policy and the one
    that collected the steps. It grows from epoch to epoch; with `--overlap` or old steps it begins above 0."""
    target_kl: Positive | None = None
    """Skip the remaining epochs of an iteration, on all ranks, after an epoch with a larger mean KL divergence.
    Default: never."""
    overlap: bool = False
    """Collect the next rollout while learning from the last one. Faster if collecting and learning use different
    hardware; the data is one update old, so the agent needs more of it (docs/speed.md)."""
    num_players: CountOrZero = 0
    """Rollout workers: the last `num_players` ranks only collect, on the CPU. The other ranks only learn, on the CPU or
    GPUs. Rollouts are collected one ahead, as with `overlap` (docs/machines.md). 0: every rank does both."""
    compile: bool = False
    """Compile the agent's act, value and training_step (torch.compile). Needs a C++ compiler and about a minute at the
    start."""
    summary_freq: Count | None = None
    """Agent-steps (over all ranks) between two rows of metrics in the log, the loggers and the console. A row contains
    means over all iterations since the previous row. Default: one row per iteration (SAC: per 1,000 steps)."""
    seed: Annotated[int, Between(0, 2**32 - 1)] = 0
    """Seed of all random numbers of the run, 0 to 4,294,967,295; runs with different seeds share no random numbers."""

    def __post_init__(self) -> None:
        check_settings(self, "--")
        for gamma in self.gammas:
            check_value("--gamma", gamma, Share)
        if not self.gammas:
            raise ValueError("--gamma needs at least one discount")
        if self.num_players and self.overlap:
            raise ValueError("--num_players always collects one rollout ahead; leave --overlap out")

    @property
    def gammas(self) -> tuple[float, ...]:
        """The discount factors: one, or one for each reward signal."""
        return tuple(self.gamma) if isinstance(self.gamma, Sequence) else (self.gamma,)

    def minibatch_for(self, rollout_steps: int, sequence_length: int = 1) -> int:
        """Return the minibatch size for a rollout of `rollout_steps` steps on one rank.

        Args:
            rollout_steps: Steps of all sub-environments of this rank in one rollout.
            sequence_length: Steps per training sequence of an agent with memory.

        Raises:
            ValueError: The sizes of rollout, minibatch, batch and experience buffer do not fit together.
        """
        default = max(sequence_length, rollout_steps // 16 // sequence_length * sequence_length)
        size = self.minibatch_size or default
        if self.batch_size and not self.minibatch_size:  # its largest part up to the default
            largest = min(default, self.batch_size)
            parts = range(max(1, largest // 8 // sequence_length) * sequence_length, largest + 1, sequence_length)
            size = next((part for part in reversed(parts) if self.batch_size % part == 0), largest)
        batch = self.batch_size or size
        for name, steps in (("minibatch_size", size), ("batch_size", batch)):
            if steps > rollout_steps:  # the first iteration has nothing else, whatever --exp_buffer_size
                raise ValueError(
                    f"--{name} {steps} is larger than the rollout of one rank, {rollout_steps} steps "
                    f"(--num_steps {self.num_steps} x {rollout_steps // self.num_steps} sub-environments)"
                )
        if size % sequence_length:
            raise ValueError(
                f"--minibatch_size {size} must be a multiple of --agent.sequence_length {sequence_length}, because "
                "the agent learns from whole sequences"
            )
        if batch % size:
            raise ValueError(f"--batch_size {batch} must be a multiple of --minibatch_size {size}")
        self.rollouts_kept(rollout_steps)
        return size

    def rollouts_kept(self, rollout_steps: int) -> int:
        """Return the number of rollouts of this size that fit into the experience buffer.

        Raises:
            ValueError: The buffer is smaller than one rollout.
        """
        if self.exp_buffer_size is None:
            return 1
        if self.exp_buffer_size < rollout_steps:
            raise ValueError(
                f"--exp_buffer_size {self.exp_buffer_size} is smaller than the rollout of one rank, "
                f"{rollout_steps} steps"
            )
        return self.exp_buffer_size // rollout_steps


ONLY_PPO = (
    *("num_steps", "update_epochs", "minibatch_size", "exp_buffer_size", "gae_lambda", "normalize_advantages"),
    *("standardize_returns", "desired_kl", "target_kl", "overlap", "num_players", "combine_advantages"),
)
"""Settings of `TrainArgs` that have no effect on agents that learn from replayed steps."""


@dataclass(frozen=True)
class SACArgs:
    """Settings of agents that learn from a replay buffer, such as `agents.SACLightningAgent` (docs/sac.md)."""

    buffer_size: Count = 1_000_000
    """SAC: size of the replay buffer: the most recent steps of each rank."""
    buffer_init_steps: CountOrZero = 1000
    """SAC: agent-steps (over all ranks) with random actions at the start; learning begins after them. 0 or more."""
    hold_random_actions: bool = False
    """SAC: repeat each random action for `train_interval` steps (2 or more), to explore farther."""
    train_interval: Count = 1
    """SAC: steps per sub-environment between two rounds of learning."""
    num_update: Count = 1
    """SAC: updates per round of learning, multiplied by the number of ranks (which collect more data)."""
    tau: Annotated[float, Between(0, 1, above=True)] = 0.005
    """SAC: fraction by which the target networks move toward the critics after each update, above 0 and at
    most 1."""
    n_step: Count = 1
    """SAC: steps of reward in a target value before it bootstraps from the target networks (n-step returns)."""
    save_replay_buffer: bool = False
    """SAC: save the replay buffers in checkpoints, so that a resumed run is bit-identical (Gymnasium ids: with
    `exact_resume`). Default: a resumed run refills them."""
    buffer_folder: str | None = None
    """SAC: folder for files that store the replay buffers; they are deleted at the end of the run. Default: the buffers
    are in the device's memory."""
    per_alpha: Share = 0.0
    """SAC: exponent of prioritized replay, 0 to 1: steps are sampled in proportion to their error to this power, for
    example 0.6. 0: uniform sampling."""
    per_beta: Share = 0.4
    """SAC: importance-sampling exponent of prioritized replay at the start, 0 to 1; it rises to 1 over the run."""
    demonstrations: tuple[str, ...] = ()
    """SAC: demonstration files (.frd) from `fabric-rl demos`; their steps are replayed together with the run's own."""
    demonstration_share: Annotated[float, Between(0, 1, above=True, below=True)] = 0.5
    """SAC: share of each minibatch that comes from the demonstrations, between 0 and 1."""
    reward_signal_num_update: Count | None = None
    """SAC: minibatches per round that the reward signals learn from, multiplied by the number of ranks. Default:
    `num_update`."""

    def __post_init__(self) -> None:
        check_settings(self, "--")
        for name, needed in (("per_beta", "per_alpha"), ("demonstration_share", "demonstrations")):
            if getattr(self, name) != getattr(SACArgs, name) and not getattr(self, needed):
                raise ValueError(f"--{name} has no effect without --{needed}; set that too, or leave --{name} out")
        if self.hold_random_actions and self.train_interval == 1:
            raise ValueError("--hold_random_actions has no effect with --train_interval 1; raise the interval")
        if self.buffer_folder is not None and not self.buffer_folder.strip():
            raise ValueError("--buffer_folder is empty; name a folder, or omit the flag to use the device's memory")


@dataclass(frozen=True)
class StartArgs:
    """Choose how a run starts: new, with the weights of another run, or by resuming an earlier one."""

    run_id: str | None = None
    """Name of the run and its folder. Default: date and time."""
    runs_dir: str = "runs"
    """Folder that contains all runs."""
    resume: bool | str = False
    """Resume the run named by `run_id`; or pass a run id, or the path of a checkpoint, milestone or run. If no run is
    named, a terminal shows a menu of milestones; otherwise the most recent run that fits is resumed, or a new run
    starts."""
    force: bool = False
    """Delete an existing run with this `run_id` and start from scratch."""
    initialize_from: str | None = None
    """Run, milestone or checkpoint whose weights a new run starts with, at step 0. In a run's configuration it records
    how the run started; it has no effect when the run resumes."""
    inference: bool = False
    """Run without learning, as a new run with the weights of `resume` or `initialize_from`."""
    deterministic: bool = False
    """With `inference`: take the most probable actions instead of sampling them."""
    group: str | None = None
    """Name of the group of runs that this run belongs to, for comparisons between groups (docs/bench.md)."""

    def __post_init__(self) -> None:
        if self.run_id is not None:
            check_run_id(self.run_id)
        if self.group is not None:
            check_run_id(self.group, "--group")
        if not self.runs_dir.strip():
            raise ValueError("--runs_dir is empty; name a folder, or omit the flag to use runs")
        if self.force and self.resume:
            raise ValueError("--force deletes the run that --resume continues; leave one of them out")
        if self.force and self.run_id is None:
            raise ValueError("--force needs --run_id, the run to delete and start again")
        if isinstance(self.resume, str) and self.run_id not in (None, self.resume):
            raise ValueError(f"--resume {self.resume} already names the run to resume; leave --run_id out")
        if self.deterministic and not self.inference:
            raise ValueError("--deterministic is for --inference; training explores by sampling its actions")
        if self.inference and not (self.resume or self.initialize_from):
            raise ValueError("--inference needs weights: add --run_id NAME --resume, or --initialize_from RUN_OR_PATH")


@dataclass(frozen=True)
class Saving:
    """Choose what a run saves, and how often."""

    checkpoint_every_timesteps: Count | None = 1_000_000
    """Agent-steps (over all ranks) between checkpoints; a run resumed from one is bit-identical. None: only one
    checkpoint, at the end."""
    checkpoint_every_minutes: Positive | None = None
    """Minutes of wall-clock time between checkpoints. A run resumed from one of these is equivalent, not bit-identical.
    Default: none."""
    keep_checkpoints: Count = 3
    """Number of most recent checkpoints to keep, at least 1."""
    milestone_interval: Count | None = None
    """Agent-steps (over all ranks) between milestones: full copies that are never deleted. Default: no milestones."""
    record_minutes: Positive | None = 10
    """Minutes between games that rank 0 records for you to watch, if the environment can record games
    (docs/watching.md). They take at most 2 % of the time and do not change the training. None: no games."""
    keep_games: Count = 10
    """Number of most recent games to keep, at least 1."""
    final_model: Literal["onnx", "weights", "none"] = "onnx"
    """Form of the final model in `final/` of the run folder (docs/runs.md): weights, or also ONNX if the packages of
    `fabric-rl[export]` are installed and ONNX can represent the agent; none: no final model."""
    exact_resume: bool = False
    """Start new episodes at every checkpoint in environments whose state cannot be saved (Gymnasium ids, RLGymPool,
    RLGymReward), so that a resumed run is bit-identical. Without it, only a resumed run starts new episodes. Other
    environments resume bit-identically in any case."""

    def __post_init__(self) -> None:
        check_settings(self, "--")


@dataclass(frozen=True)
class Hardware:
    """Hardware of a run."""

    accelerator: Accelerator = "auto"
    """Hardware to train on; auto: a GPU if there is one, but not Apple's, on which nothing is tested. `fabric run` sets
    this flag and the next three itself."""
    devices: int | str = 1
    """Number of devices per machine, or their indices such as '0,2'. With more than one, training uses DDP with one
    process per device."""
    num_nodes: Count = 1
    """Number of machines. Under torchrun and SLURM, `devices` and `num_nodes` follow from the launched processes."""
    strategy: str = "auto"
    """Fabric strategy, for example ddp. fsdp shards weights, gradients and optimizer state across the ranks, for an
    agent that is too large for one device (docs/machines.md)."""
    timeout_minutes: Annotated[float, Between(0, _YEAR, above=True)] = 10
    """Minutes that a rank waits for the others before it stops with an error. A crashed machine is noticed at once, a
    broken network connection only after this time."""
    num_threads: Annotated[int, Between(1, MOST_THREADS)] | None = None
    """Threads of torch on every rank; rounding errors depend on it. Default: the number that a resumed run had, else
    `OMP_NUM_THREADS`, else the rank's share of the machine's cores."""
    precision: Precision = "32-true"
    """Floating-point precision of the networks; losses are always float32. 16-mixed needs a GPU. auto: bf16-mixed if
    the processor or GPU multiplies bfloat16, else 32-true; the run keeps the choice."""

    def __post_init__(self) -> None:
        check_settings(self, "--")


def check_run_id(name: str, flag: str = "--run_id") -> None:
    """Raise ValueError if a name is empty, a path, hidden, too long, or not a valid folder name on all systems."""
    if not name.strip():
        raise ValueError(f"{flag} is empty; set a name, or leave the flag out")
    shown = escape_control_characters(name)
    if Path(name).name != name or name.startswith("."):
        raise ValueError(f"{flag} {shown} must be a plain name, not a path, and must not begin with a dot")
    if _DEVICES.fullmatch(name):
        raise ValueError(f"{flag} {shown} is a device name on Windows, so no folder can have it; choose another name")
    if _NOT_IN_NAMES.search(name) or name.startswith("-") or len(name) > _MAX_NAME or not name.isprintable():
        raise ValueError(
            f"{flag} {shown} must not begin with a dash, be longer than {_MAX_NAME} characters, end with a dot "
            'or a space, or contain invisible characters or any of these: < > : " | ? * \\'
        )
