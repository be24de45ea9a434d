"""Messages name settings as flags; who has called Python reads of arguments."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_on_command_line = ContextVar("_on_command_line", default=False)
_FLAG = re.compile(r"(?<![\w-])--([a-z]\w*(?:\.\w+)*)(?![\w-])")
_SEVERAL = re.compile(rf"({_FLAG.pattern}(?: \S*[^a-z\s]\S*)?) (?=--[a-z])")


@contextmanager
def speaking_of_flags() -> Iterator[None]:
    """The block serves a command line: its errors stay as they are."""
    token = _on_command_line.set(True)
    try:
        yield
    finally:
        _on_command_line.reset(token)


@contextmanager
def speaking_of_arguments() -> Iterator[None]:
    """Errors of the block speak of `num_steps` instead of `--num_steps`, unless it serves a command line."""
    try:
        yield
    except Exception as error:
        error.args = tuple(in_words(each) if isinstance(each, str) else each for each in error.args)
        raise


def in_words(text: str) -> str:
    """A text for who has called: without a command line, `--run_id NAME --resume` becomes `run_id NAME, resume`."""
    return text if _on_command_line.get() else _FLAG.sub(r"\1", _SEVERAL.sub(r"\1, ", text))
