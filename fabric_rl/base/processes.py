"""This process: the cores that it may use, slow imports, and its end when its parent is gone."""

import gc
import os
import shutil
import signal
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType


def exit_without_packages() -> None:
    """Exit with one line if the packages are missing, because their environment is not activated."""
    if find_spec("lightning") is None:
        sys.exit("train_fabric.py: error: the packages are missing; activate the environment first (docs/install.md)")


def import_slow_module(name: str) -> ModuleType:
    """Import a module that imports torch: without garbage collection, it takes a fifth less time."""
    gc.disable()
    try:
        return import_module(name)
    finally:
        gc.enable()


def cores() -> set[int]:
    """Return the cores that this process may use."""
    return os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set(range(os.cpu_count() or 1))


def available_cores() -> int:
    """Return the number of cores that this process may use."""
    return len(cores())


def available_threads() -> int:
    """Return this process's share of the cores: the ranks on this machine (`LOCAL_WORLD_SIZE`) divide them evenly."""
    return max(1, available_cores() // max(1, int(os.environ.get("LOCAL_WORLD_SIZE", "1"))))


def end_with_parent(wait: Callable[[], object], seconds_to_save: float = 0.0, message: str = "") -> None:
    """End this process once its parent is gone; a thread waits for that.

    Args:
        wait: Function that returns when the parent is gone.
        seconds_to_save: Seconds between SIGTERM, on which a run saves itself, and the end; 0: end at once.
        message: Text to print on standard error when the parent is gone.
    """

    def watch() -> None:
        wait()
        if message:
            with suppress(OSError):  # the terminal may be gone, too
                print(message, file=sys.stderr, flush=True)
        if seconds_to_save:
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(seconds_to_save)
        os._exit(1)

    threading.Thread(target=watch, name="ends-with-parent", daemon=True).start()


def find_ffmpeg() -> str:
    """Return the path of imageio-ffmpeg's ffmpeg, or of another one; raise a FileNotFoundError if there is none."""
    name = "ffmpeg"
    with suppress(ImportError, RuntimeError):  # not installed, or it does not find its program
        name = import_module("imageio_ffmpeg").get_ffmpeg_exe()
    if path := shutil.which(name):
        return path
    raise FileNotFoundError("videos need ffmpeg; pip install imageio-ffmpeg")
