"""Rewards and initial states that change with the phase of training."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from envs.resets.base import StateSetter
from envs.rewards.base import Reward
from envs.rewards.combinators import RewardSignals
from envs.state.game_state import GameState
from envs.state.layout import Bool, Float
from fabric_rl.base.state_schema import load_part


class Phased(ABC):
    """A component that depends on the phase of training."""

    phases: tuple[str, ...] = ()
    """Names of the phases that it knows; empty for one that takes any."""

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


@dataclass(eq=False, repr=False)
class PhasedReward(Reward, Phased):
    """One reward for each phase; the present phase's is paid.

    A reward that compares steps begins with the state in which its phase begins, in the middle of an episode. Range and
    unit: those of the inner rewards. Observations and actions stay the same in all phases, so the agent stays the same.

    Attributes:
        phase: The present phase, at first the first one.
    """

    unit = "as the inner reward"

    rewards: dict[str, Reward]
    """Phase name -> reward."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self._set_phases("rewards", self.rewards)
        for name, reward in self.rewards.items():
            if isinstance(reward, RewardSignals):  # whose signals cannot change
                raise TypeError(
                    f"PhasedReward: {name} has a RewardSignals; put a PhasedReward into each signal instead"
                )
        self._begun = {self.phase}
        self._seen: GameState | None = None

    def begin_phase(self, name: str, number: int, state: GameState) -> None:
        """Continue in the phase `name`; in the present phase nothing happens."""
        self._check_known(name)
        if name == self.phase:
            return
        self.phase = name
        self._begun.add(name)
        self.rewards[name].reset(np.ones(state.num_arenas, np.bool_), state)

    def compute(self, state: GameState) -> Float:
        reward = self.rewards[self.phase]
        return reward(state, f"{type(reward).__name__} ({self.phase})")

    def reset(self, mask: Bool, state: GameState) -> None:
        self._seen = state
        self.rewards[self.phase].reset(mask, state)

    def drain_metrics(self) -> dict[str, tuple[float, float]]:
        """Return the rewards' metrics, added up over the phases, so that the names stay the same."""
        metrics: dict[str, tuple[float, float]] = {}
        for reward in self.rewards.values():
            for name, (total, count) in reward.drain_metrics().items():
                before = metrics.get(name, (0.0, 0.0))
                metrics[name] = (before[0] + total, before[1] + count)
        return metrics

    def state_dict(self) -> dict[str, Any]:
        """Return the present phase, and the states of the rewards whose phases have begun."""
        states = {name: self.rewards[name].state_dict() for name in self.phases if name in self._begun}
        return {"phase": self.phase, "rewards": states}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        for name, inner in state["rewards"].items():
            self._check_known(name)
            if name not in self._begun and self._seen is not None:  # so that it knows how many cars there are
                self.rewards[name].reset(np.ones(self._seen.num_arenas, np.bool_), self._seen)
            load_part(self.rewards[name], inner, f"the reward of phase {name}")
        if state["phase"] not in state["rewards"]:
            raise ValueError(f"its phase {state['phase']!r} has not begun")
        self.phase, self._begun = state["phase"], set(state["rewards"])

    def only_charges(self) -> bool:
        """True if the reward of any phase is never positive."""
        return any(reward.only_charges() for reward in self.rewards.values())


@dataclass(eq=False, repr=False)
class PhasedStates(StateSetter, Phased):
    """One state setter for each phase; running episodes are played to their end.

    Attributes:
        phase: The present phase, at first the first one.
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
