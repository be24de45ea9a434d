"""Replays: games in a small file, written while they are played."""
