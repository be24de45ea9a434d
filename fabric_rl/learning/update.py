"""learn(): epochs of shuffled minibatches over the experience of one rank."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, cast

import torch
from lightning import Fabric
from torch import Tensor
from torch.nn.utils import clip_grad_norm_

from fabric_rl.args import TrainArgs
from fabric_rl.learning.normalize import wide_dtype
from fabric_rl.metrics.timers import Timers
from fabric_rl.ranks.devices import to_device
from fabric_rl.ranks.sharding import full_tensor
from fabric_rl.schedules import KLAdaptive
from fabric_rl.types import Minibatch, NonFiniteError


def learn(
    fabric: Fabric,
    model: Any,  # noqa: ANN401 - Fabric's wrapper, or a bare ActorCritic
    optimizer: torch.optim.Optimizer,
    batch: Minibatch,
    args: TrainArgs,
    minibatch_size: int,
    generator: torch.Generator,
    kl_adaptive: KLAdaptive | None = None,
    timers: Timers | None = None,
) -> dict[str, float]:
    """Train on one batch: `update_epochs` passes over shuffled minibatches.

    Args:
        fabric: Fabric that runs the backward pass, gradient clipping and the collectives.
        model: Agent, as returned by `fabric.setup`.
        optimizer: Optimizer, as returned by `fabric.setup`.
        batch: The flat rollout of this rank (see `Rollout.flat`); it must have the same size on every rank.
        args: Settings of the training loop.
        minibatch_size: Steps per minibatch on this rank; a divisor of `args.batch_size` if that is set.
        generator: CPU generator that shuffles the steps.
        kl_adaptive: If given, adapts the learning rates after every epoch.
        timers: If given, updated with the times of forward pass, backward pass (including the gradient exchange between
            ranks) and optimizer.

    Returns:
        Means over all minibatches of this rank, as `ppo/<name>`; `approx_kl` and `clip_fraction` also before the first
        optimizer step, as `ppo/<name>_first`; and the number of completed passes, `ppo/epochs`. The agent's
        `algorithm` stands in place of `ppo`.

    Raises:
        NonFiniteError: The loss or its gradient became NaN or infinite.
        ValueError: The settings need the KL divergence, but the agent does not report `approx_kl`; or the minibatches
            do not add up to a whole batch.
    """
    length, size = (1, len(batch.returns)) if batch.episode_start is None else batch.episode_start.shape
    batch_size = args.batch_size or minibatch_size
    if batch_size % minibatch_size or minibatch_size % length:
        raise ValueError(f"minibatches of {minibatch_size} steps do not make up a whole batch of {batch_size} steps")
    if batch_size > size * length:
        raise ValueError(f"a batch of {batch_size} steps is larger than the {size * length} steps to learn from")
    accumulate, per_minibatch = batch_size // minibatch_size, minibatch_size // length
    count = size // (per_minibatch * accumulate) * accumulate  # minibatches of an epoch
    rows: list[Tensor] = []
    epochs = 0
    for _ in range(args.update_epochs):
        order = torch.randperm(size, generator=generator)[: count * per_minibatch].view(count, per_minibatch)
        order = to_device(order.numpy(), batch.returns.device)
        names, found = _epoch(fabric, model, optimizer, batch, args, order, accumulate, timers or Timers(enabled=False))
        rows += found
        epochs += 1
        if kl_adaptive is not None or args.target_kl is not None:
            kl = _mean_kl(fabric, found, names)
            if kl_adaptive is not None:
                before = kl_adaptive.factor
                kl_adaptive.update(kl)
                for group in optimizer.param_groups:
                    group["lr"] *= kl_adaptive.factor / before
            if args.target_kl is not None and kl > args.target_kl:
                break
    table = torch.stack(rows)  # [epochs * count, stats]; read once, to avoid waiting for a GPU in between
    clipped = bool(args.max_grad_norm)
    if clipped:
        table[:, -1] *= accumulate  # the norm is known once per optimizer step
    if getattr(fabric.strategy.precision, "scaler", None) is None:
        _require_finite(table, names, count)
    else:  # 16-mixed tries loss scales: an infinite gradient is not applied, but the scale is reduced
        _require_finite(table[:, : len(names) - clipped], names, count)
        table = table.nan_to_num(0, 0, 0)
    means, first = torch.stack((table.mean(dim=0), table[:accumulate].mean(dim=0))).tolist()
    metrics = dict(zip(names, means, strict=True)) | {"epochs": float(epochs)}
    for name, value in zip(names, first, strict=True):
        if name.endswith(("approx_kl", "clip_fraction")):
            metrics[f"{name}_first"] = value
    return {f"{model.algorithm}/{name}": value for name, value in metrics.items()}


def _epoch(
    fabric: Fabric,
    model: Any,  # noqa: ANN401 - as `learn`
    optimizer: torch.optim.Optimizer,
    batch: Minibatch,
    args: TrainArgs,
    order: Tensor,
    accumulate: int,
    timers: Timers,
) -> tuple[list[str], list[Tensor]]:
    """Train on the minibatches `order [count, B]`, with an optimizer step after every `accumulate` of them.

    Returns:
        Names of the statistics, and their values for each minibatch; with clipping, the last one is the gradient norm.
    """
    advantages = batch.advantage[order] if batch.episode_start is None else batch.advantage[:, order].transpose(0, 1)
    if args.normalize_advantages:
        per_step = advantages.reshape(len(order) // accumulate, -1)
        advantages = normalize_rows(fabric, per_step).view(advantages.shape)
    names, rows = list[str](), list[Tensor]()
    for number, (indices, advantage) in enumerate(zip(order, advantages, strict=True), 1):
        minibatch = index_batch(batch, indices)._replace(advantage=advantage)
        last = number % accumulate == 0
        with fabric.no_backward_sync(model, enabled=not last):
            with timers("forward"), fabric.autocast():  # Fabric itself adds it only with DDP
                loss, stats = model.training_step(minibatch)
            with timers("backward"):
                fabric.backward(loss / accumulate)
        stats = {"loss": loss.detach(), **stats}
        if args.max_grad_norm:
            stats["grad_norm"] = clip_gradients(fabric, model, optimizer, args) if last else loss.new_zeros(())
        if last:
            with timers("optimizer"):
                optimizer.step()
                optimizer.zero_grad()
            names = list(stats)
        rows.append(torch.stack([value.float() for value in stats.values()]))
    return names, rows


def _require_finite(table: Tensor, names: Sequence[str], count: int) -> None:
    """Raise a NonFiniteError for the first NaN or infinity of `table [epochs * count, stats]`."""
    bad = (~torch.isfinite(table)).nonzero()
    if len(bad):
        step, column = bad[0].tolist()
        raise NonFiniteError(
            f"the training step's {names[column]} became {table[step, column].item()} in epoch {step // count + 1}, "
            f"minibatch {step % count + 1} of {count}"
        )


def clip_gradients(fabric: Fabric, model: Any, optimizer: Any, args: TrainArgs) -> Tensor:  # noqa: ANN401 - as `learn`
    """Clip the gradient of all parameters together, or of each group of the optimizer, to `max_grad_norm`.

    Returns:
        0-dim total norm before clipping.
    """
    if not args.clip_groups:
        return torch.as_tensor(
            fabric.clip_gradients(model, optimizer, max_norm=args.max_grad_norm, error_if_nonfinite=False)
        )
    fabric.strategy.precision.unscale_gradients(getattr(optimizer, "optimizer", optimizer))  # Fabric's wrapper, or bare
    norms = [full_tensor(clip_grad_norm_(group["params"], args.max_grad_norm)) for group in optimizer.param_groups]
    # torch's norm of a group without gradients is on the CPU
    norm: Tensor = torch.linalg.vector_norm(torch.stack([each.to(fabric.device) for each in norms]))
    return norm


class NotEnoughMemoryError(RuntimeError):
    """Error for too little memory to train; the message names the flag that helps."""


@contextmanager
def oom_hint(device: torch.device, what: str, advice: str) -> Iterator[None]:
    """Turn an out-of-memory error in the block into a NotEnoughMemoryError with the cause `what` and `advice`."""
    try:
        yield
    except (MemoryError, RuntimeError) as error:  # torch raises a plain RuntimeError on the CPU
        if not isinstance(error, (MemoryError, torch.OutOfMemoryError)) and "DefaultCPUAllocator" not in str(error):
            raise
        cause = next(iter(str(error).splitlines()), "") or type(error).__name__
        raise NotEnoughMemoryError(f"{what} needs more memory than {device} has left; {advice} ({cause})") from error


def index_batch(batch: Minibatch, indices: Tensor) -> Minibatch:
    """Return the steps of a flat batch, or the sequences of a batch of sequences, at `indices`."""
    if batch.episode_start is None:
        return batch.map(lambda x: x[indices])
    picked = batch._replace(state=None).map(lambda x: x[:, indices])
    return picked if batch.state is None else picked._replace(state=batch.state[indices])


def concat_batches(batches: Sequence[Minibatch]) -> Minibatch:
    """Concatenate batches, see `TrainArgs.exp_buffer_size`."""
    if len(batches) == 1:
        return batches[0]
    columns: list[Tensor | None] = []
    for name, parts in zip(Minibatch._fields, zip(*batches, strict=True), strict=True):
        dim = 1 if batches[0].episode_start is not None and name != "state" else 0
        columns.append(None if any(part is None for part in parts) else torch.cat(parts, dim))
    return Minibatch(*columns)  # type: ignore[arg-type]  # None only where it was


def normalize_rows(fabric: Fabric, advantages: Tensor, eps: float = 1e-8) -> Tensor:
    """Normalize each row over all ranks to mean 0 and (unbiased) standard deviation 1.

    Args:
        fabric: Fabric of the ranks; one reduction for all rows.
        advantages: `[M, B]`, one minibatch per row; row i of every rank belongs to the same gradient step.
        eps: Added to the deviation.

    Returns:
        `[M, B]`; unchanged if a row has only one sample.
    """
    wide = advantages.to(wide_dtype(advantages.device))
    sums = torch.stack((wide.sum(dim=1), wide.square().sum(dim=1)))
    if fabric.world_size > 1:
        sums = cast(Tensor, fabric.all_reduce(sums, reduce_op="sum"))
    count = advantages.shape[1] * fabric.world_size
    if count < 2:
        return advantages
    mean = sums[0] / count
    variance = (sums[1] / count - mean.square()).clamp_min(0) * (count / (count - 1))
    return ((wide - mean[:, None]) / (variance.sqrt()[:, None] + eps)).to(advantages.dtype)


def _mean_kl(fabric: Fabric, rows: Sequence[Tensor], names: Sequence[str]) -> float:
    """Return the mean KL of an epoch's minibatches over all ranks, the same number on each."""
    if "approx_kl" not in names:
        raise ValueError(
            "--target_kl and --lr_schedule kl_adaptive need the agent's training_step to report the statistic approx_kl"
        )
    kl = torch.stack([row[names.index("approx_kl")] for row in rows]).mean()
    if fabric.world_size > 1:
        kl = cast(Tensor, fabric.all_reduce(kl, reduce_op="mean"))
    return float(kl)
