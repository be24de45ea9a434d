"""Tree of named timers that shows where time is spent; written to `timers.json` in ML-Agents' format.

    timers = Timers()
    with timers("collect"):
        with timers("physics"):
            ...
        timers.add("gather", seconds, count)  # measured elsewhere, for example by worker threads
    timers.write(run.dir / "timers.json")

A timer nests under the one that is open when it starts. GPU kernels run asynchronously: their time appears where the
program waits for them.
"""

import platform
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

from fabric_rl.base.files import write_json

FORMAT_VERSION = "0.1.0"
"""Version of ML-Agents' format."""


class Timer:
    """A node of the tree, and the context manager that measures a block.

    Attributes:
        total: Seconds in all blocks that have ended.
        count: Number of blocks started.
        longest: Seconds in the longest block; 0 if only sums are known.
        children: Timers started inside this one, by name.
    """

    __slots__ = ("_began", "_is_open", "_parent", "_tree", "children", "count", "is_parallel", "longest", "total")

    def __init__(self, tree: "Timers", parent: "Timer | None") -> None:
        self._tree, self._parent, self._began, self._is_open = tree, parent, 0.0, False
        self.children: dict[str, Timer] = {}
        self.total, self.count, self.longest, self.is_parallel = 0.0, 0, 0.0, False

    def __enter__(self) -> "Timer":
        self._tree._open = self
        self._is_open = True
        self.count += 1
        self._began = self._tree._clock()
        return self

    def __exit__(self, *error: object) -> None:
        seconds = self._tree._clock() - self._began
        self._is_open = False
        self.total += seconds
        if seconds > self.longest:
            self.longest = seconds
        if self._parent is not None:
            self._tree._open = self._parent

    def child(self, name: str) -> "Timer":
        """Return the child timer `name`; the first call creates it."""
        node = self.children.get(name)
        if node is None:
            node = self.children[name] = Timer(self._tree, self)
        return node


class Timers:
    """Tree of the timers of one process. Only one thread may use it; `add` adds times measured by other threads."""

    def __init__(self, enabled: bool = True, clock: Callable[[], float] = time.perf_counter) -> None:
        """Start the root timer.

        Args:
            enabled: Measure times; if False, do nothing.
            clock: Monotonic clock in seconds.
        """
        self.enabled, self._clock = enabled, clock
        self._root = self._open = Timer(self, None)
        self._root.__enter__()
        self._root._is_open = self.enabled
        self._start_time = time.time()

    def __call__(self, name: str) -> AbstractContextManager[object]:
        """Return a context manager that measures its block as `name`, below the timer that is currently open.

        Enter it at once: `with timers("learn"):`.
        """
        return self._open.child(name) if self.enabled else nullcontext()

    def add(self, name: str, seconds: float, count: int = 1, parallel: bool = False) -> None:
        """Add time that was measured elsewhere, below the timer that is currently open.

        Args:
            name: Name of the timer.
            seconds: Time to add.
            count: Number of blocks that took this time.
            parallel: Several threads spent it in parallel, so it may exceed the parent's time; marked `is_parallel` in
                the report.
        """
        if not self.enabled:
            return
        node = self._open.child(name)
        node.total += seconds
        node.count += count
        if count == 1:
            node.longest = max(node.longest, seconds)
        node.is_parallel |= parallel

    def to_dict(self) -> dict[str, Any]:
        """Return the tree, with times in seconds; an open timer counts up to now.

        Every node is `{total, count, self, max?, is_parallel?, children?}` with `self` = total minus the children's, at
        least 0; children are sorted by name, so that two reports can be compared line by line.
        """
        return {"name": "root", **_report(self._root, self._clock())}

    def write(self, path: str | Path) -> None:
        """Write `to_dict` and some metadata atomically; a disabled tree writes nothing.

        Raises:
            OSError: The file cannot be written.
        """
        if not self.enabled:
            return
        metadata = {
            "timer_format_version": FORMAT_VERSION,
            "start_time_seconds": round(self._start_time, 3),
            "end_time_seconds": round(time.time(), 3),
            "python_version": platform.python_version(),
        }
        write_json(Path(path), self.to_dict() | {"metadata": metadata})


def _report(node: Timer, now: float) -> dict[str, Any]:
    so_far = now - node._began if node._is_open else 0.0
    total = node.total + so_far
    children = {name: _report(node.children[name], now) for name in sorted(node.children)}
    report: dict[str, Any] = {
        "total": total,
        "count": node.count,
        "self": max(0.0, total - sum(child["total"] for child in children.values())),
    }
    if longest := max(node.longest, so_far):
        report["max"] = longest
    if node.is_parallel:
        report["is_parallel"] = True
    if children:
        report["children"] = children
    return report
