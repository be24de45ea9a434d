"""Swappable agent modules, one architecture per file."""

from agents.attention import AttentionPPOAgent
from agents.conv import ConvPPOAgent
from agents.ppo import PPOLightningAgent
from agents.recurrent import RecurrentPPOAgent

__all__ = ["AttentionPPOAgent", "ConvPPOAgent", "PPOLightningAgent", "RecurrentPPOAgent"]
