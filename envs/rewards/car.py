"""Rewards for the car: position, speed, orientation and boost; and the default reward."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from rlgym.rocket_league.common_values import BALL_RADIUS, CAR_MAX_SPEED

from envs.rewards.ball import VelocityBallToGoalReward
from envs.rewards.base import ONE, ZERO, RememberingReward, Reward, zero_absent_cars
from envs.rewards.combinators import CombinedReward, PerSecondReward
from envs.rewards.events import GoalReward
from envs.state.game_state import GameState
from envs.state.layout import Float
from envs.state.quantities import dot
from fabric_rl.base.settings import Finite, NonNegative

ROOF_HEIGHT = 60
"""uu: a car upside down below this lies on its roof (it rests at about 40)."""


class LiuDistancePlayerToBallReward(Reward):
    """Be near the ball: `min(1, exp(-(|ball - car| - 91.25) / 4600))`.

    Range 0..1, 0 while demolished; per step, so it depends on the tick skip. It also rewards staying near the ball
    without playing it; wrap it in `PotentialReward` to avoid that. Source: RLGym's first version, after Liu et al.
    2021.
    """

    value_range = (0, 1)

    def compute(self, state: GameState) -> Float:
        shared = state.quantities
        gap = shared.ball_distance - np.float32(BALL_RADIUS)
        near = np.minimum(np.exp(gap * np.float32(-0.5 / CAR_MAX_SPEED)), ONE)
        return zero_absent_cars(state, np.where(shared.is_demoed, ZERO, near))


@dataclass(eq=False, repr=False)
class BadOrientationReward(Reward):
    """Penalty for being upside down near the floor: `-max(0, -up_z)` below `max_height`, off the wheels.

    There is no penalty during a flip, on walls and ceiling with the wheels in contact, high in the air, or while
    demolished. Range -1..0; per step, so it depends on the tick skip. Give it a positive weight.
    """

    value_range = (-1, 0)

    max_height: NonNegative = 200.0
    """Maximum height of the car, uu, at which the penalty applies."""

    def compute(self, state: GameState) -> Float:
        shared = state.quantities
        free = shared.on_ground | shared.is_flipping | shared.is_demoed | (shared.car_height > self.max_height)
        return zero_absent_cars(state, np.where(free, ZERO, np.minimum(shared.car_up, ZERO)))


class RecoveryAndLandingReward(RememberingReward):
    """Turn upright and land on the wheels: the change of `q`, 1 on the wheels, `up_z / 2` in the air, -1 on the roof.

    `q(s') - q(s)`, range -2..2; per change, at any tick skip: a landing pays back what the jump cost, turning upright
    in the air is rewarded, and landing on the roof is penalized. Demolition and respawn do not count as landing. The
    usual form (upright per step plus a bonus for each landing) rewards a car that hops on the spot; this one adds up to
    zero.
    """

    unit = "per change"
    value_range = (-2, 2)

    def _first(self, state: GameState) -> dict[str, NDArray[np.generic]]:
        return {"quality": self._quality(state), "demoed": state.quantities.is_demoed}

    @staticmethod
    def _quality(state: GameState) -> Float:
        shared = state.quantities
        up = shared.car_up
        lying = (up < 0) & (shared.car_height < ROOF_HEIGHT)
        return np.where(shared.on_ground, ONE, np.where(lying, -ONE, np.float32(0.5) * up))

    def compute(self, state: GameState) -> Float:
        kept, quality, shared = self._recall(), self._quality(state), state.quantities
        paid = np.where(shared.is_demoed | kept["demoed"], ZERO, quality - kept["quality"])
        self._hold(quality=quality, demoed=shared.is_demoed)
        return zero_absent_cars(state, paid)


@dataclass(eq=False, repr=False)
class SpeedTowardBallReward(Reward):
    """Drive toward the ball: `max(0, v_car . d_ball / 2300)`.

    Range 0..1, or -1..1 with `signed`; per step, so it depends on the tick skip. Source: RLGym's training guide; with
    `signed` and inside `PerSecondReward`, it equals rlgym-tools' `VelocityPlayerToBallReward`.
    """

    value_range = (0, 1)

    signed: bool = False
    """Also penalize driving away from the ball."""

    def compute(self, state: GameState) -> Float:
        shared = state.quantities
        share = dot(state.world.car_vel, shared.to_ball) / shared.ball_divisor / np.float32(CAR_MAX_SPEED)
        return zero_absent_cars(state, share if self.signed else np.maximum(share, ZERO))


class InAirReward(Reward):
    """1 with fewer than three wheels in contact, else 0.

    Range 0..1; per step, so it depends on the tick skip. Source: RLGym's training guide.
    """

    value_range = (0, 1)

    def compute(self, state: GameState) -> Float:
        return zero_absent_cars(state, ~state.quantities.on_ground)


class FaceBallReward(Reward):
    """Point the nose at the ball: `forward . d_ball`.

    Range -1..1; per step, so it depends on the tick skip. Source: RLGym's first version.
    """

    value_range = (-1, 1)

    def compute(self, state: GameState) -> Float:
        shared = state.quantities
        return zero_absent_cars(state, dot(state.world.car_forward, shared.to_ball) / shared.ball_divisor)


_PER_UNIT = np.float32(0.01)


class SaveBoostReward(Reward):
    """Have boost: `sqrt(boost / 100)`.

    Range 0..1, 0 while demolished; per step, so it depends on the tick skip. Source: RLGym's first version.
    """

    value_range = (0, 1)

    def compute(self, state: GameState) -> Float:
        shared = state.quantities
        return zero_absent_cars(state, np.where(shared.is_demoed, ZERO, shared.boost_root))


@dataclass(eq=False, repr=False)
class BoostKeepReward(PerSecondReward):
    """Have boost: `sqrt(boost / 100)` per second.

    Range 0..1 for each second; per second, at any tick skip. Source: rlgym-tools' `BoostKeepReward`, which also rewards
    demolished cars.
    """

    value_range = (0, 1)

    reward: Reward = field(default_factory=SaveBoostReward, init=False)

    def label(self) -> str:
        return type(self).__name__


class _BoostDifference(RememberingReward):
    """Change of a car's amount of boost; the boost of a respawning car is neither a gain nor a loss."""

    def _first(self, state: GameState) -> dict[str, NDArray[np.generic]]:
        return {"amount": self._amount(state), "demoed": state.quantities.is_demoed}

    @staticmethod
    def _amount(state: GameState) -> Float:
        """Return the amounts `[A, C]` as a new array."""
        raise NotImplementedError

    def _change(self, state: GameState) -> Float:
        kept, amount, shared = self._recall(), self._amount(state), state.quantities
        change: Float = np.where(shared.is_demoed | kept["demoed"], ZERO, amount - kept["amount"])
        self._hold(amount=amount, demoed=shared.is_demoed)
        return change


