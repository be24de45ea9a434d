"""Ranks end with their launcher and with one another: none goes on, or waits, for what nobody can stop any more."""

import os
import re
import signal
import sys
import threading
import time

import torch.distributed

from fabric_rl.metrics.log import program

PARENT = os.getppid()
"""Who has started this process; another number later means that it is gone."""
_ADDRESS = re.compile(r"\[([\da-fA-F.:]+)\]:\d+")
_MILLISECONDS = re.compile(r"[Tt]imed out waiting (?:for )?(\d+) ?ms")


class LostRankError(RuntimeError):
    """Another rank has died or cannot be reached: this one ends."""


def lost_rank(error: BaseException) -> str | None:
    """What has happened to the other ranks if `error` is what torch.distributed raises then; None for other errors.

    A process or machine that has died closes its connections, which is noticed in the next collective operation; one
    that is silent (a pulled cable, a hung machine) is given up after the time that was set for the process group.
    """
    text = str(error)
    if not isinstance(error, torch.distributed.DistError) and "gloo" not in text.lower():
        return None
    if not isinstance(error, RuntimeError):
        return None
    if waited := _MILLISECONDS.search(text):
        return f"no answer from another rank for {int(waited[1]) / 60_000:.3g} minutes (--timeout_minutes)"
    where = _ADDRESS.search(text)
    return f"another rank{f' (on {where[1]})' if where else ''} has died or cannot be reached"


def orphaned() -> bool:
    """Whether the process that has started this one has just ended."""
    time.sleep(1)  # its connections close a moment before
    return os.getppid() != PARENT


def end_with_parent(seconds: float) -> None:
    """Ends this process when the one that has started it is killed: in order first, after `seconds` at once.

    Windows does not tell; there this does nothing.
    """
    if sys.platform != "win32":
        threading.Thread(target=_watch, args=(seconds,), name="watches-the-launcher", daemon=True).start()


def _watch(seconds: float) -> None:
    while os.getppid() == PARENT:
        time.sleep(0.5)
    print(f"{program()}: the launcher is gone; this rank ends", file=sys.stderr, flush=True)
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(seconds)
    os._exit(1)
