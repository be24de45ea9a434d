"""Rewards for mechanics: flip resets, wavedashes, carrying the ball through the air."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from rlgym.rocket_league.common_values import BACK_WALL_Y, CAR_MAX_SPEED, RAMP_HEIGHT

from envs.rewards.base import ZERO, RememberingReward, zero_absent_cars, zeros
from envs.state.game_state import GameState
from envs.state.layout import Float
from envs.state.quantities import dot, length
from fabric_rl.base.settings import Finite, NonNegative

_WITHIN_45_DEGREES = np.float32(math.sqrt(0.5))


@dataclass(eq=False, repr=False)
class FlipResetReward(RememberingReward):
    """`obtain` for winning the flip back with the wheels on the ball, `hit` for a touch after that flip was used.

    A flip is won back by a touch that restores a used flip, with the ball within 45 degrees of straight under the car.
    It is lost on landing. Range 0..2 (both at once); per event. Source: rlgym-tools' `FlipResetReward`, which treats
    wheels on the ball as wheels on the ground and forgets the reset if the contact lasts longer than a step.
    """

    unit = "per event"
    needs_a_weight = True
    value_range = (0, 2)

    obtain: Finite = 1.0
    """For the flip reset."""
    hit: Finite = 1.0
    """For a touch after the regained flip was used."""

    def _first(self, state: GameState) -> dict[str, NDArray[np.generic]]:
        none = np.zeros(state.present.shape, np.bool_)
        return {"had_flip": state.quantities.has_flip, "reset": none, "used": none}

    def compute(self, state: GameState) -> Float:
        kept, shared = self._recall(), state.quantities
        touched, has_flip, reset, used = shared.touched, shared.has_flip, kept["reset"], kept["used"]
        if not (shared.any_touched or reset.any() or used.any()):
            self._hold(had_flip=has_flip)
            return zeros(state)
        landed = shared.on_ground
        won = np.zeros(touched.shape, np.bool_)
        if shared.any_touched:
            below = dot(-state.world.car_up, shared.to_ball) / shared.ball_divisor > _WITHIN_45_DEGREES
            on_ball = touched & below
            won = on_ball & has_flip & ~kept["had_flip"]
            landed = landed > on_ball
        landed = (landed | shared.is_demoed) & ~won
        flips = reset & shared.is_flipping & ~won & ~landed
        used = (used | flips) & ~landed
        hits = used & touched
        self._hold(had_flip=has_flip, reset=(reset | won) & ~landed & ~flips, used=used & ~hits)
        paid = np.float32(self.weights["obtain"]) * won + np.float32(self.weights["hit"]) * hits
        return zero_absent_cars(state, paid)


@dataclass(eq=False, repr=False)
class WavedashReward(RememberingReward):
    """Land while flipping: `|dv| / 2300`, dv the change of the car's velocity in the step in which the flip began.

    Without `by_acceleration` 1 for each. Range 0..2 (in practice up to 0.3); per event, but the step in which a flip
    begins changes the velocity more at a higher tick skip. Source: rlgym-tools' `WavedashReward`.
    """

    unit = "per event"
    value_range = (0, 2)

    by_acceleration: bool = True
    """Pay for the speed that the flip gave."""

    def _first(self, state: GameState) -> dict[str, NDArray[np.generic]]:
        gained = np.zeros(state.present.shape, np.float32)
        shared = state.quantities
        now = {"grounded": shared.on_ground, "flipping": shared.is_flipping, "demoed": shared.is_demoed}
        return {"velocity": shared.car_vel, "gained": gained, **now}

    def compute(self, state: GameState) -> Float:
        kept, shared = self._recall(), state.quantities
        flipping, grounded, demoed, velocity = shared.is_flipping, shared.on_ground, shared.is_demoed, shared.car_vel
        was_flipping, gained = kept["flipping"], kept["gained"]
        begins = flipping > was_flipping
        if self.by_acceleration and begins.any():
            gained = np.where(begins, length(velocity - kept["velocity"]) / np.float32(CAR_MAX_SPEED), gained)
        dash = (grounded > kept["grounded"]) & (flipping | was_flipping)
        over, paid = ~flipping, zeros(state)
        if dash.any():
            dash &= ~(demoed | kept["demoed"])
            paid = np.where(dash, gained if self.by_acceleration else np.float32(1), ZERO)
            over |= dash
        gained = np.where(over, ZERO, gained)
        self._hold(velocity=velocity, gained=gained, grounded=grounded, flipping=flipping, demoed=demoed)
        return zero_absent_cars(state, paid)


@dataclass(eq=False, repr=False)
class AerialDistanceReward(RememberingReward):
    """Carry the ball through the air: the distance that car and ball go, over 5120, from one own touch to the next.

    The first touch of a flight earns `first_touch` times the height of car and ball above 256 uu (mean by `car` and
    `ball`), over 5120; each further one `car` times the car's path plus `ball` times the ball's. A flight ends when the
    car is below 256 uu, has its wheels on something, is demolished, or another car touches the ball. Range 0 upward;
    per event: paths are measured once a step, so a curved one is a little shorter at higher tick skips. Source:
    rlgym-tools' `AerialDistanceReward`, which takes driving up a wall for flying, also rewards a car below 256 uu under
    a high ball, and depends on the order of two cars that touch in the same step (here both have touched).
    """

    unit = "per event"
    needs_a_weight = True
    value_range = (0, math.inf)

    first_touch: Finite = 1.0
    """Factor for the height of the first touch."""
    car: NonNegative = 1.0
    """Factor for the car's path, at least 0."""
    ball: NonNegative = 1.0
    """Factor for the ball's path, at least 0."""

    def _first(self, state: GameState) -> dict[str, NDArray[np.generic]]:
        shape = state.present.shape
        last, way = np.zeros(shape, np.bool_), np.zeros(shape, np.float32)
        shared = state.quantities
        return {"last": last, "way": way, "car": shared.car_pos, "ball": shared.ball_pos}

    def compute(self, state: GameState) -> Float:
        kept, shared = self._recall(), state.quantities
        touched, car_pos, ball_pos = shared.touched, shared.car_pos, shared.ball_pos
        last, way, paid = kept["last"], kept["way"], zeros(state)
        if not shared.any_touched and not last.any():
            self._hold(car=car_pos, ball=ball_pos)
            return paid
        low = (shared.car_height < RAMP_HEIGHT) | shared.on_ground | shared.is_demoed
        last = last & ~low
        if last.any():
            went = length(car_pos - kept["car"]) * np.float32(self.car)
            went = went + length(ball_pos - kept["ball"])[:, None] * np.float32(self.ball)
            way = np.where(last, way + went, ZERO)
        if shared.any_touched:
            parts = (self.car, self.ball) if self.car or self.ball else (1, 1)
            height = parts[0] * car_pos[..., 2] + parts[1] * ball_pos[:, None, 2]
            height = np.maximum(height / sum(parts) - RAMP_HEIGHT, 0) * self.first_touch
            worth = np.where(last, way, np.where(low, 0, height)) / np.float32(BACK_WALL_Y)
            paid = np.where(touched, worth, ZERO)
            last, way = np.where(shared.hit[:, None], touched & ~low, last), np.where(touched, ZERO, way)
        self._hold(last=last, way=way, car=car_pos, ball=ball_pos)
        return zero_absent_cars(state, paid)
