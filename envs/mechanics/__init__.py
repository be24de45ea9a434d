"""Mechanics lanes: drills for one mechanic each, with their own success criteria."""

from envs.mechanics.aerial import AirDribbleLane as AirDribbleLane
from envs.mechanics.aerial import FlipResetLane as FlipResetLane
from envs.mechanics.aerial import WallToAerialLane as WallToAerialLane
from envs.mechanics.base import Lane as Lane
from envs.mechanics.base import Seen as Seen
from envs.mechanics.base import SetUp as SetUp
from envs.mechanics.ground import DribbleLane as DribbleLane
from envs.mechanics.ground import HalfFlipLane as HalfFlipLane
from envs.mechanics.ground import JumpShotLane as JumpShotLane
from envs.mechanics.ground import KickoffLane as KickoffLane
from envs.mechanics.lanes import NO_LANE as NO_LANE
from envs.mechanics.lanes import LaneTimeLimit as LaneTimeLimit
from envs.mechanics.lanes import LaneTracker as LaneTracker
from envs.mechanics.lanes import MechanicsLanes as MechanicsLanes
from envs.mechanics.lanes import default_lanes as default_lanes
