"""Mechanics lanes: true set-ups to practise one mechanic each, with a measure of success of their own."""

from envs.mechanics.aerial import AirDribbleLane, FlipResetLane, WallToAerialLane
from envs.mechanics.base import Lane, Seen, SetUp
from envs.mechanics.ground import DribbleLane, HalfFlipLane, JumpShotLane
from envs.mechanics.kickoffs import KickoffLane
from envs.mechanics.lanes import NO_LANE, LaneEpisodes, LaneTimeLimit, MechanicsLanes, default_lanes

__all__ = [
    "NO_LANE",
    "AirDribbleLane",
    "DribbleLane",
    "FlipResetLane",
    "HalfFlipLane",
    "JumpShotLane",
    "KickoffLane",
    "Lane",
    "LaneEpisodes",
    "LaneTimeLimit",
    "MechanicsLanes",
    "Seen",
    "SetUp",
    "WallToAerialLane",
    "default_lanes",
]
