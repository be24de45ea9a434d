"""How many cores there are to step games with."""

import os


def available_cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def available_threads() -> int:
    """This process's share of them: the ranks on this machine (`LOCAL_WORLD_SIZE`) divide them evenly."""
    return max(1, available_cores() // max(1, int(os.environ.get("LOCAL_WORLD_SIZE", "1"))))
