"""What a ProcessPool and its worker processes say to each other.

A step costs two semaphore operations a worker; everything that has a row per sub-environment lies in shared memory.
The pipe carries the rare rest: building, resets, metrics, states, errors and unusual infos. Semaphores because they
were measured to wake the other side 4 to 7 times faster than a pipe (which the kernel answers by running the worker on
the core of its parent), and no slower than spinning, which takes a core from the workers.
"""

import sysconfig
import traceback
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from gymnasium import Space, spaces
from numpy.typing import NDArray

from envs.processes.shared_arrays import Layout

# Columns of the "header" array.
IS_STEP, FLAGS, REWARD_DTYPE = range(3)
# Bits of the flags.
HAS_FINAL, HAS_MASK, HAS_PAYLOAD = 1, 2, 4

_USER_ERRORS: tuple[type[Exception], ...] = (
    *(ValueError, TypeError, FloatingPointError),
    *(FileNotFoundError, OSError, ImportError),
)
_ONE_LINE: tuple[type[Exception], ...] = (ValueError, TypeError, FloatingPointError)
"""What components raise to say in one line what is wrong with them."""
_NO_PARTS = (str(Path(__file__).parent), *(sysconfig.get_paths()[name] for name in ("stdlib", "purelib", "platlib")))


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
    headlines: dict[str, str]
    """`RocketSimPool.headlines`, or empty."""
    sides: tuple[NDArray[np.intp], NDArray[np.intp]] | None
    """`RocketSimPool.sides`, or None."""
    name: str
    """Class of the environment."""

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
    failed_in: str
    """The function that it comes from, as in `MyEnv.step() (my_env.py, line 12)`."""
    exits: bool
    """Whether it was meant to end the process: SystemExit, KeyboardInterrupt."""

    @classmethod
    def of(cls, error: BaseException) -> "Failure":
        """Describes `error`."""
        kind = next((kind for kind in _USER_ERRORS if isinstance(error, kind)), None)
        summary = f"{type(error).__name__}: {error}".removesuffix(": ")
        trace = "".join(traceback.format_exception(error))
        return cls(kind, str(error), summary, trace, _failed_in(error), not isinstance(error, Exception))

    def as_error(self, where: str) -> Exception:
        """One error for the parent.

        What components raise on purpose keeps its kind and stays one line, `where` first, with the worker's traceback
        as its cause. Anything else is a RuntimeError, likewise; an attempt to end the process, which needs no
        traceback, a `WorkerLostError`.
        """
        if self.exits:
            instead = "it must return or raise an error, not end its process"
            return WorkerLostError(f"{where}: {self.failed_in} raised {self.summary}; {instead}", self.failed_in)
        kind, what = (self.kind, self.message) if self.kind in _ONE_LINE else (None, self.summary)
        error = (kind or RuntimeError)(f"{where}: {' '.join(what.split())}")
        error.__cause__ = WorkerError(f"Traceback in the worker:\n{self.traceback}", self.failed_in)
        return error


class WorkerError(RuntimeError):
    """What has happened in a worker, far from any line of this process.

    Attributes:
        failed_in: The function, as in `MyEnv.step()`.
    """

    def __init__(self, message: str, failed_in: str) -> None:
        super().__init__(message)
        self.failed_in = failed_in


class WorkerLostError(WorkerError):
    """A worker has ended, wanted to end, or does not answer; the message is one line that says it all."""


def _failed_in(error: BaseException) -> str:
    """The innermost function of `envs` or of the user's own that `error` has come through."""
    for frame, line in reversed(list(traceback.walk_tb(error.__traceback__))):
        code = frame.f_code
        if not code.co_filename.startswith(("<", *_NO_PARTS)):
            owner = f"{type(frame.f_locals['self']).__name__}." if "self" in frame.f_locals else ""
            return f"{owner}{code.co_name}() ({Path(code.co_filename).name}, line {line})"
    return "the environment"


def _mask_size(space: Space[Any]) -> int:
    """Columns of an action mask; 0 for spaces that have none."""
    if isinstance(space, spaces.Discrete):
        return int(space.n)
    return int(np.sum(space.nvec)) if isinstance(space, spaces.MultiDiscrete) else 0
