"""Where the time of a pool's steps goes."""

import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from envs.sim.arenas import Arenas

PHASES = ("physics", "gather", "obs", "rewards", "dones_and_resets", "actions")


class PhaseTimers:
    """Adds up the seconds of each of `PHASES`, with a look at the clock where one ends and the next begins."""

    def __init__(self) -> None:
        """Starts at zero."""
        self._seconds = dict.fromkeys(PHASES, 0.0)
        self._steps = 0
        self._last = 0.0

    def start(self) -> None:
        """A step begins."""
        self._steps += 1
        self._last = time.perf_counter()

    def stop(self, phase: str, at: float | None = None) -> None:
        """What has passed since the last call belongs to `phase`; it ended `at` (`time.perf_counter`), or just now."""
        now = time.perf_counter() if at is None else at
        self._seconds[phase] += now - self._last
        self._last = now

    def drain(self) -> dict[str, tuple[float, int]]:
        """Phase -> (seconds, steps) since the last call."""
        drained = {phase: (seconds, self._steps) for phase, seconds in self._seconds.items()}
        self._seconds, self._steps = dict.fromkeys(PHASES, 0.0), 0
        return drained


class TimedArenas(Arenas):
    """Arenas that remember when the physics was done.

    Attributes:
        gather_began: `time.perf_counter()` when reading the arenas began in the last step.
    """

    gather_began = 0.0

    def step(self, controls: Sequence[Any], rngs: Sequence[np.random.Generator]) -> None:
        """See `Arenas.step`."""
        self.gather_began = 0.0
        super().step(controls, rngs)

    def _read(self, start: int, stop: int) -> None:
        if not self.gather_began:
            self.gather_began = time.perf_counter()
        super()._read(start, stop)
