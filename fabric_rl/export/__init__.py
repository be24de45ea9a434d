"""Policies that leave the framework: as a file that other programs run, and back again as a player."""
