"""The environment of RLGym's training guide, in RLGym's own classes: what RLGymPool and the benchmarks step."""

from typing import Any

import numpy as np
from gymnasium.spaces import Box, Discrete
from gymnasium.vector import AutoresetMode, VectorEnv
from rlgym.api import AgentID, RewardFunction, RLGym
from rlgym.rocket_league import common_values
from rlgym.rocket_league.action_parsers import LookupTableAction, RepeatAction
from rlgym.rocket_league.api import GameState
from rlgym.rocket_league.done_conditions import AnyCondition, GoalCondition, NoTouchTimeoutCondition, TimeoutCondition
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


class PlainVectorEnv(VectorEnv[Any, Any, Any]):
    """Environments of the guide one after another, with nothing that other trainers do not need."""

    def __init__(self, num_envs: int) -> None:
        self._envs = [build_env() for _ in range(num_envs)]
        self.num_envs, self.metadata = 2 * num_envs, {"autoreset_mode": AutoresetMode.SAME_STEP}
        self.single_observation_space, self.single_action_space = Box(-np.inf, np.inf, (92,), np.float32), Discrete(90)

    def reset(self, *, seed: Any = None, options: Any = None) -> tuple[Any, dict[str, Any]]:  # noqa: ANN401
        """Begins an episode in each; RLGym's mutators draw from numpy's generator, which the trainer seeds."""
        return np.array([obs for env in self._envs for obs in env.reset().values()], np.float32), {}

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:  # noqa: ANN401
        """Steps every environment; a new episode begins in the step that ends one."""
        obs, final, rewards, ends = [], np.zeros((self.num_envs, 92), np.float32), [], []
        for index, env in enumerate(self._envs):
            rows = actions[2 * index : 2 * index + 2, None]
            own, paid, *done = env.step(dict(zip(env.agents, rows, strict=True)))
            rewards += paid.values()
            ends += zip(*(each.values() for each in done), strict=True)
            if any(done[0].values()) or any(done[1].values()):
                final[2 * index : 2 * index + 2] = list(own.values())
                own = env.reset()
            obs += own.values()
        terminated, truncated = np.array(ends, bool).T
        infos = {"final_obs": final} if (terminated | truncated).any() else {}
        return np.array(obs, np.float32), np.array(rewards, np.float32), terminated, truncated, infos
