"""Where the lines of `Debug` go."""

import warnings

from fabric_rl.callback import TrainState
from fabric_rl.metrics.log import logger


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
