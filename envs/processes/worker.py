"""Worker process of a ProcessPool: its main loop, and the pool's handle on it.

A step costs two semaphore operations per worker; everything that has a row per sub-environment is in shared memory.
The pipe carries the rest, which is rare: building, resets, metrics, states, errors and unusual infos. In measurements,
semaphores woke the other side 4 to 7 times faster than a pipe (with which the kernel runs the worker on the core of its
parent), and no slower than spinning, which would take a core from the workers.
"""

import multiprocessing
import pickle
import signal
import sys
import sysconfig
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing import connection
from multiprocessing.connection import Connection
from multiprocessing.synchronize import Semaphore
from pathlib import Path
from types import ModuleType
from typing import Any, cast

import numpy as np
from gymnasium import Space, spaces
from gymnasium.vector import AutoresetMode, VectorEnv
from numpy.typing import NDArray

from envs.processes.shared_memory import Layout, SharedArrays
from fabric_rl.base.errors import suggest_name
from fabric_rl.base.processes import end_with_parent
from fabric_rl.base.state_schema import CannotBeSavedError
from fabric_rl.base.vector_step import final_obs_as_rows

# Columns of the "header" array.
IS_STEP, FLAGS, REWARD_DTYPE = range(3)
# Bits of the flags.
HAS_FINAL, HAS_MASK, HAS_PAYLOAD = 1, 2, 4

_ONE_LINE: tuple[type[Exception], ...] = (ValueError, CannotBeSavedError, TypeError, FloatingPointError)
"""Exceptions that components raise on purpose, with a one-line message; the parent raises the same type."""
_SETTINGS_ERRORS = (*_ONE_LINE, FileNotFoundError, OSError, ImportError)
"""Exceptions that settings of the user can cause while the environment is built."""
_NO_PARTS = (str(Path(__file__).parent), *(sysconfig.get_paths()[name] for name in ("stdlib", "purelib", "platlib")))

StepResult = tuple[NDArray[Any], NDArray[Any], NDArray[np.bool_], NDArray[np.bool_], dict[str, Any]]
"""Observations, rewards, terminated, truncated and infos of a step, as of any vector environment."""


@dataclass(frozen=True)
class ShardSpec:
    """Description of a worker's environments, sent after they are built; attributes that they lack are empty.

    Attributes:
        name: Class of the environment.
        num_envs: Number of sub-environments.
        observation_space: Space of one sub-environment, like `action_space`.
        num_seeds: Number of consecutive seeds that `reset(seed=...)` uses.
        resumable: True if the environment has `state_dict` and `load_state_dict`.
        reward_signals: As in `RocketSimPool`, like `pool_layout`, `headlines` and `sides`.
        metrics_vary: As in `GymnasiumEnvs`.
    """

    name: str
    num_envs: int
    observation_space: Space[Any]
    action_space: Space[Any]
    num_seeds: int
    resumable: bool
    reward_signals: tuple[str, ...]
    pool_layout: dict[str, str]
    headlines: dict[str, str]
    metrics_vary: bool
    sides: tuple[NDArray[np.intp], NDArray[np.intp]] | None

    @property
    def layout(self) -> Layout:
        """Layout of the shared arrays."""
        n, obs, action = self.num_envs, self.observation_space, self.action_space
        obs_array = ((n, *(obs.shape or ())), np.dtype(obs.dtype))
        return {
            "header": ((3,), np.dtype(np.int64)),
            "actions": ((n, *(action.shape or ())), np.dtype(action.dtype)),
            "obs": obs_array,
            "final_obs": obs_array,
            "_final_obs": ((n,), np.dtype(np.bool_)),
            "rewards": ((n,), np.dtype(np.float64)),  # represents every float32 exactly
            "terminated": ((n,), np.dtype(np.bool_)),
            "truncated": ((n,), np.dtype(np.bool_)),
            "action_mask": ((n, spaces.flatdim(action)), np.dtype(np.bool_)),
        }


