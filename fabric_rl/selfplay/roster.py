"""Roster: the pool of opponents, the same on all ranks."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from fabric_rl.selfplay.ratings.ladder import elo_update
from fabric_rl.selfplay.sampling import Eviction, Sampling

LATEST = -1
"""The number of the agent as it is, which is in no roster."""
DECAY = 0.99
"""What a result counts for after each one that follows: win rates are of about the last hundred games."""

Weights = dict[str, Tensor]
"""A module's `state_dict`."""


@dataclass
class Opponent:
    """One opponent."""

    number: int
    """Its own, for ever."""
    name: str
    """For people."""
    steps: int
    """Agent-steps of the run when it joined."""
    weights: Weights | None
    """A snapshot's, on the CPU; None: a guest, whom the environment has."""
    rating: float
    """Elo."""
    games: float = 0.0
    """Against it, decayed by `DECAY`."""
    score: float = 0.0
    """The learner's in them: a win 1, a draw 0.5."""
    retired: bool = False
    """It is not drawn any more, but somebody still plays it."""

    @property
    def win_rate(self) -> float:
        """Win rate of the learner against it; one win and one loss are added, so that it begins at 0.5."""
        return (self.score + 1) / (self.games + 2)


class Roster:
    """Opponents that may be drawn, with ratings and results.

    Attributes:
        opponents: Guests first, then snapshots, the oldest first; retired ones among them.
        rating: The learner's Elo.
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
        self._window, self._latest_ratio, self._elo_k, self._initial_elo = window, latest_ratio, elo_k, initial_elo
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
        """Numbers of the guests, which are also their places among the environment's guests."""
        return {each.number for each in self.opponents if each.weights is None}

    @property
    def active(self) -> list[Opponent]:
        """Opponents that may be drawn."""
        return [each for each in self.opponents if not each.retired]

    @property
    def snapshots(self) -> list[Opponent]:
        """Copies of the agent among them."""
        return [each for each in self.active if each.weights is not None]

    def weights(self, number: int) -> Weights | None:
        """Return the weights of the snapshot of that number."""
        return next(each.weights for each in self.opponents if each.number == number)

    def draw(self, rng: np.random.Generator) -> int:
        """A number: the latest with its ratio, else one of the roster by the sampling's weights."""
        if rng.random() < self._latest_ratio or not self.active:
            return LATEST
        weights = self._sampling.weights(self.active, self.rating)
        share = np.full(len(weights), 1.0) if not weights.any() else weights
        return self.active[int(rng.choice(len(share), p=share / share.sum()))].number

    def admit(self, steps: int, weights: Weights, divergence: NDArray[np.float64] | None) -> None:
        """A snapshot joins, with the learner's rating; if that is one more than the window, one retires.

        Args:
            steps: Of the run.
            weights: Its own; kept.
            divergence: `[K + 1, K + 1]` of the snapshots and, last, the new one, see `Eviction.choose`.
        """
        self.opponents.append(Opponent(self._next, f"{steps:,} steps", steps, weights, self.rating))
        self._next += 1
        if len(self.snapshots) > self._window:
            self.snapshots[self._eviction.choose(self.snapshots, divergence)].retired = True

    def forget(self, playing: Collection[int]) -> None:
        """Remove opponents that have retired and do not play any more."""
        self.opponents = [each for each in self.opponents if not each.retired or each.number in playing]

    def note(self, results: Iterable[tuple[int, float]]) -> None:
        """Takes (number, the learner's score) of games, in order; those against the latest say nothing."""
        by_number = {each.number: each for each in self.opponents}
        for number, score in results:
            if number in by_number:
                each = by_number[number]
                self.rating, each.rating = elo_update(self.rating, each.rating, score, self._elo_k)
                each.games, each.score = each.games * DECAY + 1, each.score * DECAY + score

    def state_dict(self) -> dict[str, Any]:
        """Return ratings and opponents."""
        return {"rating": self.rating, "next": self._next, "opponents": [dict(vars(each)) for each in self.opponents]}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Goes on from what `state_dict` gave, in a smaller window; weights are checked where the agent is known.

        Raises:
            ValueError: It is no roster, or one with other guests.
        """
        opponents = [Opponent(**row) for row in state["opponents"]]
        numbers = [opponent.number for opponent in opponents]
        guests = [opponent.number for opponent in opponents if opponent.weights is None]
        in_order = sorted({-1, *numbers, state["next"]}) == [-1, *numbers, state["next"]]
        if not in_order or guests != [*range(len(guests))]:
            raise ValueError("its opponents are not in order")
        theirs, own = ([x.name for x in some if x.weights is None] for some in (opponents, self.opponents))
        if theirs != own:
            raise ValueError(
                f"its guests were {', '.join(theirs) or 'nobody'}, --self_play.guests are {', '.join(own) or 'nobody'}"
                "; a run keeps its guests, one that begins with its weights (--initialize_from) may have others"
            )
        self.rating, self._next, self.opponents = state["rating"], state["next"], opponents
        while len(self.snapshots) > self._window:
            self.snapshots[self._eviction.choose(self.snapshots, None)].retired = True
