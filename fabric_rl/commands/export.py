"""`fabric-rl export`: a trained agent to keep or to hand on."""

from pathlib import Path

from fabric_rl.runs import trained


def export(name: str, folder: Path, runs_dir: Path = Path("runs")) -> int:
    """Writes an agent without its run into a new, small folder.

    Args:
        name: Run id, or path of a run, milestone or checkpoint.
        folder: The new folder.
        runs_dir: Folder of the run ids.

    Raises:
        ValueError: There is no such agent.
        OSError: The folder exists, or cannot be written.
    """
    written = trained.export(name, folder, runs_dir)
    size = sum(file.stat().st_size for file in written.iterdir()) / 1e6
    print(f"written: {written} ({size:.1f} MB)")
    return 0