class CollectBoostReward(_BoostDifference):
    """Pick up boost: `max(0, boost' - boost) / 100`.

    Range 0..1; per change. Boost that is used in the step of a pickup is subtracted, so the reward is slightly lower at
    high tick skips. The boost of a respawning car does not count.
    """

    unit = "per change"
    value_range = (0, 1)

    @staticmethod
    def _amount(state: GameState) -> Float:
        return state.boost * _PER_UNIT

    def compute(self, state: GameState) -> Float:
        return zero_absent_cars(state, np.maximum(self._change(state), ZERO))


@dataclass(eq=False, repr=False)
class BoostChangeReward(_BoostDifference):
    """Gain boost and do not spend it: the change of `sqrt(boost / 100)`, with one weight for gains and one for losses.

    Range -1..1; per change, at any tick skip except for gains and losses within one step. Source: rlgym-tools'
    `BoostChangeReward`, which also rewards the boost of a respawning car.
    """

    unit = "per change"
    needs_a_weight = True
    value_range = (-1, 1)

    gain: Finite = 1.0
    """Factor on gains."""
    loss: NonNegative = 1.0
    """Factor on losses, at least 0; they are negative already."""

    @staticmethod
    def _amount(state: GameState) -> Float:
        return state.quantities.boost_root

    def compute(self, state: GameState) -> Float:
        change = self._change(state)
        return zero_absent_cars(state, change * np.where(change > 0, np.float32(self.gain), np.float32(self.loss)))


def default_reward() -> CombinedReward:
    """Return the reward of RLGym's training guide: air 0.002, speed to ball 0.01, ball speed to goal 0.1, goal 10."""
    return CombinedReward(
        [InAirReward(), SpeedTowardBallReward(), VelocityBallToGoalReward(), GoalReward()], [0.002, 0.01, 0.1, 10.0]
    )
