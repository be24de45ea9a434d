"""Signals that stop training: the first one after the current iteration, a second one at once."""

import os
import signal
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from itertools import chain
from types import FrameType
from typing import Any

from fabric_rl.callback import TrainState
from fabric_rl.metrics.log import logger
from fabric_rl.ranks.collectives import all_gather_object, all_reduce_sums

STOP_NAMES = {"SIGINT": "Ctrl+C", "SIGTERM": "SIGTERM", "SIGUSR1": "SIGUSR1", "SIGHUP": "SIGHUP (a closed terminal)"}
"""Signals that stop a run, with names for messages; batch systems such as SLURM send SIGUSR1 before a job's time is
up."""
FORWARDING_SECONDS = 2.0
"""Time within which a repeated signal counts as the same one: a launcher forwards signals that ranks also get."""


class StopSignals:
    """Context manager that handles the signals of this rank."""

    def __init__(self, state: TrainState) -> None:
        self.state = state
        self._names: list[str] = []
        self._first = 0.0
        self._patience = FORWARDING_SECONDS if "TORCHELASTIC_RUN_ID" in os.environ else 0.0
        self._previous: dict[int, Callable[..., Any] | int | None] = {}

    def __enter__(self) -> "StopSignals":
        """Let the first signal stop training after the iteration, and a second one raise KeyboardInterrupt."""
        if threading.current_thread() is threading.main_thread():  # only this thread receives signals
            for signum in (getattr(signal, name) for name in STOP_NAMES if hasattr(signal, name)):
                if signum != getattr(signal, "SIGHUP", None) or signal.getsignal(signum) != signal.SIG_IGN:  # nohup
                    self._previous[signum] = signal.signal(signum, self._handle)
        return self

    def __exit__(self, *failure: object) -> None:
        for signum, handler in self._previous.items():
            signal.signal(signum, handler)

    def agree(self, save: bool) -> bool:
        """Decide for all ranks together whether the run stops here, and whether it is saved; every rank calls it.

        Args:
            save: True if this rank's clock asks for a checkpoint.

        Returns:
            True if any rank asks for a checkpoint in addition to those that are due by steps.
        """
        state = self.state
        # Read once: a later signal must not end the loop on this rank alone.
        asks = {"stop": (float(state.stop), 1.0), "save": (float(state.save or save), 1.0)}
        asked = all_reduce_sums(state.fabric, asks | {name: (float(name in self._names), 1.0) for name in STOP_NAMES})
        state.stop, state.save = state.stop or asked["stop"][0] > 0, False
        if asked["stop"][0] > 0 and not state.done:
            callbacks = filter(None, all_gather_object(state.fabric, state.asked_by))
            signals = (STOP_NAMES[name] for name in STOP_NAMES if asked[name][0] > 0)
            state.stopped_by = next(chain(signals, callbacks), "a callback")
            logger.debug("stopped early by %s after %s steps", state.stopped_by, f"{state.steps:,}")
        return asked["save"][0] > 0

    def _handle(self, signum: int, frame: FrameType | None) -> None:
        if self._names and self.state.stop:
            if time.monotonic() - self._first >= self._patience:
                raise KeyboardInterrupt(f"a second signal ({signal.Signals(signum).name}) ended training at once")
            return
        self._names.append(signal.Signals(signum).name)
        when = "" if self.state.done else " after this iteration"
        self._first, self.state.stop = time.monotonic(), True
        if self.state.fabric.is_global_zero:
            with suppress(OSError, RuntimeError):  # a closed terminal, or a signal during another print
                print(f"\nstopping{when}; press Ctrl+C again to stop at once", flush=True)
