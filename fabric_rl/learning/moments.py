"""Mean and variance of many samples, of a stream of them, and of those of all ranks."""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple, cast

import torch
from lightning import Fabric
from torch import Tensor, nn

CHUNK_NUMBERS = 2**22
"""Numbers that are widened to float64 at once, so that a large rollout does not need several times its memory."""


class Moments(NamedTuple):
    """Number, mean and sum of squared deviations of a set of samples, per feature."""

    number: Tensor
    """0-dim, of samples."""
    mean: Tensor
    """`[*shape]`, zeros without samples."""
    m2: Tensor
    """`[*shape]`, sum of `(x - mean)^2`."""

    def variance(self) -> Tensor:
        """`[*shape]`, unbiased; 1 with less than two samples."""
        return torch.where(self.number > 1, self.m2 / (self.number - 1).clamp_min(1), 1)


def moments_of(samples: Tensor, dims: int) -> Moments:
    """Moments of one batch in two passes, in float64 (float32 on MPS, which has no float64).

    Args:
        samples: `[..., *shape]`, any real dtype.
        dims: Number of axes of `shape`.
    """
    shape = samples.shape[samples.dim() - dims :]
    width = max(1, math.prod(shape))
    rows = samples.reshape(samples.numel() // width, *shape)
    chunk_rows = max(1, CHUNK_NUMBERS // width)
    wide = _wide(samples.device)
    zeros = torch.zeros(shape, dtype=wide, device=samples.device)
    found = Moments(zeros.new_zeros(()), zeros, zeros)
    for first in range(0, len(rows), chunk_rows):
        part = rows[first : first + chunk_rows].to(wide)
        mean = part.mean(dim=0)
        found = combine(found, Moments(zeros.new_tensor(len(part)), mean, (part - mean).square().sum(dim=0)))
    return found


def combine(a: Moments, b: Moments) -> Moments:
    """Moments of the union of two disjoint sets of samples; either may be empty.

    Chan, Golub & LeVeque 1979, "Updating formulae and a pairwise algorithm for computing sample variances", equations
    1.5: with `d = mean_b - mean_a` and `n = n_a + n_b`, `mean = mean_a + d n_b / n` and
    `M2 = M2_a + M2_b + d^2 n_a n_b / n`. No large squares are subtracted, so a large mean costs no digits.
    """
    number = a.number + b.number
    share = b.number / number.clamp_min(1)
    delta = b.mean - a.mean
    return Moments(number, a.mean + delta * share, a.m2 + b.m2 + delta.square() * (a.number * share))


def over_ranks(moments: Moments, fabric: Fabric | None) -> Moments:
    """Moments of the samples of all ranks, the same bits on each of them; every rank must call it."""
    if fabric is None or fabric.world_size == 1:
        return moments
    own = torch.cat([moments.number.reshape(1), moments.mean.flatten(), moments.m2.flatten()])
    table = torch.zeros(fabric.world_size, len(own), dtype=own.dtype, device=fabric.device)
    table[fabric.global_rank] = own
    table = cast(Tensor, fabric.all_reduce(table, reduce_op="sum")).to(own.device)  # zeros elsewhere: a gather
    width, shape = moments.mean.numel(), moments.mean.shape
    merged: Moments | None = None
    for row in table:  # in the order of the ranks, on each of them
        rank = Moments(row[0], row[1 : 1 + width].view(shape), row[1 + width :].view(shape))
        merged = rank if merged is None else combine(merged, rank)
    return cast(Moments, merged)


class RunningMoments(nn.Module):
    """Mean and variance of a stream of samples, per feature, over all ranks.

    The buffers stay float64 whatever `to`, `half` or Fabric's precision ask for: a count in bfloat16 would stop at 256.
    On MPS, which has no float64, they are float32; there a count is exact up to 16.7 million samples.

    Attributes:
        count: 0-dim, samples seen.
        mean: `[*shape]`.
        m2: `[*shape]`, sum of squared deviations from the mean.
    """

    count: Tensor
    mean: Tensor
    m2: Tensor

    def __init__(self, shape: int | Sequence[int]) -> None:
        """Starts without samples.

        Args:
            shape: Of one sample; a number is the length of a vector, `()` a scalar.
        """
        super().__init__()
        self.shape = (shape,) if isinstance(shape, int) else tuple(shape)
        self.register_buffer("count", torch.zeros((), dtype=torch.float64))
        self.register_buffer("mean", torch.zeros(self.shape, dtype=torch.float64))
        self.register_buffer("m2", torch.zeros(self.shape, dtype=torch.float64))

    @torch.no_grad()
    def update(self, batch: Tensor, fabric: Fabric | None = None) -> None:
        """Adds samples.

        Args:
            batch: `[..., *shape]`, any real dtype; may be empty.
            fabric: Adds the batches of all its ranks, to the same result on each; every rank must call it then.

        Raises:
            ValueError: The samples have another shape.
        """
        if batch.dim() < len(self.shape) or batch.shape[batch.dim() - len(self.shape) :] != self.shape:
            raise ValueError(
                f"{type(self).__name__} of samples {list(self.shape)} got a batch {list(batch.shape)}; "
                "it must end with the axes of a sample"
            )
        added = Moments(*(x.to(self.mean) for x in over_ranks(moments_of(batch, len(self.shape)), fabric)))
        for buffer, total in zip((self.count, self.mean, self.m2), combine(self._moments(), added), strict=True):
            buffer.copy_(total)  # in place: compiled graphs hold the buffer

    @property
    def variance(self) -> Tensor:
        """`[*shape]`, unbiased; 1 with less than two samples."""
        return self._moments().variance()

    def _moments(self) -> Moments:
        return Moments(self.count, self.mean, self.m2)

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> "RunningMoments":
        """Follows `fn` to another device, but not to another dtype: it is asked about a float32 number instead."""
        device = fn(torch.zeros((), device=self.mean.device)).device
        for name in ("count", "mean", "m2"):
            self._buffers[name] = self.get_buffer(name).to(device=device, dtype=_wide(device))
        return self


def _wide(device: torch.device) -> torch.dtype:
    return torch.float32 if device.type == "mps" else torch.float64
