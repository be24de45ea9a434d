"""`fabric-rl watch`: a replay, or players who play live, in the browser."""

import os
import sys
import threading
import time
import webbrowser
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

from envs.replays.replay import SUFFIX, read_replay
from fabric_rl.commands.record import Duel
from fabric_rl.ranks.threads import one_thread
from fabric_rl.viewer.feeds import Broadcast, Feed, FileFeed
from fabric_rl.viewer.server import LOOPBACK, ViewerServer

_LIVE_FRAMES = 2
"""Frames that are sent together."""


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
    duel = None if replay is not None else Duel.of(what, opponent, team_size, sample, tick_skip, runs_dir)
    with server.running():
        print(f"watch it at {server.url} (Ctrl+C ends it)", flush=True)
        if not no_browser and _has_browser():
            threading.Thread(target=webbrowser.open, args=(server.url,), daemon=True).start()
        try:
            if isinstance(feed, Broadcast) and duel is not None:
                names = (what, opponent, duel.team_size, sample, duel.tick_skip, runs_dir)
                with one_thread(if_small=True):
                    play_live(feed, duel, lambda: Duel.of(*names), minutes, seed)
            threading.Event().wait()
        except KeyboardInterrupt:
            print()
    return 0


def play_live(feed: Broadcast, duel: Duel, again: Callable[[], Duel], minutes: float, seed: int) -> NoReturn:
    """Plays game after game in real time, while anybody watches.

    Args:
        feed: Takes the replay.
        duel: Who plays the first game.
        again: Looks for the players anew.
        minutes: Game time of each.
        seed: Of the kickoffs.
    """
    match = duel.match(feed, seed, _LIVE_FRAMES)
    try:
        while True:
            feed.forget()
            match.begin(duel.bots(seed))
            due = time.monotonic()
            while match.recorder.seconds < minutes * 60:
                if not feed.wait_for_watchers(0):
                    while not feed.wait_for_watchers(3600):
                        pass
                    due = time.monotonic()
                match.step()
                due = max(due + match.step_seconds, time.monotonic() - 1)  # too slow: goes on from here
                time.sleep(max(0.0, due - time.monotonic()))
            seed += 2
            with suppress(ValueError, OSError):  # a run that was moved meanwhile: its old weights play on
                duel = again()
    finally:
        match.close()


def _has_browser() -> bool:
    """Whether there is a screen; without one a browser for the terminal might come up."""
    return sys.platform != "linux" or bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))
