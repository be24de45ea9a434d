"""Rewards: GameState after a step -> one number per car.

Every reward is batched over `[A, C]` (arenas, cars), does not depend on the order of the cars, is zero in slots without
a car and judges every car from its own side of the field, where the opponents' goal is at +y. `d` is a unit vector;
lengths in uu, speeds in uu/s. `python -m envs.rewards` prints a table of them all (docs/rewards.md).
"""

from envs.rewards.ball import (
    BallTravelReward,
    LiuDistanceBallToGoalReward,
    NegativeVelocityTowardOwnGoalReward,
    PossessionReward,
)
from envs.rewards.base import RememberingReward, Reward, paid_by
from envs.rewards.basic import (
    FaceBallReward,
    GoalReward,
    InAirReward,
    SpeedTowardBallReward,
    TouchReward,
    VelocityBallToGoalReward,
)
from envs.rewards.boost import BoostChangeReward, BoostKeepReward, CollectBoostReward, SaveBoostReward
from envs.rewards.car import BadOrientationReward, LiuDistancePlayerToBallReward, RecoveryAndLandingReward
from envs.rewards.combinators import (
    AnnealedReward,
    ClippedReward,
    EMANormalizedReward,
    PerSecondReward,
    TeamSpiritReward,
    WrappedReward,
)
from envs.rewards.combined import CombinedReward, default_reward
from envs.rewards.events import DemoReward, EventReward
from envs.rewards.mechanics import AerialDistanceReward, FlipResetReward, WavedashReward
from envs.rewards.potential import GoalViewReward, PotentialReward
from envs.rewards.signals import RewardSignals
from envs.rewards.touches import (
    AdvancedTouchReward,
    BasicAerialReward,
    BasicShotReward,
    JumpShotReward,
    SaveReward,
    StrongHitReward,
)

__all__ = [
    "AdvancedTouchReward",
    "AerialDistanceReward",
    "AnnealedReward",
    "BadOrientationReward",
    "BallTravelReward",
    "BasicAerialReward",
    "BasicShotReward",
    "BoostChangeReward",
    "BoostKeepReward",
    "ClippedReward",
    "CollectBoostReward",
    "CombinedReward",
    "DemoReward",
    "EMANormalizedReward",
    "EventReward",
    "FaceBallReward",
    "FlipResetReward",
    "GoalReward",
    "GoalViewReward",
    "InAirReward",
    "JumpShotReward",
    "LiuDistanceBallToGoalReward",
    "LiuDistancePlayerToBallReward",
    "NegativeVelocityTowardOwnGoalReward",
    "PerSecondReward",
    "PossessionReward",
    "PotentialReward",
    "RecoveryAndLandingReward",
    "RememberingReward",
    "Reward",
    "RewardSignals",
    "SaveBoostReward",
    "SaveReward",
    "SpeedTowardBallReward",
    "StrongHitReward",
    "TeamSpiritReward",
    "TouchReward",
    "VelocityBallToGoalReward",
    "WavedashReward",
    "WrappedReward",
    "default_reward",
    "paid_by",
]
