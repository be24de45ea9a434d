"""Replays: games in a small file, written while they are played, for the viewer and for anybody else."""
