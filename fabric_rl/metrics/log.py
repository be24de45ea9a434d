"""What happens in a run: on the console of rank 0 and in its log."""

import logging
import os
import sys
from contextlib import suppress

logger = logging.getLogger("fabric_rl")
"""What happens in a run; `Run.open_log` writes it into the run folder."""


def say(*lines: str) -> None:
    """Prints lines. Where nobody listens any more (a closed terminal or pipe) output is dropped from then on."""
    try:
        print(*lines, sep="\n", flush=True)
    except OSError:
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115 - as long as the process


class RunLog(logging.FileHandler):
    """The file log of a run; what cannot be written to it is left out."""

    def emit(self, record: logging.LogRecord) -> None:
        """Writes one record; the folder may be gone."""
        with suppress(OSError):
            super().emit(record)

    def handleError(self, record: logging.LogRecord) -> None:
        """Says nothing: the disk is full, which the checkpoints' warning says."""
