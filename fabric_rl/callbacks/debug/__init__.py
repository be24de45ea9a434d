"""Debug: tells what happens inside of a run, by topic."""

from fabric_rl.callbacks.debug.debug import Debug

__all__ = ["Debug"]
