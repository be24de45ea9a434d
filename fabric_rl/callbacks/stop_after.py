"""StopAfter: a run that has so much time."""

import time

from fabric_rl.callback import Callback, TrainState


class StopAfter(Callback):
    """Stop the run after a given time, as Ctrl+C would; a resumed run gets the full time again."""

    def __init__(self, minutes: float, after_iterations: int = 0, processor: bool = False) -> None:
        """Set the time.

        Args:
            minutes: Minutes of training, without the time to start.
            after_iterations: Number of iterations after which the clock starts, for example to exclude compilation.
            processor: Count processor time instead of wall-clock time: that of all threads of this process, but not of
                its child processes (as in a `ProcessPool`). With several ranks, the first to use up its time ends the
                run.

        Raises:
            ValueError: `minutes` is not positive, or `after_iterations` is negative.
        """
        if not minutes > 0:
            raise ValueError(f"StopAfter: minutes must be above 0, got {minutes}")
        if after_iterations < 0:
            raise ValueError(f"StopAfter: after_iterations must not be negative, got {after_iterations}")
        self.minutes, self.after_iterations = minutes, after_iterations
        self._now = time.process_time if processor else time.monotonic

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
