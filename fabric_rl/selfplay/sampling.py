"""Which opponent is drawn, and which one has to leave: parts of the opponent pool, swapped by class path."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from fabric_rl.selfplay.ratings.elo import expected_score


class Record(Protocol):
    """What is known of an opponent."""

    rating: float
    """Elo."""
    steps: int
    """Agent-steps of the run when it joined."""

    @property
    def win_rate(self) -> float:
        """Of the learner against it, 0..1; a draw is half a win."""


class Sampling(ABC):
    """Base class: the probability of each opponent."""

    @abstractmethod
    def weights(self, opponents: Sequence[Record], rating: float) -> NDArray[np.float64]:
        """`[K]` weights of `opponents`, the oldest first, 0 or more; all 0 means all alike. `rating`: the learner's."""


class Uniform(Sampling):
    """All alike."""

    def weights(self, opponents: Sequence[Record], rating: float) -> NDArray[np.float64]:
        return np.ones(len(opponents))


class Newest(Sampling):
    """Only who joined last."""

    def weights(self, opponents: Sequence[Record], rating: float) -> NDArray[np.float64]:
        return np.array([0.0] * (len(opponents) - 1) + [1.0])


class ByRating(Sampling):
    r"""Prefer opponents with about the learner's own rating: :math:`4 E (1 - E)`, with its expected score E by Elo."""

    def weights(self, opponents: Sequence[Record], rating: float) -> NDArray[np.float64]:
        expected = np.array([expected_score(rating, each.rating) for each in opponents])
        return 4 * expected * (1 - expected)


class PFSPHard(Sampling):
    r"""Prefer opponents that win: :math:`(1 - p)^k`, with win rate p against them (Vinyals et al. 2019, AlphaStar)."""

    def __init__(self, power: float = 2.0) -> None:
        """Takes `power`, k: the larger, the more it is about the hardest ones; 0 is uniform."""
        if power < 0:
            raise ValueError(f"PFSPHard: power (--self_play.sampling.power) must be 0 or more, got {power}")
        self.power = power

    def weights(self, opponents: Sequence[Record], rating: float) -> NDArray[np.float64]:
        return np.array([(1 - each.win_rate) ** self.power for each in opponents])


class PFSPVariance(Sampling):
    r"""Prefer opponents of about the same level: :math:`p (1 - p)`, with win rate p against them (as `PFSPHard`)."""

    def weights(self, opponents: Sequence[Record], rating: float) -> NDArray[np.float64]:
        return np.array([each.win_rate * (1 - each.win_rate) for each in opponents])


class Eviction(ABC):
    """Base class: choose the opponent that leaves a full pool."""

    @abstractmethod
    def choose(self, opponents: Sequence[Record], divergence: NDArray[np.float64] | None) -> int:
        """The place in `opponents`, the oldest first, of who leaves; never that of the last one, who has just joined.

        Args:
            opponents: `K`, 2 or more.
            divergence: `[K, K]` KL of each policy from each other one, nats; None if they cannot be compared.
        """


class Oldest(Eviction):
    """Drop the opponent that has been in the pool longest; what stays is the window of ML-Agents."""

    def choose(self, opponents: Sequence[Record], divergence: NDArray[np.float64] | None) -> int:
        return 0


class Weakest(Eviction):
    """Drop the opponent with the lowest rating."""

    def choose(self, opponents: Sequence[Record], divergence: NDArray[np.float64] | None) -> int:
        return int(np.argmin([each.rating for each in opponents[:-1]]))


class MostSimilar(Eviction):
    """The older one of the two that act most alike; the oldest where they cannot be compared."""

    def choose(self, opponents: Sequence[Record], divergence: NDArray[np.float64] | None) -> int:
        if divergence is None:
            return 0
        apart = divergence + divergence.T + np.diag(np.full(len(divergence), np.inf))
        return int(min(np.unravel_index(np.argmin(apart), apart.shape)))
