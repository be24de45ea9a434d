"""Action parsers, which convert the agent's actions to RocketSim car controls."""

from envs.actions.base import BOOST as BOOST
from envs.actions.base import HANDBRAKE as HANDBRAKE
from envs.actions.base import JUMP as JUMP
from envs.actions.base import PITCH as PITCH
from envs.actions.base import ROLL as ROLL
from envs.actions.base import STEER as STEER
from envs.actions.base import THROTTLE as THROTTLE
from envs.actions.base import YAW as YAW
from envs.actions.base import ActionParser as ActionParser
from envs.actions.base import Controls as Controls
from envs.actions.base import RowControls as RowControls
from envs.actions.combinators import ClipAction as ClipAction
from envs.actions.combinators import DelayAction as DelayAction
from envs.actions.combinators import RepeatAction as RepeatAction
from envs.actions.combinators import StickyButtons as StickyButtons
from envs.actions.situations import HybridTable as HybridTable
from envs.actions.situations import StateAwareTable as StateAwareTable
from envs.actions.tables import ActionTable as ActionTable
from envs.actions.tables import ContinuousAction as ContinuousAction
from envs.actions.tables import LookupTable as LookupTable
from envs.actions.tables import MultiDiscreteAction as MultiDiscreteAction
