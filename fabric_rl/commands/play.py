"""`fabric-rl play`: a game against a bot in the browser."""

import signal
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Annotated, Any

from envs.bots import BOTS
from fabric_rl.base.argv import PRETRAINED
from fabric_rl.base.config_files import read_yaml
from fabric_rl.base.processes import import_slow_module
from fabric_rl.base.settings import Between
from fabric_rl.evaluation.settings import DEFAULT_PLAY, Minutes, PlaySettings
from fabric_rl.viewer.feeds import PlayFeed
from fabric_rl.viewer.server import LOOPBACK, ViewerServer, open_browser


def play_bot(
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

    You drive the first blue car. The bot has the same decision rate and delay as in training. In 2v2 (`fabric-rl play
    school_2v2`), a copy of it is your teammate. The page's menu (Esc) offers easier opponents, free play and training
    packs. The same seed gives the same kickoffs.

    Ctrl+C stops the command.

    Args:
        bot: Opponent: a run, a path, an included agent or a scripted bot, as in `fabric-rl evaluate`.
        port: Port of the page; 0: any free port.
        host: Address to listen on. With an address other than 127.0.0.1, you can play from another machine; its browser
            needs the printed address, which contains a secret token.
        no_browser: Print the address without opening the browser.
        minutes: Game time of a match in minutes; a draw goes into overtime.
        record: Folder in which each game is saved as a replay (.frl) and, except free play, as a demonstration (.frd).
        play: Settings of the bots.
    """
    if record is not None and record.exists() and not record.is_dir():
        raise ValueError(f"--record {record} must be a folder")
    feed = PlayFeed()
    feed.tell(phase="loading")
    if not can_load_later(bot, play):
        _session(feed, bot, play).check()  # before the browser opens
    server = ViewerServer(feed, host, port)
    try:
        with server.running(), ExitStack() as ending:
            for number in (getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)):
                # a closed terminal, too, saves the game
                ending.callback(signal.signal, number, signal.signal(number, signal.default_int_handler))
            print(f"play at {server.url} (Ctrl+C to stop)", flush=True)
            if not no_browser:
                open_browser(server.url)
            _session(feed, bot, play, minutes, record).run()
    except KeyboardInterrupt:
        print()
    return 0


def can_load_later(name: str, play: PlaySettings) -> bool:
    """Return True if a player exists, so that an address may be shown before torch is imported to load it."""
    path = name.partition("#")[0]
    places = Path(play.runs_dir, path), Path(path), PRETRAINED / path
    found = next((place for place in places if place.exists()), None)
    if found is None or play.team_size:
        return name in BOTS
    with suppress(OSError, ValueError):
        return "env_id" not in read_yaml(found / "config.yaml")
    return True


def _session(*settings: Any) -> Any:  # noqa: ANN401 - a PlaySession
    """Import torch, which takes seconds, and build the session."""
    return import_slow_module("fabric_rl.evaluation.play").PlaySession(*settings)
