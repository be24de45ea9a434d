"""`fabric-rl export-replay`: a replay as one page of HTML that opens with a double click, or as a video."""

from pathlib import Path

from envs.render.videos import FORMATS
from envs.replays.replay import read_replay
from fabric_rl.base.files import write_text
from fabric_rl.commands.output import Out, writes
from fabric_rl.evaluation.show import check_size, write_film
from fabric_rl.viewer.page import page_with


@writes(Out("out", [".html", *FORMATS]))
def export_replay(file: Path, out: Path, width: int = 640) -> int:
    """Convert a replay to an HTML page with the viewer, or to a video, to share or put on a website.

    Args:
        file: Replay file, .frl.
        out: Output file: a page (.html) or a video (.mp4 or .gif).
        width: Width of a video in pixels; the height is 9/16 of it.
    """
    if not 160 <= width <= 3840 or width % 32:
        raise ValueError(f"--width must be a multiple of 32 between 160 and 3840, got {width}")
    if out.suffix in FORMATS:
        write_film(file, out, width)
        return 0
    check_size(file)
    read_replay(file)
    write_text(out, page_with(file.read_bytes()))
    print(f"written: {out} ({out.stat().st_size / 1e6:.2f} MB)")
    return 0
