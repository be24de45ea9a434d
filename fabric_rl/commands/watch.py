"""`fabric-rl watch`: a replay, the games of a run, or players who play live, in the browser."""

import threading
from collections.abc import Callable
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Annotated, NoReturn

from envs.pool.replay_format import SUFFIX
from envs.replays.replay import read_replay
from fabric_rl.base.settings import Between
from fabric_rl.evaluation.settings import DEFAULT_PLAY, Minutes, PlaySettings
from fabric_rl.runs.records import is_worked_on
from fabric_rl.viewer.feeds import GAMES, Broadcast, Feed, FileFeed, GamesFeed
from fabric_rl.viewer.server import LOOPBACK, ViewerServer, open_browser

_OPPONENT = "chaser"


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
        play: How they play.
    """
    feed = _feed(what, opponent, play.runs_dir)
    try:
        live: Callable[[], NoReturn] | None = None
        if isinstance(feed, Broadcast):  # a player that cannot play is an error before an address is shown
            matches = import_module("fabric_rl.evaluation.play")  # torch, which a recorded game does not wait for
            duel = matches.Duel.of(what, opponent or _OPPONENT, play)
            again = partial(matches.Duel.of, what, opponent or _OPPONENT, duel.rules.play)
            live = partial(matches.play_live, feed, duel, again, minutes, play.seed)
        server = ViewerServer(feed, host, port)
        with server.running():
            more = f"\n{feed.says()}" if isinstance(feed, GamesFeed) else ""
            print(f"watch it at {server.url} (Ctrl+C ends it){more}", flush=True)
            if not no_browser:
                open_browser(server.url)
            if live is not None:
                live()
            threading.Event().wait()
    except KeyboardInterrupt:
        print()
    return 0


def _feed(what: str, opponent: str | None, runs_dir: str) -> Feed:
    """Return the source of the bytes that are watched."""
    if what.endswith(SUFFIX):
        read_replay(what)
        return FileFeed(Path(what))
    games = next((path for path in (Path(what, GAMES), Path(runs_dir, what, GAMES)) if path.is_dir()), None)
    if opponent is None and games is not None and (is_worked_on(games.parent) or any(games.iterdir())):
        return GamesFeed(games)
    return Broadcast("Loading the first picture ...")
