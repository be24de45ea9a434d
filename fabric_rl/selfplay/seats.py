"""Seats: which sub-environments of a pool learn, and which belong to their opponents."""

import numpy as np
from numpy.typing import NDArray

Rows = NDArray[np.intp]


class Seats:
    """Which of a pool's `M` sub-environments are the `N` learners.

    In a *played* arena one team learns, and the other one is the opponent; everywhere else all learn (mirror play). `N`
    never changes: where both teams are as large, the learners may change sides, from one episode to the next; where
    they are not, one team learns for good, in one such arena the first team, in the next one the second.

    Attributes:
        played: `[A]` bool.
        learns: `[A]` the team that learns in a played arena.
        learners: `[N]` rows of the pool, arena by arena; those of an arena change with `begin`.
        rivals: `[R]` the other rows; likewise.
    """

    def __init__(self, arena_of: Rows, team_of: Rows, share: float) -> None:
        """Deals the arenas out.

        Args:
            arena_of: `[M]`, see `fabric_rl.types.HasTeams`.
            team_of: `[M]`, likewise.
            share: Of the arenas with two teams: how many are played, 0..1, evenly spread.
        """
        arenas = int(arena_of[-1]) + 1
        sizes = np.stack([np.bincount(arena_of[team_of == team], minlength=arenas) for team in (0, 1)], axis=1)
        both = sizes.all(axis=1)
        turn = np.cumsum(both)  # the k-th arena with two teams is played if k * share passes a whole number
        before = np.floor((turn - 1) * share + 1e-9)
        self.played = both & (np.floor(turn * share + 1e-9) > before)
        self._even = sizes[:, 0] == sizes[:, 1]
        self.learns = np.zeros(arenas, np.intp)
        for kind in (self._even, ~self._even):
            self.learns[self.played & kind] = np.arange((self.played & kind).sum()) % 2
        self._arena_of, self._team_of = arena_of, team_of
        self.learners, self.rivals = np.zeros((2, 0), np.intp)
        self._deal()

    def begin(self, arenas: Rows, team: int | None) -> None:
        """The arenas begin an episode, in which `team` learns; None: the other team than before."""
        change = arenas[self.played[arenas] & self._even[arenas]]
        self.learns[change] = 1 - self.learns[change] if team is None else team
        self._deal()

    def load(self, learns: Rows) -> None:
        """Goes on from what `learns` was."""
        self.learns[:] = learns
        self._deal()

    def _deal(self) -> None:
        learning = ~self.played[self._arena_of] | (self._team_of == self.learns[self._arena_of])
        self.learners, self.rivals = np.flatnonzero(learning), np.flatnonzero(~learning)
