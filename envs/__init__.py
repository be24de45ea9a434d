"""Environments: everything that steps a world. Imports no torch and no lightning."""

from envs.actions import ActionParser, LookupTable
from envs.dones import DoneCondition, GoalCondition, NoTouchCondition, TimeoutCondition
from envs.game_state import GameState
from envs.gymnasium_envs import GymnasiumEnvs
from envs.obs import (
    AdvancedObs,
    AdvancedObsPlus,
    DefaultObs,
    EntityObs,
    ObsBuilder,
    PrivilegedObs,
    RelativeObs,
    StackedObs,
)
from envs.resets import Kickoff, MixedStates, RandomState, StateSetter
from envs.rewards import (
    CombinedReward,
    FaceBallReward,
    GoalReward,
    InAirReward,
    Reward,
    SpeedTowardBallReward,
    TouchReward,
    VelocityBallToGoalReward,
)
from envs.rocket_pool import RocketSimPool

__all__ = [
    "ActionParser",
    "AdvancedObs",
    "AdvancedObsPlus",
    "CombinedReward",
    "DefaultObs",
    "DoneCondition",
    "EntityObs",
    "FaceBallReward",
    "GameState",
    "GoalCondition",
    "GoalReward",
    "GymnasiumEnvs",
    "InAirReward",
    "Kickoff",
    "LookupTable",
    "MixedStates",
    "NoTouchCondition",
    "ObsBuilder",
    "PrivilegedObs",
    "RandomState",
    "RelativeObs",
    "Reward",
    "RocketSimPool",
    "SpeedTowardBallReward",
    "StackedObs",
    "StateSetter",
    "TimeoutCondition",
    "TouchReward",
    "VelocityBallToGoalReward",
]
