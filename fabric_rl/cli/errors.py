"""The one way in which a program ends for a reason that its user can act on: a line on standard error, and a status."""

import os
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

from jsonargparse import ArgumentError

from fabric_rl.flags.arguments import speaking_of_flags
from fabric_rl.flags.messages import one_line, printable

MISTAKES = (ArgumentError, ValueError, TypeError, OSError, ImportError, FloatingPointError)
"""What a user's mistake is raised as."""


def fail(program: str, message: str, status: int = 2) -> NoReturn:
    """Ends the program.

    Args:
        program: Who says it.
        message: What is wrong, and what to do; it is made one line.
        status: 2 for a mistake that was noticed before any work, 1 for work that went wrong.
    """
    print(f"{program}: error: {printable(one_line(message))}", file=sys.stderr, flush=True)
    sys.exit(status)


def wants_traceback() -> bool:
    """Whether errors keep their traceback: `FABRIC_RL_TRACEBACK=1`."""
    return os.environ.get("FABRIC_RL_TRACEBACK") == "1"


@contextmanager
def mistakes_in_one_line(program: str) -> Iterator[None]:
    """Ends the program with one line: status 2 where the block raises one of `MISTAKES`, 1 where a part in it fails.

    Raises:
        BrokenPipeError: Nobody reads the output any more.
    """
    try:
        with speaking_of_flags():
            yield
    except BrokenPipeError:
        raise
    except MISTAKES as error:
        if wants_traceback():
            raise
        if isinstance(error, FileNotFoundError) and error.filename:
            fail(program, f"{error.filename}: there is no such file")
        fail(program, str(error).removeprefix(f"{program.split()[-1]}: "))
    except (Exception, SystemExit) as error:
        if "torch" not in sys.modules:  # no part has been built yet
            raise
        from fabric_rl.cli.which_part_failed import failure_of_part

        if (failure := failure_of_part(error)) is None:
            raise
        traceback.print_exception(error)
        fail(program, failure, status=1)
