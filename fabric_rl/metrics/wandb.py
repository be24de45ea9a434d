"""Weights & Biases: its files belong into the run folder."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lightning.fabric.loggers.logger import Logger


def keep_in_run_folder(loggers: Sequence[Logger], folder: Path) -> None:
    """Lets a `WandbLogger` whose place and name nobody has chosen write into the run's folder, under the run's name.

    Lightning's default is the current folder and a name made up by the service. Nothing has been written yet: the
    logger begins with its first metrics. It takes both in its constructor only, before there is a run folder, and
    keeps them in private attributes; one without them is left as it is.

    Args:
        loggers: All loggers of this rank; others are not touched.
        folder: The run's, `<runs_dir>/<run_id>`.
    """
    for logger in loggers:
        settings: dict[str, Any] | None = getattr(logger, "_wandb_init", None)
        if settings is None or getattr(logger, "_experiment", None) is not None:
            continue
        if settings.get("dir") == ".":
            settings["dir"] = logger._save_dir = str(folder)  # type: ignore[attr-defined]
        if settings.get("name") is None:
            settings["name"] = logger._name = folder.name  # type: ignore[attr-defined]
