"""How training ends where something goes wrong: who says it, in which words, with which exit status."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import gymnasium
from lightning.fabric.utilities.exceptions import MisconfigurationException

from fabric_rl.base.messages import MISTAKES
from fabric_rl.cli.errors import NAMES_A_FLAG, describe_failure, fail, print_short_traceback, user_code, wants_traceback
from fabric_rl.learning.update import TooLittleMemoryError
from fabric_rl.metrics.log import program
from fabric_rl.ranks import launch
from fabric_rl.ranks.processes import LostRankError, orphaned
from fabric_rl.types import FailedElsewhere, NonFiniteError

RANK_0_SECONDS = 10
"""How long a failing rank leaves the word to rank 0: once one rank has ended, a launcher ends all the others."""


@contextmanager
def errors_end_in_one_line() -> Iterator[None]:
    """Ends the program where the block fails; a mistake that all ranks make is told by rank 0.

    Raises:
        SystemExit: Status 2 after a mistake; 1 after NaN, a lack of memory, a lost rank, or a failure in a part of
            the user's own, which keeps its traceback; 130 after Ctrl+C.
        Exception: A programming error of this project, as it is; any error with `FABRIC_RL_TRACEBACK=1`.
    """
    try:
        yield
    except KeyboardInterrupt:
        sys.exit(130)
    except Exception as error:
        if wants_traceback():
            raise
        status, message, speaks = 2, str(error), launch.is_rank_0()
        if isinstance(error, MisconfigurationException):
            message = f"{error} Change --devices, --accelerator, --strategy or --precision."
        elif isinstance(error, LostRankError):
            status, speaks = 1, launch.detect().local_rank == 0 or orphaned()
        elif isinstance(error, NonFiniteError | TooLittleMemoryError):  # may have happened on one rank only
            status, speaks = 1, True
        elif isinstance(error, FailedElsewhere):
            status, message, speaks = 1, f"--env {error}", True
        elif not isinstance(error, (*MISTAKES, gymnasium.error.Error)):
            if (failure := describe_failure(error)) is None:
                raise
            print_short_traceback(error)
            status, message, speaks = 1, failure, True
        elif not NAMES_A_FLAG.search(message) and not isinstance(error, OSError):
            place = user_code(error)
            message = message if place is None or place in message else f"{message} ({place})"
        if not speaks and launch.detect().by == "torchrun":
            time.sleep(RANK_0_SECONDS)
            speaks = True
        if speaks:
            fail(program(), message, status)
        sys.exit(status)
