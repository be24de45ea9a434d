"""Matches between players, their statistics, and exams with training packs."""
