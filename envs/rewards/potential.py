"""Potential-based shaping: rewards whose sum does not depend on the path, so they cannot be farmed."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from rlgym.rocket_league import common_values as game
from rlgym.rocket_league.common_values import BALL_RADIUS, GOAL_CENTER_TO_POST, GOAL_HEIGHT, GOAL_THRESHOLD

from envs.component import begin_rows
from envs.rewards.base import ZERO, RememberingReward, team_to_cars, zero_absent_cars
from envs.rewards.combinators import WrappedReward
from envs.state.game_state import GameState
from envs.state.layout import Bool, Float
from fabric_rl.base.settings import Share

_TWO_SIDES = np.array([1, -1], np.float32)


@dataclass(eq=False, repr=False)
class PotentialReward(WrappedReward):
    """Use another reward as a potential (potential-based shaping): `gamma * q(s') - q(s)`, q = 0 after a goal.

    The best policy stays the same if `gamma` is the discount factor of training (with 1, the path does not matter).
    Range: differences of the inner reward; per change, at any tick skip. Source: Ng, Harada & Russell 1999; Grzes 2017
    for the potential of zero in a terminal state.
    """

    unit = "per change"
    _in_state_dict: ClassVar[dict[str, str]] = WrappedReward._in_state_dict | {"before": "_before"}

    gamma: Share = 1.0
    """Discount factor of training, or 1."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.reward.remembers():
            raise ValueError(
                f"PotentialReward: {self.reward.label()} depends on earlier states, so it is not a "
                "potential; use a reward of the current state, such as LiuDistanceBallToGoalReward"
            )
        self._before: Float = np.zeros((0, 0), np.float32)

    def reset(self, mask: Bool, state: GameState) -> None:
        super().reset(mask, state)
        self._before = begin_rows(mask, self._potential(state), self._before)

    def _potential(self, state: GameState) -> Float:
        paid = zero_absent_cars(state, self.reward(state))
        return np.where(state.quantities.goal_scored[:, None], ZERO, paid)

    def compute(self, state: GameState) -> Float:
        if self._before.shape != (state.num_arenas, state.num_cars):
            raise RuntimeError("PotentialReward: call reset() before compute()")
        now = self._potential(state)
        change = np.float32(self.gamma) * now - self._before
        self._before = now
        return change

    def only_charges(self) -> bool:
        """Return False: the reward is positive when the potential increases."""
        return False


@dataclass(eq=False, repr=False)
class GoalViewReward(RememberingReward):
    """Change of the chance to score next: `gamma * q(s') - q(s)`, q = 2p - 1, p = view_theirs / (view_theirs + own).

    A view is the solid angle of a goal mouth seen from the ball, reduced by a ball's radius on all sides: p is the
    probability that a random straight line from the ball that hits a goal hits the opponents' goal. After a goal, p is
    1 for the team that scored and 0 for the other. Range -2..2, zero-sum; per change, at any tick skip. Source:
    rlgym-tools' `GoalViewReward` (there with triangles), potential-based shaping of Ng, Harada & Russell 1999.
    """

    unit = "per change"
    value_range = (-2, 2)

    gamma: Share = 1.0
    """Discount factor of training, 0..1. Below 1, standing still where the chance is good has a cost."""

    def _first(self, state: GameState) -> dict[str, NDArray[np.generic]]:
        return {"blue": self._potential(state)}

    @staticmethod
    def _potential(state: GameState) -> Float:
        """Return `2p - 1` for blue, `[A]`."""
        shared = state.quantities
        x, y, z = shared.ball_pos.T
        gap = np.float32(GOAL_THRESHOLD)
        theirs, own = goal_view(x, gap - _TWO_SIDES[:, None] * y, z)
        chance = (theirs - own) / np.maximum(theirs + own, np.float32(1e-9))
        return (np.where(shared.goal_scored, np.sign(y), chance) if shared.any_goal else chance).astype(np.float32)

    def compute(self, state: GameState) -> Float:
        before, now = self._recall()["blue"], self._potential(state)
        change = np.float32(self.gamma) * now - before
        self._hold(blue=now)
        return zero_absent_cars(state, team_to_cars(state, change[:, None] * _TWO_SIDES))


