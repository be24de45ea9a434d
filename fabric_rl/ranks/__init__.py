"""Ranks: the processes that train one agent together."""
