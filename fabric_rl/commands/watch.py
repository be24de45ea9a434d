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
        team_size: Cars per team. Default: as in the training of the first agent; 1 for bots.
        seed: Seed of the kickoffs.
        sample: Sample the actions of agents from their policies. Default: take the most probable action.
        tick_skip: Physics ticks (1/120 s) per decision. Default: as in the training of the first agent; 8 for bots.
        runs_dir: Folder that contains all runs.
    """
    if not minutes > 0:
        raise ValueError(f"--minutes must be positive, got {minutes}")
    if not 0 <= port <= 65535:
        raise ValueError(f"--port must be 0 to 65535, got {port}")
    feed = _feed(what, opponent, runs_dir)
    try:
        play = None
        if isinstance(feed, Broadcast):  # a player that cannot play is said before an address is
            live = import_module("fabric_rl.evaluation.play")  # torch, which a recorded game does not wait for
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
