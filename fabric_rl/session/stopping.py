"""Signals that end training in order: the first one after the running iteration, a second one at once."""

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any

from fabric_rl.callbacks import TrainState

STOP_NAMES = {"SIGINT": "Ctrl+C", "SIGTERM": "SIGTERM", "SIGUSR1": "SIGUSR1", "SIGHUP": "SIGHUP (a closed terminal)"}
"""Signals that stop a run, and what people call them: Ctrl+C, a polite kill, what batch systems such as SLURM send
before they take the machine away, a closed terminal."""
FORWARDING_SECONDS = 2.0
"""A launcher passes on a signal that its workers may have got themselves: so long it counts as the same one."""


@contextmanager
def stop_on_signals(state: TrainState) -> Iterator[list[str]]:
    """The first stop signal ends training after the running iteration, a second one ends it at once.

    Yields:
        The name of the signal that has come to this rank, a key of `STOP_NAMES`; empty until then.

    Raises:
        KeyboardInterrupt: A second one has come.
    """
    names: list[str] = []
    if threading.current_thread() is not threading.main_thread():  # signals only reach the main thread
        yield names
        return

    patience = FORWARDING_SECONDS if "TORCHELASTIC_RUN_ID" in os.environ else 0.0
    first = 0.0

    def handle(signum: int, frame: FrameType | None) -> None:
        nonlocal first
        if state.stop and state.signalled:
            if time.monotonic() - first >= patience:
                raise KeyboardInterrupt(f"a second signal ({signal.Signals(signum).name}) ended training at once")
            return
        names.append(signal.Signals(signum).name)
        first, state.stop, state.signalled = time.monotonic(), True, True
        if state.fabric.is_global_zero:
            with suppress(OSError, RuntimeError):  # nobody listens, or it came in the middle of another print
                print("\nstopping after this iteration; press Ctrl+C again to stop at once", flush=True)

    previous: dict[int, Callable[..., Any] | int | None] = {
        signum: signal.signal(signum, handle)
        for signum in (getattr(signal, name) for name in STOP_NAMES if hasattr(signal, name))
        if signum != getattr(signal, "SIGHUP", None) or signal.getsignal(signum) != signal.SIG_IGN  # nohup
    }
    try:
        yield names
    finally:
        for signum, handler in previous.items():
            signal.signal(signum, handler)
