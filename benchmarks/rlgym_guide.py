"""The environment of RLGym's training guide, in RLGym's own classes: what RLGymPool and the benchmarks step."""

from typing import Any

import numpy as np
from rlgym.api import AgentID, RewardFunction, RLGym
from rlgym.rocket_league import common_values
from rlgym.rocket_league.action_parsers import LookupTableAction, RepeatAction
from rlgym.rocket_league.api import GameState
from rlgym.rocket_league.done_conditions import (
    AnyCondition,
    GoalCondition,
    NoTouchTimeoutCondition,
    TimeoutCondition,
)
from rlgym.rocket_league.obs_builders import DefaultObs
from rlgym.rocket_league.reward_functions import CombinedReward, GoalReward
from rlgym.rocket_league.sim import RocketSimEngine
from rlgym.rocket_league.state_mutators import FixedTeamSizeMutator, KickoffMutator, MutatorSequence


class PerCarReward(RewardFunction[AgentID, GameState, float]):
    """A reward that looks at one car at a time."""

    def reset(self, agents: list[AgentID], initial_state: GameState, shared_info: dict[str, Any]) -> None:
        """Keeps nothing."""

    def get_rewards(
        self,
        agents: list[AgentID],
        state: GameState,
        is_terminated: dict[AgentID, bool],
        is_truncated: dict[AgentID, bool],
        shared_info: dict[str, Any],
    ) -> dict[AgentID, float]:
        """One number per agent."""
        return {agent: self.reward(state, agent) for agent in agents}

    def reward(self, state: GameState, agent: AgentID) -> float:
        """What one car is paid."""
        raise NotImplementedError


class SpeedTowardBall(PerCarReward):
    """Speed toward the ball over the car's top speed, at least 0."""

    def reward(self, state: GameState, agent: AgentID) -> float:
        """See `PerCarReward.reward`."""
        car = state.cars[agent].physics
        to_ball = state.ball.position - car.position
        speed = car.linear_velocity @ to_ball / np.linalg.norm(to_ball)
        return max(float(speed) / common_values.CAR_MAX_SPEED, 0.0)


class InAir(PerCarReward):
    """1 in the air."""

    def reward(self, state: GameState, agent: AgentID) -> float:
        """See `PerCarReward.reward`."""
        return float(not state.cars[agent].on_ground)


class VelocityBallToGoal(PerCarReward):
    """The ball's speed toward the opponents' net over its top speed, at least 0."""

    def reward(self, state: GameState, agent: AgentID) -> float:
        """See `PerCarReward.reward`."""
        ball = state.inverted_ball if state.cars[agent].is_orange else state.ball
        to_goal = np.array([0, common_values.BACK_NET_Y, 0]) - ball.position
        speed = ball.linear_velocity @ to_goal / np.linalg.norm(to_goal)
        return max(float(speed) / common_values.BALL_MAX_SPEED, 0.0)


def build_env(team_size: int = 1) -> RLGym:
    """Kickoffs, DefaultObs, the 90-row table held for 8 ticks, four rewards."""
    return RLGym(
        state_mutator=MutatorSequence(FixedTeamSizeMutator(team_size, team_size), KickoffMutator()),
        obs_builder=DefaultObs(
            zero_padding=None,
            pos_coef=np.array(
                [1 / common_values.SIDE_WALL_X, 1 / common_values.BACK_NET_Y, 1 / common_values.CEILING_Z]
            ),
            lin_vel_coef=1 / common_values.CAR_MAX_SPEED,
            ang_vel_coef=1 / common_values.CAR_MAX_ANG_VEL,
        ),
        action_parser=RepeatAction(LookupTableAction(), repeats=8),
        reward_fn=CombinedReward(
            (InAir(), 0.002), (SpeedTowardBall(), 0.01), (VelocityBallToGoal(), 0.1), (GoalReward(), 10.0)
        ),
        termination_cond=GoalCondition(),
        truncation_cond=AnyCondition(NoTouchTimeoutCondition(30.0), TimeoutCondition(300.0)),
        transition_engine=RocketSimEngine(),
    )
