"""StopAfter: a run that has so much time."""

import time

from fabric_rl.callback import Callback, TrainState


class StopAfter(Callback):
    """Ends the run, as Ctrl+C would, after the iteration in which its time is over; a resumed run gets it anew."""

    def __init__(self, minutes: float) -> None:
        """Sets the time.

        Args:
            minutes: Of training, without what it takes to start.

        Raises:
            ValueError: That is no time.
        """
        if not minutes > 0:
            raise ValueError(f"StopAfter: minutes must be above 0, got {minutes}")
        self.minutes = minutes

    def on_train_start(self, state: TrainState) -> None:
        """Starts the clock."""
        self._end = time.monotonic() + 60 * self.minutes

    def on_iteration_end(self, state: TrainState) -> None:
        """Looks at it."""
        state.stop |= time.monotonic() > self._end
