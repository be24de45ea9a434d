"""Observation builders: GameState -> one row (or one set) of floats per car."""

from envs.obs.advanced import AdvancedObs
from envs.obs.advanced_plus import AdvancedObsPlus
from envs.obs.base import ObsBuilder
from envs.obs.combinators import PrivilegedObs, StackedObs
from envs.obs.default import DefaultObs
from envs.obs.entity import EntityObs
from envs.obs.meanings import Meaning
from envs.obs.relative import RelativeObs

__all__ = [
    "AdvancedObs",
    "AdvancedObsPlus",
    "DefaultObs",
    "EntityObs",
    "Meaning",
    "ObsBuilder",
    "PrivilegedObs",
    "RelativeObs",
    "StackedObs",
]
