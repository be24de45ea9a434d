"""Rewards: GameState after a step -> one number per car.

Unless a reward says otherwise it is paid per step and does not depend on the order of the cars. `d` is a unit vector.
Every car is judged from its own side of the field, where the opponents' goal is at +y.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np
from rlgym.rocket_league.common_values import BACK_NET_Y, BALL_MAX_SPEED, CAR_MAX_SPEED

from envs.checks import described, finite_numbers
from envs.game_state import POS, VEL, Bool, Float, GameState


class Reward(ABC):
    """A reward for every car of every arena."""

    @abstractmethod
    def compute(self, state: GameState) -> Float:
        """`[A, C]` float32, the reward of the step that led to `state`."""

    def reset(self, mask: Bool, state: GameState) -> None:  # noqa: B027 - most rewards keep nothing
        """Called for the arenas (`mask [A]`) that begin a new episode in `state`."""

    def drain_metrics(self) -> dict[str, tuple[float, float]]:
        """Metrics since the last call as name -> (sum, count); none by default."""
        return {}

    def state_dict(self) -> dict[str, Any]:
        """What the reward remembers between steps, as numbers and arrays; nothing by default."""
        return {}

    def load_state_dict(self, state: dict[str, Any]) -> None:  # noqa: B027 - most rewards keep nothing
        """Takes what `state_dict` gave."""


class SpeedTowardBallReward(Reward):
    """`max(0, v_car . d_ball / 2300)`, 0..1: drive toward the ball. Source: RLGym's training guide."""

    def compute(self, state: GameState) -> Float:
        """See `Reward.compute`."""
        to_ball = state.world.ball_pos[:, None] - state.world.car_pos
        speed = _along(state.world.car_vel, to_ball)
        return np.maximum(speed / np.float32(CAR_MAX_SPEED), np.float32(0))


class InAirReward(Reward):
    """1 with fewer than three wheels in contact, else 0. Source: RLGym's training guide."""

    def compute(self, state: GameState) -> Float:
        """See `Reward.compute`."""
        return (~state.on_ground).astype(np.float32)


class VelocityBallToGoalReward(Reward):
    """`max(0, v_ball . d_goal / 6000)`, 0..1, `d_goal` from the ball to the back of the opponents' net.

    Both teams are paid for speed toward the *opponents'* net; the code in RLGym's training guide, where the idea is
    from, pays orange for driving the ball into its own.
    """

    def compute(self, state: GameState) -> Float:
        """See `Reward.compute`."""
        ball, goal = state.ball_rows, np.array([0, BACK_NET_Y, 0], np.float32)
        speed = _along(ball[..., VEL], goal - ball[..., POS])  # [A, 2]: as blue sees it and as orange does
        paid = np.maximum(speed / np.float32(BALL_MAX_SPEED), np.float32(0))
        return paid.take(state.team, axis=1)


class GoalReward(Reward):
    """+1 for every car of the team that scored, -1 for every car of the other one. Source: RLGym's `GoalReward`."""

    def compute(self, state: GameState) -> Float:
        """See `Reward.compute`."""
        if not state.goal_scored.any():
            return np.zeros((state.num_arenas, state.num_cars), np.float32)
        scoring = state.scoring_team[:, None]
        return np.where(scoring < 0, 0, np.where(scoring == state.team, 1, -1)).astype(np.float32)


class TouchReward(Reward):
    """1 on a step in which the car hit the ball, else 0. Source: RLGym's `TouchReward`."""

    def compute(self, state: GameState) -> Float:
        """See `Reward.compute`."""
        return state.touched.astype(np.float32)


class FaceBallReward(Reward):
    """`forward . d_ball`, -1..1: point the nose at the ball."""

    def compute(self, state: GameState) -> Float:
        """See `Reward.compute`."""
        return _along(state.world.car_forward, state.world.ball_pos[:, None] - state.world.car_pos)


