"""Command line of trainings: reading settings, launching ranks, reporting the end."""
