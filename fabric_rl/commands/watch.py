"""`fabric-rl watch`: a replay, or players who play live, in the browser."""

import os
import sys
import threading
import webbrowser
from importlib import import_module
from pathlib import Path

from envs.replays.replay import SUFFIX, read_replay
from fabric_rl.viewer.feeds import Broadcast, Feed, FileFeed
from fabric_rl.viewer.server import LOOPBACK, ViewerServer


def watch(
    what: str,
    opponent: str = "chaser",
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
    """Shows a replay, or a match that is played at this moment, as a page in the browser.

    A run that is being trained plays with its newest checkpoint, which is looked for before each game. Over SSH:
    `ssh -L 8765:127.0.0.1:8765 HOST`, then open the address that is printed. Ctrl+C ends it.

    Args:
        what: A replay (.frl), or a player as in `fabric-rl record`, which plays blue.
        opponent: Plays orange, where a player is watched.
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
    replay = Path(what) if what.endswith(SUFFIX) else None
    if replay is not None:
        read_replay(replay)
    feed: Feed = Broadcast() if replay is None else FileFeed(replay)
    server = ViewerServer(feed, host, port)
    play = None
    if isinstance(feed, Broadcast):
        live = import_module("fabric_rl.commands.live")  # torch, which takes longer to load than a replay
        play = live.player_of(what, opponent, team_size, sample, tick_skip, runs_dir)
    with server.running():
        print(f"watch it at {server.url} (Ctrl+C ends it)", flush=True)
        if not no_browser and _has_browser():
            threading.Thread(target=webbrowser.open, args=(server.url,), daemon=True).start()
        try:
            if play is not None:
                play(feed, minutes, seed)
            threading.Event().wait()
        except KeyboardInterrupt:
            print()
    return 0


def _has_browser() -> bool:
    """Whether there is a screen; without one a browser for the terminal might come up."""
    return sys.platform != "linux" or bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))
