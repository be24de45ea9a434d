"""Swappable agent modules, one architecture per file."""

import fabric_rl.types  # noqa: F401 - before torch: the package settles how OpenMP's threads wait

# isort: split
from agents.attention import AttentionPPOAgent
from agents.conv import ConvPPOAgent
from agents.multi_input import MultiInputPPOAgent
from agents.ppo import PPOLightningAgent
from agents.recurrent import RecurrentPPOAgent
from agents.roles import RolesAgent
from agents.sac import SACLightningAgent

__all__ = [
    "AttentionPPOAgent",
    "ConvPPOAgent",
    "MultiInputPPOAgent",
    "PPOLightningAgent",
    "RecurrentPPOAgent",
    "RolesAgent",
    "SACLightningAgent",
]
