"""The former place of `fabric_rl.evaluation.demonstrations`."""

from fabric_rl.evaluation.demonstrations import trajectories_of as trajectories_of
