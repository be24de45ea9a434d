"""CombinedReward: the weighted sum, and the sum of RLGym's training guide."""

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from envs.checks import check_parts, finite_numbers
from envs.rewards.base import Reward, labels_of, paid_by
from envs.rewards.basic import GoalReward, InAirReward, SpeedTowardBallReward, VelocityBallToGoalReward
from envs.rewards.shared import sharing
from envs.state.game_state import GameState
from envs.state.layout import Bool, Float
from envs.stateful import NOT_NEGATIVE


class CombinedReward(Reward):
    """Weighted sum of rewards; reports the mean of each weighted term as `reward/<class name>`.

    What several terms read of the state (touches, distances...) is worked out once, see `envs.rewards.shared`.

    Range and units: those of the terms. Source: RLGym's `CombinedReward`.

    Attributes:
        rewards: The terms.
        weights: One factor per term.
    """

    unit = "as the inner reward"
    _in_state_dict: ClassVar = {"terms": "rewards", "sums": "_sums", "count": "_count"}
    _state_bounds: ClassVar = {"count": NOT_NEGATIVE}

    def __init__(self, rewards: Sequence[Reward], weights: Sequence[float]) -> None:
        """Creates the sum.

        Args:
            rewards: The terms.
            weights: One factor per term.

        Raises:
            ValueError: Not one weight for each reward, one that is no finite number, or a negative one for a term that
                only charges (it would pay for what the term is to prevent).
            TypeError: A term is no reward.
        """
        if len(rewards) == 0 or len(rewards) != len(weights):
            raise ValueError(
                f"CombinedReward: {len(rewards)} rewards but {len(weights)} weights; give one weight for each reward"
            )
        self.rewards: tuple[Reward, ...] = check_parts("CombinedReward", "rewards", rewards, Reward)
        self.weights = tuple(finite_numbers("CombinedReward", "weights", weights))
        for reward, weight in zip(self.rewards, self.weights, strict=True):
            if weight < 0 and reward.only_charges():
                raise ValueError(
                    f"CombinedReward: {reward.label()} is a charge already, the weight {weight:g} would pay for "
                    "it; give a positive weight"
                )
        self.names = labels_of(self.rewards)
        self._factors = np.array(self.weights, np.float32)[:, None, None]
        self._sums = np.zeros(len(self.rewards))
        self._count = 0

    def compute(self, state: GameState) -> Float:
        """The weighted sum; see `Reward.compute`.

        Raises:
            ValueError: A term is no array of numbers, or has the wrong shape.
            FloatingPointError: NaN or infinity in a term.
        """
        shape = (state.num_arenas, state.num_cars)
        terms = np.empty((len(self.rewards), *shape), np.float32)
        with sharing(state):
            for term, reward, name in zip(terms, self.rewards, self.names, strict=True):
                term[...] = paid_by(reward, state, name)
        sums = terms.sum(axis=(1, 2)) if state.all_present else terms.sum(axis=(1, 2), where=state.present)
        if not np.isfinite(sums).all():
            wrong = ", ".join(name for name, total in zip(self.names, sums.tolist(), strict=True) if total - total != 0)
            raise FloatingPointError(f"{wrong}: NaN or infinity in the rewards")
        self._sums += sums
        self._count += int(np.count_nonzero(state.present))
        terms *= self._factors  # no matrix product: its rounding may depend on how many arenas there are
        total: Float = terms.sum(axis=0)
        return total

    def reset(self, mask: Bool, state: GameState) -> None:
        """Resets every term."""
        with sharing(state):
            for reward in self.rewards:
                reward.reset(mask, state)

    def drain_metrics(self) -> dict[str, tuple[float, float]]:
        """`reward/<name>` -> (sum of weighted rewards, car-steps) since the last call, and what the terms report."""
        paid = (self._sums * self.weights).tolist()
        metrics = {f"reward/{name}": (p, float(self._count)) for name, p in zip(self.names, paid, strict=True)}
        for name, reward in zip(self.names, self.rewards, strict=True):
            for key, pair in reward.drain_metrics().items():
                kind, _, inner = key.partition("/")
                metrics[key if inner == name else f"{kind}/{name}/{inner}"] = pair
        self._sums[:] = 0
        self._count = 0
        return metrics

    def remembers(self) -> bool:
        """Whether a term does."""
        return any(reward.remembers() for reward in self.rewards)


def default_reward() -> CombinedReward:
    """RLGym's training guide: in air 0.002, speed toward ball 0.01, ball velocity to goal 0.1, goal 10."""
    return CombinedReward(
        [InAirReward(), SpeedTowardBallReward(), VelocityBallToGoalReward(), GoalReward()], [0.002, 0.01, 0.1, 10.0]
    )
