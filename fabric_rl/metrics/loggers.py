"""Fabric's loggers: TensorBoard and whatever else the user has chosen."""

import time
import warnings
from pathlib import Path

from lightning import Fabric


class Loggers:
    """Fabric's loggers. One that fails is left out from then on, with a warning: training matters more."""

    def __init__(self, fabric: Fabric) -> None:
        self._loggers = list(fabric.loggers) if fabric.is_global_zero else []

    def log(self, metrics: dict[str, float], step: int) -> None:
        """Logs one iteration."""
        for each in list(self._loggers):
            try:
                each.log_metrics(metrics, step)
            except Exception as error:  # a service that is down, a full disk, a folder that is gone...
                self._loggers.remove(each)
                cause = _first_cause(error)
                warnings.warn(
                    f"{type(each).__name__} failed and is left out from now on ({type(cause).__name__}: {cause})",
                    RuntimeWarning,
                    stacklevel=2,
                )

    def finalize(self) -> None:
        """Tells every logger that the run has ended, so that it writes what it still has."""
        for each in self._loggers:
            try:
                each.finalize("success")
            except Exception as error:
                message = f"{type(each).__name__} failed at the end ({type(error).__name__}: {error})"
                warnings.warn(message, RuntimeWarning, stacklevel=2)


def wait_for_a_later_name(folder: Path) -> None:
    """Waits until TensorBoard's next file in this folder will be read after those of this second: a second at most.

    Files are read in the order of their names, which begin with the second in which each was opened; those of the same
    second follow each other by the text of a process's number, in which 1003 comes before 993. A clock that was put
    back is not waited for.
    """
    seconds = [path.name.removeprefix("events.out.tfevents.")[:10] for path in folder.glob("events.out.tfevents.*")]
    if str(int(now := time.time())) in seconds:
        time.sleep(int(now) + 1 - now)


def _first_cause(error: BaseException) -> BaseException:
    """What made an error happen, if it says so: TensorBoardLogger hides a full disk behind another message."""
    while (cause := error.__cause__ or error.__context__) is not None and str(cause):
        error = cause
    return error