class WorkerError(RuntimeError):
    """Failure of a worker: an exception of its environment, or the loss of its process.

    It stands in for the exception, because not every exception can be pickled. Its text is the traceback in the worker.

    Attributes:
        kind: Type that the parent raises: the exception's own if settings can cause it, otherwise RuntimeError.
        message: Text of the exception, or how the process was lost.
        summary: The message, preceded by the type of the exception.
        failed_in: Function that failed, for example `MyEnv.step() (my_env.py, line 12)`.
        lost: True if the process has ended, tried to end, or does not answer.
    """

    kind: type[Exception] = RuntimeError
    message = summary = failed_in = ""
    lost = False

    @classmethod
    def of(cls, error: BaseException) -> "WorkerError":
        """Describe an exception of this process."""
        text = f"{type(error).__name__}: {error}".removesuffix(": ") + suggest_name(error)
        if not isinstance(error, Exception):
            return cls.of_loss(
                _failed_in(error), f"raised {text}; it must return or raise an error, not end its process"
            )
        made = cls(f"Traceback in the worker:\n{''.join(traceback.format_exception(error))}")
        made.kind = next((kind for kind in _SETTINGS_ERRORS if isinstance(error, kind)), RuntimeError)
        made.message, made.summary = str(error), text
        made.failed_in = _failed_in(error)
        return made

    @classmethod
    def of_loss(cls, failed_in: str, how: str) -> "WorkerError":
        """Describe the loss of a process, which happened in `failed_in`."""
        made = cls(f"{failed_in} {how}")
        made.message = made.summary = str(made)
        made.failed_in, made.lost = failed_in, True
        return made

    def raised_by(self, label: str, advice: str = "") -> Exception:
        """Return a one-line error for the parent; its cause is this one, if it has a traceback."""
        kind, said = (self.kind, self.message) if self.kind in _ONE_LINE else (RuntimeError, self.summary)
        text = f"{label}: {' '.join(said.split())}{advice}"
        if self.lost:
            error: Exception = WorkerError(text)
            vars(error).update(vars(self), message=text)
            error.__cause__ = None
        else:
            error = kind(text)
            error.__cause__ = self
        return error


def _failed_in(error: BaseException) -> str:
    """Return the innermost function of `envs` or of the user's code in the traceback of `error`."""
    for frame, line in reversed(list(traceback.walk_tb(error.__traceback__))):
        code = frame.f_code
        if not code.co_filename.startswith(("<", *_NO_PARTS)):
            owner = f"{type(frame.f_locals['self']).__name__}." if "self" in frame.f_locals else ""
            return f"{owner}{code.co_name}() ({Path(code.co_filename).name}, line {line})"
    return "the environment"


_IN_ARRAYS = {"final_obs", "_final_obs", "action_mask"}


def worker_main(conn: Connection, go: Semaphore, done: Semaphore, factory: bytes) -> None:
    """Build the environments and serve commands until told to exit or until the parent process is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl+C reaches the whole terminal; the parent decides
    if sys.platform != "win32":
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    if (parent := multiprocessing.parent_process()) is not None:
        end_with_parent(parent.join)
    try:
        env = _build(factory)
        spec = _spec_of(env)
        conn.send(spec)
    except BaseException as error:  # also SystemExit and KeyboardInterrupt
        conn.send(WorkerError.of(error))
        return
    try:
        arrays = SharedArrays(spec.layout, conn.recv())
        done.release()
        _Server(env, arrays, conn).serve(go, done)
        arrays.close()
    finally:
        env.close()


def _build(factory: bytes) -> VectorEnv[Any, Any, Any]:
    try:
        build = pickle.loads(factory)
    except Exception as error:
        raise TypeError(
            f"ProcessPool: a worker process cannot load the factory ({error}). Define it, and every class it uses, "
            "at the top level of a module file; anything defined only in a notebook or interactive session "
            "cannot be sent to a worker"
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
    return ShardSpec(
        name=name,
        num_envs=env.num_envs,
        observation_space=obs,
        action_space=action,
        num_seeds=getattr(env, "num_seeds", env.num_envs),
        resumable=hasattr(env, "state_dict") and hasattr(env, "load_state_dict"),
        reward_signals=tuple(getattr(env, "reward_signals", ())),
        pool_layout=dict(getattr(env, "layout", {})),
        headlines=dict(getattr(env, "headlines", {})),
        metrics_vary=getattr(env, "metrics_vary", False),
        sides=getattr(env, "sides", None),
    )


class _Server:
    """Executes the parent's commands on one environment."""

    def __init__(self, env: VectorEnv[Any, Any, Any], arrays: SharedArrays, conn: Connection) -> None:
        self.env, self.arrays, self.conn = env, arrays, conn

    def serve(self, go: Semaphore, done: Semaphore) -> None:
        header = self.arrays["header"]
        while True:
            go.acquire()
            header[FLAGS] = 0
            try:
                if header[IS_STEP]:
                    reply: Any = self._step()
                else:
                    command, arguments = self.conn.recv()
                    if command == "close":
                        return
                    reply = self._answer(command, arguments)
                payload = b"" if reply is None else pickle.dumps(reply)
            except BaseException as error:  # as above
                payload = pickle.dumps(WorkerError.of(error))
            if payload:
                header[FLAGS] |= HAS_PAYLOAD
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
        arrays["header"][REWARD_DTYPE] = ord(np.asarray(rewards).dtype.char)
        if "final_obs" in infos:
            ended, final = infos["_final_obs"], infos["final_obs"]
            self._store("_final_obs", ended)
            if final.dtype == object:
                final = final_obs_as_rows(np.asarray(obs), final, ended)
            self._store("final_obs", final)
            arrays["header"][FLAGS] |= HAS_FINAL
        return self._store_mask(infos)

    def _reset(self, seed: int | None, options: dict[str, Any] | None) -> dict[str, Any] | None:
        obs, infos = self.env.reset(seed=seed, options=options)
        self._store("obs", obs)
        return self._store_mask(infos)

    def _answer(self, command: str, arguments: tuple[Any, ...]) -> Any:  # noqa: ANN401 - what can be pickled
        """Call a method of the environment; a missing method returns no metrics, or does nothing."""
        if command == "reset":
            return self._reset(*arguments)
        if command.endswith("_parameters") and not hasattr(self.env, command):
            raise ValueError(f"{type(self.env).__name__} has no parameters to set")
        if command == "set_parameters":
            self._answer("check_parameters", arguments)
        if not hasattr(self.env, command):
            return {} if command.startswith("drain_") else None
        return getattr(self.env, command)(*arguments)

    def _store(self, name: str, value: NDArray[Any]) -> None:
        value, target = np.asarray(value), self.arrays[name]
        if value.shape != target.shape:
            raise ValueError(
                f"{type(self.env).__name__}: the shape of {name} is {list(value.shape)}, expected {list(target.shape)}"
            )
        np.copyto(target, value, casting="same_kind")

    def _store_mask(self, infos: dict[str, Any]) -> dict[str, Any] | None:
        """Store the action mask in its array; return the infos that have no array."""
        rest = {key: value for key, value in infos.items() if key not in _IN_ARRAYS}
        mask = infos.get("action_mask")
        if mask is not None:
            self._store("action_mask", mask)
            self.arrays["header"][FLAGS] |= HAS_MASK
        return rest or None


