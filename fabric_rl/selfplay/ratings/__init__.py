"""Ratings of players, and their uncertainty."""
