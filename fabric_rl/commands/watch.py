"""`fabric-rl watch` and `export-replay`: replays and live matches in the browser, as a page, or as a video."""

import threading
from collections.abc import Iterator
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

from envs.pool.replay_format import SUFFIX
from envs.pool.videos import FORMATS, Frame, write_video
from envs.replays.replay import film, read_replay, render_frames
from fabric_rl.base.files import write_text
from fabric_rl.base.processes import import_slow_module
from fabric_rl.base.settings import Between
from fabric_rl.base.tables import progress
from fabric_rl.commands.output import Out, print_all, writes
from fabric_rl.commands.play import can_load_later
from fabric_rl.evaluation.settings import DEFAULT_PLAY, Minutes, PlaySettings
from fabric_rl.runs.records import is_training
from fabric_rl.viewer.feeds import GAMES, Feed, FileFeed, GamesFeed, LiveFeed
from fabric_rl.viewer.page import check_size, page_with
from fabric_rl.viewer.server import LOOPBACK, ViewerServer, open_browser

_FRAMES_PER_SECOND = {".mp4": 30, ".gif": 15}


def watch(
    what: str,
    opponent: str | None = None,
    /,
    port: Annotated[int, Between(0, 65535)] = 8765,
    host: str = LOOPBACK[0],
    no_browser: bool = False,
    minutes: Minutes = 5.0,
    play: PlaySettings = DEFAULT_PLAY,
) -> int:
    """Watch a run, a replay or a live match in the browser.

    A run that records games (`--record_minutes`) shows its most recent game, and new games as they arrive while it
    trains; the page lists earlier ones. With an opponent, or if the run has no games, its most recent checkpoint plays
    live and is reloaded before each game.

    Over SSH, run `ssh -L 8765:127.0.0.1:8765 HOST` and open the printed address. Ctrl+C stops the command.

    Args:
        what: Replay (.frl), run, or player as in `fabric-rl record`; a player plays blue.
        opponent: Player of the orange team in a live match. Default: chaser.
        port: Port of the page; 0: any free port.
        host: Address to listen on. With an address other than 127.0.0.1, other machines can watch if they have the
            token in the printed address.
        no_browser: Print the address without opening the browser.
        minutes: Game time in minutes after which the match restarts.
        play: How the players act.
    """
    feed = _feed(what, opponent, play.runs_dir)
    live, opponent = isinstance(feed, LiveFeed), opponent or "chaser"

    def find(settings: PlaySettings) -> Any:  # noqa: ANN401 - a Duel
        return import_slow_module("fabric_rl.evaluation.matches").Duel.of(what, opponent, settings)

    try:
        if live and not all(can_load_later(name, play) for name in (what, opponent)):
            find(play)  # before the browser opens
        server = ViewerServer(feed, host, port)
        with server.running():
            more = f"\n{feed.status()}" if isinstance(feed, GamesFeed) else ""
            print(f"watch it at {server.url} (Ctrl+C to stop){more}", flush=True)
            if not no_browser:
                open_browser(server.url)
            if live:
                duel = find(play)
                again = partial(find, duel.rules.play)
                import_module("fabric_rl.evaluation.matches").play_live(feed, duel, again, minutes, play.seed)
            threading.Event().wait()
    except KeyboardInterrupt:
        print()
    return 0


def _feed(what: str, opponent: str | None, runs_dir: str) -> Feed:
    """Return the source of the replay to watch."""
    if what.endswith(SUFFIX):
        read_replay(what)
        return FileFeed(Path(what))
    games = next((path for path in (Path(what, GAMES), Path(runs_dir, what, GAMES)) if path.is_dir()), None)
    if opponent is None and games is not None and (is_training(games.parent) or any(games.iterdir())):
        return GamesFeed(games)
    return LiveFeed(f"Loading {what} ...")


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
    print_all([f"written: {out} ({out.stat().st_size / 1e6:.2f} MB)"])
    return 0


def write_film(file: Path, out: Path, width: int = 640) -> None:
    """Write a video (.mp4 or .gif) of all games in a replay, and print its path."""
    replay, rate = read_replay(file), _FRAMES_PER_SECOND[out.suffix]
    pictures = sum(len(film(replay, game, rate)) for game in replay.games if game.num_frames)
    if not pictures:
        raise ValueError(f"{file}: there are no frames to draw")

    def frames() -> Iterator[Frame]:
        for number, frame in enumerate(render_frames(replay, rate, (width, width * 9 // 16))):
            tell(number / pictures)
            yield frame

    with progress(f"drawing {out.name}") as tell:
        write_video(out, frames(), rate)
    print_all([f"written: {out} ({out.stat().st_size / 1e6:.2f} MB)"])
