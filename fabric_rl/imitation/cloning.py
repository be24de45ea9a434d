"""Behavioral cloning: `pretrain` before any training, and the callback `Cloning` in addition to PPO or SAC."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, cast

import numpy as np
import torch
from lightning import Fabric
from numpy.typing import NDArray
from torch import Tensor

from fabric_rl.base.seeding import stream_seed
from fabric_rl.base.settings import Between, Count, CountOrZero, NonNegative, check_settings
from fabric_rl.base.trajectory import Trajectory
from fabric_rl.callback import Callback, TrainState
from fabric_rl.learning.imitation import CanImitate, DemonstrationBatch
from fabric_rl.learning.learner import load_optimizer
from fabric_rl.learning.normalize import ObsNormalizer
from fabric_rl.ranks.devices import is_small, single_thread
from fabric_rl.ranks.sharding import is_sharded
from fabric_rl.types import ActorCritic, NonFiniteError, OffPolicyAgent, accepts_action_mask


def to_batch(trajectories: Sequence[Trajectory], agent: ActorCritic) -> DemonstrationBatch:
    """Return all steps of some trajectories as one batch on the agent's device.

    For an agent with memory, trajectories are cut into sequences of its length, and the last one is padded. The memory
    is zero at the start of each sequence, because demonstrations do not show what the agent would have remembered.
    """
    length, device = agent.sequence_length, agent.device

    def joined(parts: Sequence[NDArray[Any] | None], zeros: bool = False) -> Tensor | None:
        arrays = [x for x in parts if x is not None]
        if len(arrays) < len(parts):
            return None
        if not agent.learns_sequences:
            return torch.from_numpy(np.concatenate(arrays)).to(device)
        pads = [np.repeat(x[-1:] * 0 if zeros else x[-1:], -len(x) % length, axis=0) for x in arrays]
        padded = np.concatenate([part for pair in zip(arrays, pads, strict=True) for part in pair])
        sequences = padded.reshape(-1, length, *padded.shape[1:]).swapaxes(0, 1)
        return torch.from_numpy(np.ascontiguousarray(sequences)).to(device)

    found = DemonstrationBatch(
        joined([x.obs[: len(x.action)] for x in trajectories]),  # type: ignore[arg-type]
        joined([x.action for x in trajectories]),  # type: ignore[arg-type]
        joined([x.weight for x in trajectories], zeros=True),  # type: ignore[arg-type]
        joined([x.action_mask for x in trajectories]) if accepts_action_mask(agent) else None,
        joined([x.soft for x in trajectories]),
    )
    if agent.learns_sequences:
        starts = torch.zeros_like(found.weight, dtype=torch.bool)
        starts[0] = True
        found = found._replace(state=torch.zeros(found.size, agent.memory_size, device=device), episode_start=starts)
    return found


def train_epoch(
    fabric: Fabric,
    model: Any,  # noqa: ANN401 - Fabric's wrapper, with the forward method `imitate`
    optimizer: Any,  # noqa: ANN401 - Fabric's wrapper
    steps: DemonstrationBatch,
    rows: Tensor,
    batch_size: int,
    max_grad_norm: float,
) -> float:
    """Train once on `rows` of the steps in minibatches of `batch_size`, and return the mean loss over all ranks.

    Each optimizer step minimizes the weighted mean over the minibatches of all ranks, which may differ in size and
    weight. `fabric` is that of the ranks that learn; each needs the same number of minibatches.
    """
    parts = torch.split(rows.to(steps.obs.device), batch_size)
    own = torch.stack([steps.weight[..., part].sum() for part in parts]).clamp_min(torch.finfo(torch.float32).tiny)
    weights = cast(Tensor, fabric.all_reduce(own.clone(), reduce_op="sum"))  # [minibatches]
    losses = []
    for part, scale in zip(parts, own * fabric.world_size / weights, strict=True):  # DDP takes the mean over the ranks
        with fabric.autocast():
            loss, _ = model.imitate(steps.select(part))
        loss = loss * scale
        fabric.backward(loss)
        if max_grad_norm:
            fabric.clip_gradients(model, optimizer, max_norm=max_grad_norm, error_if_nonfinite=False)
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.detach())
    means = cast(Tensor, fabric.all_reduce(torch.stack(losses), reduce_op="mean"))
    return float((means * weights).sum() / weights.sum())


def _check_imitates(agent: ActorCritic, flag: str) -> None:
    if not isinstance(agent, CanImitate):
        name = type(agent).__name__
        raise TypeError(f"{flag}: {name} cannot imitate; use a PPO agent or SAC, or add imitate() to yours")


@dataclass(frozen=True)
class CloneArgs:
    """Settings of cloning before any training."""

    epochs: Count = 100
    """Maximum number of passes over the demonstrations."""
    batch_size: Count = 256
    """Steps per optimizer step."""
    learning_rate: Annotated[float, Between(0, 1, above=True, below=True)] = 1e-3
    """Learning rate of Adam."""
    validation: Annotated[float, Between(0, 1, below=True)] = 0.1
    """Share of the episodes held back for validation, at least one. 0: none, and training runs for all epochs."""
    patience: Count = 5
    """Epochs without a lower validation loss after which training stops, with the best weights."""
    max_grad_norm: NonNegative = 0.5
    """Clip the norm of the gradient to this value; 0: no clipping."""
    seed: CountOrZero = 0
    """Seed of the weights, the order of steps and the choice of validation episodes."""

    def __post_init__(self) -> None:
        check_settings(self, "--")


def pretrain(
    agent: ActorCritic,
    trajectories: Sequence[Trajectory],
    args: CloneArgs,
    tell: Callable[[dict[str, float]], None] = lambda row: None,
) -> list[dict[str, float]]:
    """Let an agent imitate demonstrations, on the CPU in this process, and load the weights of its best epoch.

    Validation episodes are held back with all their players. Episodes in which all weights are 0 are left out.

    Args:
        agent: A new or a trained agent.
        trajectories: Demonstrations.
        args: Settings.
        tell: Called with the row of each epoch.

    Returns:
        A row for each epoch: `epoch`, `loss` and `validation_loss`, means of -log p of the demonstrated actions.

    Raises:
        TypeError: The agent cannot imitate.
        ValueError: There are too few episodes to hold one back.
        NonFiniteError: The loss became NaN or infinite.
    """
    _check_imitates(agent, "--agent")
    generator = torch.Generator().manual_seed(stream_seed(args.seed, "pretraining"))
    episodes: dict[str | int, list[Trajectory]] = {}
    for number, each in enumerate(trajectories):
        if each.weight.any():
            episodes.setdefault(each.episode or number, []).append(each)
    groups = list(episodes.values())
    order = torch.randperm(len(groups), generator=generator).tolist()
    held = max(1, round(args.validation * len(order))) if args.validation else 0
    if held >= len(order):
        raise ValueError(
            f"--validation {args.validation}: {len(order)} episodes with weighted steps are too few to hold back {held}"
            "; use more demonstrations, or --validation 0"
        )
    held_back, learned = ([x for number in part for x in groups[number]] for part in (order[:held], order[held:]))
    validation, training = to_batch(held_back, agent) if held else None, to_batch(learned, agent)
    fabric = Fabric(accelerator="cpu", devices=1)
    if normalizers := [module for module in agent.modules() if isinstance(module, ObsNormalizer)]:
        obs = torch.from_numpy(np.concatenate([x.obs[: len(x.action)] for x in learned]))  # without padded sequences
        for module in normalizers:
            module.update(obs.to(agent.device), fabric)
    model, optimizer = fabric.setup(agent, torch.optim.Adam(agent.parameters(), args.learning_rate, eps=1e-5))
    model.mark_forward_method("imitate")
    size, rows = max(1, args.batch_size // agent.sequence_length), list[dict[str, float]]()
    best, weights = float("inf"), agent.state_dict()
    while len(rows) < args.epochs:
        part = torch.randperm(training.size, generator=generator)
        loss = train_epoch(fabric, model, optimizer, training, part, size, args.max_grad_norm)
        judged = loss if validation is None else imitation_loss(agent, validation)
        rows.append({"epoch": len(rows) + 1, "loss": loss, "validation_loss": judged})
        tell(rows[-1])
        if not math.isfinite(loss + judged):
            raise NonFiniteError(f"the loss became {loss + judged} in epoch {len(rows)}; use a lower --learning_rate")
        if judged < best or validation is None:
            best, best_epoch = judged, len(rows)
            weights = {name: tensor.clone() for name, tensor in agent.state_dict().items()}
        elif len(rows) - best_epoch >= args.patience:
            break
    agent.load_state_dict(weights)
    return rows


@torch.no_grad()
def imitation_loss(agent: ActorCritic, steps: DemonstrationBatch) -> float:
    """Return the mean of -log p of the demonstrated actions."""
    assert isinstance(agent, CanImitate)
    return float(agent.imitate(steps)[0])


@dataclass(eq=False, repr=False)
class Cloning(Callback):
    """Imitate demonstrations after each update of PPO or SAC, with a separate Adam optimizer.

    With SAC, an update is one iteration, so by default only one minibatch is imitated. The optimizer's learning rate is
    `strength` times the agent's and falls linearly to 0 over `steps`, if set.
    """

    comes_first: ClassVar = True

    demos: Sequence[str]
    """Demonstration files from `fabric-rl demos`."""
    strength: NonNegative = 1.0
    """Factor for the agent's learning rate."""
    steps: Count | None = None
    """Agent-steps (over all ranks) after which cloning ends. Default: never, with a constant learning rate."""
    samples_per_update: CountOrZero = 0
    """Number of demonstrated steps, sampled again for each pass. 0: all; with SAC, `batch_size`."""
    num_epoch: Count | None = None
    """Passes per update. Default: `--update_epochs`; with SAC, 1."""
    batch_size: Count | None = None
    """Steps per optimizer step and rank. Default: `--batch_size`."""
    soft_labels: bool = False
    """Actions between two rows of an action table count for both rows. Default: only for the nearest row."""

    def __post_init__(self) -> None:
        check_settings(self)
        self._trajectories: Sequence[Trajectory] = ()
        self._saved: dict[str, Any] | None = None
        self._optimizer: Any = None

    def show(self, trajectories: Sequence[Trajectory]) -> "Cloning":
        """Set the demonstrations, as returned by `fabric_rl.evaluation.demonstrations.trajectories_of`."""
        self._trajectories = trajectories
        return self

    def on_train_start(self, state: TrainState) -> None:
        """Build the optimizer.

        Raises:
            ValueError: There are no demonstrations, or the agent is sharded.
            TypeError: The agent cannot imitate.
        """
        _check_imitates(state.agent, "--cloning")
        if is_sharded(state.agent):
            raise ValueError("--strategy fsdp: an agent with --cloning cannot be sharded; use ddp")
        if not self._trajectories:
            raise ValueError("--cloning: there are no demonstrations; set --cloning.demos, or call show()")
        if not state.learns:
            return
        self._shown = to_batch(self._trajectories, state.agent)
        state.model.mark_forward_method("imitate")
        self._rate = self.strength * state.optimizer.param_groups[0]["lr"]
        adam = torch.optim.Adam(state.agent.parameters(), self._rate, eps=1e-5)
        self._optimizer = state.fabric.setup_optimizers(adam)
        if self._saved is not None:
            load_optimizer(self._optimizer, self._saved, "--cloning")

    def on_iteration_end(self, state: TrainState) -> None:
        """Train on the demonstrations, in an order that depends on rank and step."""
        left = 1.0 if self.steps is None else max(0.0, 1 - state.steps / self.steps)
        if self._optimizer is None or not left * self.strength:
            return
        rate = self._optimizer.param_groups[0]["lr"] = self._rate * left
        length, fabric, args, steps = state.agent.sequence_length, state.fabric, state.args, self._shown
        index = state.steps * fabric.world_size + fabric.global_rank
        own_seed = stream_seed(args.seed, "cloning", index, state.seed_scheme)
        generator = torch.Generator().manual_seed(own_seed)
        replays = isinstance(state.agent, OffPolicyAgent)
        size = max(1, (self.batch_size or args.batch_size or steps.size) // length)
        most = max(1, self.samples_per_update // length) if self.samples_per_update else size if replays else steps.size
        losses = []
        with single_thread(if_small=is_small(state.agent, size * length)):
            for _ in range(self.num_epoch or (1 if replays else args.update_epochs)):
                if replays:  # after every step, a permutation of all would take too long
                    rows = torch.randint(steps.size, (most,), generator=generator)
                else:
                    rows = torch.randperm(steps.size, generator=generator)[:most]
                losses.append(
                    train_epoch(state.peers, state.model, self._optimizer, steps, rows, size, args.max_grad_norm)
                )
        loss = sum(losses) / len(losses)
        if not math.isfinite(loss):
            raise NonFiniteError(f"--cloning: the loss became {loss}")
        state.metrics |= {"cloning/learning_rate": rate, "cloning/loss": loss}

    def state_dict(self) -> dict[str, Any]:
        return {"optimizer": self._saved or {} if self._optimizer is None else self._optimizer.state_dict()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        super().load_state_dict(state)
        self._saved = state["optimizer"] or None
