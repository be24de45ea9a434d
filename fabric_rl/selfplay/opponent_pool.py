"""OpponentPool: the same opponents on all ranks; rules that sample and remove them."""

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from fabric_rl.base.settings import NonNegative, check_settings
from fabric_rl.selfplay.ratings.ladder import elo_update, expected_score

LATEST = -1
"""Number of the current agent, which is not in the pool."""
DECAY = 0.99
"""Factor on all earlier results at each new one, so that win rates cover about the last hundred games."""

Weights = dict[str, Tensor]
"""A module's `state_dict`."""


@dataclass
class Opponent:
    """Opponent, either a snapshot of the agent or a guest."""

    number: int
    """Unique, never reused."""
    name: str
    """Human-readable label."""
    steps: int
    """Agent-steps of the run when the opponent joined."""
    weights: Weights | None
    """Weights of a snapshot, on the CPU; None for a guest, whose player is in the environment."""
    rating: float
    """Elo rating."""
    games: float = 0.0
    """Number of games against this opponent, decayed by `DECAY`."""
    score: float = 0.0
    """The learner's score in these games: 1 for a win, 0.5 for a draw."""
    retired: bool = False
    """True if it is no longer sampled, but some arenas still play against it."""

    @property
    def win_rate(self) -> float:
        """The learner's win rate against this opponent, with one win and one loss added so that it starts at 0.5."""
        return (self.score + 1) / (self.games + 2)


class Sampling(ABC):
    """Base class: choose how likely each opponent is to be sampled."""

    @abstractmethod
    def weights(self, opponents: Sequence[Opponent], rating: float) -> NDArray[np.float64]:
        """Return the weights `[K]` of the opponents, 0 or more; if all are 0, opponents are sampled uniformly.

        Args:
            opponents: `K` opponents, the oldest first.
            rating: Rating of the learner.
        """


class Uniform(Sampling):
    """Sample all opponents equally often."""

    def weights(self, opponents: Sequence[Opponent], rating: float) -> NDArray[np.float64]:
        return np.ones(len(opponents))


class Newest(Sampling):
    """Sample only the opponent that joined last."""

    def weights(self, opponents: Sequence[Opponent], rating: float) -> NDArray[np.float64]:
        return np.array([0.0] * (len(opponents) - 1) + [1.0])


class ByRating(Sampling):
    r"""Prefer opponents with a rating close to the learner's: :math:`4 E (1 - E)`, with its expected Elo score E."""

    def weights(self, opponents: Sequence[Opponent], rating: float) -> NDArray[np.float64]:
        expected = np.array([expected_score(rating, each.rating) for each in opponents])
        return 4 * expected * (1 - expected)


@dataclass(eq=False, repr=False)
class PFSPHard(Sampling):
    r"""Prefer opponents that win: :math:`(1 - p)^k` for the learner's win rate p (Vinyals et al. 2019, AlphaStar)."""

    power: NonNegative = 2.0
    """The exponent k: the larger, the more the hardest opponents are preferred; 0 is uniform."""

    def __post_init__(self) -> None:
        check_settings(self)

    def weights(self, opponents: Sequence[Opponent], rating: float) -> NDArray[np.float64]:
        return np.array([(1 - each.win_rate) ** self.power for each in opponents])


class PFSPVariance(Sampling):
    r"""Prefer opponents of about the learner's level: :math:`p (1 - p)` for its win rate p (see `PFSPHard`)."""

    def weights(self, opponents: Sequence[Opponent], rating: float) -> NDArray[np.float64]:
        return np.array([each.win_rate * (1 - each.win_rate) for each in opponents])


class Eviction(ABC):
    """Base class: choose the opponent to remove from a full pool."""

    @abstractmethod
    def choose(self, opponents: Sequence[Opponent], divergence: NDArray[np.float64] | None) -> int:
        """Return the index of the opponent to remove; never the last index, because that opponent has just joined.

        Args:
            opponents: `K` opponents (2 or more), the oldest first.
            divergence: `[K, K]` KL divergences between their policies, in nats; None if they cannot be compared.
        """


class Oldest(Eviction):
    """Remove the opponent that joined first, which gives the same window as in ML-Agents."""

    def choose(self, opponents: Sequence[Opponent], divergence: NDArray[np.float64] | None) -> int:
        return 0


class Weakest(Eviction):
    """Remove the opponent with the lowest rating."""

    def choose(self, opponents: Sequence[Opponent], divergence: NDArray[np.float64] | None) -> int:
        return int(np.argmin([each.rating for each in opponents[:-1]]))


