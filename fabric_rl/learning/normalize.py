"""Mean and variance of samples over all ranks; normalization of observations, and scaling of rewards by returns."""

import math
from collections.abc import Callable, Sequence
from functools import reduce
from typing import NamedTuple, cast

import torch
from lightning import Fabric
from torch import Tensor, nn

from fabric_rl.base.settings import Positive, check_value

CHUNK_NUMBERS = 2**22
"""Maximum number of entries converted to float64 at once, to save memory with large rollouts."""


class Moments(NamedTuple):
    """Number, mean and sum of squared deviations of a set of samples, per feature."""

    number: Tensor
    """0-dim number of samples."""
    mean: Tensor
    """`[*shape]`, zeros without samples."""
    m2: Tensor
    """`[*shape]` sum of `(x - mean)^2`."""

    def variance(self) -> Tensor:
        """Return the unbiased variance `[*shape]`; 1 with fewer than two samples."""
        return torch.where(self.number > 1, self.m2 / (self.number - 1).clamp_min(1), 1)


def moments_of(samples: Tensor, dims: int) -> Moments:
    """Return the moments of `samples [..., *shape]`, where `shape` has `dims` axes.

    They are computed in two passes in float64 (float32 on MPS, which has no float64).
    """
    shape = samples.shape[samples.dim() - dims :]
    width = max(1, math.prod(shape))
    rows = samples.reshape(samples.numel() // width, *shape)
    chunk_rows = max(1, CHUNK_NUMBERS // width)
    wide = wide_dtype(samples.device)
    zeros = torch.zeros(shape, dtype=wide, device=samples.device)
    found = Moments(zeros.new_zeros(()), zeros, zeros)
    for first in range(0, len(rows), chunk_rows):
        part = rows[first : first + chunk_rows].to(wide)
        mean = part.mean(dim=0)
        found = combine_moments(found, Moments(zeros.new_tensor(len(part)), mean, (part - mean).square().sum(dim=0)))
    return found


def combine_moments(a: Moments, b: Moments) -> Moments:
    """Return the moments of the union of two disjoint sets of samples; either may be empty.

    Chan, Golub & LeVeque 1979, "Updating formulae and a pairwise algorithm for computing sample variances", equations
    1.5: with `d = mean_b - mean_a` and `n = n_a + n_b`, `mean = mean_a + d n_b / n` and
    `M2 = M2_a + M2_b + d^2 n_a n_b / n`. No large squares are subtracted, so a large mean costs no precision.
    """
    number = a.number + b.number
    share = b.number / number.clamp_min(1)
    delta = b.mean - a.mean
    return Moments(number, a.mean + delta * share, a.m2 + b.m2 + delta.square() * (a.number * share))


def all_reduce_moments(moments: Moments, fabric: Fabric | None) -> Moments:
    """Return the moments of the samples of all ranks, bit-identical on each rank; every rank must call this."""
    if fabric is None or fabric.world_size == 1:
        return moments
    own = torch.cat([moments.number.reshape(1), moments.mean.flatten(), moments.m2.flatten()])
    table = torch.zeros(fabric.world_size, len(own), dtype=own.dtype, device=fabric.device)
    table[fabric.global_rank] = own
    table = cast(Tensor, fabric.all_reduce(table, reduce_op="sum")).to(own.device)  # zeros elsewhere: a gather
    width, shape = moments.mean.numel(), moments.mean.shape
    ranks = [Moments(row[0], row[1 : 1 + width].view(shape), row[1 + width :].view(shape)) for row in table]
    return reduce(combine_moments, ranks)  # in the same order on each rank


class RunningMoments(nn.Module):
    """Mean and variance of a stream of samples, per feature, over all ranks.

    The buffers stay float64 whatever `to`, `half` or Fabric's precision request: a count in bfloat16 would stop at 256.
    On MPS, which has no float64, they are float32; there a count is exact up to 16.7 million samples.

    Attributes:
        count: 0-dim number of samples.
        mean: `[*shape]` mean.
        m2: `[*shape]` sum of squared deviations from the mean.
    """

    count: Tensor
    mean: Tensor
    m2: Tensor

    def __init__(self, shape: int | Sequence[int]) -> None:
        """Start without samples; their `shape` is a tuple (`()` for scalars), or the length of a vector."""
        super().__init__()
        self.shape = (shape,) if isinstance(shape, int) else tuple(shape)
        self.register_buffer("count", torch.zeros((), dtype=torch.float64))
        self.register_buffer("mean", torch.zeros(self.shape, dtype=torch.float64))
        self.register_buffer("m2", torch.zeros(self.shape, dtype=torch.float64))

    @torch.no_grad()
    def update(self, batch: Tensor, fabric: Fabric | None = None) -> None:
        """Add samples.

        Args:
            batch: `[..., *shape]` of any real dtype; may be empty.
            fabric: If given, the batches of all its ranks are added, with the same result on each; then every rank must
                call this method.

        Raises:
            ValueError: The samples have a different shape.
        """
        if batch.dim() < len(self.shape) or batch.shape[batch.dim() - len(self.shape) :] != self.shape:
            raise ValueError(
                f"{type(self).__name__} for samples of shape {list(self.shape)} got a batch of shape "
                f"{list(batch.shape)}, which must end with the shape of a sample"
            )
        added = Moments(*(x.to(self.mean) for x in all_reduce_moments(moments_of(batch, len(self.shape)), fabric)))
        for buffer, total in zip(
            (self.count, self.mean, self.m2), combine_moments(self._moments(), added), strict=True
        ):
            buffer.copy_(total)  # in place: compiled graphs refer to the buffer

    @property
    def variance(self) -> Tensor:
        """Unbiased variance `[*shape]`; 1 with fewer than two samples."""
        return self._moments().variance()

    def _moments(self) -> Moments:
        return Moments(self.count, self.mean, self.m2)

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> "RunningMoments":
        """Follow `fn` to another device, but not to another dtype."""
        device = fn(torch.zeros((), device=self.mean.device)).device
        for name in ("count", "mean", "m2"):
            self._buffers[name] = self.get_buffer(name).to(device=device, dtype=wide_dtype(device))
        return self


def wide_dtype(device: torch.device) -> torch.dtype:
    """Return the widest dtype of floats on a device; Apple's GPUs have no float64."""
    return torch.float32 if device.type == "mps" else torch.float64


class ObsNormalizer(RunningMoments):
    """Normalize observations to mean 0 and variance 1: `clip((obs - mean) / sqrt(variance + eps), -clip, clip)`.

    Statistics change only in `update`, which the trainer calls once per iteration after learning, so rollout and
    training use the same normalization. Before the first update, observations are only clipped. A feature that never
    changes becomes 0. The buffers are saved with the agent.
    """

    def __init__(self, shape: int | Sequence[int], clip: float = 5.0, eps: float = 1e-8) -> None:
        """Start without statistics.

        Args:
            shape: Shape of one observation; a number is the length of a vector.
            clip: Bound of the result, in standard deviations.
            eps: Added to the variance.

        Raises:
            ValueError: `clip` or `eps` is not positive.
        """
        super().__init__(shape)
        self.clip: float = check_value("ObsNormalizer: clip", clip, Positive)
        self.eps: float = check_value("ObsNormalizer: eps", eps, Positive)

    def forward(self, obs: Tensor) -> Tensor:
        """Return `obs [..., *shape]` normalized, float32."""
        scale = (self.variance + self.eps).rsqrt().float()
        return ((obs.float() - self.mean.float()) * scale).clamp(-self.clip, self.clip)


class ReturnScaler:
    """Divide rewards by the running standard deviation of the discounted returns, so that values are of order 1.

    This is rlgym-ppo's return standardization, `clip(r / sigma, -10, 10)`, where `sigma` is the (unbiased) deviation of
    `R_t = r_t + gamma r_{t+1} + ...` up to the end of t's episode. The mean is not subtracted.

    The samples are the `R_t` of all steps so far, of all sub-environments and ranks, including this rollout. A step of
    an unfinished episode counts with the known part of its return, which the next rollouts complete, so `sigma` does
    not depend on where rollouts cut the episodes. (rlgym-ppo cuts returns at the end of a batch, takes the first 150 of
    each, and divides by the deviation from before the batch, which leaves the first batch unscaled.)

    Statistics are kept in float64 on the CPU.

    Attributes:
        sigma: `[K]` float64, divisor of the last rewards (K = 1 for one reward signal). It is 1 where all returns are
            equal: a deviation below a millionth of the mean is rounding.
    """

    def __init__(self, num_envs: int, clip: float = 10.0, signals: int = 1) -> None:
        """Start without statistics of N sub-environments and K `signals`; scaled rewards are clipped to `+-clip`."""
        self.num_envs, self.clip = num_envs, clip
        self.sigma = torch.ones(signals, dtype=torch.float64)
        self._finished: Moments
        self._start(signals)

    @torch.no_grad()
    def scale(self, rewards: Tensor, done: Tensor, gamma: float | Tensor, fabric: Fabric | None = None) -> Tensor:
        """Add a rollout to the statistics, and return its rewards scaled, as a new tensor.

        Args:
            rewards: `[T, N]`, or `[T, N, K]` for K reward signals with separate deviations. Step 0 follows the last
                step of the previous rollout.
            done: `[T, N]` bool, True where the episode ended (terminated or truncated).
            gamma: Discount factor, or `[K]`, one for each signal.
            fabric: If given, the returns of all its ranks count, with the same `sigma` on each; then every rank must
                call this method.
        """
        signals = rewards.cpu().double().reshape(*rewards.shape[:2], -1)
        discount = gamma.cpu().double() if isinstance(gamma, Tensor) else torch.tensor(gamma, dtype=torch.float64)
        if not self._finished.number and not self._open.any():
            self._start(signals.shape[-1])
        ended = _update_return_sums(self._open, signals, done.cpu(), discount)
        self._finished = combine_moments(self._finished, all_reduce_moments(_from_sums(*ended), fabric))
        known = combine_moments(self._finished, all_reduce_moments(_from_sums(*self._open[:3].sum(dim=1)), fabric))
        deviation = known.variance().sqrt()
        self.sigma = torch.where(deviation > 1e-6 * known.mean.abs(), deviation, 1)
        sigma = self.sigma.to(rewards.device, rewards.dtype)
        return (rewards / (sigma if rewards.dim() == 3 else sigma[0])).clamp(-self.clip, self.clip)

    def state_dict(self) -> dict[str, Tensor]:
        """Return the statistics; `open` (unfinished episodes) differs between ranks, the rest is the same."""
        count, mean, m2 = self._finished
        state = {"count": count, "mean": mean, "m2": m2, "open": self._open, "sigma": self.sigma}
        return {name: tensor.clone() for name, tensor in state.items()}

    def load_state_dict(self, state: dict[str, Tensor]) -> None:
        """Restore a state with the same number of sub-environments."""
        self.load_statistics(state)
        self._open = state["open"].cpu().double().clone()

    def load_statistics(self, state: dict[str, Tensor]) -> None:
        """Restore only the returns of finished episodes, from a state of any rank and number of sub-environments."""
        number, mean, m2, self.sigma = (state[name].cpu().double().clone() for name in ("count", "mean", "m2", "sigma"))
        self._start(len(mean))
        self._finished = Moments(number, mean, m2)

    def _start(self, signals: int) -> None:
        self._finished = moments_of(torch.zeros(0, signals), dims=1)
        self._open = torch.zeros(6, self.num_envs, signals, dtype=torch.float64)


def _update_return_sums(state: Tensor, rewards: Tensor, done: Tensor, gamma: Tensor) -> Tensor:
    """Update the sums of unfinished episodes with a rollout, in place; return the sums of finished ones, `[3, K]`.

    Each new reward changes the returns of all earlier steps of its episode. Their sums can be updated without keeping
    the steps: with the weights `w_t = gamma^(now - t)`, a reward r adds `r w_t` to every `R_t`.

    Args:
        state: `[6, N, K]` sums over the steps t of each unfinished episode: of 1, `R_t`, `R_t^2`, `w_t`, `w_t^2` and
            `w_t R_t`.
        rewards: `[T, N, K]`.
        done: `[T, N]`.
        gamma: `[]` or `[K]`.
    """
    count, total, squares, weight, weight_squares, cross = state
    ended = state.new_zeros(3, state.shape[-1])
    for reward, last in zip(rewards, done, strict=True):
        count += 1
        weight.mul_(gamma).add_(1)
        weight_squares.mul_(gamma * gamma).add_(1)
        cross.mul_(gamma)
        total.addcmul_(reward, weight)
        squares += reward * (2 * cross + reward * weight_squares)
        cross.addcmul_(reward, weight_squares)
        if last.any():
            ended += state[:3, last].sum(dim=1)
            state[:, last] = 0
    return ended


def _from_sums(count: Tensor, total: Tensor, squares: Tensor) -> Moments:
    """Return the moments of `count[0]` samples from their sums and sums of squares, each `[K]`."""
    mean = total / count.clamp_min(1)
    return Moments(count[0], mean, (squares - total * mean).clamp_min(0))
