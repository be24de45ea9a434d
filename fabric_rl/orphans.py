"""Ranks end with their launcher: no process goes on training that nobody can stop any more."""

import os
import signal
import sys
import threading
import time

PARENT = os.getppid()
"""Who has started this process; another number later means that it is gone."""


def end_with_parent(seconds: float) -> None:
    """Ends this process when the one that has started it is killed: in order first, after `seconds` at once.

    Windows does not tell; there this does nothing.
    """
    if sys.platform != "win32":
        threading.Thread(target=_watch, args=(seconds,), name="watches-the-launcher", daemon=True).start()


def _watch(seconds: float) -> None:
    while os.getppid() == PARENT:
        time.sleep(0.5)
    print("train_fabric.py: the launcher is gone; this rank ends", file=sys.stderr, flush=True)
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(seconds)
    os._exit(1)
