"""Rewards: GameState after a step -> one number per car.

Every reward is batched over `[A, C]` (arenas, cars), does not depend on the order of the cars, is zero in slots without
a car and judges every car from its own side of the field, where the opponents' goal is at +y. `d` is a unit vector;
lengths in uu, speeds in uu/s. `python -m envs.rewards` prints a table of them all (docs/rewards.md).
"""

import sys
from typing import Any


def __getattr__(name: str) -> Any:  # noqa: ANN401 - a class
    """Return a reward as `envs` exports it; runs of older versions may name it by this path."""
    return getattr(sys.modules[__name__.rpartition(".")[0]], name)
