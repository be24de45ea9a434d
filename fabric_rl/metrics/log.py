"""Log messages of a run, on the console of rank 0 and in the run's `log.txt`."""

import logging
import os
import re
import sys
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import TextIOWrapper
from pathlib import Path
from types import TracebackType
from typing import Any, TextIO

from fabric_rl.base.files import regular_file
from fabric_rl.base.text import escape_control_characters


def program_name() -> str:
    """Return the name of the program or command, with which warnings and errors begin."""
    if Path(sys.argv[0]).stem != "fabric-rl":
        return "train_fabric.py"
    return " ".join(("fabric-rl", *sys.argv[1:2]))


def print_lines(*lines: str) -> None:
    """Print lines, with escapes for invisible characters; drop them once the terminal or pipe is closed."""
    try:
        print(escape_control_characters("\n".join(lines), "\n"), flush=True)
    except OSError:
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115 - as long as the process


def is_terminal(stream: TextIO | None) -> bool:
    """Return whether a stream is a terminal; a stream that was closed before Python started is None."""
    return stream is not None and stream.isatty()


class Console(logging.Handler):
    """Handler that prints information, and warnings on standard error. Errors are printed where they are caught."""

    def emit(self, record: logging.LogRecord) -> None:
        """Print one record."""
        if record.levelno == logging.INFO:
            print_lines(record.getMessage())
        elif record.levelno == logging.WARNING:
            with suppress(OSError):
                print(f"{program_name()}: warning: {record.getMessage()}", file=sys.stderr, flush=True)


class RunLog(logging.FileHandler):
    """The log file of a run; records that cannot be written are dropped (all of them if its name is a link or pipe)."""

    def _open(self) -> TextIOWrapper:
        return open(self.baseFilename, "a", encoding=self.encoding, opener=regular_file)

    def emit(self, record: logging.LogRecord) -> None:
        """Write one record, or drop it if the folder is gone."""
        with suppress(OSError):
            super().emit(record)

    def close(self) -> None:
        """Close the file; if the disk is full, buffered records are lost."""
        with suppress(OSError):
            super().close()

    def handleError(self, record: logging.LogRecord) -> None:
        """Stay silent: checkpoints already warn about a full disk."""


def _escape(record: logging.LogRecord) -> bool:
    record.msg, record.args = escape_control_characters(record.getMessage(), "\n"), ()
    return True


logger = logging.getLogger("fabric_rl")
"""Logger of runs, for rank 0: `debug` goes to the log file only, `info` and `warning` are printed, too."""
logger.setLevel(logging.DEBUG)
logger.addHandler(Console())
logger.addFilter(_escape)
logger.propagate = False

_COLOR = re.compile(r"\A\x1b\[3\dm|\x1b\[0m\Z")
"""Codes around Gymnasium's warnings."""


@contextmanager
def log_warnings() -> Iterator[None]:
    """Log Python's warnings in the block, and an OSError that ends a thread (TensorBoard's writer), with `logger`."""
    for name in ("lightning.fabric", "lightning.pytorch"):  # they print several lines per rank
        logging.getLogger(name).setLevel(logging.WARNING)
    shown, failed = warnings.showwarning, threading.excepthook

    def show(message: Warning | str, *_place: Any, **_more: Any) -> None:  # noqa: ANN401 - as warnings.showwarning
        logger.warning("%s", _COLOR.sub("", str(message)))

    def report(failure: threading.ExceptHookArgs) -> None:
        if isinstance(failure.exc_value, OSError):
            logger.warning("a logger cannot write: %s", failure.exc_value)
        else:
            failed(failure)

    warnings.showwarning, threading.excepthook = show, report
    try:
        yield
    finally:
        warnings.showwarning, threading.excepthook = shown, failed


class BufferedLog(logging.Handler):
    """Handler that keeps all messages for a `log.txt` opened later; as a context manager, it logs its exception."""

    def __init__(self) -> None:
        super().__init__()
        self._waiting: list[logging.LogRecord] = []
        self._handler: logging.Handler = self

    def open(self, path: Path) -> None:
        """Write the messages so far to a file, and replace this handler with one that writes to the file."""
        file = RunLog(path, encoding="utf-8", delay=True)
        file.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
        for record in self._waiting:
            file.emit(record)
        logger.removeHandler(self)
        logger.addHandler(file)
        self._handler = file

    def emit(self, record: logging.LogRecord) -> None:
        self._waiting.append(record)

    def __enter__(self) -> "BufferedLog":
        logger.addHandler(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None:
            logger.error("%s", f"{type(error).__name__}: {error}".rstrip(": "))
        logger.removeHandler(self._handler)
        self._handler.close()
