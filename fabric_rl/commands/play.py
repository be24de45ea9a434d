"""`fabric-rl play`: a game against a bot in the browser."""

import signal
from importlib import import_module
from pathlib import Path
from typing import Annotated

from fabric_rl.base.settings import Between
from fabric_rl.evaluation.settings import DEFAULT_PLAY, Minutes, PlaySettings
from fabric_rl.viewer.feeds import PlayFeed
from fabric_rl.viewer.server import LOOPBACK, ViewerServer, open_browser


def play(
    bot: str = "school_1v1",
    /,
    port: Annotated[int, Between(0, 65535)] = 8765,
    host: str = LOOPBACK[0],
    no_browser: bool = False,
    minutes: Minutes = 5.0,
    record: Path | None = None,
    play: PlaySettings = DEFAULT_PLAY,
) -> int:
    """Play against a bot in the browser, with keyboard or gamepad.

    You drive the first blue car. The bot decides as often, and as late, as in its training. With `--team_size 2`, it is
    your teammate, too. The menu of the page (Esc) has easier opponents, free play and training packs.

    Ctrl+C stops the command.

    Args:
        bot: Opponent: a run, a path, an included agent or a scripted bot, as in `fabric-rl evaluate`.
        port: Port of the page; 0: any free port.
        host: Address to listen on. With an address other than 127.0.0.1, you can play from another machine; its browser
            needs the printed address, which contains a secret token.
        no_browser: Print the address without opening the browser.
        minutes: Game time of a match in minutes; a draw goes into overtime.
        record: Folder in which each game is saved as a replay (.frl) and as a demonstration (.frd).
        play: How the bots act.
    """
    for name in ("SIGTERM", "SIGHUP"):  # a closed terminal, too, saves the game
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), signal.default_int_handler)
    feed = PlayFeed()
    feed.tell(phase="loading")
    server = ViewerServer(feed, host, port)
    try:
        with server.running():
            print(f"play at {server.url} (Ctrl+C to stop)", flush=True)
            if not no_browser:
                open_browser(server.url)
            session = import_module("fabric_rl.evaluation.play")  # imports torch, which takes seconds
            session.PlaySession(feed, bot, play, minutes, record).run()
    except KeyboardInterrupt:
        print()
    return 0
