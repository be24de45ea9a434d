"""States of a run that takes hours, so that the same command continues it after an interruption."""

import shutil
from collections.abc import Callable
from pathlib import Path


class Unfinished:
    """The folder of a run that has not ended: its newest complete state and the log of its episodes.

    A state is a folder `state_N` with N steps or, for a training of this project, a checkpoint `step_N.ckpt` of run
    `r`.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        states = [*folder.glob("state_*"), *folder.glob("r/checkpoints/step_*.ckpt")]
        saved = {int(path.stem.split("_")[1]): path for path in states}
        self.steps = max(saved, default=0)
        self.state = saved.get(self.steps)

    def save(self, steps: int, write: Callable[[Path], object]) -> None:
        """Lets `write` fill a folder, and keeps only this one."""
        shutil.rmtree(self.folder / "new", ignore_errors=True)
        (self.folder / "new").mkdir()
        write(self.folder / "new")
        old = list(self.folder.glob("state_*"))
        (self.folder / "new").rename(self.folder / f"state_{steps}")
        for path in old:
            shutil.rmtree(path)

    def cut(self, log: Path) -> tuple[int, float]:
        """Drops the episodes after the state from the log; returns the steps and the seconds at the state."""
        lines = log.read_text(encoding="utf-8").splitlines(keepends=True) if log.exists() else []
        kept = [line for line in lines if line.endswith("\n") and int(line.split()[1]) <= self.steps]
        log.write_text("".join(kept), encoding="utf-8")
        if not kept:
            return self.steps, 0.0
        seconds, steps, _ = kept[-1].split()
        return self.steps, float(seconds) * self.steps / int(steps)
