"""Describes the machine a benchmark ran on."""

import os
import platform
import sys
from importlib.metadata import version
from pathlib import Path


def describe_machine() -> str:
    """One sentence: cores, processor, system and the versions that decide speed."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    processor = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        names = [line.partition(":")[2].strip() for line in cpuinfo.read_text().splitlines() if "model name" in line]
        processor = names[0] if names else processor
    gpus = []
    if "torch" in sys.modules:  # those that do not use it leave its memory out of their figures
        cuda = sys.modules["torch"].cuda
        gpus = [cuda.get_device_name(number) for number in range(cuda.device_count())]
    processor += "".join(f", {gpus.count(name)} {name}" for name in dict.fromkeys(gpus))
    packages = ", ".join(f"{name} {version(name)}" for name in ("torch", "lightning", "rocketsim", "numpy"))
    return (
        f"Machine: {cores} cores of {processor}, {platform.system()}, Python {platform.python_version()}, {packages}."
    )


def peak_memory_mib() -> int | None:
    """Largest resident memory of this process so far, MiB; None on Windows."""
    if sys.platform == "win32":
        return None
    import resource

    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1024**2 if sys.platform == "darwin" else 1024))
