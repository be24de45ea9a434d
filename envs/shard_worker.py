"""One worker process of a ProcessPool: what runs in it, and the parent's handle on it.

A step costs two semaphore operations a worker; everything that has a row per sub-environment lies in shared memory.
The pipe carries the rare rest: building, resets, metrics, states, errors and unusual infos. Semaphores because they
were measured to wake the other side 4 to 7 times faster than a pipe (which the kernel answers by running the worker on
the core of its parent), and no slower than spinning, which takes a core from the workers.
"""

import multiprocessing
import os
import pickle
import signal
import sys
import threading
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing import connection
from multiprocessing.connection import Connection
from multiprocessing.synchronize import Semaphore
from types import ModuleType
from typing import Any

import numpy as np
from gymnasium import Space, spaces
from gymnasium.vector import AutoresetMode, VectorEnv
from numpy.typing import NDArray

from envs.shared_arrays import Layout, SharedArrays

START_SECONDS = 300.0
"""How long a worker may take to build its environments, and for everything else that is rare."""
CLOSE_SECONDS = 10.0
_ALIVE_CHECK_SECONDS = 0.1

# Columns of the "header" array.
_IS_STEP, _FLAGS, _REWARD_DTYPE = range(3)
# Bits of the flags.
HAS_FINAL, HAS_MASK, _HAS_PAYLOAD = 1, 2, 4

_IN_ARRAYS = {"final_obs", "_final_obs", "action_mask"}
_USER_ERRORS: tuple[type[Exception], ...] = (
    *(ValueError, TypeError, FloatingPointError),
    *(FileNotFoundError, OSError, ImportError),
)
_ONE_LINE: tuple[type[Exception], ...] = (ValueError, TypeError, FloatingPointError)
"""What components raise to say in one line what is wrong with them."""


@dataclass(frozen=True)
class ShardSpec:
    """What a worker says about its environments once they are built."""

    num_envs: int
    """Sub-environments."""
    observation_space: Space[Any]
    """Of one sub-environment."""
    action_space: Space[Any]
    """Of one sub-environment."""
    num_seeds: int
    """Consecutive seeds that `reset(seed=...)` uses."""
    resumable: bool
    """Whether it has `state_dict` and `load_state_dict`."""
    reward_signals: tuple[str, ...]
    """Names of the columns of `infos["reward_signals"]`."""
    pool_layout: dict[str, str]
    """`RocketSimPool.layout`, or empty."""

    @property
    def layout(self) -> Layout:
        """The shared arrays."""
        n, obs, action = self.num_envs, self.observation_space, self.action_space
        obs_array = ((n, *(obs.shape or ())), np.dtype(obs.dtype))
        return {
            "header": ((3,), np.dtype(np.int64)),
            "actions": ((n, *(action.shape or ())), np.dtype(action.dtype)),
            "obs": obs_array,
            "final_obs": obs_array,
            "_final_obs": ((n,), np.dtype(np.bool_)),
            "rewards": ((n,), np.dtype(np.float64)),  # holds every float32 exactly
            "terminated": ((n,), np.dtype(np.bool_)),
            "truncated": ((n,), np.dtype(np.bool_)),
            "action_mask": ((n, _mask_size(action)), np.dtype(np.bool_)),
        }


@dataclass(frozen=True)
class Failure:
    """An exception of a worker, in words, since not every exception can be pickled."""

    kind: type[Exception] | None
    """ValueError, FloatingPointError, OSError... if it is one that a user's settings cause."""
    message: str
    summary: str
    """Type and message."""
    traceback: str

    @classmethod
    def of(cls, error: BaseException) -> "Failure":
        """Describes `error`."""
        kind = next((kind for kind in _USER_ERRORS if isinstance(error, kind)), None)
        return cls(kind, str(error), f"{type(error).__name__}: {error}", "".join(traceback.format_exception(error)))

    def as_error(self, where: str) -> Exception:
        """One error for the parent.

        What components raise on purpose keeps its kind and stays one line, `where` first, with the worker's traceback
        as its cause. Anything else is a RuntimeError: where and what in the first line, then the traceback.
        """
        trace = f"Traceback in the worker:\n{self.traceback}"
        if self.kind not in _ONE_LINE:
            return RuntimeError(f"{where}: {self.summary}\n\n{trace}")
        error = self.kind(f"{where}: {' '.join(self.message.split())}")
        error.__cause__ = RuntimeError(trace)
        return error


class WorkerLostError(Exception):
    """A worker has ended by itself, or does not answer."""


# ---------------------------------------------------------------------- in the worker


