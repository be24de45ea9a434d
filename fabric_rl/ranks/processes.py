"""Ranks of a run: how each ends when its launcher or another rank is gone.

A process that outlives its parent could run on unnoticed. This module imports nothing slow.
"""

import os
import re
import socket
import sys
import time
from functools import cache

from fabric_rl.base.processes import end_with_parent
from fabric_rl.metrics.log import program_name

RANK_0 = "FABRIC_RL_RANK_0"
"""Environment variable of ranks that rank 0 starts: its process id, because rank 0 may die before they ask for it."""
ENDS_WITH_PARENT = "FABRIC_RL_ENDS_WITH_PARENT"
"""Environment variable of a training process that a command starts: the process ends when the command ends."""
PARENT = int(os.environ.pop(RANK_0, os.getppid()))
"""Process id of the parent; once `os.getppid()` differs from it, the parent is gone."""
_ADDRESS = re.compile(r"\[([\da-fA-F.:]+)\]:\d+")
_MILLISECONDS = re.compile(r"[Tt]imed out waiting (?:for )?(\d+) ?ms")


def parent_has_exited() -> bool:
    """Wait for one second, and return whether the process that started this one has ended."""
    time.sleep(1)  # its connections close a moment before it ends
    return os.getppid() != PARENT


@cache
def exit_with_launcher() -> None:
    """Exit this process (a rank, or a command's training) when the process that started it is gone.

    Call it early, at the latest before the ranks connect: they would wait half an hour for a missing one. It does
    nothing in rank 0 of Fabric's own launcher, when called again, and on Windows, which cannot tell that a parent is
    gone.
    """
    has_time = bool({"TORCHELASTIC_RUN_ID", ENDS_WITH_PARENT} & os.environ.keys())
    os.environ.pop(ENDS_WITH_PARENT, None)  # this process is the parent of its own ranks
    if sys.platform != "win32" and (has_time or os.environ.get("LOCAL_RANK", "0") != "0"):
        seconds = 60.0 if has_time else 5.0  # without rank 0, nothing is saved
        end_with_parent(_wait_for_launcher, seconds, f"{program_name()}: the launcher is gone; stopping this rank")


def _wait_for_launcher() -> None:
    gone = _agents_are_gone()
    while not gone and os.getppid() == PARENT:
        time.sleep(0.5)


def _agents_are_gone() -> bool:
    """Return whether torchrun's agents ended before this process asked for its parent: their store is closed then."""
    if os.environ.get("TORCHELASTIC_USE_AGENT_STORE") != "True":
        return False
    try:
        socket.create_connection((os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])), timeout=5).close()
    except OSError as error:  # after other errors, connecting will report more
        return isinstance(error, ConnectionRefusedError)
    return False


class LostRankError(RuntimeError):
    """Another rank has died or cannot be reached, so this one ends."""


def describe_lost_rank(error: BaseException) -> str | None:
    """Describe the loss of another rank if `error` is torch.distributed's error for that; return None otherwise.

    A process or machine that dies closes its connections, which the next collective operation notices. If it only stops
    answering (a pulled cable, a hung machine), it counts as lost after the timeout of the process group.
    """
    import torch.distributed

    text = str(error)
    of_torch = isinstance(error, torch.distributed.DistError) or "gloo" in text.lower()
    if not of_torch or not isinstance(error, RuntimeError):
        return None
    if waited := _MILLISECONDS.search(text):
        return f"no answer from another rank for {int(waited[1]) / 60_000:.3g} minutes (--timeout_minutes)"
    where = _ADDRESS.search(text)
    return f"another rank{f' (on {where[1]})' if where else ''} has died or cannot be reached"
