"""The rewards of RLGym's training guide, and facing the ball."""

from dataclasses import dataclass

import numpy as np
from rlgym.rocket_league.common_values import BALL_MAX_SPEED, CAR_MAX_SPEED

from envs.rewards.base import ZERO, Reward, of_team, only_present, zeros
from envs.state.game_state import GameState
from envs.state.layout import Float
from envs.state.quantities import dot


@dataclass(eq=False, repr=False)
class SpeedTowardBallReward(Reward):
    """Drive toward the ball: `max(0, v_car . d_ball / 2300)`.

    Range 0..1, or -1..1 with `signed`; per step, so it depends on the tick skip. Source: RLGym's training guide; signed
    and inside `PerSecondReward` it is rlgym-tools' `VelocityPlayerToBallReward`.
    """

    value_range = (0, 1)

    signed: bool = False
    """Also charge for driving away from the ball."""

    def compute(self, state: GameState) -> Float:
        shared = state.quantities
        share = dot(state.world.car_vel, shared.to_ball) / shared.ball_divisor / np.float32(CAR_MAX_SPEED)
        return only_present(state, share if self.signed else np.maximum(share, ZERO))


class InAirReward(Reward):
    """1 with fewer than three wheels in contact, else 0.

    Range 0..1; per step, so it depends on the tick skip. Source: RLGym's training guide.
    """

    value_range = (0, 1)

    def compute(self, state: GameState) -> Float:
        return only_present(state, ~state.quantities.on_ground)


class VelocityBallToGoalReward(Reward):
    """Ball's speed toward the opponents' net: `max(0, v_ball . d_goal / 6000)`, `d_goal` to the back of the net.

    Range 0..1; per step, so it depends on the tick skip. Source: RLGym's training guide, whose code pays orange for
    driving the ball into its own net; here both teams are paid for speed toward the *opponents'*.
    """

    value_range = (0, 1)

    def compute(self, state: GameState) -> Float:
        share = state.quantities.ball_speed_to_net / np.float32(BALL_MAX_SPEED)
        return only_present(state, of_team(state, np.maximum(share, ZERO)))


class GoalReward(Reward):
    """+1 for every car of the team that scored, -1 for every car of the other one.

    Range -1..1; per event, whatever the tick skip. Source: RLGym's `GoalReward`.
    """

    unit = "per event"
    value_range = (-1, 1)

    def compute(self, state: GameState) -> Float:
        if not state.quantities.any_goal:
            return zeros(state)
        scoring = state.scoring_team[:, None]
        return only_present(state, np.where(scoring < 0, 0, np.where(scoring == state.team, 1, -1)))


class TouchReward(Reward):
    """1 on a step in which the car hit the ball, else 0.

    Range 0..1; per touching step: a contact that lasts pays once a step, so a dribble depends on the tick skip
    (`EventReward(touch=1)` pays once a contact). Source: RLGym's `TouchReward`.
    """

    unit = "per touching step"
    value_range = (0, 1)

    def compute(self, state: GameState) -> Float:
        return state.quantities.touched.astype(np.float32)


class FaceBallReward(Reward):
    """Point the nose at the ball: `forward . d_ball`.

    Range -1..1; per step, so it depends on the tick skip. Source: RLGym's first version.
    """

    value_range = (-1, 1)

    def compute(self, state: GameState) -> Float:
        shared = state.quantities
        return only_present(state, dot(state.world.car_forward, shared.to_ball) / shared.ball_divisor)