def run_shard(conn: Connection, go: Semaphore, done: Semaphore, factory: bytes) -> None:
    """Builds the environments and serves until told to end. Ends by itself when the parent process is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl+C reaches the whole terminal; the parent decides
    if sys.platform != "win32":
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    threading.Thread(target=_end_with_parent, daemon=True).start()
    try:
        env = _build(factory)
    except Exception as error:
        conn.send(Failure.of(error))
        return
    try:
        spec = _spec_of(env)
        conn.send(spec)
        arrays = SharedArrays(spec.layout, conn.recv())
        done.release()
        _Server(env, arrays, conn).serve(go, done)
        arrays.close()
    except (TypeError, ValueError) as error:
        conn.send(Failure.of(error))
    finally:
        env.close()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _build(factory: bytes) -> VectorEnv[Any, Any, Any]:
    try:
        build = pickle.loads(factory)
    except Exception as error:
        raise TypeError(
            f"ProcessPool: a worker process cannot load the factory ({error}). Define it, and every class it uses, "
            "at the top level of a module file; what exists only in a notebook or an interactive session cannot be sent"
        ) from error
    env = build()
    if not isinstance(env, VectorEnv):
        raise TypeError(f"ProcessPool: the factory built a {type(env).__name__}, not a gymnasium.vector.VectorEnv")
    return env


def _spec_of(env: VectorEnv[Any, Any, Any]) -> ShardSpec:
    name, mode = type(env).__name__, env.metadata.get("autoreset_mode")
    if mode != AutoresetMode.SAME_STEP:
        raise ValueError(f"{name}: metadata['autoreset_mode'] must be AutoresetMode.SAME_STEP, got {mode}")
    obs, action = env.single_observation_space, env.single_action_space
    if any(space.shape is None or space.dtype is None for space in (obs, action)):
        raise TypeError(f"{name}: observations and actions must be single arrays, got {obs} and {action}")
    signals = tuple(getattr(env, "reward_signals", ()))
    resumable = hasattr(env, "state_dict") and hasattr(env, "load_state_dict")
    seeds, layout = getattr(env, "num_seeds", env.num_envs), dict(getattr(env, "layout", {}))
    return ShardSpec(env.num_envs, obs, action, seeds, resumable, signals, layout)


def _mask_size(space: Space[Any]) -> int:
    """Columns of an action mask; 0 for spaces that have none."""
    if isinstance(space, spaces.Discrete):
        return int(space.n)
    return int(np.sum(space.nvec)) if isinstance(space, spaces.MultiDiscrete) else 0


class _Server:
    """Answers the parent's commands with one environment."""

    def __init__(self, env: VectorEnv[Any, Any, Any], arrays: SharedArrays, conn: Connection) -> None:
        self.env, self.arrays, self.conn = env, arrays, conn

    def serve(self, go: Semaphore, done: Semaphore) -> None:
        header = self.arrays["header"]
        while True:
            go.acquire()
            header[_FLAGS] = 0
            try:
                if header[_IS_STEP]:
                    reply: Any = self._step()
                else:
                    command, arguments = self.conn.recv()
                    if command == "close":
                        return
                    reply = getattr(self, f"_{command}")(*arguments)
                payload = b"" if reply is None else pickle.dumps(reply)
            except Exception as error:
                payload = pickle.dumps(Failure.of(error))
            if payload:
                header[_FLAGS] |= _HAS_PAYLOAD
            done.release()
            if payload:
                self.conn.send_bytes(payload)

    def _step(self) -> dict[str, Any] | None:
        arrays = self.arrays
        obs, rewards, terminated, truncated, infos = self.env.step(arrays["actions"].copy())
        self._store("obs", obs)
        self._store("rewards", rewards)
        self._store("terminated", terminated)
        self._store("truncated", truncated)
        arrays["header"][_REWARD_DTYPE] = ord(np.asarray(rewards).dtype.char)
        if "final_obs" in infos:
            ended, final = infos["_final_obs"], infos["final_obs"]
            self._store("_final_obs", ended)
            if final.dtype == object:  # Gymnasium's own: a row each, None where the episode goes on
                rows = np.asarray(obs).copy()
                for index in np.flatnonzero(ended):
                    rows[index] = final[index]
                final = rows
            self._store("final_obs", final)
            arrays["header"][_FLAGS] |= HAS_FINAL
        return self._store_mask(infos)

    def _reset(self, seed: int | None, options: dict[str, Any] | None) -> dict[str, Any] | None:
        obs, infos = self.env.reset(seed=seed, options=options)
        self._store("obs", obs)
        return self._store_mask(infos)

    def _drain_metrics(self) -> dict[str, tuple[float, float]]:
        drain = getattr(self.env, "drain_metrics", dict)
        metrics: dict[str, tuple[float, float]] = drain()
        return metrics

    def _drain_timers(self) -> dict[str, tuple[float, int]]:
        drain = getattr(self.env, "drain_timers", dict)
        timers: dict[str, tuple[float, int]] = drain()
        return timers

    def _check_phases(self, names: list[str]) -> None:
        if hasattr(self.env, "check_phases"):
            self.env.check_phases(names)

    def _set_phase(self, name: str, mechanics_weight: float | None) -> None:
        if hasattr(self.env, "set_phase"):
            self.env.set_phase(name, mechanics_weight)

    def _check_parameters(self, values: dict[str, Any]) -> None:
        if not hasattr(self.env, "check_parameters"):
            raise ValueError(f"{type(self.env).__name__}: it has no parameters that could be set")
        self.env.check_parameters(values)

    def _set_parameters(self, values: dict[str, Any]) -> None:
        self._check_parameters(values)
        self.env.set_parameters(values)  # type: ignore[attr-defined]  # it has both

    def _state_dict(self) -> dict[str, Any]:
        state: dict[str, Any] = self.env.state_dict()  # type: ignore[attr-defined]  # asked only if it has one
        return state

    def _load_state_dict(self, state: dict[str, Any]) -> None:
        self.env.load_state_dict(state)  # type: ignore[attr-defined]

    def _store(self, name: str, value: NDArray[Any]) -> None:
        value, target = np.asarray(value), self.arrays[name]
        if value.shape != target.shape:
            raise ValueError(
                f"{type(self.env).__name__}: {name} have shape {list(value.shape)}, expected {list(target.shape)}"
            )
        np.copyto(target, value, casting="same_kind")

    def _store_mask(self, infos: dict[str, Any]) -> dict[str, Any] | None:
        """Puts the action mask into its array and returns the infos that have no array."""
        rest = {key: value for key, value in infos.items() if key not in _IN_ARRAYS}
        mask = infos.get("action_mask")
        if mask is not None:
            self._store("action_mask", mask)
            self.arrays["header"][_FLAGS] |= HAS_MASK
        return rest or None


