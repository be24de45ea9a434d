"""Base classes of state setters, and their shared functions."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from envs.component import Component
from envs.dones import DoneCondition
from envs.loggers import StateLogger
from envs.state.game_state import GameState
from envs.state.layout import Bool

Double = NDArray[np.float64]

CAR_REST_HEIGHT = 17.0
"""uu, a car's centre when it stands on its wheels."""
BALL_RELEASE_VEL = (0.0, 0.0, -0.01)
"""uu/s for a falling ball: in RocketSim, a ball without velocity and spin hangs in the air until touched."""
BALL_VECTORS = ("ball_pos", "ball_vel", "ball_ang_vel")
CAR_VECTORS = ("car_pos", "car_vel", "car_ang_vel", "car_forward", "car_right", "car_up")


class StateSetter(Component, ABC):
    """Base class: write the initial states of episodes."""

    @abstractmethod
    def apply(self, state: GameState, mask: Bool, rng: np.random.Generator) -> None:
        """Write `state.world` and the car fields of the arenas in `mask [A]`.

        The rows are already in a base state (all zero, cars upright with wheels down), so only differences from it
        need to be written. Values in slots without a car (`state.present`) are dropped. All randomness comes from
        `rng`. The pool calls this for one arena at a time with that arena's own generator, so an arena's episodes do
        not depend on the number of arenas.
        """

    def conditions(self) -> Sequence[DoneCondition]:
        """Return done conditions for the pool to add to its own; by default, the conditions of the inner setters."""
        return [each for setter in self._inside() for each in setter.conditions()]

    def loggers(self) -> Sequence[StateLogger]:
        """Return state loggers for the pool to add to its own; by default, the loggers of the inner setters."""
        return [each for setter in self._inside() for each in setter.loggers()]

    def _inside(self) -> "Iterator[StateSetter]":
        return (child for child in self.children() if isinstance(child, StateSetter))

    def author(self) -> str:
        """Return the class that wrote the last state, for messages; wrappers add the name of the inner setter."""
        return type(self).__name__


class PerArenaSetter(StateSetter):
    """Base class of setters that write one arena after another."""

    def apply(self, state: GameState, mask: Bool, rng: np.random.Generator) -> None:
        for arena in np.flatnonzero(mask).tolist():
            self._apply_one(state, arena, rng)

    @abstractmethod
    def _apply_one(self, state: GameState, arena: int, rng: np.random.Generator) -> None:
        """Write row `arena` of `state`."""


def apply_to_arena(setter: StateSetter, state: GameState, arena: int, rng: np.random.Generator) -> None:
    """Let `setter` write row `arena` of `state`."""
    mask = np.zeros(state.num_arenas, np.bool_)
    mask[arena] = True
    setter.apply(state, mask, rng)


def normalize_weights(name: str, what: str, count: int, weights: Sequence[float]) -> Double:
    """Return normalized weights; raise a ValueError unless there is one per `what` and not all are 0."""
    if not count == len(weights) > 0 or sum(weights) <= 0:
        raise ValueError(
            f"{name}: weights must be >= 0, one for each {what}, with a positive sum, got {count} {what}s and weights "
            f"{list(weights)}"
        )
    return np.array(weights) / sum(weights)
