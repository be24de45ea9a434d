"""Rewards and initial states that change with the phase of training."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from envs.checks import check_named
from envs.resets.base import StateSetter
from envs.rewards.base import Reward
from envs.rewards.combinators import RewardSignals
from envs.state.game_state import GameState
from envs.state.layout import Bool, Float
from fabric_rl.base.state_schema import load_part


class Phased(ABC):
    """A component that is told which phase of training it is.

    Attributes:
        phases: Names of the phases that it knows; empty for one that takes any.
    """

    phases: tuple[str, ...] = ()

    def check_phases(self, names: Sequence[str]) -> None:
        """Checks that it knows the phases of a training.

        Raises:
            ValueError: It lacks one of `names`, or has one more.
        """
        if self.phases and set(self.phases) != set(names):
            raise ValueError(
                f"{type(self).__name__}: it has the phases {', '.join(self.phases)}, but training has "
                f"{', '.join(names)}; give both the same names"
            )

    @abstractmethod
    def begin_phase(self, name: str, number: int, state: GameState) -> None:
        """Goes on in the phase `name`.

        Args:
            name: The phase.
            number: Its place among the phases of the training, from 1.
            state: The present state, in the middle of the episodes.

        Raises:
            ValueError: It knows phases, but not this one.
        """

    def _check_known(self, name: str) -> None:
        if name not in self.phases:
            raise ValueError(f"{type(self).__name__}: there is no phase {name}; it has {', '.join(self.phases)}")


class PhasedReward(Reward, Phased):
    """One reward for each phase; the present phase's is paid.

    A reward that compares steps begins with the state in which its phase begins, in the middle of an episode. Range and
    unit: those of the inner rewards. Observations and actions stay the same in all phases, so the agent stays the same.

    Attributes:
        rewards: Phase name -> reward.
        phase: The present phase, at first the first one.
    """

    unit = "as the inner reward"

    def __init__(self, rewards: dict[str, Reward]) -> None:
        """Takes phase name -> reward.

        Raises:
            ValueError: No phases.
            TypeError: One is no reward, or a `RewardSignals`, whose signals cannot change.
        """
        check_named("PhasedReward", "rewards", rewards, Reward, "the reward of {}", "phase and its reward")
        for name, reward in rewards.items():
            if isinstance(reward, RewardSignals):
                raise TypeError(
                    f"PhasedReward: {name} has a RewardSignals; put a PhasedReward into each signal instead"
                )
        self.rewards, self.phases = dict(rewards), tuple(rewards)
        self.phase = self.phases[0]
        self._begun = {self.phase}
        self._seen: GameState | None = None

    def begin_phase(self, name: str, number: int, state: GameState) -> None:
        """See `Phased.begin_phase`; in the present phase nothing happens."""
        self._check_known(name)
        if name == self.phase:
            return
        self.phase = name
        self._begun.add(name)
        self.rewards[name].reset(np.ones(state.num_arenas, np.bool_), state)

    def compute(self, state: GameState) -> Float:
        """Compute the reward of the current phase."""
        reward = self.rewards[self.phase]
        return reward(state, f"{type(reward).__name__} ({self.phase})")

    def reset(self, mask: Bool, state: GameState) -> None:
        """Resets the present phase's reward."""
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
        """The present phase, and the states of the rewards whose phases have begun."""
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


class PhasedStates(StateSetter, Phased):
    """One state setter for each phase; running episodes are played to their end.

    Attributes:
        setters: Phase name -> setter.
        phase: The present phase, at first the first one.
    """

    _in_state_dict: ClassVar = {"phase": "phase", "setters": "setters"}

    def __init__(self, setters: dict[str, StateSetter]) -> None:
        """Takes phase name -> setter.

        Raises:
            ValueError: No phases.
            TypeError: One is no state setter.
        """
        check_named("PhasedStates", "setters", setters, StateSetter, "the setter of {}", "phase and its state setter")
        self.setters, self.phases = dict(setters), tuple(setters)
        self.phase = self.phases[0]

    def begin_phase(self, name: str, number: int, state: GameState) -> None:
        self._check_known(name)
        self.phase = name

    def apply(self, state: GameState, mask: Bool, rng: np.random.Generator) -> None:
        self.setters[self.phase].apply(state, mask, rng)

    def author(self) -> str:
        """The present phase's setter, in this one."""
        return f"{self.setters[self.phase].author()} (in PhasedStates, phase {self.phase})"

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Takes what `state_dict` gave; a ValueError for a phase that there is not."""
        self._check_known(state["phase"])
        super().load_state_dict(state)
