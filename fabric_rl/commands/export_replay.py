"""`fabric-rl export-replay`: a replay as one page of HTML that opens with a double click, or as a video."""

from collections.abc import Iterator
from pathlib import Path

from rlgym.rocket_league.common_values import TICKS_PER_SECOND

from envs.pool.videos import FORMATS, Frame, write_video
from envs.replays.replay import read_replay, render_frames
from fabric_rl.base.files import write_text
from fabric_rl.base.tables import progress
from fabric_rl.commands.output import Out, writes
from fabric_rl.viewer.page import check_size, page_with

_RATES = {".mp4": 30, ".gif": 15}


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


def write_film(file: Path, out: Path, width: int = 640) -> None:
    """Draw all games of a replay as .mp4 or .gif, and print where."""
    replay, rate = read_replay(file), _RATES[out.suffix]
    lengths = [float(game.columns["ticks"][-1]) / TICKS_PER_SECOND for game in replay.games if game.num_frames]
    if not lengths:
        raise ValueError(f"{file}: there is nothing to draw, it has no frames")
    seconds = sum(lengths) + len(lengths) / rate

    def frames() -> Iterator[Frame]:
        for number, frame in enumerate(render_frames(replay, rate, (width, width * 9 // 16))):
            tell(number / rate / seconds)
            yield frame

    with progress(f"drawing {out.name}") as tell:
        write_video(out, frames(), rate)
    print(f"written: {out} ({out.stat().st_size / 1e6:.2f} MB)")
