"""Setters made of other setters: mixtures, mirror images, shuffled cars, one setter per phase."""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from rlgym.rocket_league.common_values import BOOST_LOCATIONS

from envs.component import Phased
from envs.resets.base import BALL_VECTORS, CAR_VECTORS, PerArenaSetter, StateSetter, apply_to_arena, normalize_weights
from envs.state.game_state import GameState
from envs.state.layout import BLUE, MIRROR, ORANGE, Bool
from fabric_rl.base.settings import NonNegative, Share

MIRROR_X = np.array([-1, 1, 1], np.float32)
"""Factor on a vector that mirrors it at the plane x = 0."""
MIRROR_X_SPIN = -MIRROR_X
"""Factor for an angular velocity, which mirrors differently because it is a pseudo-vector."""
_PADS = np.array(BOOST_LOCATIONS, np.float64)
PADS_MIRRORED_X = np.linalg.norm(_PADS[:, None] * MIRROR_X - _PADS, axis=-1).argmin(axis=1)
"""`[34]` the pad nearest to the mirror image of each pad; the field's pads are symmetric up to 2 uu."""
WHEELS_MIRRORED_X = [1, 0, 3, 2]


@dataclass(eq=False, repr=False)
class MixedStates(PerArenaSetter):
    """Mixture of setters; one setter is drawn for each episode."""

    _in_state_dict: ClassVar[dict[str, str]] = {"setters": "setters"}
    weighed = "setters"

    setters: Sequence[StateSetter]
    """The setters."""
    weights: Sequence[NonNegative] | dict[str, NonNegative]
    """One number >= 0 per setter, or numbers by class name, such as `{Kickoff: 0.8}`, as in `CombinedReward`; they need
    not sum to one."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.shares = normalize_weights("MixedStates", "setter", len(self.setters), self.weights_in_order(self.weights))
        self._drawn: StateSetter | None = None

    def _apply_one(self, state: GameState, arena: int, rng: np.random.Generator) -> None:
        self._drawn = self.setters[rng.choice(len(self.setters), p=self.shares)]
        apply_to_arena(self._drawn, state, arena, rng)

    def author(self) -> str:
        return "MixedStates" if self._drawn is None else f"{self._drawn.author()} (in MixedStates)"


@dataclass(eq=False, repr=False)
class _Changed(PerArenaSetter):
    """Base class of setters that modify the states of another setter."""

    _in_state_dict: ClassVar[dict[str, str]] = {"inner": "inner"}

    inner: StateSetter
    """Setter of the states."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.inner.loggers():
            raise ValueError(
                f"{type(self).__name__}: cannot wrap {type(self.inner).__name__}, which tracks the cars it places; "
                "nest them the other way round"
            )

    def _apply_one(self, state: GameState, arena: int, rng: np.random.Generator) -> None:
        apply_to_arena(self.inner, state, arena, rng)
        self._change(state, arena, rng)

    def author(self) -> str:
        return f"{self.inner.author()} (in {type(self).__name__})"

    @abstractmethod
    def _change(self, state: GameState, arena: int, rng: np.random.Generator) -> None: ...


@dataclass(eq=False, repr=False)
class MirroredStates(_Changed):
    """Mirror some of another setter's states: exchange left and right, or the teams."""

    probability: Share = 0.5
    """Probability, 0..1, of each of the two changes, drawn independently."""
    left_right: bool = True
    """Mirror at the plane x = 0; see `mirror_left_right`."""
    teams: bool = True
    """Exchange the teams, in arenas where both have the same number of cars; see `exchange_teams`."""

    def _change(self, state: GameState, arena: int, rng: np.random.Generator) -> None:
        left_right, teams = rng.random(2) < self.probability
        if self.left_right and left_right:
            mirror_left_right(state, arena)
        blue, orange = _slots(state, arena)
        if self.teams and teams and len(blue) == len(orange):
            exchange_teams(state, arena)


class ShuffledCars(_Changed):
    """Shuffle the cars of each team in another setter's states."""

    def _change(self, state: GameState, arena: int, rng: np.random.Generator) -> None:
        order = np.arange(state.num_cars)
        for slots in _slots(state, arena):
            order[slots] = rng.permutation(slots)
        _reorder_cars(state, arena, order)


def mirror_left_right(state: GameState, arena: int) -> None:
    """Mirror one arena (world view) at the plane x = 0: positions, motion, rotations, wheels, flips and pads."""
    world, details = state.world, state.details
    for vectors in (world.ball_pos, world.ball_vel, world.car_pos, world.car_vel, world.car_forward, world.car_up):
        vectors[arena] *= MIRROR_X
    world.car_right[arena] *= -MIRROR_X  # a mirrored car is not a rotated one until left and right swap
    for spins in (world.ball_ang_vel, world.car_ang_vel):
        spins[arena] *= MIRROR_X_SPIN
    details["wheels"][arena] = details["wheels"][arena][:, WHEELS_MIRRORED_X]
    details["flip_torque"][arena] *= np.array([-1, 1, -1], np.float32)  # in the car's frame: the roll reverses
    details["auto_flip_direction"][arena] *= -1
    state.pad_timers[arena] = state.pad_timers[arena, PADS_MIRRORED_X]


def exchange_teams(state: GameState, arena: int) -> None:
    """Rotate one arena (world view) by 180 degrees about z, and exchange each blue car with its orange partner."""
    blue, orange = _slots(state, arena)
    if len(blue) != len(orange):
        raise ValueError(f"exchange_teams: teams must be equal, got {len(blue)} blue and {len(orange)} orange cars")
    for name in (*BALL_VECTORS, *CAR_VECTORS):
        getattr(state.world, name)[arena] *= MIRROR
    state.pad_timers[arena] = state.pad_timers[arena, ::-1].copy()
    order = np.arange(state.num_cars)
    order[blue], order[orange] = orange, blue
    _reorder_cars(state, arena, order)


def _slots(state: GameState, arena: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the slots of the blue and of the orange cars that are present."""
    present = state.present[arena]
    return np.flatnonzero(present & (state.team == BLUE)), np.flatnonzero(present & (state.team == ORANGE))


def _reorder_cars(state: GameState, arena: int, order: NDArray[np.int64]) -> None:
    for rows in (state.car_rows, state.car_timers, state.car_flags, state.details):
        rows[arena] = rows[arena, order]


@dataclass(eq=False, repr=False)
class PhasedStates(StateSetter, Phased):
    """One state setter for each phase; running episodes continue to their end.

    Attributes:
        phase: The current phase, initially the first one.
    """

    _in_state_dict: ClassVar[dict[str, str]] = {"phase": "phase", "setters": "setters"}

    setters: dict[str, StateSetter]
    """Phase name -> setter."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self._set_phases("setters", self.setters)

    def begin_phase(self, name: str, number: int, state: GameState) -> None:
        self._check_known(name)
        self.phase = name

    def apply(self, state: GameState, mask: Bool, rng: np.random.Generator) -> None:
        self.setters[self.phase].apply(state, mask, rng)

    def author(self) -> str:
        return f"{self.setters[self.phase].author()} (in PhasedStates, phase {self.phase})"

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self._check_known(state["phase"])
        super().load_state_dict(state)
