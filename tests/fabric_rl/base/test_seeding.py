"""Seeds of random streams: unrelated between runs, ranks and purposes."""

from typing import get_args

import numpy as np
import torch

from fabric_rl.base.seeding import Purpose, stream_seed

RANKS, ENVIRONMENTS = 8, 256
SEEDS = [2044266242, 345318725, 1882930688]


def test_all_streams_of_100_seeds_differ():
    """Numpy's of all environments, also of those that begin new episodes, and torch's of everything else."""
    of_environments, of_torch = [], []
    for seed in range(100):
        for first in (stream_seed(seed, "environments"), stream_seed(seed, "new episodes", 7)):
            of_environments += range(first, first + RANKS * ENVIRONMENTS)
        rest = [purpose for purpose in get_args(Purpose) if purpose not in ("environments", "new episodes")]
        of_torch += [stream_seed(seed, purpose, rank) for purpose in rest for rank in range(RANKS)]
    for seeds in (of_environments, of_torch):
        assert len(set(seeds)) == len(seeds)
        assert min(seeds) >= 0 and max(seeds) < 2**32  # np.random.seed accepts no more, torch uses no more


def test_streams_of_neighboring_seeds_are_unrelated():
    """Numbers of torch's generator for seeds that differ in one bit, and of numpy's for neighboring environments."""
    of_torch = [
        torch.randn(1000, generator=torch.Generator().manual_seed(stream_seed(seed, "actions"))) for seed in range(20)
    ]
    first = stream_seed(0, "environments")
    of_numpy = [torch.as_tensor(np.random.default_rng(first + i).normal(size=1000)) for i in range(20)]
    for streams in (of_torch, of_numpy):
        correlations = torch.corrcoef(torch.stack(streams).double()).fill_diagonal_(0)
        assert correlations.abs().max() < 4.5 / 1000**0.5  # 190 pairs of independent streams: about 3


def test_seeds_are_those_that_earlier_runs_had():
    """A change would change all runs: it needs a new version, which old checkpoints must not get."""
    assert [stream_seed(0, "environments"), stream_seed(1, "actions", 3), stream_seed(2, "cloning", 10**12)] == SEEDS
    assert stream_seed(7, "cloning", 123, scheme=1) == 7 * 2**31 + 123
    assert stream_seed(7, "new episodes", 5, scheme=1) == 7 + 5 * 1_000_003
