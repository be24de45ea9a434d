"""StopAfter: a run that has so much time."""

import time

from fabric_rl.callback import Callback, TrainState


class StopAfter(Callback):
    """End the run, as Ctrl+C would, once its time is up; a resumed run gets the full time again."""

    def __init__(self, minutes: float, after_iterations: int = 0, processor: bool = False) -> None:
        """Sets the time.

        Args:
            minutes: Of training, without what it takes to start.
            after_iterations: The clock starts after so many iterations, in which programs are compiled, say.
            processor: Minutes of the processor instead of the wall's: of all threads of this process, not of its
                children (those of a `ProcessPool`). Of several ranks the first one that has used them up ends the run.

        Raises:
            ValueError: That is no time, or no number of iterations.
        """
        if not minutes > 0:
            raise ValueError(f"StopAfter: minutes must be above 0, got {minutes}")
        if after_iterations < 0:
            raise ValueError(f"StopAfter: after_iterations must not be negative, got {after_iterations}")
        self.minutes, self.after_iterations = minutes, after_iterations
        self._now = time.process_time if processor else time.monotonic

    def on_train_start(self, state: TrainState) -> None:
        """Starts the clock."""
        self._before = self.after_iterations
        self._end = self._now() + 60 * self.minutes

    def on_iteration_end(self, state: TrainState) -> None:
        """Looks at it."""
        if self._before:
            self._before -= 1
            self._end = self._now() + 60 * self.minutes
        else:
            state.stop |= self._now() > self._end
