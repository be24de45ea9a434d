"""Sequences: what agents with memory remember replayed steps from."""

from typing import NamedTuple

from torch import Tensor


class Sequences(NamedTuple):
    """What replayed steps are remembered from: S sequences of G observations in the order of time.

    Behind the last step of a truncated episode stands its last observation, then the next episode begins. So each step
    and what follows it stand side by side; all are as long as the one with most such ends, with zeros behind.
    """

    obs: Tensor
    """`[G, S, ...]`."""
    episode_start: Tensor
    """`[G, S]` bool, memory is zeroed before the observation."""
    now: Tensor
    """`[B]` int64, where in `obs.flatten(0, 1)` the observation of each step is."""
    after: Tensor
    """`[B]` int64, where its `next_obs` is."""
    state: Tensor | None = None
    """`[S, M]` memory before the first observation (of the burn-in, if there is one), as it was when they were made."""
    burn_in_obs: Tensor | None = None
    """`[P, S, ...]` observations before, or None if `burn_in` is 0."""
    burn_in_start: Tensor | None = None
    """`[P, S]` bool, their `episode_start`."""
