"""Rewards: GameState after a step -> one number per car.

Every reward is batched over `[A, C]` (arenas, cars), does not depend on the order of the cars, is zero in slots without
a car and judges every car from its own side of the field, where the opponents' goal is at +y. `d` is a unit vector;
lengths in uu, speeds in uu/s. `python -m envs.rewards` prints a table of them all (docs/rewards.md).
"""

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
from envs.rewards.car import default_reward as default_reward
from envs.rewards.combinators import AnnealedReward as AnnealedReward
from envs.rewards.combinators import ClippedReward as ClippedReward
from envs.rewards.combinators import CombinedReward as CombinedReward
from envs.rewards.combinators import EMANormalizedReward as EMANormalizedReward
from envs.rewards.combinators import PerSecondReward as PerSecondReward
from envs.rewards.combinators import RewardSignals as RewardSignals
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
