"""The processes of a run: they share cores, and none goes on without the others or without what has started them.

Without the latter nobody can stop them, or save. Imports nothing slow.
"""

import os
import re
import signal
import socket
import sys
import threading
import time
from contextlib import suppress
from functools import cache

from fabric_rl.metrics.log import program

RANK_0 = "FABRIC_RL_RANK_0"
"""Variable of the ranks that rank 0 starts: its process id. It may be gone before they can ask who their parent is."""
ENDS_WITH_PARENT = "FABRIC_RL_ENDS_WITH_PARENT"
"""Variable of trainings that a command starts, which are nobody's once it is gone."""
PARENT = int(os.environ.pop(RANK_0, os.getppid()))
"""Who has started this process; another number later means that it is gone."""
_ADDRESS = re.compile(r"\[([\da-fA-F.:]+)\]:\d+")
_MILLISECONDS = re.compile(r"[Tt]imed out waiting (?:for )?(\d+) ?ms")


def cores() -> set[int]:
    """The cores that this process may use."""
    return os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set(range(os.cpu_count() or 1))


def orphaned() -> bool:
    """Return whether the process that has started this one has just ended."""
    time.sleep(1)  # its connections close a moment before
    return os.getppid() != PARENT


@cache
def end_with_launcher() -> None:
    """Ends this process when who has started it, as a rank or for a command, is gone: in order, later at once.

    To be called early, at the latest before the ranks connect: they would wait half an hour for one that is gone. For
    rank 0 of Fabric's own launcher, and a second time, it does nothing. Nor does it on Windows, which does not tell who
    is gone.
    """
    has_time = bool({"TORCHELASTIC_RUN_ID", ENDS_WITH_PARENT} & os.environ.keys())
    os.environ.pop(ENDS_WITH_PARENT, None)  # of its ranks it is the parent
    if sys.platform != "win32" and (has_time or os.environ.get("LOCAL_RANK", "0") != "0"):
        seconds = 60.0 if has_time else 5.0  # without rank 0 there is nobody who saves
        threading.Thread(target=_watch, args=(seconds,), name="watches-the-launcher", daemon=True).start()


def _watch(seconds: float) -> None:
    gone = _agents_are_gone()
    while not gone and os.getppid() == PARENT:
        time.sleep(0.5)
    with suppress(OSError):  # the terminal may be, too
        print(f"{program()}: the launcher is gone; this rank ends", file=sys.stderr, flush=True)
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(seconds)
    os._exit(1)


def _agents_are_gone() -> bool:
    """Returns whether torchrun's agents ended before this process could ask for its parent: their store is closed."""
    if os.environ.get("TORCHELASTIC_USE_AGENT_STORE") != "True":
        return False
    try:
        socket.create_connection((os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])), timeout=5).close()
    except OSError as error:  # other ones: slow, or not to be found: connecting will tell
        return isinstance(error, ConnectionRefusedError)
    return False


class LostRankError(RuntimeError):
    """Another rank has died or cannot be reached: this one ends."""


def lost_rank(error: BaseException) -> str | None:
    """Say what has happened to the other ranks if `error` is what torch.distributed raises then; None for other errors.

    A process or machine that has died closes its connections, which is noticed in the next collective operation; one
    that is silent (a pulled cable, a hung machine) is given up after the time that was set for the process group.
    """
    import torch.distributed

    text = str(error)
    if not isinstance(error, torch.distributed.DistError) and "gloo" not in text.lower():
        return None
    if not isinstance(error, RuntimeError):
        return None
    if waited := _MILLISECONDS.search(text):
        return f"no answer from another rank for {int(waited[1]) / 60_000:.3g} minutes (--timeout_minutes)"
    where = _ADDRESS.search(text)
    return f"another rank{f' (on {where[1]})' if where else ''} has died or cannot be reached"
