"""A ProcessPool's handle on one of its worker processes."""

import multiprocessing
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from multiprocessing import connection
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from envs.processes.protocol import FLAGS, HAS_PAYLOAD, IS_STEP, REWARD_DTYPE, Failure, ShardSpec, WorkerLostError
from envs.processes.server import run_shard
from envs.processes.shared_arrays import SharedArrays

START_SECONDS = 300.0
"""How long a worker may take to build its environments, and for everything else that is rare."""
CLOSE_SECONDS = 10.0
_ALIVE_CHECK_SECONDS = 0.1


class ShardWorker:
    """The parent's handle on one worker process."""

    def __init__(self, label: str, factory: bytes) -> None:
        """Starts the process; `connect` waits until it is ready.

        Args:
            label: How messages call it, as in `ProcessPool worker 1 (arenas 2 to 3)`.
            factory: Pickled function without parameters that builds its environments.
        """
        self.label = label
        self.flags = 0
        self.reward_dtype: np.dtype[Any] | None = None
        self.steps = 0
        self._arrays: SharedArrays | None = None
        self._busy_since: float | None = None
        self._env, self._command = "", ""
        context = multiprocessing.get_context("spawn")
        self._go, self._done = context.Semaphore(0), context.Semaphore(0)
        self._conn, theirs = context.Pipe()
        arguments = (theirs, self._go, self._done, factory)
        self._process = context.Process(target=run_shard, args=arguments, name=label, daemon=True)
        try:
            with _main_module_hidden(unless=b"__main__" in factory), _interrupts_held_back():
                self._process.start()
        finally:
            theirs.close()

    @property
    def arrays(self) -> SharedArrays:
        """The shared arrays; after `stop` there are none."""
        if self._arrays is None:
            raise RuntimeError(f"{self.label} is not running")
        return self._arrays

    def connect(self) -> ShardSpec:
        """Waits for the environments and shares the arrays.

        Raises:
            ValueError, TypeError, OSError, ImportError: The factory raised it.
            RuntimeError: The factory raised something else.
            WorkerLostError: The process ended or did not become ready.
        """
        spec = self._receive(START_SECONDS)
        if isinstance(spec, Failure):
            raise spec.kind(spec.message) if spec.kind else spec.as_error(f"{self.label}, while it was built")
        assert isinstance(spec, ShardSpec)
        self._env = spec.name
        self._arrays = SharedArrays(spec.layout)
        self._conn.send(self._arrays.name)
        self._wait(time.monotonic() + START_SECONDS, START_SECONDS)
        self._arrays.forget_name()
        return spec

    def post_step(self, actions: NDArray[Any]) -> None:
        """Starts a step. `receive` waits for its end."""
        self.arrays["actions"][:] = actions
        self.arrays["header"][IS_STEP] = 1
        self._busy_since = time.monotonic()
        self._go.release()

    def post(self, command: str, *arguments: Any) -> None:  # noqa: ANN401 - whatever can be pickled
        """Starts another command. `receive` waits for its result."""
        self.arrays["header"][IS_STEP] = 0
        self._command = command
        self._busy_since = time.monotonic()
        self._go.release()
        with suppress(OSError):  # the process is gone: `receive` finds out
            self._conn.send((command, arguments))

    def receive(self, timeout_seconds: float) -> Any:  # noqa: ANN401 - what the command returned
        """What the posted command returned: for step and reset the infos that have no array, or None; or a `Failure`.

        Raises:
            WorkerLostError: The process ended, or did not answer within `timeout_seconds` of `post`.
        """
        assert self._busy_since is not None
        self._wait(self._busy_since + timeout_seconds, timeout_seconds)
        header = self.arrays["header"]
        self.flags = int(header[FLAGS])
        result = self._receive(timeout_seconds) if self.flags & HAS_PAYLOAD else None
        if header[IS_STEP] and not isinstance(result, Failure):
            self.steps += 1
            self.reward_dtype = np.dtype(chr(header[REWARD_DTYPE]))
        self._busy_since = None
        return result

    def settle(self, timeout_seconds: float) -> None:
        """Waits for a command whose `receive` was interrupted, and drops its result."""
        if self._busy_since is not None:
            self._busy_since = time.monotonic()
            self.receive(timeout_seconds)

    def request_close(self) -> None:
        """Asks the process to end, unless it is busy."""
        if self._arrays is not None and self._busy_since is None:
            self.post("close")
            self._busy_since = None

    def stop(self) -> None:
        """Waits for the end after `request_close`, kills a process that was not asked, and frees everything."""
        if self._process.pid is not None:
            if self._arrays is not None and self._busy_since is None:
                self._process.join(CLOSE_SECONDS)
            self.kill()
            self._process.close()
        self._conn.close()
        if self._arrays is not None:
            self._arrays.close()
            self._arrays = None
        del self._go, self._done  # their names go with them

    def kill(self) -> None:
        """Ends the process at once."""
        if self._process.is_alive():
            self._process.kill()
        self._process.join()

    def _wait(self, deadline: float, allowed_seconds: float) -> None:
        while not self._done.acquire(timeout=_ALIVE_CHECK_SECONDS):
            if not self._process.is_alive() and not self._done.acquire(block=False):
                raise self._lost(self._how_it_ended())
            if time.monotonic() > deadline:
                raise self._no_answer(allowed_seconds)

    def _receive(self, timeout_seconds: float) -> Any:  # noqa: ANN401 - whatever was pickled
        if not connection.wait([self._conn, self._process.sentinel], timeout_seconds):
            raise self._no_answer(timeout_seconds)
        try:
            return self._conn.recv()
        except (EOFError, OSError):
            raise self._lost(self._how_it_ended()) from None

    def _lost(self, how: str) -> WorkerLostError:
        """In which function of the environment, and `how`: what has happened and what to do."""
        doing = "step" if self._arrays is not None and self._arrays["header"][IS_STEP] else self._command
        failed_in = f"{self._env}.{doing}()" if self._env else "building its environment"
        return WorkerLostError(f"{self.label}: {failed_in} {how}", failed_in)

    def _no_answer(self, seconds: float) -> WorkerLostError:
        more = "; a larger timeout_seconds (--env.timeout_seconds) waits longer" if seconds != START_SECONDS else ""
        return self._lost(f"did not answer for {seconds:g} s{more}")

    def _how_it_ended(self) -> str:
        self._process.join(CLOSE_SECONDS)
        code = self._process.exitcode
        if code is None or code >= 0:
            return f"ended its process with exit code {code}; it must return or raise an error"
        name = signal.Signals(-code).name
        memory = " (by the system, if memory ran out: fewer workers need less, --env.num_workers)"
        return f"was killed by {name}{memory if name == 'SIGKILL' else ''}"


@contextmanager
def _main_module_hidden(unless: bool) -> Iterator[None]:
    """Keeps a new process from importing the parent's script, which it has no use for.

    Python would: with `python train_fabric.py`, every worker would load torch, and a script without the guard
    `if __name__ == "__main__"` would start itself over in every worker. Only a factory from that script needs it.
    """
    main = sys.modules["__main__"]
    if not unless:
        sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main


@contextmanager
def _interrupts_held_back() -> Iterator[None]:
    """Ctrl+C waits: a process started meanwhile inherits that until it can ignore the signal."""
    if sys.platform == "win32":
        yield
        return
    from multiprocessing import resource_tracker

    resource_tracker.ensure_running()  # would lift the block if it had to start
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
