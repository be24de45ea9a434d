"""Ranks end with one another: none goes on, or waits, for one that is gone."""

import re

import torch.distributed

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
