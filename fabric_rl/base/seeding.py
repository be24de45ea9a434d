"""Seeds of a run's random streams: one per purpose and index, independent of each other and between runs."""

from typing import Literal, get_args

import numpy as np

Purpose = Literal[
    "environments",
    "new episodes",
    "actions",
    "minibatches",
    "replay",
    "signals",
    "cloning",
    "pretraining",
    "guests",
    "symmetry",
    "roles",
]

SEED_SCHEME = 2
"""Version of the seeds, as stored in checkpoints; those without one are of version 1, with seeds `seed + index`."""

_PURPOSES = get_args(Purpose)  # append only: the position is part of the seed


def stream_seed(seed: int, purpose: Purpose, index: int = 0, scheme: int = SEED_SCHEME) -> int:
    """Return the seed of one random stream of a run, 0 to 2**31 - 1.

    It has 31 bits, because torch's CPU generator uses only 32 bits of a seed, and environment `i` uses this seed plus
    `i`, which `np.random.seed` accepts up to 2**32 - 1. It comes from `numpy.random.SeedSequence`, so neighboring seeds
    and indices give unrelated streams.

    Args:
        seed: `--seed` of the run.
        purpose: What the numbers are drawn for.
        index: Rank, or iteration and rank, at least 0.
        scheme: Version of the seeds. Version 1 is only for what a resumed run seeds anew.
    """
    if scheme == 1:
        return seed * 2**31 + index if purpose == "cloning" else seed + 1_000_003 * index
    sequence = np.random.SeedSequence(seed, spawn_key=(_PURPOSES.index(purpose), index))
    return int(sequence.generate_state(1)[0]) >> 1
