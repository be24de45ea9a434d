"""Finished runs: their curves, comparisons of groups of them, pictures and tables."""
