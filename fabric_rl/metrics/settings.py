"""The settings of a run for its loggers: with the metrics, what they came from."""

import math
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from lightning.fabric.loggers.logger import Logger
from lightning.fabric.loggers.tensorboard import TensorBoardLogger

_OUTCOME = "outcome"


def log_settings(loggers: Sequence[Logger], settings: Mapping[str, Any], changes: Sequence[str], step: int) -> None:
    """Tells loggers the settings: TensorBoard as text, others as what they call hyperparameters or config.

    Args:
        loggers: One that fails is a warning.
        settings: By their dotted names.
        changes: Of a run that goes on, a line for each setting that it had otherwise.
        step: Agent-steps done.
    """
    for each in loggers:
        with _told_if_it_fails(each):
            if isinstance(each, TensorBoardLogger):
                table = (f"| {name} | {value} |" for name, value in settings.items())
                each.experiment.add_text("settings", "\n".join(["| setting | value |", "|---|---|", *table]), step)
                if changes:
                    each.experiment.add_text("changed settings", "\n".join(f"- {line}" for line in changes), step)
            else:
                each.log_hyperparams(dict(settings))


def log_outcome(loggers: Sequence[Logger], settings: Mapping[str, Any], summary: Mapping[str, Any], step: int) -> None:
    """Tells TensorBoard's HParams tab what the settings have led to; a run that went on has one row, the newest.

    Args:
        loggers: Others than TensorBoard's have been told by `log_settings`.
        settings: By their dotted names.
        summary: What `summary.json` holds; its figures at the end count.
        step: Agent-steps done.
    """
    figures = {name: figure["end"] if isinstance(figure, dict) else figure for name, figure in summary.items()}
    numbers = {name: figure for name, figure in figures.items() if isinstance(figure, float) and math.isfinite(figure)}
    chosen = {f"{_OUTCOME}/{name}": figure for name, figure in numbers.items()}
    plain = {name: value if isinstance(value, bool | int | float) else str(value) for name, value in settings.items()}
    for each in loggers:
        if isinstance(each, TensorBoardLogger):
            with _told_if_it_fails(each):
                for old in Path(each.log_dir, _OUTCOME).glob("events.out.tfevents.*"):
                    old.unlink()
                each.experiment.add_hparams(plain, chosen, run_name=_OUTCOME, global_step=step)


@contextmanager
def _told_if_it_fails(logger: Logger) -> Iterator[None]:
    try:
        yield
    except NotImplementedError:  # Fabric's CSVLogger takes no settings
        pass
    except Exception as error:  # a service that is down, a full disk...
        message = f"{type(logger).__name__} has not got the settings of the run ({type(error).__name__}: {error})"
        warnings.warn(message, RuntimeWarning, stacklevel=3)
