"""Swappable agent modules, one architecture per file."""

import os

# Before torch is loaded: OpenMP's waiting threads sleep instead of spinning on cores that the physics threads need.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

from agents.attention import AttentionPPOAgent
from agents.conv import ConvPPOAgent
from agents.ppo import PPOLightningAgent
from agents.recurrent import RecurrentPPOAgent

__all__ = ["AttentionPPOAgent", "ConvPPOAgent", "PPOLightningAgent", "RecurrentPPOAgent"]
