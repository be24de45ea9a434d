"""fabric-rl: actor-critic agents trained with PPO on Lightning Fabric."""

import os

# Before torch is loaded, whose OpenMP reads this once. Its waiting threads spin for half a millisecond, through the gap
# between two operations, then they sleep. When they slept at once, learning took 1.4 times as long. When they spun on
# and kept physics threads or other programs from their cores, training took up to 16 times as long. Your setting wins.
if not os.environ.keys() & {"OMP_WAIT_POLICY", "GOMP_SPINCOUNT"}:
    os.environ |= {"OMP_WAIT_POLICY": "PASSIVE", "GOMP_SPINCOUNT": "10000"}

from fabric_rl.args import Hardware, Saving, StartArgs, TrainArgs
from fabric_rl.callbacks import Callback, History, TrainState
from fabric_rl.curricula.lessons import Curriculum, Lessons
from fabric_rl.curricula.phases import Phase, Phases, Promotion
from fabric_rl.learning.gae import gae
from fabric_rl.learning.ppo import ppo_loss
from fabric_rl.learning.update import learn
from fabric_rl.loop import train
from fabric_rl.rollouts.collect import EpisodeStats, collect
from fabric_rl.rollouts.rollout import Rollout
from fabric_rl.runs.find import load as load_checkpoint
from fabric_rl.runs.folder import Run
from fabric_rl.runs.trained import Trained, load_trained
from fabric_rl.types import ActorCritic, ActOutput, Minibatch

__version__ = "0.1.0"

__all__ = [
    "ActOutput",
    "ActorCritic",
    "Callback",
    "Curriculum",
    "EpisodeStats",
    "Hardware",
    "History",
    "Lessons",
    "Minibatch",
    "Phase",
    "Phases",
    "Promotion",
    "Rollout",
    "Run",
    "Saving",
    "StartArgs",
    "TrainArgs",
    "TrainState",
    "Trained",
    "collect",
    "gae",
    "learn",
    "load_checkpoint",
    "load_trained",
    "ppo_loss",
    "train",
]
