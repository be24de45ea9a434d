"""Bots for the real game: the folder that RLBot starts, and its simulation without the game."""
