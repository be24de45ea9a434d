"""MechanicsLanes: begin a share of the episodes in a mechanics lane."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from rlgym.rocket_league.common_values import TICKS_PER_SECOND

from envs.component import Phased
from envs.dones import DoneCondition
from envs.loggers import StateLogger
from envs.mechanics.aerial import AirDribbleLane, FlipResetLane, WallToAerialLane
from envs.mechanics.base import Lane, Seen
from envs.mechanics.ground import DribbleLane, HalfFlipLane, JumpShotLane, KickoffLane
from envs.resets.base import Double, PerArenaSetter, StateSetter, apply_to_arena, normalize_weights
from envs.state.game_state import GameState
from envs.state.layout import Bool
from fabric_rl.base.settings import NonNegative, Share

NO_LANE = -1
FIRST_PHASE = 4
"""Number of the first phase of training in which lanes are on by default."""


@dataclass(eq=False, repr=False)
class LaneTracker(StateLogger):
    """Tracker of the lane of every arena, and of the results of each lane's episodes.

    Metrics, for each lane: `lane/<name>_success`, share of finished episodes in which the mechanic succeeded, 0..1;
    `lane/<name>_episodes`, number of finished episodes per arena in an iteration.

    Attributes:
        lane: `[A]` index of the lane that each arena is in, `NO_LANE` (-1) for none.
        actor: `[A]` slot of the lane's car.
        succeeded: `[A]` bool, True if the mechanic has succeeded in this episode.
    """

    _in_state_dict: ClassVar[dict[str, str]] = {"lane": "lane", "actor": "actor", "succeeded": "succeeded"}
    _in_state_dict |= {"notes": "_notes", "counts": "_counts"}

    lanes: Sequence[Lane]
    """The lanes."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self._width = max(lane.num_notes for lane in self.lanes)
        self._drawn: dict[int, tuple[int, int]] = {}
        self._counts = np.zeros((len(self.lanes), 2))  # ended, succeeded
        self._resize(0)

    def _resize(self, arenas: int) -> None:
        self.lane: NDArray[np.int64] = np.full(arenas, NO_LANE)
        self.actor: NDArray[np.int64] = np.zeros(arenas, np.int64)
        self.succeeded = np.zeros(arenas, np.bool_)
        self._notes: Double = np.zeros((arenas, self._width))

    def assign(self, arena: int, lane: int, actor: int) -> None:
        """Set the lane, and the slot of its car, of the episode that the next `reset` begins in `arena`."""
        self._drawn[arena] = (lane, actor)

    def _active_lanes(
        self, state: GameState, arenas: NDArray[np.int64]
    ) -> Iterator[tuple[Lane, NDArray[np.int64], Seen, Double]]:
        """Yield every lane in use in `arenas`, with its arenas, their views and their notes."""
        for number, lane in enumerate(self.lanes):
            here = arenas[self.lane[arenas] == number]
            if len(here):
                notes = self._notes[here, : lane.num_notes]
                yield lane, here, Seen(state, here, self.actor[here]), notes
                self._notes[here, : lane.num_notes] = notes

    def update(self, state: GameState, done: Bool) -> None:
        for lane, here, seen, notes in self._active_lanes(state, np.flatnonzero(self.lane != NO_LANE)):
            self.succeeded[here] |= lane.judge(seen, notes)
        ended = np.flatnonzero(done & (self.lane != NO_LANE))
        for column, each in enumerate((np.ones(len(ended)), self.succeeded[ended])):
            self._counts[:, column] += np.bincount(self.lane[ended], each, len(self.lanes))

    def reset(self, mask: Bool, state: GameState) -> None:
        if len(self.lane) != state.num_arenas:
            self._resize(state.num_arenas)
        self.lane[mask], self.succeeded[mask], self._notes[mask] = NO_LANE, False, 0
        for arena, drawn in self._drawn.items():
            self.lane[arena], self.actor[arena] = drawn
        self._drawn.clear()
        for lane, _, seen, notes in self._active_lanes(state, np.flatnonzero(mask & (self.lane != NO_LANE))):
            lane.begin(seen, notes)

    def drain_metrics(self) -> dict[str, tuple[float, float]]:
        metrics = {}
        for lane, (ended, succeeded) in zip(self.lanes, self._counts.tolist(), strict=True):
            metrics[f"lane/{lane.name}_success"] = (succeeded, ended)
            metrics[f"lane/{lane.name}_episodes"] = (ended, float(len(self.lane)))
        self._counts[:] = 0
        return metrics