class MostSimilar(Eviction):
    """Remove the older of the two opponents that act most alike, or the oldest if they cannot be compared."""

    def choose(self, opponents: Sequence[Opponent], divergence: NDArray[np.float64] | None) -> int:
        if divergence is None:
            return 0
        apart = divergence + divergence.T + np.diag(np.full(len(divergence), np.inf))
        return int(min(np.unravel_index(np.argmin(apart), apart.shape)))


class OpponentPool:
    """Opponents that may be sampled, with ratings and results.

    Attributes:
        opponents: Guests first, then snapshots from the oldest to the newest; including retired ones.
        rating: The learner's Elo rating.
    """

    def __init__(
        self,
        window: int,
        latest_ratio: float,
        sampling: Sampling,
        eviction: Eviction,
        initial_elo: float,
        elo_k: float,
        guests: Sequence[str] = (),
    ) -> None:
        self._window, self._latest_ratio, self._elo_k = window, latest_ratio, elo_k
        self._sampling, self._eviction = sampling, eviction
        self.rating = initial_elo
        self.opponents = [Opponent(number, name, 0, None, initial_elo) for number, name in enumerate(guests)]
        self._next = len(self.opponents)

    @property
    def numbers(self) -> set[int]:
        """Numbers of all opponents."""
        return {each.number for each in self.opponents}

    @property
    def guests(self) -> set[int]:
        """Numbers of the guests, which are also their indices among the environment's guests."""
        return {each.number for each in self.opponents if each.weights is None}

    @property
    def active(self) -> list[Opponent]:
        """Opponents that may be sampled."""
        return [each for each in self.opponents if not each.retired]

    @property
    def snapshots(self) -> list[Opponent]:
        """Active copies of the agent."""
        return [each for each in self.active if each.weights is not None]

    def weights(self, number: int) -> Weights | None:
        """Return the weights of the snapshot `number`."""
        return next(each.weights for each in self.opponents if each.number == number)

    def sample(self, rng: np.random.Generator) -> int:
        """Sample an opponent's number: `LATEST` at `latest_ratio`, else by the weights of the sampling rule."""
        if rng.random() < self._latest_ratio or not self.active:
            return LATEST
        weights = self._sampling.weights(self.active, self.rating)
        share = np.full(len(weights), 1.0) if not weights.any() else weights
        return self.active[int(rng.choice(len(share), p=share / share.sum()))].number

    def add_snapshot(self, steps: int, weights: Weights, divergence: NDArray[np.float64] | None) -> None:
        """Add a snapshot with the learner's rating; retire one if there are more than `window`.

        `weights` are not copied. `divergence [K + 1, K + 1]` includes the new snapshot (last), see `Eviction.choose`.
        """
        self.opponents.append(Opponent(self._next, f"{steps:,} steps", steps, weights, self.rating))
        self._next += 1
        self._retire(divergence)

    def _retire(self, divergence: NDArray[np.float64] | None = None) -> None:
        while len(self.snapshots) > self._window:
            self.snapshots[self._eviction.choose(self.snapshots, divergence)].retired = True

    def remove_retired(self, playing: Collection[int]) -> None:
        """Remove retired opponents whose numbers are not in `playing`."""
        self.opponents = [each for each in self.opponents if not each.retired or each.number in playing]

    def record_results(self, results: Iterable[tuple[int, float]]) -> None:
        """Update the ratings with results (number, the learner's score), in order; unknown numbers are ignored."""
        by_number = {each.number: each for each in self.opponents}
        for number, score in results:
            if number in by_number:
                each = by_number[number]
                self.rating, each.rating = elo_update(self.rating, each.rating, score, self._elo_k)
                each.games, each.score = each.games * DECAY + 1, each.score * DECAY + score

    def state_dict(self) -> dict[str, Any]:
        """Return the ratings and the opponents."""
        return {"rating": self.rating, "next": self._next, "opponents": [dict(vars(each)) for each in self.opponents]}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore the state that `state_dict` returned, with the same guests; a smaller window retires snapshots."""
        opponents = [Opponent(**row) for row in state["opponents"]]
        theirs, own = ([x.name for x in some if x.weights is None] for some in (opponents, self.opponents))
        if theirs != own:
            raise ValueError(
                f"its guests were {', '.join(theirs) or 'nobody'}, but --self_play.guests are "
                f"{', '.join(own) or 'nobody'}; only a new run with its weights (--initialize_from) may have others"
            )
        self.rating, self._next, self.opponents = state["rating"], state["next"], opponents
        self._retire()
