"""Which opponent is drawn, and which one has to leave: parts of the opponent pool, swapped by class path."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from fabric_rl.base.settings import NonNegative, check_settings
from fabric_rl.selfplay.ratings.ladder import expected_score


class Record(Protocol):
    """The record of an opponent."""

    rating: float
    """Elo rating."""
    steps: int
    """Agent-steps of the run when the opponent joined the pool."""

    @property
    def win_rate(self) -> float:
        """The learner's win rate against this opponent, 0..1; a draw is half a win."""


class Sampling(ABC):
    """Base class: choose how likely each opponent is sampled."""

    @abstractmethod
    def weights(self, opponents: Sequence[Record], rating: float) -> NDArray[np.float64]:
        """Return the weights `[K]` of the opponents, 0 or more; if all are 0, opponents are sampled uniformly.

        Args:
            opponents: `K` opponents, the oldest first.
            rating: Rating of the learner.
        """


class Uniform(Sampling):
    """Sample all opponents equally often."""

    def weights(self, opponents: Sequence[Record], rating: float) -> NDArray[np.float64]:
        return np.ones(len(opponents))


class Newest(Sampling):
    """Sample only the opponent that joined last."""

    def weights(self, opponents: Sequence[Record], rating: float) -> NDArray[np.float64]:
        return np.array([0.0] * (len(opponents) - 1) + [1.0])


class ByRating(Sampling):
    r"""Prefer opponents with a rating close to the learner's: :math:`4 E (1 - E)`, with its expected Elo score E."""

    def weights(self, opponents: Sequence[Record], rating: float) -> NDArray[np.float64]:
        expected = np.array([expected_score(rating, each.rating) for each in opponents])
        return 4 * expected * (1 - expected)


@dataclass(eq=False, repr=False)
class PFSPHard(Sampling):
    r"""Prefer opponents that win: :math:`(1 - p)^k` for the learner's win rate p (Vinyals et al. 2019, AlphaStar)."""

    power: NonNegative = 2.0
    """The exponent k: the larger, the more the hardest opponents are preferred; 0 is uniform."""

    def __post_init__(self) -> None:
        check_settings(self)

    def weights(self, opponents: Sequence[Record], rating: float) -> NDArray[np.float64]:
        return np.array([(1 - each.win_rate) ** self.power for each in opponents])


class PFSPVariance(Sampling):
    r"""Prefer opponents of about the learner's level: :math:`p (1 - p)` for its win rate p (see `PFSPHard`)."""

    def weights(self, opponents: Sequence[Record], rating: float) -> NDArray[np.float64]:
        return np.array([each.win_rate * (1 - each.win_rate) for each in opponents])


class Eviction(ABC):
    """Base class: choose the opponent to remove from a full pool."""

    @abstractmethod
    def choose(self, opponents: Sequence[Record], divergence: NDArray[np.float64] | None) -> int:
        """Return the index of the opponent to remove; never that of the last one, which has just joined.

        Args:
            opponents: `K` opponents (2 or more), the oldest first.
            divergence: `[K, K]` KL divergences between their policies, in nats; None if they cannot be compared.
        """


class Oldest(Eviction):
    """Remove the opponent that joined first, which gives the same window as in ML-Agents."""

    def choose(self, opponents: Sequence[Record], divergence: NDArray[np.float64] | None) -> int:
        return 0


class Weakest(Eviction):
    """Remove the opponent with the lowest rating."""

    def choose(self, opponents: Sequence[Record], divergence: NDArray[np.float64] | None) -> int:
        return int(np.argmin([each.rating for each in opponents[:-1]]))


class MostSimilar(Eviction):
    """Remove the older of the two opponents that act most alike, or the oldest if they cannot be compared."""

    def choose(self, opponents: Sequence[Record], divergence: NDArray[np.float64] | None) -> int:
        if divergence is None:
            return 0
        apart = divergence + divergence.T + np.diag(np.full(len(divergence), np.inf))
        return int(min(np.unravel_index(np.argmin(apart), apart.shape)))
