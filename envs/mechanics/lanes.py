"""MechanicsLanes: a share of the episodes begins in a mechanics lane."""

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from rlgym.rocket_league.common_values import TICKS_PER_SECOND

from envs.checks import check_part
from envs.dones import DoneCondition
from envs.loggers import StateLogger
from envs.mechanics.aerial import AirDribbleLane, FlipResetLane, WallToAerialLane
from envs.mechanics.base import Lane, Seen
from envs.mechanics.ground import DribbleLane, HalfFlipLane, JumpShotLane
from envs.mechanics.kickoffs import KickoffLane
from envs.phased import Phased
from envs.resets.base import Double, StateSetter, check_share, only, shares_of
from envs.state.game_state import GameState
from envs.state.layout import Bool
from fabric_rl.base.settings import describe_value

NO_LANE = -1
FIRST_PHASE = 4
"""Number of the phase of training from which on the lanes are on by themselves."""


class LaneEpisodes(StateLogger):
    """Which lane every arena is in, until its episode ends, and how the episodes of each lane went.

    Metrics, for each lane: `lane/<name>_success`, episodes in which the mechanic succeeded over all of that lane that
    ended, 0..1; `lane/<name>_episodes`, how many ended, per arena, since the last log.

    Attributes:
        lanes: The lanes.
        lane: `[A]` index of the lane that each arena is in, `NO_LANE` (-1) for none.
        actor: `[A]` slot of the car whose lane it is.
        succeeded: `[A]` bool, whether the mechanic has succeeded in this episode.
    """

    _in_state_dict: ClassVar = {"lane": "lane", "actor": "actor", "succeeded": "succeeded"}
    _in_state_dict |= {"notes": "_notes", "counts": "_counts"}

    def __init__(self, lanes: Sequence[Lane]) -> None:
        self.lanes = tuple(lanes)
        self._width = max(lane.num_notes for lane in lanes)
        self._drawn: dict[int, tuple[int, int]] = {}
        self._counts = np.zeros((len(lanes), 2))  # ended, succeeded
        self._resize(0, 0)

    def _resize(self, arenas: int, num_cars: int) -> None:
        self._num_cars = num_cars
        self.lane: NDArray[np.int64] = np.full(arenas, NO_LANE)
        self.actor: NDArray[np.int64] = np.zeros(arenas, np.int64)
        self.succeeded = np.zeros(arenas, np.bool_)
        self._notes: Double = np.zeros((arenas, self._width))

    def draw(self, arena: int, lane: int, actor: int) -> None:
        """The episode that `reset` begins in `arena` is one of `lane` with the car in slot `actor`."""
        self._drawn[arena] = (lane, actor)

    def _looks(self, state: GameState, arenas: NDArray[np.int64]) -> list[tuple[Lane, NDArray[np.int64], Seen]]:
        """Every lane that some of `arenas` are in, which these are, and what is to be seen there."""
        looks = []
        for number, lane in enumerate(self.lanes):
            here = arenas[self.lane[arenas] == number]
            if len(here):
                looks.append((lane, here, Seen(state, here, self.actor[here])))
        return looks

    def update(self, state: GameState, done: Bool) -> None:
        for lane, here, seen in self._looks(state, np.flatnonzero(self.lane != NO_LANE)):
            notes = self._notes[here, : lane.num_notes]
            self.succeeded[here] |= lane.judge(seen, notes)
            self._notes[here, : lane.num_notes] = notes
        ended = np.flatnonzero(done & (self.lane != NO_LANE))
        for column, each in enumerate((np.ones(len(ended)), self.succeeded[ended])):
            self._counts[:, column] += np.bincount(self.lane[ended], each, len(self.lanes))

    def reset(self, mask: Bool, state: GameState) -> None:
        if len(self.lane) != state.num_arenas:
            self._resize(state.num_arenas, state.num_cars)
        self.lane[mask], self.succeeded[mask], self._notes[mask] = NO_LANE, False, 0
        for arena, drawn in self._drawn.items():
            self.lane[arena], self.actor[arena] = drawn
        self._drawn.clear()
        for lane, here, seen in self._looks(state, np.flatnonzero(mask & (self.lane != NO_LANE))):
            notes = self._notes[here, : lane.num_notes]
            lane.begin(seen, notes)
            self._notes[here, : lane.num_notes] = notes

    def drain_metrics(self) -> dict[str, tuple[float, float]]:
        metrics = {}
        for lane, (ended, succeeded) in zip(self.lanes, self._counts.tolist(), strict=True):
            metrics[f"lane/{lane.name}_success"] = (succeeded, ended)
            metrics[f"lane/{lane.name}_episodes"] = (ended, float(len(self.lane)))
        self._counts[:] = 0
        return metrics

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Takes what `state_dict` gave; a ValueError for that of other lanes."""
        counts, notes = state["counts"], state["notes"]
        if counts.shape != self._counts.shape or notes.shape[1] != self._width:
            raise ValueError(f"{len(counts)} lanes with {notes.shape[1]} notes were saved, here are {len(self.lanes)}")
        super().load_state_dict(state)


class LaneTimeLimit(DoneCondition):
    """An episode in a mechanics lane has lasted as long as that lane allows. Truncates."""

    truncates = True

    def __init__(self, episodes: LaneEpisodes) -> None:
        self._episodes = episodes
        self._limits = np.array([lane.time_limit_seconds for lane in episodes.lanes])

    def check(self, state: GameState) -> Bool:
        lane = self._episodes.lane
        over: Bool = (lane != NO_LANE) & (state.episode_ticks / TICKS_PER_SECOND >= self._limits[lane])
        return over


class MechanicsLanes(StateSetter, Phased):
    """Begins a share of the episodes in mechanics lanes, the others as another setter does.

    Each episode is drawn on its own, from its arena's generator: with probability `mechanics_weight` it is one of a
    lane (by the lanes' weights) for one of the arena's cars, each as likely. The lane's time limit ends it, besides the
    pool's own conditions. The reward is the pool's.

    With phases (`fabric_rl.Phases`) the lanes are off before the fourth, unless `phase_weights` says otherwise. Put
    other combinators inside: mirrored or shuffled cars would not be those that a lane watches.

    Attributes:
        mechanics_weight: The present share.
        lanes: The lanes.
        episodes: Which lane each arena is in, see `LaneEpisodes`.
    """

    _in_state_dict: ClassVar = {"mechanics_weight": "mechanics_weight", "inner": "inner"}

    def __init__(
        self,
        inner: StateSetter,
        lanes: Sequence[Lane] | None = None,
        weights: Sequence[float] | None = None,
        mechanics_weight: float = 0.25,
        phase_weights: dict[str, float] | None = None,
    ) -> None:
        """Creates the setter.

        Args:
            inner: Writes all other episodes.
            lanes: The drills, with different names. Default: one of every kind.
            weights: One number >= 0 for each lane; they need not sum to one. Default: all the same.
            mechanics_weight: Share of the episodes that begin in a lane, 0..1.
            phase_weights: Phase -> this share in it. Default: 0 before the fourth phase, `mechanics_weight` from there.
        """
        self.inner: StateSetter = check_part("MechanicsLanes", "inner", inner, StateSetter)
        self.lanes = default_lanes() if lanes is None else tuple(lanes)
        for lane in self.lanes:
            if not isinstance(lane, Lane):
                raise TypeError(
                    f"MechanicsLanes: lanes must be envs.mechanics Lane objects, got {describe_value(lane)}"
                )
        names = [lane.name for lane in self.lanes]
        if len(set(names)) < len(names):
            raise ValueError(f"MechanicsLanes: every lane needs a name of its own, got {', '.join(names)}")
        weights = [1.0] * len(names) if weights is None else weights
        self.shares = shares_of("MechanicsLanes", "lane", len(names), weights)
        self.mechanics_weight = self._own_weight = check_share("MechanicsLanes", "mechanics_weight", mechanics_weight)
        self.phase_weights = {
            name: check_share("MechanicsLanes", f"phase_weights of {name}", share)
            for name, share in (phase_weights or {}).items()
        }
        self.episodes = LaneEpisodes(self.lanes)
        self._drawn = ""

    def apply(self, state: GameState, mask: Bool, rng: np.random.Generator) -> None:
        for arena in np.flatnonzero(mask).tolist():
            if self.mechanics_weight and rng.random() < self.mechanics_weight:
                number = int(rng.choice(len(self.lanes), p=self.shares))
                actor = int(rng.choice(np.flatnonzero(state.present[arena])))
                self.lanes[number].place(state, arena, actor, rng)
                self.episodes.draw(arena, number, actor)
                self._drawn = type(self.lanes[number]).__name__
            else:
                self.inner.apply(state, only(mask, arena), rng)
                self._drawn = ""

    def author(self) -> str:
        """The lane or the setter that was drawn last, in this one."""
        return f"{self._drawn or self.inner.author()} (in MechanicsLanes)"

    def conditions(self) -> Sequence[DoneCondition]:
        """The lanes' time limits, and what the inner setter brings."""
        return [LaneTimeLimit(self.episodes), *super().conditions()]

    def loggers(self) -> Sequence[StateLogger]:
        """The lanes' episodes, and what the inner setter brings."""
        return [self.episodes, *super().loggers()]

    def check_phases(self, names: Sequence[str]) -> None:
        """See `Phased.check_phases`: any, but all that `phase_weights` names."""
        if unknown := self.phase_weights.keys() - set(names):
            raise ValueError(
                f"MechanicsLanes: phase_weights has {', '.join(sorted(unknown))}, but training has {', '.join(names)}"
            )

    def begin_phase(self, name: str, number: int, state: GameState) -> None:
        usual = self._own_weight if number >= FIRST_PHASE else 0.0
        self.mechanics_weight = self.phase_weights.get(name, usual)


def default_lanes() -> tuple[Lane, ...]:
    """One lane of every kind."""
    return (
        WallToAerialLane(),
        AirDribbleLane(),
        FlipResetLane(),
        JumpShotLane(),
        DribbleLane(),
        HalfFlipLane(),
        KickoffLane(),
    )
