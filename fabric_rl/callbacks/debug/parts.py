"""What the parts of `Debug` share: where their lines go, and what an environment tells about itself."""

import logging
import warnings
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from fabric_rl.callback import TrainState
from fabric_rl.metrics.log import RunLog, logger


@runtime_checkable
class Inspector(Protocol):
    """Looks into one environment for `Debug`: what the environment gives as `inspector`, as RocketSim's pools do."""

    def describe_actions(self) -> list[str]:
        """Lines about the action table, or one that says why there is nothing to tell."""

    def first_states(self) -> int:
        """Takes down the first states of the episodes that have begun just now; returns how many those were."""

    def describe_resets(self) -> list[str]:
        """Lines about the first states taken down, or why there are none."""

    def reset_rows(self) -> list[dict[str, Any]]:
        """The first states taken down as the rows of a table, all with the same keys; empty if there are none."""

    def reset_problems(self) -> list[str]:
        """What is wrong with the first states taken down, a line each."""


class NoInspector:
    """Stands in for an environment that cannot be looked into."""

    def __init__(self, env: object) -> None:
        """Takes the environment."""
        self._why = f"{type(env).__name__} cannot be looked into"

    def describe_actions(self) -> list[str]:
        """Why there is nothing."""
        return [f"no action table: {self._why}"]

    def first_states(self) -> int:
        """None."""
        return 0

    def describe_resets(self) -> list[str]:
        """Why there is nothing."""
        return [f"no first states: {self._why}"]

    def reset_rows(self) -> list[dict[str, Any]]:
        """None."""
        return []

    def reset_problems(self) -> list[str]:
        """Nothing is known."""
        return []


def tell(state: TrainState, topic: str, *lines: str) -> None:
    """Prints lines on rank 0, and writes them into the run's log."""
    if state.fabric.is_global_zero:
        for line in lines:
            logger.info("debug %s: %s", topic, line)


def warn(state: TrainState, topic: str, *lines: str) -> None:
    """A warning for each line, on rank 0; warnings also go into the run's log."""
    if state.fabric.is_global_zero:
        for line in lines:
            warnings.warn(f"debug {topic}: {line}", RuntimeWarning, stacklevel=3)


def run_folder() -> Path | None:
    """The folder of the run in this process, where its log is; None if nothing is kept."""
    logs = [handler for handler in logger.handlers if isinstance(handler, RunLog)]
    return Path(logs[-1].baseFilename).parent if logs else None


class Heard(logging.Handler):
    """Passes on what the run's logger says."""

    def __init__(self) -> None:
        """Has heard nothing yet."""
        super().__init__(logging.DEBUG)
        self.records: list[tuple[float, str]] = []
        """Seconds since the epoch, and text."""

    def emit(self, record: logging.LogRecord) -> None:
        """Keeps a record."""
        self.records.append((record.created, record.getMessage()))
