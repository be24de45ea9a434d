"""`fabric-rl export-replay`: a replay as one page of HTML that opens with a double click."""

from pathlib import Path

from envs.replays.replay import read_replay
from fabric_rl.commands.output import check_out
from fabric_rl.runs.json_files import write_text
from fabric_rl.viewer.page import page_with

_MOST_BYTES = 100_000_000


def export_replay(file: Path, out: Path) -> int:
    """Writes a replay and the viewer into a single page, to send to somebody or to put on a website.

    Args:
        file: The replay, .frl.
        out: The page, .html.
    """
    check_out([out], [".html"])
    check_size(file)
    read_replay(file)
    write_text(out, page_with(file.read_bytes()))
    print(f"written: {out} ({out.stat().st_size / 1e6:.2f} MB)")
    return 0


def check_size(file: Path) -> None:
    """Raises ValueError for a replay that is too large for a page."""
    if (size := file.stat().st_size) > _MOST_BYTES:
        raise ValueError(f"{file}: {size / 1e6:,.0f} MB are too many for a page; watch it: fabric-rl watch {file}")
