"""StopAfter: a run that has so much time."""

import time
from dataclasses import dataclass

from fabric_rl.base.settings import CountOrZero, Positive, check_settings
from fabric_rl.callback import Callback, TrainState


@dataclass(eq=False, repr=False)
class StopAfter(Callback):
    """Stop the run after a given time, as Ctrl+C would; a resumed run gets the full time again."""

    minutes: Positive
    """Minutes of training, without the time to start."""
    after_iterations: CountOrZero = 0
    """Number of iterations after which the clock starts, for example to exclude compilation."""
    processor: bool = False
    """Count processor time instead of wall-clock time: that of all threads of this process, but not of its child
    processes (as in a `ProcessPool`). With several ranks, the first to use up its time ends the run."""

    def __post_init__(self) -> None:
        check_settings(self)
        self._now = time.process_time if self.processor else time.monotonic

    def on_train_start(self, state: TrainState) -> None:
        """Start the clock."""
        self._before = self.after_iterations
        self._end = self._now() + 60 * self.minutes

    def on_iteration_end(self, state: TrainState) -> None:
        """Stop the run if its time is up."""
        if self._before:
            self._before -= 1
            self._end = self._now() + 60 * self.minutes
        else:
            state.stop |= self._now() > self._end
