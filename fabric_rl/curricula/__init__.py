"""Curricula: phases and lessons, from easy to hard."""
