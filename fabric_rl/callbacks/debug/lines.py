"""What `Debug` says, on rank 0."""

import warnings

from fabric_rl.callback import TrainState
from fabric_rl.metrics.log import logger


def tell(state: TrainState, topic: str, *lines: str) -> None:
    """Events, shown and written into the run's log."""
    if state.fabric.is_global_zero:
        for line in lines:
            logger.info("debug %s: %s", topic, line)


def warn(state: TrainState, topic: str, *lines: str) -> None:
    """A warning for each line."""
    if state.fabric.is_global_zero:
        for line in lines:
            warnings.warn(f"debug {topic}: {line}", RuntimeWarning, stacklevel=3)
