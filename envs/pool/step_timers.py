"""Where the time of a pool's steps goes."""

import time

PARTS = ("physics", "gather", "obs", "rewards", "dones_and_resets", "actions")


class StepTimers:
    """Adds up the seconds of each of `PARTS`, with a look at the clock where one ends and the next begins."""

    def __init__(self) -> None:
        self._seconds = dict.fromkeys(PARTS, 0.0)
        self._steps = 0
        self._last = 0.0

    def start(self) -> None:
        """A step begins."""
        self._steps += 1
        self._last = time.perf_counter()

    def stop(self, part: str, at: float | None = None) -> None:
        """What has passed since the last call belongs to `part`; it ended `at` (`time.perf_counter`), or just now."""
        now = time.perf_counter() if at is None else at
        self._seconds[part] += now - self._last
        self._last = now

    def drain(self) -> dict[str, tuple[float, int]]:
        """Part -> (seconds, steps) since the last call."""
        drained = {part: (seconds, self._steps) for part, seconds in self._seconds.items()}
        self._seconds, self._steps = dict.fromkeys(PARTS, 0.0), 0
        return drained
