"""DebugCheckpoints: what is written when, and what a resumed run goes on with."""

import sys
import time
from logging.handlers import BufferingHandler
from pathlib import Path
from typing import Any

from fabric_rl.callback import Callback, TrainState
from fabric_rl.callbacks.debug.lines import tell, warn
from fabric_rl.metrics.log import logger
from fabric_rl.runs import checkpoint
from fabric_rl.runs.records import checkpoints


class DebugCheckpoints(Callback):
    """Prints every checkpoint and milestone once it is written, and where a resumed run begins.

    A line has the file's size, the seconds from the end of the iteration until it lay there, and what is in it: steps,
    world size, whether a run resumed from it is the same to the bit, the fingerprint that another run must share. It
    reads each file again, whole, which also checks its checksum.
    """

    def __init__(self) -> None:
        self._heard = BufferingHandler(sys.maxsize)
        self._ended = time.time()
        self._restored = False

    def on_train_start(self, state: TrainState) -> None:
        """Listens to what the run says; tells what was restored."""
        if not state.fabric.is_global_zero:
            return
        logger.addHandler(self._heard)
        if state.iteration:
            whole = ", with what callbacks remember" if self._restored else "; Debug was not among its callbacks"
            end = f"{state.steps:,} of {state.args.total_timesteps:,} steps, iteration {state.iteration}"
            tell(state, "checkpoints", f"continues at {end}: weights, optimizer and counters{whole}")
        else:
            tell(state, "checkpoints", "nothing was resumed")
        if state.run_id is None:
            tell(state, "checkpoints", "this run keeps nothing")

    def on_iteration_start(self, state: TrainState) -> None:
        """Tells what the iteration before has written."""
        self._report(state)

    def on_iteration_end(self, state: TrainState) -> None:
        """Saving begins after this."""
        self._ended = time.time()

    def on_train_end(self, state: TrainState) -> None:
        """Tells about the last ones."""
        self._report(state)
        logger.removeHandler(self._heard)

    def on_exception(self, state: TrainState, error: BaseException) -> None:
        """Listens no longer."""
        logger.removeHandler(self._heard)

    def state_dict(self) -> dict[str, Any]:
        """Something to find again in a resumed run."""
        return {"known": True}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """A run goes on."""
        self._restored = True

    def _report(self, state: TrainState) -> None:
        records, self._heard.buffer = self._heard.buffer, []
        for record in records:
            kind, _, where = record.getMessage().partition(" ")
            if kind in ("checkpoint", "milestone") and Path(where).exists():
                path = Path(where) if kind == "checkpoint" else next(iter(checkpoints(where)), Path(where))
                try:
                    tell(state, "checkpoints", f"{kind} {path}: {record.created - self._ended:.2f} s, {contents(path)}")
                except checkpoint.CheckpointError as error:
                    warn(state, "checkpoints", str(error))


def contents(path: Path) -> str:
    """What is in a checkpoint, as text; a CheckpointError if it cannot be read."""
    saved = checkpoint.read(path)
    exact = "resumes bit-identical" if saved.get("exact") else "resumes equivalent, not bit-identical"
    environment = "with" if any(rank.get("env") is not None for rank in saved["ranks"]) else "without"
    prints = "; ".join(f"{name} {_short(text)}" for name, text in saved["fingerprint"].items())
    return (
        f"{path.stat().st_size / 1e6:.2f} MB, {saved['steps']:,} steps, iteration {saved['iteration']}, world size "
        f"{saved['world_size']}, {environment} the environment's state, {exact}; {prints}"
    )


def _short(text: str) -> str:
    line = " ".join(str(text).split())
    return line if len(line) <= 80 else f"{line[:77]}..."
