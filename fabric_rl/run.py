"""A run on disk: `runs/<run_id>/` with its configuration, checkpoints and summary."""

import json
import os
import shutil
import tempfile
from datetime import datetime
from pathlib import Path
from typing import Any


class Run:
    """The folder of one run.

    Attributes:
        dir: `runs/<run_id>`.
    """

    def __init__(self, folder: Path) -> None:
        """Takes an existing folder; `create` makes a new one."""
        self.dir = folder

    @classmethod
    def create(cls, runs_dir: str | Path, run_id: str | None = None) -> "Run":
        """Makes the folder of a new run.

        Args:
            runs_dir: Folder that holds all runs.
            run_id: Name of the run; default: date and time.

        Raises:
            FileExistsError: There is a run of that name already.
            OSError: The folder cannot be written.
        """
        base = Path(runs_dir)
        name = run_id or datetime.now().strftime("%Y%m%d-%H%M%S")
        if Path(name).name != name or name in (".", ".."):
            raise ValueError(f"--run_id {name}: must be a plain name, not a path")
        folder = base / name
        try:
            base.mkdir(parents=True, exist_ok=True)
            for attempt in range(2, 100):
                try:
                    folder.mkdir()
                    break
                except FileExistsError:
                    if run_id is not None:
                        raise
                    folder = base / f"{name}-{attempt}"
            (folder / "checkpoints").mkdir()
            with tempfile.TemporaryFile(dir=folder):
                pass
        except OSError as error:
            if isinstance(error, FileExistsError) and base.is_dir():
                raise FileExistsError(f"--run_id {name}: {folder} already exists; choose another run id") from error
            raise OSError(f"--runs_dir {base}: cannot write there ({error.strerror}); choose another folder") from error
        return cls(folder)

    @property
    def name(self) -> str:
        """The run id."""
        return self.dir.name

    @property
    def videos(self) -> Path:
        """Folder of mp4 files."""
        return self.dir / "videos"

    @property
    def final_checkpoint(self) -> Path:
        """Where the last checkpoint of a run that ended in order lies."""
        return self.dir / "checkpoints" / "final.ckpt"

    def write_summary(self, summary: dict[str, Any]) -> Path:
        """Writes `summary.json` in one step (temporary file, then rename)."""
        path = self.dir / "summary.json"
        temporary = path.with_suffix(".tmp")
        temporary.write_text(json.dumps(summary, indent=2) + "\n", encoding="utf-8")
        os.replace(temporary, path)
        return path

    def discard_if_empty(self) -> None:
        """Removes the folder of a run that failed before it wrote anything."""
        if not any(path.is_file() for path in self.dir.rglob("*")):
            shutil.rmtree(self.dir, ignore_errors=True)
