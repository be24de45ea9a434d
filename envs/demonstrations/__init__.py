"""Demonstrations: recorded observations (or states) and actions to learn from (docs/demonstrations.md)."""

from envs.demonstrations.file import Demonstration as Demonstration
from envs.demonstrations.file import DemonstrationWriter as DemonstrationWriter
from envs.demonstrations.file import Episode as Episode
from envs.demonstrations.trajectories import trajectories as trajectories
from fabric_rl.base.trajectory import Trajectory as Trajectory
