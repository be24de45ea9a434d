"""Swappable agent modules, one architecture per file."""

import fabric_rl.types  # noqa: F401 - before torch: the package settles how OpenMP's threads wait

# isort: split
from agents.attention import AttentionPPOAgent as AttentionPPOAgent
from agents.conv import ConvPPOAgent as ConvPPOAgent
from agents.multi_input import MultiInputPPOAgent as MultiInputPPOAgent
from agents.poca import POCAAgent as POCAAgent
from agents.ppo import PPOLightningAgent as PPOLightningAgent
from agents.recurrent import RecurrentPPOAgent as RecurrentPPOAgent
from agents.roles import RolesAgent as RolesAgent
from agents.sac import SACLightningAgent as SACLightningAgent
