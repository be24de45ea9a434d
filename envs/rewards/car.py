"""Rewards for where a car is and how it lies."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from rlgym.rocket_league.common_values import BALL_RADIUS, CAR_MAX_SPEED

from envs.rewards.base import ONE, ZERO, RememberingReward, Reward, demoed_now_or_before, except_for, only_present
from envs.state.game_state import GameState
from envs.state.layout import Float
from fabric_rl.base.settings import NonNegative

ROOF_HEIGHT = 60
"""uu: a car upside down below this lies on its roof (it rests at about 40)."""


class LiuDistancePlayerToBallReward(Reward):
    """Be near the ball: `min(1, exp(-(|ball - car| - 91.25) / 4600))`.

    Range 0..1, 0 while demolished; per step, so it depends on the tick skip. It also pays for hovering near the ball
    without playing it; `PotentialReward` around it does not. Source: RLGym's first version, after Liu et al. 2021.
    """

    value_range = (0, 1)

    def compute(self, state: GameState) -> Float:
        shared = state.quantities
        gap = shared.ball_distance - np.float32(BALL_RADIUS)
        near = np.minimum(np.exp(gap * np.float32(-0.5 / CAR_MAX_SPEED)), ONE)
        return only_present(state, except_for(shared.is_demoed if shared.any_demoed else None, near))


@dataclass(eq=False, repr=False)
class BadOrientationReward(Reward):
    """Charge for a roof that points down near the floor: `-max(0, -up_z)` below `max_height`, off the wheels.

    Nothing is charged while a flip turns the car over, on walls and ceiling with the wheels in contact, high in the
    air, or while demolished. Range -1..0; per step, so it depends on the tick skip. Give it a positive weight.
    """

    value_range = (-1, 0)

    max_height: NonNegative = 200.0
    """Height of the car, uu, up to which it is charged."""

    def compute(self, state: GameState) -> Float:
        shared = state.quantities
        free = shared.on_ground | shared.is_flipping | shared.is_demoed | (shared.car_height > self.max_height)
        return only_present(state, np.where(free, ZERO, np.minimum(shared.car_up, ZERO)))


class RecoveryAndLandingReward(RememberingReward):
    """Turn upright and land on the wheels: the change of `q`, 1 on the wheels, `up_z / 2` in the air, -1 on the roof.

    `q(s') - q(s)`, range -2..2; per change: jumping costs what landing pays back, turning upright in the air pays and
    landing on the roof costs, whatever the tick skip. Demolition and respawn are no landing. The usual form (upright
    per step plus a bonus for each landing) pays a car that hops on the spot; this one adds up to zero.
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
        paid = except_for(demoed_now_or_before(state, kept["demoed"]), quality - kept["quality"])
        self._hold(quality=quality, demoed=shared.is_demoed)
        return only_present(state, paid)