START_SECONDS = 300.0
"""Time limit of a worker for building its environments and for other rare commands."""
CLOSE_SECONDS = 10.0
_ALIVE_CHECK_SECONDS = 0.1


class WorkerProcess:
    """The parent's handle on one worker process."""

    def __init__(self, label: str, factory: bytes) -> None:
        """Start the process, which messages call `label`; `connect` waits until it is ready.

        `factory` is a pickled function without parameters that builds the environments.
        """
        self.label = label
        self.steps = 0
        self._arrays: SharedArrays | None = None
        self._busy_since: float | None = None
        self._env, self._command = "", ""
        context = multiprocessing.get_context("spawn")
        self._go, self._done = context.Semaphore(0), context.Semaphore(0)
        self._conn, theirs = context.Pipe()
        arguments = (theirs, self._go, self._done, factory)
        self._process = context.Process(target=worker_main, args=arguments, name=label, daemon=True)
        try:
            with _main_module_hidden(unless=b"__main__" in factory), _interrupts_held_back():
                self._process.start()
        finally:
            theirs.close()

    @property
    def arrays(self) -> SharedArrays:
        """Shared arrays, from `connect` to `stop`."""
        assert self._arrays is not None
        return self._arrays

    @property
    def reward_dtype(self) -> np.dtype[Any]:
        """Type of the environment's rewards; float32 before its first step."""
        code = int(self.arrays["header"][REWARD_DTYPE])
        return np.dtype(chr(code) if code else np.float32)

    def connect(self) -> ShardSpec:
        """Wait for the environments and share the arrays.

        Raises:
            ValueError, TypeError, OSError, ImportError: The factory raised it.
            RuntimeError: The factory raised another exception, or the process ended or did not become ready.
        """
        try:
            spec = self._receive(START_SECONDS)
            if isinstance(spec, WorkerError):
                raise spec
            self._env, self._arrays = spec.name, SharedArrays(spec.layout)
            self._conn.send(self._arrays.name)
            self._wait(time.monotonic() + START_SECONDS, START_SECONDS)
        except WorkerError as error:
            if error.kind is not RuntimeError:
                raise error.kind(error.message) from None
            failed = error.raised_by(f"{self.label}, while it was built")
            raise failed from failed.__cause__
        self._arrays.forget_name()
        return cast(ShardSpec, spec)

    def post_step(self, actions: NDArray[Any]) -> None:
        """Start a step; `receive` waits for its end."""
        self.arrays["actions"][:] = actions
        self.arrays["header"][IS_STEP] = 1
        self._busy_since = time.monotonic()
        self._go.release()

    def post(self, command: str, *arguments: Any) -> None:  # noqa: ANN401 - whatever can be pickled
        """Start another command; `receive` waits for its result."""
        self.arrays["header"][IS_STEP] = 0
        self._command = command
        self._busy_since = time.monotonic()
        self._go.release()
        with suppress(OSError):  # the process is gone: `receive` reports it
            self._conn.send((command, arguments))

    def receive(self, timeout_seconds: float) -> Any:  # noqa: ANN401 - what the command returned
        """Return the result of the posted command: for step and reset the infos that have no array, or None.

        Raises:
            WorkerError: The command raised an exception, the process ended, or it did not answer within
                `timeout_seconds` of `post`.
        """
        assert self._busy_since is not None
        self._wait(self._busy_since + timeout_seconds, timeout_seconds)
        header = self.arrays["header"]
        reply = self._receive(timeout_seconds) if header[FLAGS] & HAS_PAYLOAD else None
        self._busy_since = None
        if isinstance(reply, WorkerError):
            raise reply
        self.steps += int(header[IS_STEP])
        return reply

    def call(self, command: str, *arguments: Any) -> Any:  # noqa: ANN401 - what the command returned
        """Post a command and wait for its result, with the errors of `receive`."""
        self.post(command, *arguments)
        return self.receive(START_SECONDS)

    def result(self, infos: dict[str, Any] | None) -> StepResult:
        """Return the last step or reset, with the given `infos`; the next one overwrites its arrays."""
        arrays, flags, infos = self.arrays, int(self.arrays["header"][FLAGS]), infos or {}
        if flags & HAS_FINAL:
            infos |= {"final_obs": arrays["final_obs"], "_final_obs": arrays["_final_obs"]}
        if flags & HAS_MASK:
            infos["action_mask"] = arrays["action_mask"]
        rewards = arrays["rewards"].astype(self.reward_dtype)
        return arrays["obs"], rewards, arrays["terminated"], arrays["truncated"], infos

    def drain_pending(self, timeout_seconds: float) -> None:
        """Wait for a command whose `receive` was interrupted, and drop its result."""
        if self._busy_since is not None:
            self._busy_since = time.monotonic()
            self.receive(timeout_seconds)

    def request_close(self) -> None:
        """Ask the process to exit, unless it is busy."""
        if self._arrays is not None and self._busy_since is None:
            self.post("close")
            self._busy_since = None

    def stop(self) -> None:
        """Wait for the exit after `request_close`, or kill a process that was not asked; free everything."""
        if self._process.pid is not None:
            if self._arrays is not None and self._busy_since is None:
                self._process.join(CLOSE_SECONDS)
            self.kill()
            self._process.close()
        self._conn.close()
        if self._arrays is not None:
            self._arrays.close()
            self._arrays = None
        del self._go, self._done  # this frees their names, too

    def kill(self) -> None:
        """Kill the process."""
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

    def _lost(self, how: str) -> WorkerError:
        """Return the error of a lost worker: the function that was running, and `how` it failed."""
        doing = "step" if self._arrays is not None and self._arrays["header"][IS_STEP] else self._command
        return WorkerError.of_loss(f"{self._env}.{doing}()" if self._env else "its factory", how)

    def _no_answer(self, seconds: float) -> WorkerError:
        more = "; increase timeout_seconds (--env.timeout_seconds) to wait longer" if seconds != START_SECONDS else ""
        return self._lost(f"did not answer for {seconds:g} s{more}")

    def _how_it_ended(self) -> str:
        self._process.join(CLOSE_SECONDS)
        code = self._process.exitcode
        if code is None or code >= 0:
            return f"ended its process with exit code {code}; it must return or raise an error"
        name = signal.Signals(-code).name
        memory = " (by the system if memory ran out; then use fewer workers, --env.num_workers)"
        return f"was killed by {name}{memory if name == 'SIGKILL' else ''}"


@contextmanager
def _main_module_hidden(unless: bool) -> Iterator[None]:
    """Keep a new process from importing the parent's script, which it does not need.

    Otherwise, with `python train_fabric.py`, every worker would load torch, and a script without the guard
    `if __name__ == "__main__"` would start itself again in every worker. Only a factory from that script needs it.
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
    """Block Ctrl+C; a process started in the block inherits this until it can ignore the signal."""
    if sys.platform == "win32":
        yield
        return
    from multiprocessing import resource_tracker

    resource_tracker.ensure_running()  # it would lift the block if it started later
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
