"""The events of a run: each is logged once, and goes to the console of rank 0 and into the run's `log.txt`."""

import logging
import os
import sys
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Any, TextIO


def program() -> str:
    """Return the beginning of warnings and errors: the name under which training, or a command, was started."""
    if Path(sys.argv[0]).stem != "fabric-rl":
        return "train_fabric.py"
    return " ".join(("fabric-rl", *sys.argv[1:2]))


def say(*lines: str) -> None:
    """Prints lines. Where nobody listens any more (a closed terminal or pipe) output is dropped from then on."""
    try:
        print(*lines, sep="\n", flush=True)
    except OSError:
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115 - as long as the process


def is_terminal(stream: TextIO | None) -> bool:
    """Return whether somebody sits there; a stream that was closed before Python began is None."""
    return stream is not None and stream.isatty()


class Console(logging.Handler):
    """Prints information as it is, and warnings on standard error. An error ends the run: who catches it says so."""

    def emit(self, record: logging.LogRecord) -> None:
        """Prints one record."""
        if record.levelno == logging.INFO:
            say(record.getMessage())
        elif record.levelno == logging.WARNING:
            with suppress(OSError):
                print(f"{program()}: warning: {record.getMessage()}", file=sys.stderr, flush=True)


class RunLog(logging.FileHandler):
    """The file log of a run; what cannot be written to it is left out."""

    def emit(self, record: logging.LogRecord) -> None:
        """Writes one record; the folder may be gone."""
        with suppress(OSError):
            super().emit(record)

    def close(self) -> None:
        """Closes the file; what waits for a full disk is lost."""
        with suppress(OSError):
            super().close()

    def handleError(self, record: logging.LogRecord) -> None:
        """Says nothing: the disk is full, which the checkpoints' warning says."""


logger = logging.getLogger("fabric_rl")
"""What happens in a run: `debug` is for its log only, `info` and `warning` are shown, too; tell it on rank 0."""
logger.setLevel(logging.DEBUG)
logger.addHandler(Console())
logger.propagate = False


@contextmanager
def warnings_are_events() -> Iterator[None]:
    """Warnings of the block are told to `logger`, so that they are shown and written in the same way as other events.

    So is an OSError that ends a thread: TensorBoard's writer, which is left out then.
    """
    shown, failed = warnings.showwarning, threading.excepthook

    def show(message: Warning | str, *_place: Any, **_more: Any) -> None:  # noqa: ANN401 - as warnings.showwarning
        logger.warning("%s", message)

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


class EventLog(logging.Handler):
    """While it is entered, keeps all events for a `log.txt` that may be opened later; the last one is why it failed."""

    def __init__(self) -> None:
        super().__init__()
        self._waiting: list[logging.LogRecord] = []
        self._handler: logging.Handler = self

    def open(self, path: Path) -> None:
        """Write the events so far into a file, which takes the place of this handler."""
        file = RunLog(path, encoding="utf-8", delay=True)
        file.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
        for record in self._waiting:
            file.emit(record)
        logger.removeHandler(self)
        logger.addHandler(file)
        self._handler = file

    def emit(self, record: logging.LogRecord) -> None:
        self._waiting.append(record)

    def __enter__(self) -> "EventLog":
        logger.addHandler(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None:
            logger.error("%s", f"{type(error).__name__}: {error}".rstrip(": "))
        logger.removeHandler(self._handler)
        self._handler.close()
