"""What a ProcessPool and its worker processes say to each other.

A step costs two semaphore operations a worker; everything that has a row per sub-environment lies in shared memory.
The pipe carries the rare rest: building, resets, metrics, states, errors and unusual infos. Semaphores because they
were measured to wake the other side 4 to 7 times faster than a pipe (which the kernel answers by running the worker on
the core of its parent), and no slower than spinning, which takes a core from the workers.
"""

import traceback
from dataclasses import dataclass
from typing import Any

import numpy as np
from gymnasium import Space, spaces

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


def _mask_size(space: Space[Any]) -> int:
    """Columns of an action mask; 0 for spaces that have none."""
    if isinstance(space, spaces.Discrete):
        return int(space.n)
    return int(np.sum(space.nvec)) if isinstance(space, spaces.MultiDiscrete) else 0
