"""Environments and their components. This package imports neither torch nor lightning.

Constructors raise a ValueError for an invalid setting and a TypeError for a component of the wrong type; the message
names the class and the argument.
"""

from importlib import import_module
from typing import Any

from envs.actions import ActionParser as ActionParser
from envs.actions import ActionTable as ActionTable
from envs.actions import ClipAction as ClipAction
from envs.actions import ContinuousAction as ContinuousAction
from envs.actions import DelayAction as DelayAction
from envs.actions import HybridTable as HybridTable
from envs.actions import LookupTable as LookupTable
from envs.actions import MultiDiscreteAction as MultiDiscreteAction
from envs.actions import RepeatAction as RepeatAction
from envs.actions import StateAwareTable as StateAwareTable
from envs.actions import StickyButtons as StickyButtons
from envs.adapters.gymnasium_envs import AtariEnvs as AtariEnvs
from envs.adapters.gymnasium_envs import GymnasiumEnvs as GymnasiumEnvs
from envs.adapters.gymnasium_envs import KeepColumns as KeepColumns
from envs.adapters.rlgym_pool import RLGymPool as RLGymPool
from envs.adapters.rlgym_pool import RLGymReward as RLGymReward
from envs.bots import AerialShooter as AerialShooter
from envs.bots import BallChaser as BallChaser
from envs.bots import Bot as Bot
from envs.bots import IdleBot as IdleBot
from envs.bots import KickoffThenShoot as KickoffThenShoot
from envs.bots import RandomBot as RandomBot
from envs.bots import TeamBots as TeamBots
from envs.component import Phased as Phased
from envs.dones import AllOf as AllOf
from envs.dones import AnyOf as AnyOf
from envs.dones import BallOnGroundCondition as BallOnGroundCondition
from envs.dones import DoneCondition as DoneCondition
from envs.dones import GoalCondition as GoalCondition
from envs.dones import NoTouchCondition as NoTouchCondition
from envs.dones import TimeoutCondition as TimeoutCondition
from envs.loggers import EpisodeRatios as EpisodeRatios
from envs.loggers import GameMetrics as GameMetrics
from envs.loggers import StateLogger as StateLogger
from envs.loggers import TurtleRecoveryLogger as TurtleRecoveryLogger
from envs.mechanics.aerial import AirDribbleLane as AirDribbleLane
from envs.mechanics.aerial import FlipResetLane as FlipResetLane
from envs.mechanics.aerial import WallToAerialLane as WallToAerialLane
from envs.mechanics.base import Lane as Lane
from envs.mechanics.ground import DribbleLane as DribbleLane
from envs.mechanics.ground import HalfFlipLane as HalfFlipLane
from envs.mechanics.ground import JumpShotLane as JumpShotLane
from envs.mechanics.ground import KickoffLane as KickoffLane
from envs.mechanics.lanes import MechanicsLanes as MechanicsLanes
from envs.obs import AdvancedObs as AdvancedObs
from envs.obs import AdvancedObsPlus as AdvancedObsPlus
from envs.obs import DefaultObs as DefaultObs
from envs.obs import EntityObs as EntityObs
from envs.obs import ObsBuilder as ObsBuilder
from envs.obs import PrivilegedObs as PrivilegedObs
from envs.obs import RelativeObs as RelativeObs
from envs.obs import SlotRoleObs as SlotRoleObs
from envs.obs import StackedObs as StackedObs
from envs.obs import TeamRoleObs as TeamRoleObs
from envs.parameters import Constant as Constant
from envs.parameters import Gaussian as Gaussian
from envs.parameters import MultirangeUniform as MultirangeUniform
from envs.parameters import ParameterRandomizer as ParameterRandomizer
from envs.parameters import Sampler as Sampler
from envs.parameters import Uniform as Uniform
from envs.pool.rocket_pool import RocketSimPool as RocketSimPool
from envs.processes.process_pool import ProcessPool as ProcessPool
from envs.resets import ExplicitState as ExplicitState
from envs.resets import Kickoff as Kickoff
from envs.resets import MirroredStates as MirroredStates
from envs.resets import MixedStates as MixedStates
from envs.resets import RandomState as RandomState
from envs.resets import ReplayedStates as ReplayedStates
from envs.resets import ShuffledCars as ShuffledCars
from envs.resets import StateSetter as StateSetter
from envs.resets import TrainingPack as TrainingPack
from envs.resets import TurtledStart as TurtledStart
from envs.resets import save_states as save_states
from envs.resets.mixtures import PhasedStates as PhasedStates
from envs.rewards.ball import BallTravelReward as BallTravelReward
from envs.rewards.ball import LiuDistanceBallToGoalReward as LiuDistanceBallToGoalReward
from envs.rewards.ball import NegativeVelocityTowardOwnGoalReward as NegativeVelocityTowardOwnGoalReward
from envs.rewards.ball import PossessionReward as PossessionReward
from envs.rewards.ball import VelocityBallToGoalReward as VelocityBallToGoalReward
from envs.rewards.base import RememberingReward as RememberingReward
from envs.rewards.base import Reward as Reward
from envs.rewards.car import BadOrientationReward as BadOrientationReward
from envs.rewards.car import BoostChangeReward as BoostChangeReward
from envs.rewards.car import BoostKeepReward as BoostKeepReward
from envs.rewards.car import CollectBoostReward as CollectBoostReward
from envs.rewards.car import FaceBallReward as FaceBallReward
from envs.rewards.car import InAirReward as InAirReward
from envs.rewards.car import LiuDistancePlayerToBallReward as LiuDistancePlayerToBallReward
from envs.rewards.car import RecoveryAndLandingReward as RecoveryAndLandingReward
from envs.rewards.car import SaveBoostReward as SaveBoostReward
from envs.rewards.car import SpeedTowardBallReward as SpeedTowardBallReward
from envs.rewards.combinators import AnnealedReward as AnnealedReward
from envs.rewards.combinators import ClippedReward as ClippedReward
from envs.rewards.combinators import CombinedReward as CombinedReward
from envs.rewards.combinators import EMANormalizedReward as EMANormalizedReward
from envs.rewards.combinators import PerSecondReward as PerSecondReward
from envs.rewards.combinators import PhasedReward as PhasedReward
from envs.rewards.combinators import RewardSignals as RewardSignals
from envs.rewards.combinators import RoleRewards as RoleRewards
from envs.rewards.combinators import TeamSpiritReward as TeamSpiritReward
from envs.rewards.combinators import WrappedReward as WrappedReward
from envs.rewards.events import DemoReward as DemoReward
from envs.rewards.events import EventReward as EventReward
from envs.rewards.events import GoalReward as GoalReward
from envs.rewards.mechanics import AerialDistanceReward as AerialDistanceReward
from envs.rewards.mechanics import FlipResetReward as FlipResetReward
from envs.rewards.mechanics import WavedashReward as WavedashReward
from envs.rewards.potential import GoalViewReward as GoalViewReward
from envs.rewards.potential import PotentialReward as PotentialReward
from envs.rewards.touches import AdvancedTouchReward as AdvancedTouchReward
from envs.rewards.touches import BasicAerialReward as BasicAerialReward
from envs.rewards.touches import BasicShotReward as BasicShotReward
from envs.rewards.touches import JumpShotReward as JumpShotReward
from envs.rewards.touches import KickoffReward as KickoffReward
from envs.rewards.touches import SaveReward as SaveReward
from envs.rewards.touches import StrongHitReward as StrongHitReward
from envs.rewards.touches import TouchReward as TouchReward
from envs.state.game_state import GameState as GameState

_EXTRAS = {"RocketSimParallelEnv": "pettingzoo_env", "RocketSimVecEnv": "sb3"}
"""Adapters whose libraries are extras -> their modules."""


def __getattr__(name: str) -> Any:  # noqa: ANN401 - a class
    if name not in _EXTRAS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.adapters.{_EXTRAS[name]}"), name)