def goal_view(x: Float, distance: Float, z: Float, margin: float = BALL_RADIUS) -> Float:
    """Return the solid angle of a goal mouth over 4 pi, 0..0.5.

    The rectangle's solid angle is the sum over its corners of `+-atan(u v / (d sqrt(u^2 + v^2 + d^2)))`, u and v the
    corner's position relative to the eye (Khadjavi 1968).

    Args:
        x: `[...]` position of the eye across the field, uu.
        distance: `[...]` from the eye to the goal's plane, uu; negative behind it.
        z: `[...]` height of the eye, uu.
        margin: Margin subtracted from the mouth on every side, uu.
    """
    post = np.float32(GOAL_CENTER_TO_POST - margin)
    posts, heights = np.array([post, -post]), np.array([GOAL_HEIGHT - margin, margin], np.float32)
    far = np.maximum(np.abs(distance), np.float32(1e-3))
    axes = [1] * far.ndim
    u, v = posts.reshape(2, 1, *axes) - x, heights.reshape(1, 2, *axes) - z  # right, left; top, bottom
    corners = np.arctan(u * v / (far * np.sqrt(u * u + v * v + far * far)))
    angle: Float = corners[0, 0] - corners[1, 0] - corners[0, 1] + corners[1, 1]
    return angle / np.float32(4 * math.pi)


DRAG = 0.03
"""Share of its speed that the ball loses per second."""
RESTITUTION = 0.6
MAX_BOUNCES = 8


def height_after(height: Float, speed: Float, seconds: Float) -> Float:
    """Predict the height of the ball's centre in uu, with at most eight bounces on the floor (restitution 0.6).

    Args:
        height: uu, `[...]`.
        speed: Vertical speed, uu/s, `[...]`.
        seconds: `[...]`, 0 or more.
    """
    height, left = np.maximum(height - np.float32(game.BALL_RESTING_HEIGHT), np.float32(0)), seconds.copy()
    for _ in range(MAX_BOUNCES):
        lands = (speed + np.sqrt(speed**2 + np.float32(2 * game.GRAVITY) * height)) / np.float32(game.GRAVITY)
        bounces = lands < left
        if not bounces.any():
            break
        impact = speed - np.float32(game.GRAVITY) * lands
        left = np.where(bounces, left - lands, left)
        height, speed = np.where(bounces, np.float32(0), height), np.where(bounces, -RESTITUTION * impact, speed)
    fallen = height + speed * left - np.float32(game.GRAVITY / 2) * left**2
    above: Float = np.maximum(fallen, np.float32(0)) + np.float32(game.BALL_RESTING_HEIGHT)
    return above.astype(np.float32)


def flies_into_goal(pos: Float, vel: Float, horizon_seconds: float) -> Bool:
    """Predict if a ball flies through the goal mouth at +y, with gravity, drag and the floor, without walls and cars.

    Args:
        pos: `[..., 3]` uu.
        vel: `[..., 3]` uu/s.
        horizon_seconds: Time limit of the prediction.

    Returns:
        `[...]` bool. The whole ball has to fit between the posts and under the bar.
    """
    way, speed = np.maximum(np.float32(game.BACK_WALL_Y) - pos[..., 1], np.float32(0)), vel[..., 1]
    slowed = 1 - np.float32(DRAG) * way / np.maximum(speed, np.float32(1))  # share of the speed left at the line
    comes = (speed > 1) & (slowed > 0)
    seconds = np.where(comes, -np.log(np.where(comes, slowed, 1)) / np.float32(DRAG), np.float32(horizon_seconds + 1))
    comes &= seconds <= horizon_seconds
    seconds = np.where(comes, seconds, np.float32(0))
    across = pos[..., 0] + vel[..., 0] * np.where(comes, way / np.maximum(speed, np.float32(1)), np.float32(0))
    between = np.abs(across) <= game.GOAL_CENTER_TO_POST - game.BALL_RADIUS
    under = height_after(pos[..., 2], vel[..., 2], seconds) <= game.GOAL_HEIGHT - game.BALL_RADIUS
    into: Bool = comes & between & under
    return into
