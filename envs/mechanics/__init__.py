"""Mechanics lanes: drills for one mechanic each, with their own success criteria."""

import sys
from typing import Any


def __getattr__(name: str) -> Any:  # noqa: ANN401 - a class
    """Return a lane as `envs` exports it; runs of older versions may name it by this path."""
    return getattr(sys.modules[__name__.rpartition(".")[0]], name)
