"""Rewards for boost: having it, taking it, spending it."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from envs.rewards.base import (
    ZERO,
    RememberingReward,
    Reward,
    demoed_now_or_before,
    except_for,
    only_present,
    weights_of,
)
from envs.rewards.combinators import PerSecondReward
from envs.state.game_state import GameState
from envs.state.layout import Float
from fabric_rl.base.settings import Finite, NonNegative

_PER_UNIT = np.float32(0.01)


class SaveBoostReward(Reward):
    """Have boost: `sqrt(boost / 100)`.

    Range 0..1, 0 while demolished; per step, so it depends on the tick skip. Source: RLGym's first version.
    """

    value_range = (0, 1)

    def compute(self, state: GameState) -> Float:
        shared = state.quantities
        return only_present(state, np.where(shared.is_demoed, ZERO, shared.boost_root))


@dataclass(eq=False, repr=False)
class BoostKeepReward(PerSecondReward):
    """Have boost: `sqrt(boost / 100)` per second.

    Range 0..1 for each second; per second, whatever the tick skip. Source: rlgym-tools' `BoostKeepReward`, which also
    pays demolished cars.
    """

    value_range = (0, 1)

    reward: Reward = field(default_factory=SaveBoostReward, init=False)

    def label(self) -> str:
        """BoostKeepReward."""
        return type(self).__name__


class _BoostDifference(RememberingReward):
    """Keeps the last amounts; what a car has after a demolition is no gain and no loss."""

    def _first(self, state: GameState) -> dict[str, NDArray[np.generic]]:
        return {"amount": self._amount(state), "demoed": state.quantities.is_demoed}

    @staticmethod
    def _amount(state: GameState) -> Float:
        """`[A, C]`, a new array."""
        raise NotImplementedError

    def _change(self, state: GameState) -> Float:
        kept, amount, shared = self._recall(), self._amount(state), state.quantities
        change = except_for(demoed_now_or_before(state, kept["demoed"]), amount - kept["amount"])
        self._hold(amount=amount, demoed=shared.is_demoed)
        return change


class CollectBoostReward(_BoostDifference):
    """Take boost: `max(0, boost' - boost) / 100`.

    Range 0..1; per change. Boost that burns in the step of a pickup is taken off, so at high tick skips a little less
    is paid. The boost that a respawning car gets is not paid for.
    """

    unit = "per change"
    value_range = (0, 1)

    @staticmethod
    def _amount(state: GameState) -> Float:
        return state.boost * _PER_UNIT

    def compute(self, state: GameState) -> Float:
        return only_present(state, np.maximum(self._change(state), ZERO))


@dataclass(eq=False, repr=False)
class BoostChangeReward(_BoostDifference):
    """Gain boost, do not spend it: the change of `sqrt(boost / 100)`, with a weight for gains and one for losses.

    Range -1..1; per change, whatever the tick skip up to gains and losses within one step. Source: rlgym-tools'
    `BoostChangeReward`, which also pays for the boost that a respawning car gets.
    """

    unit = "per change"
    value_range = (-1, 1)

    gain: Finite = 1.0
    """Factor on gains."""
    loss: NonNegative = 1.0
    """Factor on losses, at least 0; they are negative already."""

    def __post_init__(self) -> None:
        super().__post_init__()
        weights_of(self)

    @staticmethod
    def _amount(state: GameState) -> Float:
        return state.quantities.boost_root

    def compute(self, state: GameState) -> Float:
        change = self._change(state)
        return only_present(state, change * np.where(change > 0, np.float32(self.gain), np.float32(self.loss)))