class LaneTimeLimit(DoneCondition):
    """Truncate at the time limit of a mechanics lane."""

    truncates = True

    def __init__(self, episodes: LaneTracker) -> None:
        self._episodes = episodes
        self._limits = np.array([lane.time_limit_seconds for lane in episodes.lanes])

    def check(self, state: GameState) -> Bool:
        lane = self._episodes.lane
        over: Bool = (lane != NO_LANE) & (state.episode_ticks / TICKS_PER_SECOND >= self._limits[lane])
        return over


@dataclass(eq=False, repr=False)
class MechanicsLanes(PerArenaSetter, Phased):
    """Mixture of mechanics lanes, in which a share of the episodes begins, and another setter for the other episodes.

    Each episode is drawn independently, from its arena's generator: with probability `mechanics_weight` it begins in a
    lane, drawn by the lanes' weights, for a random car of the arena. The lane's time limit ends it, in addition to the
    pool's own conditions. The pool's reward applies.

    With phases (`fabric_rl.Phases`), the lanes are off before the fourth one unless `phase_weights` sets their share.
    Put other combinators inside this one: if they mirrored or shuffled the cars afterwards, a lane would judge the
    wrong car.

    Attributes:
        episodes: The lane that each arena is in, see `LaneTracker`.
    """

    _in_state_dict: ClassVar[dict[str, str]] = {"mechanics_weight": "mechanics_weight", "inner": "inner"}

    weighed = "lanes"

    inner: StateSetter
    """Setter of all other episodes."""
    lanes: Sequence[Lane] | None = None
    """The drills, with different names. Default: one of every kind."""
    weights: Sequence[NonNegative] | dict[str, NonNegative] | None = None
    """One number >= 0 for each lane, or numbers by the lanes' names, with 1 for the others; they need not sum to one.
    Default: equal weights."""
    mechanics_weight: Share = 0.25
    """Share of the episodes that begin in a lane, 0..1; phases change it."""
    phase_weights: dict[str, Share] | None = None
    """Phase -> share in this phase. Default: 0 before the fourth phase, then `mechanics_weight`."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.lanes = lanes = default_lanes() if self.lanes is None else self.lanes
        names = self.names_of(lanes)
        if len(set(names)) < len(names):
            raise ValueError(f"MechanicsLanes: lanes must have different names, got {', '.join(names)}")
        weights = self.weights_in_order({} if self.weights is None else self.weights)
        self.shares = normalize_weights("MechanicsLanes", "lane", len(names), weights)
        self._own_weight, self._in_phase = self.mechanics_weight, self.phase_weights or {}
        self.episodes = LaneTracker(lanes)
        self._drawn = ""

    @classmethod
    def names_of(cls, parts: Sequence[Lane] | None) -> list[str]:
        return [lane.name for lane in (default_lanes() if parts is None else parts)]

    def _apply_one(self, state: GameState, arena: int, rng: np.random.Generator) -> None:
        if self.mechanics_weight and rng.random() < self.mechanics_weight:
            lanes = self.episodes.lanes
            number = int(rng.choice(len(lanes), p=self.shares))
            actor = int(rng.choice(np.flatnonzero(state.present[arena])))
            lanes[number].place(state, arena, actor, rng)
            self.episodes.assign(arena, number, actor)
            self._drawn = type(lanes[number]).__name__
        else:
            apply_to_arena(self.inner, state, arena, rng)
            self._drawn = ""

    def author(self) -> str:
        return f"{self._drawn or self.inner.author()} (in MechanicsLanes)"

    def conditions(self) -> Sequence[DoneCondition]:
        return [LaneTimeLimit(self.episodes), *super().conditions()]

    def loggers(self) -> Sequence[StateLogger]:
        return [self.episodes, *super().loggers()]

    def check_phases(self, names: Sequence[str]) -> None:
        """Check that training has all phases that `phase_weights` names; it may have others."""
        if unknown := self._in_phase.keys() - set(names):
            raise ValueError(
                f"MechanicsLanes: phase_weights has {', '.join(sorted(unknown))}, but the training has "
                f"{', '.join(names)}"
            )

    def begin_phase(self, name: str, number: int, state: GameState) -> None:
        usual = self._own_weight if number >= FIRST_PHASE else 0.0
        self.mechanics_weight = self._in_phase.get(name, usual)


def default_lanes() -> tuple[Lane, ...]:
    """Return one lane of every kind."""
    kinds = WallToAerialLane, AirDribbleLane, FlipResetLane, JumpShotLane, DribbleLane, HalfFlipLane, KickoffLane
    return tuple(kind() for kind in kinds)
