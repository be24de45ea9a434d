"""Bots for the real game: the folder that RLBot starts, and a simulation without the game."""
