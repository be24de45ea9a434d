"""`fabric-rl watch`: a replay, the games of a run, or players who play live, in the browser."""

import threading
from functools import partial
from importlib import import_module
from pathlib import Path

from envs.replays.replay import SUFFIX, read_replay
from fabric_rl.runs.records import is_worked_on
from fabric_rl.viewer.feeds import GAMES, Broadcast, Feed, FileFeed, GamesFeed
from fabric_rl.viewer.server import LOOPBACK, ViewerServer, open_browser

_OPPONENT = "chaser"


def watch(
    what: str,
    opponent: str | None = None,
    /,
    port: int = 8765,
    host: str = LOOPBACK[0],
    no_browser: bool = False,
    minutes: float = 5.0,
    team_size: int | None = None,
    seed: int = 0,
    sample: bool = False,
    tick_skip: int | None = None,
    runs_dir: str = "runs",
) -> int:
    """Shows a replay, the games that a run records, or a match that is played now, as a page in the browser.

    Of a run that records games (`--record_minutes`) it is the newest one, and while the run trains the next one when it
    is there; the page lists those of before. With an opponent, or if there are no games, the run's newest checkpoint
    plays; it is looked for before each game. Over SSH:
    `ssh -L 8765:127.0.0.1:8765 HOST`, then open the address that is printed. Ctrl+C ends it.

    Args:
        what: A replay (.frl), a run, or a player as in `fabric-rl record`, which plays blue.
        opponent: Plays orange, where a player is watched; default: chaser.
        port: Of the page; 0 for any that is free.
        host: Address to listen on. With another one than 127.0.0.1 other machines can watch, with the token in the
            printed address.
        no_browser: Print the address only.
        minutes: Game time after which players begin anew.
        team_size: Cars in a team; default: as the player was trained, 1 for bots.
        seed: Of the kickoffs.
        sample: Agents draw actions instead of taking the likeliest.
        tick_skip: Ticks per decision; default: as the player was trained.
        runs_dir: Folder of the run ids.
    """
    if not minutes > 0:
        raise ValueError(f"--minutes must be positive, got {minutes}")
    if not 0 <= port <= 65535:
        raise ValueError(f"--port must be 0 to 65535, got {port}")
    feed = _feed(what, opponent, runs_dir)
    try:
        play = None
        if isinstance(feed, Broadcast):  # a player that cannot play is said before an address is
            live = import_module("fabric_rl.commands.live")  # torch, which a recorded game does not wait for
            play = partial(live.player_of(what, opponent or _OPPONENT, team_size, sample, tick_skip, runs_dir), feed)
        server = ViewerServer(feed, host, port)
        with server.running():
            more = f"\n{feed.says()}" if isinstance(feed, GamesFeed) else ""
            print(f"watch it at {server.url} (Ctrl+C ends it){more}", flush=True)
            if not no_browser:
                open_browser(server.url)
            if play is not None:
                play(minutes, seed)
            threading.Event().wait()
    except KeyboardInterrupt:
        print()
    return 0


def _feed(what: str, opponent: str | None, runs_dir: str) -> Feed:
    """Where what is watched comes from."""
    if what.endswith(SUFFIX):
        read_replay(what)
        return FileFeed(Path(what))
    games = next((path for path in (Path(what, GAMES), Path(runs_dir, what, GAMES)) if path.is_dir()), None)
    if opponent is None and games is not None and (is_worked_on(games.parent) or any(games.iterdir())):
        return GamesFeed(games)
    return Broadcast("Loading the first picture ...")
