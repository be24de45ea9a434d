"""Decomposition of a reward into weighted terms, through sums, signals and linear wrappers."""

import copy
from dataclasses import dataclass

from envs.component import unique_names
from envs.rewards.base import Reward
from envs.rewards.combinators import (
    AnnealedReward,
    CombinedReward,
    PerSecondReward,
    PhasedReward,
    RewardSignals,
    TeamSpiritReward,
    WrappedReward,
)
from envs.rewards.events import EventReward
from envs.rewards.potential import GoalViewReward, PotentialReward

_LINEAR = (AnnealedReward, PerSecondReward, PotentialReward, TeamSpiritReward)
"""Linear wrappers: applied to a sum they equal the sum over its terms."""
INVARIANT_UNITS = ("per second", "per change", "per event")
"""Units with the same reward per minute at every tick skip."""


@dataclass(frozen=True)
class RewardTerm:
    """One term of a reward.

    Attributes:
        name: Name in the pool's metrics, prefixed with the signal's name if there are signals.
        reward: The reward without its weight; copy it before use.
        weight: Factor of the reward.
        unit: Unit, see `envs.rewards.base`; empty if it has none, because it is clipped, normalized or discounted.
    """

    name: str
    reward: Reward
    weight: float
    unit: str

    def copy_weighted(self) -> Reward:
        """Return an independent copy of the weighted term."""
        weighted = AnnealedReward(copy.deepcopy(self.reward))
        weighted.hold(self.weight)
        return weighted


class _Event(EventReward):
    """One event of an `EventReward`, without its weight."""

    def label(self) -> str:
        return f"EventReward/{self._parts.names[0]}"


def reward_terms(reward: Reward) -> list[RewardTerm]:
    """Return the terms of `reward` in its current phase, one per event; a single one if it is not a sum."""
    terms = _terms(reward)
    names = unique_names(f"{prefix}{term.label()}" for prefix, term, _ in terms)
    return [RewardTerm(name, term, weight, unit_of(term)) for (_, term, weight), name in zip(terms, names, strict=True)]


def term_label(name: str) -> str:
    """Return a term's name without the word Reward."""
    head, _, number = name.rpartition("_")
    return f"{head.removesuffix('Reward')}_{number}" if number.isdigit() else name.removesuffix("Reward")


def unit_of(reward: Reward) -> str:
    """Return the unit of a reward; empty if it has none of its own (see `RewardTerm`) or is discounted per step."""
    if isinstance(reward, PotentialReward | GoalViewReward) and reward.gamma != 1:
        return ""
    if reward.unit != "as the inner reward":
        return reward.unit
    if isinstance(reward, AnnealedReward | TeamSpiritReward):
        return unit_of(reward.reward)
    return ""


def _terms(reward: Reward) -> list[tuple[str, Reward, float]]:
    """Return (prefix of the name, term, weight) of every term."""
    if type(reward) is CombinedReward:
        found = zip(reward.rewards, reward.factors, strict=True)
        return [(prefix, term, w * weight) for inner, weight in found for prefix, term, w in _terms(inner)]
    if type(reward) is EventReward and sum(map(bool, reward.weights.values())) > 1:
        return [("", _Event(**{event: 1.0}), weight) for event, weight in reward.weights.items() if weight]
    if isinstance(reward, PhasedReward):
        return _terms(reward.rewards[reward.phase])
    if type(reward) is RewardSignals:
        signals = reward.signals.items()
        return [(f"{name}/{prefix}", term, w) for name, inner in signals for prefix, term, w in _terms(inner)]
    if isinstance(reward, _LINEAR) and len(inner_terms := _terms(reward.reward)) > 1:
        return [(prefix, _around(reward, term), weight) for prefix, term, weight in inner_terms]
    return [("", reward, 1.0)]


def _around(wrapper: WrappedReward, inner: Reward) -> Reward:
    """Return a copy of `wrapper` around another reward."""
    other = copy.copy(wrapper)
    other.reward = inner
    return copy.deepcopy(other)
