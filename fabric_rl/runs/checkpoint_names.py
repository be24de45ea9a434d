"""Names of checkpoint files, which say after how many steps they were written."""

import re
from pathlib import Path

_NAME = re.compile(r"step_(\d+)\.ckpt")


def file_name(steps: int) -> str:
    """File name of the checkpoint after so many agent-steps; names sort by steps, e.g. `step_000001000000.ckpt`."""
    return f"step_{steps:012d}.ckpt"


def steps_of(path: Path) -> int:
    """Agent-steps that `file_name` put into a file's name; a ValueError if it has another name."""
    match = _NAME.fullmatch(path.name)
    if match is None:
        raise ValueError(f"{path}: not named like a checkpoint (step_<steps>.ckpt)")
    return int(match[1])


def checkpoints(folder: str | Path) -> list[Path]:
    """Finished checkpoints of a folder, oldest first; none if there is no such folder."""
    return sorted((path for path in Path(folder).glob("step_*.ckpt") if _NAME.fullmatch(path.name)), key=steps_of)
