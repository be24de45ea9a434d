"""Which sub-environments of a pool learn, and which opponent plays the others."""

import numpy as np
from numpy.typing import NDArray

from fabric_rl.selfplay.roster import LATEST, Roster

Rows = NDArray[np.intp]


class TeamAssignment:
    """Chooses the `N` learners among a pool's `M` sub-environments.

    In a *played* arena one team learns, and the other one is the opponent; everywhere else all learn (mirror play). `N`
    never changes: where both teams are as large, the learners may change sides, from one episode to the next; where
    they are not, one team learns for good, in one such arena the first team, in the next one the second.

    Attributes:
        arena_of: `[M]` the arena of each sub-environment.
        played: `[A]` bool, an opponent plays one of the teams.
        learns: `[A]` the team that learns in a played arena.
        learners: `[N]` rows of the pool, arena by arena; those of an arena change with `begin`.
        rivals: `[R]` the other rows; likewise.
    """

    def __init__(self, arena_of: Rows, team_of: Rows, share: float) -> None:
        """Choose the arenas with opponents, and the first learners.

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
        self.arena_of, self._team_of = arena_of, team_of
        self.learners, self.rivals = np.zeros((2, 0), np.intp)
        self._assign()

    def begin(self, arenas: Rows, team: int | None) -> None:
        """Begin episodes in the arenas, in which `team` learns; None: the other team than before."""
        change = arenas[self.played[arenas] & self._even[arenas]]
        self.learns[change] = 1 - self.learns[change] if team is None else team
        self._assign()

    def load(self, learns: Rows) -> None:
        """Restore the saved `learns`."""
        self.learns[:] = learns
        self._assign()

    def _assign(self) -> None:
        learning = ~self.played[self.arena_of] | (self._team_of == self.learns[self.arena_of])
        self.learners, self.rivals = np.flatnonzero(learning), np.flatnonzero(~learning)


class Pairings:
    """Chooses the opponent of each played arena: that of its slot, from its next episode on.

    Attributes:
        slots: `[at_once]` numbers of the opponents for the episodes that begin from now on.
        slot_of: `[A]` the slot of each arena.
        opponent: `[A]` number of the opponent that plays in each arena now.
    """

    def __init__(self, assignment: TeamAssignment, roster: Roster, at_once: int, rng: np.random.Generator) -> None:
        self.rng, self._assignment, self._roster = rng, assignment, roster
        self.slots = np.full(at_once, LATEST)
        self.opponent = np.full(len(assignment.played), LATEST)
        # Two played arenas in a row, in which the one and the other side learns, have the same opponent.
        self.slot_of = (np.cumsum(assignment.played) - 1) // 2 % at_once

    def swap(self) -> None:
        """Sample a new opponent for every slot."""
        self.slots[:] = [self._roster.draw(self.rng) for _ in self.slots]

    def begin(self, arenas: Rows) -> None:
        """Begin episodes in the arenas."""
        self.opponent[arenas] = self.slots[self.slot_of[arenas]]

    @property
    def playing(self) -> set[int]:
        """Numbers of the opponents that play now, or will play when the next episodes begin."""
        return {*self.opponent[self._assignment.played].tolist(), *self.slots.tolist()}

    def among(self, rows: slice) -> list[tuple[int, Rows]]:
        """Return the opponents among the pool's `rows`: their numbers, and the rows `[n]` of each."""
        rivals = self._assignment.rivals
        rivals = rivals[(rivals >= rows.start) & (rivals < rows.stop)]
        number = self.opponent[self._assignment.arena_of[rivals]]
        return [(each, rivals[number == each]) for each in np.unique(number).tolist()]
