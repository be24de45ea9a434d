"""Fabric's loggers: TensorBoard and whatever else the user has chosen."""

import warnings

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


def _first_cause(error: BaseException) -> BaseException:
    """What made an error happen, if it says so: TensorBoardLogger hides a full disk behind another message."""
    while (cause := error.__cause__ or error.__context__) is not None and str(cause):
        error = cause
    return error
