"""Action parsers: what the agent chooses -> RocketSim car controls."""

from envs.actions.base import (
    BOOST,
    HANDBRAKE,
    JUMP,
    PITCH,
    ROLL,
    STEER,
    THROTTLE,
    YAW,
    ActionParser,
    Controls,
    RowControls,
)
from envs.actions.combinators import ClipAction, DelayAction, RepeatAction, StickyButtons
from envs.actions.continuous import ContinuousAction, MultiDiscreteAction
from envs.actions.hybrid import HybridTable, StateAwareTable
from envs.actions.lookup import ActionTable, LookupTable

__all__ = [
    "BOOST",
    "HANDBRAKE",
    "JUMP",
    "PITCH",
    "ROLL",
    "STEER",
    "THROTTLE",
    "YAW",
    "ActionParser",
    "ActionTable",
    "ClipAction",
    "ContinuousAction",
    "Controls",
    "DelayAction",
    "HybridTable",
    "LookupTable",
    "MultiDiscreteAction",
    "RepeatAction",
    "RowControls",
    "StateAwareTable",
    "StickyButtons",
]
