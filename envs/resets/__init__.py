"""State setters: how an episode begins."""

from envs.resets.base import StateSetter, check_start
from envs.resets.explicit import ExplicitState
from envs.resets.kickoff import Kickoff
from envs.resets.mixtures import MirroredStates, MixedStates, ShuffledCars, exchange_teams, mirror_left_right
from envs.resets.random_state import RandomState
from envs.resets.replay import ReplayedStates, save_states
from envs.resets.training_packs import TrainingPack
from envs.resets.turtled import TurtledStart

__all__ = [
    "ExplicitState",
    "Kickoff",
    "MirroredStates",
    "MixedStates",
    "RandomState",
    "ReplayedStates",
    "ShuffledCars",
    "StateSetter",
    "TrainingPack",
    "TurtledStart",
    "check_start",
    "exchange_teams",
    "mirror_left_right",
    "save_states",
]
