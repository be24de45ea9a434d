"""Adapters for other environments, rewards and bots: Gymnasium, Atari, RLGym, RLBot."""
