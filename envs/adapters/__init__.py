"""Adapters of other environments, rewards and bots: Gymnasium, Atari, RLGym, RLBot."""
