"""Swappable agent modules, one architecture per file."""

from agents.ppo import PPOLightningAgent

__all__ = ["PPOLightningAgent"]
