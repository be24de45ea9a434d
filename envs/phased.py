"""Phased: interface of rewards and state setters that depend on the phase of training."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

from envs.state.game_state import GameState


class Phased(ABC):
    """A component that depends on the phase of training."""

    phases: tuple[str, ...] = ()
    """Names of the known phases; empty if any phase is accepted."""

    def check_phases(self, names: Sequence[str]) -> None:
        """Raise a ValueError unless it knows exactly the phases `names` of a training."""
        if self.phases and set(self.phases) != set(names):
            raise ValueError(
                f"{type(self).__name__}: it has the phases {', '.join(self.phases)}, but training has "
                f"{', '.join(names)}; give both the same names"
            )

    @abstractmethod
    def begin_phase(self, name: str, number: int, state: GameState) -> None:
        """Continue in the phase `name`.

        Args:
            name: The phase.
            number: Its place among the phases of the training, from 1.
            state: The present state, in the middle of the episodes.

        Raises:
            ValueError: It knows phases, but not this one.
        """

    def _set_phases(self, argument: str, parts: dict[str, Any]) -> None:
        if not parts:
            raise ValueError(f"{type(self).__name__}: {argument} must name at least one phase")
        self.phases = tuple(parts)
        self.phase = self.phases[0]

    def _check_known(self, name: str) -> None:
        if name not in self.phases:
            raise ValueError(f"{type(self).__name__}: there is no phase {name}; it has {', '.join(self.phases)}")