class CombinedReward(Reward):
    """Weighted sum of rewards; reports the mean of each weighted term as `reward/<class name>`.

    Attributes:
        rewards: The terms.
        weights: One factor per term.
    """

    def __init__(self, rewards: Sequence[Reward], weights: Sequence[float]) -> None:
        """Creates the sum.

        Args:
            rewards: The terms.
            weights: One factor per term.

        Raises:
            ValueError: Not one weight for each reward, or one that is no finite number.
            TypeError: A term is no reward.
        """
        if len(rewards) == 0 or len(rewards) != len(weights):
            raise ValueError(
                f"CombinedReward: {len(rewards)} rewards but {len(weights)} weights; give one weight for each reward"
            )
        for reward in rewards:
            if not isinstance(reward, Reward):
                raise TypeError(f"CombinedReward: rewards must be envs Reward objects, got {described(reward)}")
        self.rewards, self.weights = tuple(rewards), tuple(finite_numbers("CombinedReward", "weights", weights))
        self.names = _unique_names(self.rewards)
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
        for i, reward in enumerate(self.rewards):
            terms[i] = paid_by(reward, state, self.names[i])
        sums = terms.sum(axis=(1, 2)) if state.all_present else terms.sum(axis=(1, 2), where=state.present)
        if not np.isfinite(sums).all():
            wrong = ", ".join(name for name, total in zip(self.names, sums.tolist(), strict=True) if total - total != 0)
            raise FloatingPointError(f"{wrong}: NaN or infinity in the rewards")
        self._sums += sums
        self._count += int(state.present.sum())
        terms *= self._factors  # no matrix product: its rounding may depend on how many arenas there are
        total: Float = terms.sum(axis=0)
        return total

    def reset(self, mask: Bool, state: GameState) -> None:
        """Resets every term."""
        for reward in self.rewards:
            reward.reset(mask, state)

    def state_dict(self) -> dict[str, Any]:
        """The terms' states and the sums of the metrics."""
        return {"terms": [r.state_dict() for r in self.rewards], "sums": self._sums.copy(), "count": self._count}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Takes what `state_dict` gave."""
        for reward, kept in zip(self.rewards, state["terms"], strict=True):
            reward.load_state_dict(kept)
        self._sums, self._count = state["sums"].copy(), state["count"]

    def drain_metrics(self) -> dict[str, tuple[float, float]]:
        """`reward/<name>` -> (sum of weighted rewards, number of car-steps) since the last call."""
        paid = (self._sums * self.weights).tolist()
        metrics = {f"reward/{name}": (p, float(self._count)) for name, p in zip(self.names, paid, strict=True)}
        self._sums[:] = 0
        self._count = 0
        return metrics


def paid_by(reward: Reward, state: GameState, name: str | None = None) -> Float:
    """What `reward` pays in `state`, `[A, C]`.

    Raises:
        ValueError: It returned something else; the message calls it `name`, by default by its class.
    """
    paid, shape = reward.compute(state), (state.num_arenas, state.num_cars)
    if isinstance(paid, np.ndarray) and paid.dtype.kind in "biuf" and paid.shape == shape:
        return paid
    if isinstance(paid, np.ndarray) and paid.dtype.kind in "biuf":
        got = f"shape {list(paid.shape)}"
    else:
        got = f"an array of {paid.dtype}" if isinstance(paid, np.ndarray) else type(paid).__name__
    name = name or type(reward).__name__
    raise ValueError(f"{name}: compute() returned {got}, expected [arenas, cars] = {list(shape)} numbers")


def default_reward() -> CombinedReward:
    """Requirement 000: in air 0.002, speed toward ball 0.01, ball velocity to goal 0.1, goal 10."""
    return CombinedReward(
        [InAirReward(), SpeedTowardBallReward(), VelocityBallToGoalReward(), GoalReward()], [0.002, 0.01, 0.1, 10.0]
    )


def _unique_names(rewards: Sequence[Reward]) -> list[str]:
    names: list[str] = []
    for reward in rewards:
        name = type(reward).__name__
        taken = sum(n == name or n.startswith(f"{name}_") for n in names)
        names.append(f"{name}_{taken + 1}" if taken else name)
    return names


def _along(vectors: Float, directions: Float) -> Float:
    """Component of each vector along a direction of any length; 0 where the direction is zero."""
    length = np.sqrt(np.einsum("...i,...i->...", directions, directions))
    component: Float = np.einsum("...i,...i->...", vectors, directions) / np.maximum(length, np.float32(1e-6))
    return component
