"""DebugResets: where episodes begin, as a table in the run folder."""

from pathlib import Path

from fabric_rl.base.files import write_text
from fabric_rl.callback import Callback, TrainState
from fabric_rl.callbacks.debug.inspector import Inspector, inspector_of
from fabric_rl.callbacks.debug.lines import tell, warn
from fabric_rl.metrics.csv_tables import csv_text
from fabric_rl.metrics.log import RunLog, logger

TABLE = "resets.csv"


class DebugResets(Callback):
    """Takes down the first states of `episodes` episodes of rank 0, writes them and warns of impossible ones.

    Those that begin with the run are seen, and those that begin in the last step of an iteration.
    """

    inspector: Inspector

    def __init__(self, episodes: int = 64, folder: str | Path | None = None) -> None:
        self.episodes, self.folder = episodes, folder
        self._seen, self._done = 0, False

    def on_train_start(self, state: TrainState) -> None:
        """Looks at the episodes that have just begun."""
        self.inspector, self._seen, self._done = inspector_of(state.env), 0, False
        self._look(state, first=True)

    def on_iteration_start(self, state: TrainState) -> None:
        """Looks at those that began in the last step."""
        if state.iteration and not self._done:
            self._look(state)

    def on_train_end(self, state: TrainState) -> None:
        """Writes what was seen, if the episodes were too few."""
        if not self._done and self._seen:
            self._report(state)

    def _look(self, state: TrainState, first: bool = False) -> None:
        if not state.fabric.is_global_zero:
            return
        self._seen += self.inspector.first_states()
        if self._seen >= self.episodes or (first and not self._seen):
            self._report(state)

    def _report(self, state: TrainState) -> None:
        if not state.fabric.is_global_zero:
            return
        self._done = self._seen > 0
        lines, rows = self.inspector.describe_resets(), self.inspector.reset_rows()
        folder = Path(self.folder) if self.folder is not None else run_folder()
        if rows and folder is not None:
            write_text(folder / TABLE, csv_text(list(rows[0]), rows))
            lines.append(f"written: {folder / TABLE}")
        tell(state, "resets", *lines)
        warn(state, "resets", *self.inspector.reset_problems())


def run_folder() -> Path | None:
    """The folder of the run in this process, where its log is; None if nothing is kept."""
    logs = [handler for handler in logger.handlers if isinstance(handler, RunLog)]
    return Path(logs[-1].baseFilename).parent if logs else None
