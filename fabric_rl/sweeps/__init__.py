"""Trainings as processes: several seeds, searches for good settings, and for fast ones."""
