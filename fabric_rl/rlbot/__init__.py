"""Bots for the real game: the folder that RLBot starts, and flights of it without the game."""
