"""Kickoffs of matches: no two alike, and in both matches of a pair the same ones."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from envs.resets.simple import KICKOFF_BOOST, Kickoff
from envs.state.game_state import GameState
from envs.state.layout import Bool


class MatchKickoffs(Kickoff):
    """One of the five kickoffs, a little off the spot; both teams begin alike, rotated by 180 degrees.

    Players and physics are deterministic: from five kickoffs there would be five games. So places are moved by up to
    `MAX_SHIFT` uu in x and y, cars turned by up to `MAX_TURN` rad, boost is within `MAX_BOOST` of 33.3, and every car's
    first controls come up to `MAX_DELAY` ticks late. Only these delays may differ between the teams; who has the sooner
    ones changes with the sides.

    It draws from generators of its own: an arena's also says where demolished cars return, so after a demolition the
    two matches of a pair would get different kickoffs.

    Attributes:
        delay_ticks: `[A, C]` int64, how late each car's first controls come, counted from its last kickoff.
    """

    MAX_SHIFT, MAX_TURN, MAX_BOOST, MAX_DELAY = 50.0, 0.05, 10.0, 16

    def __init__(self, seeds: Sequence[np.random.SeedSequence], num_cars: int) -> None:
        """Makes the generators.

        Args:
            seeds: Arena `i` draws from number `i`; with the same seed two arenas get the same kickoffs.
            num_cars: In an arena.
        """
        self._rngs = [np.random.default_rng(seed) for seed in seeds]
        self.delay_ticks: NDArray[np.int64] = np.zeros((len(self._rngs), num_cars), np.int64)

    def apply(self, state: GameState, mask: Bool, rng: np.random.Generator) -> None:
        """See `StateSetter.apply`; `rng` is not used."""
        for arena in np.flatnonzero(mask).tolist():
            own = self._rngs[arena]
            spawns = self.spawns(state, own)
            shift = own.uniform(-self.MAX_SHIFT, self.MAX_SHIFT, (len(spawns), 2))
            turn = own.uniform(-self.MAX_TURN, self.MAX_TURN, len(spawns))
            boost = KICKOFF_BOOST + own.uniform(-self.MAX_BOOST, self.MAX_BOOST, len(spawns))
            self.place(state, arena, spawns, shift, turn, boost)
            self.delay_ticks[arena] = own.integers(self.MAX_DELAY, size=state.num_cars)
