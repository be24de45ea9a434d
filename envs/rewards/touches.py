"""Rewards for the effect of a touch on the ball. All of them use the touching step only."""

import math
from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np
from numpy.typing import NDArray
from rlgym.rocket_league.common_values import BALL_MAX_SPEED, BALL_RADIUS, CEILING_Z, GRAVITY, RAMP_HEIGHT

from envs.rewards.base import ONE, ZERO, RememberingReward, Reward, team_sums, team_to_cars, zero_absent_cars, zeros
from envs.rewards.potential import flies_into_goal
from envs.state.game_state import GameState
from envs.state.layout import BLUE, ORANGE, POS, VEL, Float
from envs.state.quantities import dot, length, seconds_between
from fabric_rl.base.settings import Between, Finite

_KEPT = {"pos": "ball_sides_pos", "vel": "ball_sides_vel", "touched": "touched", "ticks": "ticks"}
"""Names in checkpoints -> names in `GameState.quantities`."""


class _TouchReward(RememberingReward):
    """Base of rewards for touches; remembers the ball's `pos` and `vel` from both sides, `touched` and `ticks`."""

    _needs: ClassVar[tuple[str, ...]] = ("vel",)

    def _first(self, state: GameState) -> dict[str, NDArray[np.generic]]:
        shared = state.quantities
        return {name: getattr(shared, _KEPT[name]) for name in self._needs}

    def compute(self, state: GameState) -> Float:
        self._recall()
        paid = zero_absent_cars(state, self._of_touches(state)) if state.quantities.any_touched else zeros(state)
        self._hold(**self._first(state))
        return paid

    def _of_touches(self, state: GameState) -> Float:
        """Return the rewards `[A, C]` of a step with a touch."""
        raise NotImplementedError

    def _kick_toward_goal(self, state: GameState) -> Float:
        """Return the increase `[A, C]` of the ball's speed toward the opponents' net in this step, uu/s."""
        shared = state.quantities
        kick = dot(shared.ball_sides_vel - self._kept["vel"], shared.to_net) / shared.net_divisor
        return team_to_cars(state, kick)


class StrongHitReward(_TouchReward):
    """Hit hard: `sqrt(|dv_ball| / 100)` on a step with a touch, dv the change of the ball's velocity in that step.

    The smaller of the change from the last velocity and that from free fall counts, so neither gravity nor the ground's
    reaction to it is rewarded. Range 0..11; per touching step: a contact over two steps is rewarded in two parts, so it
    depends slightly on the tick skip. The usual form rewards gravity on every step after the touch, because the last
    toucher persists; here only the touching step counts.
    """

    unit = "per touching step"
    value_range = (0, math.sqrt(2 * BALL_MAX_SPEED / 100))
    _needs = ("vel", "ticks")

    def _of_touches(self, state: GameState) -> Float:
        change = state.world.ball_vel - self._kept["vel"][:, 0]
        from_fall = change.copy()
        from_fall[:, 2] += seconds_between(state.episode_ticks, self._kept["ticks"]) * np.float32(GRAVITY)
        size = np.minimum(length(change), length(from_fall))
        return np.where(state.quantities.touched, np.sqrt(size * np.float32(0.01))[:, None], ZERO)


@dataclass(eq=False, repr=False)
class AdvancedTouchReward(_TouchReward):
    """Touch the ball and change its velocity: `touch + acceleration * |dv_ball| / 6000` in a step with a touch.

    Range 0..1 (0..3 with acceleration 1); per touching step, so for a long contact the sum depends on the tick skip.
    Source: rlgym-tools' `AdvancedTouchReward`, without its count of touches within a step.
    """

    unit = "per touching step"
    needs_a_weight = True
    value_range = (0, 1)

    touch: Finite = 1.0
    """For the touch itself."""
    acceleration: Finite = 0.0
    """Factor on the change of the ball's velocity over 6000 uu/s."""

    def _of_touches(self, state: GameState) -> Float:
        change = length(state.world.ball_vel - self._kept["vel"][:, 0]) / np.float32(BALL_MAX_SPEED)
        worth = np.float32(self.weights["touch"]) + np.float32(self.weights["acceleration"]) * change
        return np.where(state.quantities.touched, worth[:, None], ZERO)


class BasicShotReward(_TouchReward):
    """Speed toward the opponents' net that a touch adds: `max(0, dv_ball . d_goal) / 6000` in a step with a touch.

    Range 0..2; per change: it adds up over the steps of a contact, at any tick skip. If the ball already flies toward
    the goal, only the additional speed counts.
    """

    unit = "per change"
    value_range = (0, 2)

    def _of_touches(self, state: GameState) -> Float:
        gained = np.maximum(self._kick_toward_goal(state), ZERO) / np.float32(BALL_MAX_SPEED)
        return np.where(state.quantities.touched, gained, ZERO)


