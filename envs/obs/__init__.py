"""Observation builders, which convert a GameState to one row (or one set of rows) of floats per car."""

from envs.obs.advanced import AdvancedObs as AdvancedObs
from envs.obs.advanced import AdvancedObsPlus as AdvancedObsPlus
from envs.obs.advanced import RelativeObs as RelativeObs
from envs.obs.base import Meaning as Meaning
from envs.obs.base import ObsBuilder as ObsBuilder
from envs.obs.combinators import PrivilegedObs as PrivilegedObs
from envs.obs.combinators import SlotRoleObs as SlotRoleObs
from envs.obs.combinators import StackedObs as StackedObs
from envs.obs.combinators import TeamRoleObs as TeamRoleObs
from envs.obs.default import DefaultObs as DefaultObs
from envs.obs.entity import EntityObs as EntityObs
