"""State setters, which write the initial states of episodes."""

from envs.resets.base import StateSetter as StateSetter
from envs.resets.initial_states import check_start as check_start
from envs.resets.mixtures import MirroredStates as MirroredStates
from envs.resets.mixtures import MixedStates as MixedStates
from envs.resets.mixtures import ShuffledCars as ShuffledCars
from envs.resets.mixtures import exchange_teams as exchange_teams
from envs.resets.mixtures import mirror_left_right as mirror_left_right
from envs.resets.replay import ReplayedStates as ReplayedStates
from envs.resets.replay import save_states as save_states
from envs.resets.simple import ExplicitState as ExplicitState
from envs.resets.simple import Kickoff as Kickoff
from envs.resets.simple import RandomState as RandomState
from envs.resets.simple import TurtledStart as TurtledStart
from envs.resets.training_packs import TrainingPack as TrainingPack
