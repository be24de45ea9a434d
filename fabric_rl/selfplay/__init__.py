"""Agents against agents: what their matches show."""