class JumpShotReward(_TouchReward):
    """Jump and hit the ball toward the opponents' goal: `z_ball / 2044` when the contact begins.

    The car must have jumped and not landed yet, and the touch must add speed toward the opponents' net, so a hit into
    the car's own goal is not rewarded. Range 0..1; per event.
    """

    unit = "per event"
    value_range = (0, 1)
    _needs = ("vel", "touched")

    def _of_touches(self, state: GameState) -> Float:
        begins = state.quantities.touched & ~self._kept["touched"]
        shot = begins & state.has_jumped & ~state.on_ground & (self._kick_toward_goal(state) > 0)
        height = np.clip(state.world.ball_pos[:, 2] / np.float32(CEILING_Z), ZERO, ONE)
        return np.where(shot, height[:, None], ZERO)


@dataclass(eq=False, repr=False)
class BasicAerialReward(_TouchReward):
    """Touch the ball high in the air: from 0 at `min_height` to 1 at the ceiling, when the contact begins.

    The car itself must be above `min_height`, with its wheels off all surfaces. Range 0..1; per event.
    """

    unit = "per event"
    value_range = (0, 1)
    _needs = ("touched",)

    min_height: Annotated[float, Between(0, 1900)] = float(RAMP_HEIGHT)
    """Height, uu, 0..1900, above which car and ball must be; 256 is where the walls' ramps end."""

    def _of_touches(self, state: GameState) -> Float:
        begins = state.quantities.touched & ~self._kept["touched"] & ~state.on_ground
        begins &= state.world.car_pos[..., 2] > self.min_height
        share = (state.world.ball_pos[:, 2] - self.min_height) / (CEILING_Z - BALL_RADIUS - self.min_height)
        return np.where(begins, np.clip(share, ZERO, ONE).astype(np.float32)[:, None], ZERO)


@dataclass(eq=False, repr=False)
class SaveReward(_TouchReward):
    """1 for a touch that stops a ball on its way into the car's own goal.

    The ball's path is predicted for `horizon_seconds`, with gravity, drag and bounces on the floor. Range 0..1; per
    event. Unlike the game's save (`EventReward(save=1)`), it needs no shot by an opponent and is paid immediately.
    """

    unit = "per event"
    value_range = (0, 1)
    _needs = ("pos", "vel")

    horizon_seconds: Annotated[float, Between(0.1, 10)] = 3.0
    """Length of the predicted path in seconds, 0.1..10."""

    def _of_touches(self, state: GameState) -> Float:
        rows = np.flatnonzero(state.quantities.hit)
        ball, kept = state.ball_rows[rows][:, ::-1], self._kept  # from the other side: the own goal is at +y
        was = flies_into_goal(kept["pos"][rows][:, ::-1], kept["vel"][rows][:, ::-1], self.horizon_seconds)
        saved = was & ~flies_into_goal(ball[..., POS], ball[..., VEL], self.horizon_seconds)
        paid = zeros(state)
        paid[rows] = state.quantities.touched[rows] & team_to_cars(state, saved & ~state.goal_scored[rows, None])
        return paid


class KickoffReward(RememberingReward):
    """Be first at a kickoff: +1 for the team that touches the resting ball in the middle first, -1 for the other.

    If both teams touch it in the same step, the team that attacks the goal to which the ball then flies wins. (With
    equally fast cars, most kickoffs are that close: a lead only counts from one step on, 67 ms at a tick skip of 8.)
    Two cars that learn against each other may both learn to brake before a kickoff, and then lose against cars that do
    not. Range -1..1; per event.
    """

    unit = "per event"
    value_range = (-1, 1)

    def _first(self, state: GameState) -> dict[str, NDArray[np.generic]]:
        world = state.world
        still = (np.abs(world.ball_vel).max(axis=1) < 1) & (np.abs(world.ball_pos[:, :2]).max(axis=1) < 1)
        return {"waits": still}

    def compute(self, state: GameState) -> Float:
        waits, shared = self._recall()["waits"], state.quantities
        paid = zeros(state)
        if shared.any_touched and waits.any():
            first = (team_sums(state, shared.touched) > 0).astype(np.float32) * waits[:, None]
            lead = first - first[:, ::-1]
            both = first.all(axis=1)
            lead[both, BLUE] = np.sign(state.world.ball_vel[both, 1])
            lead[both, ORANGE] = -lead[both, BLUE]
            paid = zero_absent_cars(state, team_to_cars(state, lead).copy())
        self._hold(**self._first(state))
        return paid


class TouchReward(Reward):
    """1 for each step in which the car touches the ball, else 0.

    Range 0..1; per touching step: a long contact is rewarded in every step, so for a dribble the sum depends on the
    tick skip (`EventReward(touch=1)` pays once per contact). Source: RLGym's `TouchReward`.
    """

    unit = "per touching step"
    value_range = (0, 1)

    def compute(self, state: GameState) -> Float:
        return state.quantities.touched.astype(np.float32)
