"""CombinedReward: the weighted sum, and the sum of RLGym's training guide."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from envs.rewards.base import Reward, numbered
from envs.rewards.basic import GoalReward, InAirReward, SpeedTowardBallReward, VelocityBallToGoalReward
from envs.rewards.part_sums import PartSums, under
from envs.state.game_state import GameState
from envs.state.layout import Float
from fabric_rl.base.settings import Finite


@dataclass(eq=False, repr=False)
class CombinedReward(Reward):
    """Weighted sum of rewards; reports the mean of each weighted term as `reward/<class name>`.

    `reward_percent/<class name>` is its share of all that is paid and charged.

    What several terms read of the state (touches, distances...) is computed once: `GameState.quantities`.

    Range and units: those of the terms. Source: RLGym's `CombinedReward`.

    Attributes:
        rewards: The terms.
        weights: One factor per term.
    """

    unit = "as the inner reward"

    rewards: Sequence[Reward]
    """The terms."""
    weights: Sequence[Finite]
    """One factor per term."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.rewards) == 0 or len(self.rewards) != len(self.weights):
            raise ValueError(
                f"CombinedReward: {len(self.rewards)} rewards but {len(self.weights)} weights; give one for each reward"
            )
        for reward, weight in zip(self.rewards, self.weights, strict=True):
            if weight < 0 and reward.only_charges():
                raise ValueError(
                    f"CombinedReward: {reward.label()} is a charge already, the weight {weight:g} would pay for "
                    "it; give a positive weight"
                )
        self.names = numbered(reward.label() for reward in self.rewards)
        self._factors = np.array(self.weights, np.float32)[:, None, None]
        self._parts = PartSums(self.names)

    def compute(self, state: GameState) -> Float:
        """The weighted sum; see `Reward.compute`.

        Raises:
            ValueError: A term is no array of numbers, or has the wrong shape.
            FloatingPointError: NaN or infinity in a term.
        """
        shape = (state.num_arenas, state.num_cars)
        terms = np.empty((len(self.rewards), *shape), np.float32)
        for term, reward, name in zip(terms, self.rewards, self.names, strict=True):
            term[...] = reward(state, name)
        here = True if state.all_present else state.present
        sums = terms.sum(axis=(1, 2), where=here)
        if not np.isfinite(sums).all():
            wrong = ", ".join(name for name, total in zip(self.names, sums.tolist(), strict=True) if total - total != 0)
            raise FloatingPointError(f"{wrong}: NaN or infinity in the rewards")
        self._parts.add(sums, np.abs(terms).sum(axis=(1, 2), where=here), int(np.count_nonzero(state.present)))
        terms *= self._factors  # no matrix product: its rounding may depend on how many arenas there are
        total: Float = terms.sum(axis=0)
        return total

    def state_dict(self) -> dict[str, Any]:
        """The terms' states and the sums of the metrics."""
        return {"terms": [r.state_dict() for r in self.rewards], **self._parts.state_dict()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        for reward, kept in zip(self.rewards, state["terms"], strict=True):
            reward.load_state_dict(kept)
        self._parts.load_state_dict(state)

    def drain_metrics(self) -> dict[str, tuple[float, float]]:
        """See `PartSums`; and what the terms report as `reward/<name>/...`, weighted too."""
        metrics = self._parts.drain(self.weights)
        for name, reward, weight in zip(self.names, self.rewards, self.weights, strict=True):
            metrics |= under(name, reward.drain_metrics(), weight)
        return metrics


def default_reward() -> CombinedReward:
    """RLGym's training guide: in air 0.002, speed toward ball 0.01, ball velocity to goal 0.1, goal 10."""
    return CombinedReward(
        [InAirReward(), SpeedTowardBallReward(), VelocityBallToGoalReward(), GoalReward()], [0.002, 0.01, 0.1, 10.0]
    )
