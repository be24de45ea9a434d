"""Errors that the user can act on: one line on standard error, and an exit status."""

import builtins
import os
import re
import sys
import sysconfig
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

from fabric_rl.base.messages import USER_ERRORS, one_line
from fabric_rl.base.text import did_you_mean, escape_control_characters

NAMES_A_FLAG = re.compile(r"--[a-z]\w")
_ROOT = Path(__file__).resolve().parents[2]
_SHIPPED = (*(f"{_ROOT / name}{os.sep}" for name in ("agents", "envs", "fabric_rl")), str(_ROOT / "train_fabric.py"))
_INSTALLED = tuple({sysconfig.get_paths()[name] for name in ("stdlib", "platstdlib", "purelib", "platlib")})


def exit_with_message(program: str, message: str, status: int = 2) -> NoReturn:
    """End the program.

    Args:
        program: Name at the beginning of the line.
        message: Problem and remedy; joined into one line.
        status: 2 for a mistake noticed before any work is done, 1 for work that failed.
    """
    print(f"{program}: error: {escape_control_characters(one_line(message))}", file=sys.stderr, flush=True)
    sys.exit(status)


def wants_traceback() -> bool:
    """Return whether errors keep their traceback: `FABRIC_RL_TRACEBACK=1`."""
    return os.environ.get("FABRIC_RL_TRACEBACK") == "1"


def user_code_location(error: BaseException) -> str | None:
    """Return the innermost location of an error in the user's own files, `own.py, line 12, in Own.act()`.

    Files of this project and of installed packages do not count. Return None if no other file is involved.
    """
    while error.__cause__ is not None:
        error = error.__cause__
    if place := getattr(error, "failed_in", None):  # in another process
        return str(place)
    if isinstance(error, SyntaxError) and error.filename and _is_own(error.filename):
        return Path(error.filename).name  # the message has the line
    for frame, line in reversed(list(traceback.walk_tb(error.__traceback__))):
        code = frame.f_code
        if _is_own(code.co_filename):
            function = getattr(code, "co_qualname", code.co_name)  # Python 3.11 and newer
            return f"{Path(code.co_filename).name}, line {line}, in {function.replace('<locals>.', '')}()"
    return None


def _is_own(file: str) -> bool:
    return not file.startswith(("<", *_SHIPPED, *_INSTALLED))


def describe_failure(error: BaseException) -> str | None:
    """Return `own.py, line 12, in Own.act(): KeyError: 'x'` for a failure in the user's own code.

    Return None for other failures, and for `sys.exit` with a nonzero status or a message.
    """
    place = None if isinstance(error, SystemExit) and error.code else user_code_location(error)
    return place and f"{place}: {type(error).__name__}: {error}{suggest_name(error)}"


def suggest_name(error: BaseException) -> str:
    """Return `; did you mean X?` for a misspelt attribute or variable, or an empty string."""
    if isinstance(error, AttributeError) and error.name:
        return did_you_mean(error.name, dir(error.obj))
    if isinstance(error, NameError) and error.name:
        *_, (frame, _) = traceback.walk_tb(error.__traceback__)
        return did_you_mean(error.name, [*frame.f_locals, *frame.f_globals, *dir(builtins)])
    return ""


def print_short_traceback(error: BaseException) -> None:
    """Print the traceback of an error, starting at the first frame in the user's own code."""
    trace = error.__traceback__
    while trace is not None and not _is_own(trace.tb_frame.f_code.co_filename):
        trace = trace.tb_next
    traceback.print_exception(error if trace is None else error.with_traceback(trace))


@contextmanager
def exit_on_user_error(program: str) -> Iterator[None]:
    """End the program with one line: status 2 if the block raises one of `USER_ERRORS`, 1 if the user's code fails.

    Raises:
        BrokenPipeError: The reader of the output has closed it.
    """
    try:
        yield
    except BrokenPipeError:
        raise
    except USER_ERRORS as error:
        if wants_traceback():
            raise
        if isinstance(error, FileNotFoundError) and error.filename:
            exit_with_message(program, f"{error.filename}: there is no such file")
        exit_with_message(program, str(error).removeprefix(f"{program.split()[-1]}: "))
    except (Exception, SystemExit) as error:
        if (failure := describe_failure(error)) is None:
            raise
        print_short_traceback(error)
        exit_with_message(program, failure, status=1)