# ---------------------------------------------------------------------- in the parent


class ShardWorker:
    """The parent's handle on one worker process."""

    def __init__(self, label: str, factory: bytes) -> None:
        """Starts the process; `connect` waits until it is ready.

        Args:
            label: How messages call it.
            factory: Pickled function without parameters that builds its environments.
        """
        self.label = label
        self.flags = 0
        self.reward_dtype: np.dtype[Any] | None = None
        self.steps = 0
        self._arrays: SharedArrays | None = None
        self._busy_since: float | None = None
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
        self._arrays = SharedArrays(spec.layout)
        self._conn.send(self._arrays.name)
        self._wait(time.monotonic() + START_SECONDS, START_SECONDS)
        self._arrays.forget_name()
        return spec

    def post_step(self, actions: NDArray[Any]) -> None:
        """Starts a step. `receive` waits for its end."""
        self.arrays["actions"][:] = actions
        self.arrays["header"][_IS_STEP] = 1
        self._busy_since = time.monotonic()
        self._go.release()

    def post(self, command: str, *arguments: Any) -> None:  # noqa: ANN401 - whatever can be pickled
        """Starts another command. `receive` waits for its result."""
        self.arrays["header"][_IS_STEP] = 0
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
        self.flags = int(header[_FLAGS])
        result = self._receive(timeout_seconds) if self.flags & _HAS_PAYLOAD else None
        if header[_IS_STEP] and not isinstance(result, Failure):
            self.steps += 1
            self.reward_dtype = np.dtype(chr(header[_REWARD_DTYPE]))
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
                raise WorkerLostError(f"{self.label} {self._how_it_ended()}")
            if time.monotonic() > deadline:
                raise WorkerLostError(f"{self.label} did not answer for {allowed_seconds:g} s")

    def _receive(self, timeout_seconds: float) -> Any:  # noqa: ANN401 - whatever was pickled
        if not connection.wait([self._conn, self._process.sentinel], timeout_seconds):
            raise WorkerLostError(f"{self.label} did not answer for {timeout_seconds:g} s")
        try:
            return self._conn.recv()
        except (EOFError, OSError):
            raise WorkerLostError(f"{self.label} {self._how_it_ended()}") from None

    def _how_it_ended(self) -> str:
        self._process.join(CLOSE_SECONDS)
        code = self._process.exitcode
        if code is None or code >= 0:
            return f"ended with exit code {code}"
        return f"was killed by {signal.Signals(-code).name}"


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
