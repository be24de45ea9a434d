"""Sources of a replay's bytes for the viewer: a file, the games of a run, a live match, or a game to play in."""

import json
import os
import struct
import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from fabric_rl.runs.records import is_training

GAMES = "games"
"""Folder of a run for its recorded games."""
_SUFFIX = ".frl"
_BLOCK_BYTES = 1 << 20
"""A link to a moment works within the first block, which has more than ten minutes of 2v2."""
_POLL_SECONDS = 0.5
_MOST_GAMES, _MOST_GAME_BYTES = 20, 1 << 24


class Feed(Protocol):
    """The bytes of a replay, for any number of watchers."""

    live: bool
    """True for a match that is being played."""

    def pieces(self) -> Iterator[bytes | str]:
        """Yield the replay from its beginning, `b""` while there is nothing new, and texts to show while waiting."""


class FileFeed:
    """A replay file, which may still grow."""

    live = False

    def __init__(self, path: Path) -> None:
        self._path = path

    def pieces(self) -> Iterator[bytes | str]:
        """Yield the file as in `Feed.pieces`, until it is deleted, replaced or shortened."""
        with self._path.open("rb") as file, suppress(OSError):
            while os.path.samestat(now := self._path.stat(), os.fstat(file.fileno())) and now.st_size >= file.tell():
                piece = file.read(_BLOCK_BYTES)
                yield piece
                if not piece:
                    time.sleep(_POLL_SECONDS)


class GamesFeed:
    """Newest games in a run's folder, and each new one as it arrives; files are complete when they appear."""

    live = False

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def status(self) -> str:
        """Return a line that says whether the run is training or has ended."""
        run = self._folder.absolute().parent
        if is_training(run):
            return f"Waiting for the next game of {run.name} ..."
        return f"{run.name} has ended: fabric-rl watch {self._folder.parent} chaser plays its newest agent."

    def pieces(self) -> Iterator[bytes | str]:
        """Yield the games as in `Feed.pieces`, until the folder is deleted."""
        sent, shown = (0.0, ""), ""
        while self._folder.is_dir():
            if (status := self.status()) != shown:
                yield (shown := status)
            piece = b""
            with suppress(OSError):  # deleted in the meantime
                new = sorted((game for game in os.scandir(self._folder) if _age(game) > sent), key=_age)
                if new:
                    piece = b"".join(Path(game).read_bytes() for game in new[-_MOST_GAMES:])
                    sent = _age(new[-1])
            yield piece
            if not piece:
                time.sleep(_POLL_SECONDS)


def _age(game: "os.DirEntry[str]") -> tuple[float, str]:
    """Return the time and name of a game; for any other or a huge file, a value that sorts before all games."""
    is_game = game.name.endswith(_SUFFIX) and game.is_file() and game.stat().st_size <= _MOST_GAME_BYTES
    return (game.stat().st_mtime, game.name) if is_game else (0.0, "")


class LiveFeed:
    """Replay written by one thread for all watchers: its beginning and the current game."""

    live = True

    def __init__(self, waiting: str = "") -> None:
        """Start without data; the page shows the text `waiting` until there is some."""
        self._waiting = waiting
        self._changed = threading.Condition()
        self._pieces: list[bytes] = []  # the first one is the beginning of the replay
        self._forgotten = 0  # number of pieces of earlier games
        self._current = 1  # number of the current game's first piece
        self._watchers = 0

    def write(self, data: bytes) -> None:
        """Add a piece of the replay; the first one is the beginning, which all watchers get."""
        with self._changed:
            self._pieces.append(data)
            self._changed.notify_all()

    def begin_game(self) -> None:
        """Begin a new game: later watchers get only the beginning of the replay and what is written from now on."""
        with self._changed:
            ended = slice(1, self._current - self._forgotten)  # the last game stays for those who watch it
            self._forgotten += len(self._pieces[ended])
            del self._pieces[ended]
            self._current = self._forgotten + max(1, len(self._pieces))

    def wait_for_watchers(self, seconds: float) -> bool:
        """Return True as soon as there is a watcher, False after `seconds` without one."""
        with self._changed:
            return self._changed.wait_for(lambda: self._watchers > 0, seconds)

    def pieces(self) -> Iterator[bytes | str]:
        """Yield the beginning and the current game as in `Feed.pieces`, without end."""
        with self._changed:
            self._watchers += 1
            self._changed.notify_all()
        try:
            sent = 0
            yield self._waiting
            while True:
                with self._changed:
                    if sent == self._forgotten + len(self._pieces):
                        self._changed.wait(_POLL_SECONDS)
                    if sent:
                        piece = b"".join(self._pieces[max(1, sent - self._forgotten) :])
                        sent = self._forgotten + len(self._pieces)
                    else:
                        piece = b"".join(self._pieces[:1])
                        sent = self._current if self._pieces else 0
                yield piece
        finally:
            with self._changed:
                self._watchers -= 1


class PlayerInput(NamedTuple):
    """Message of the page with the player's controls."""

    number: int = 0
    """0..65535, counts the messages."""
    values: tuple[int, ...] = (0,) * 8
    """Throttle, steer, pitch, yaw, roll, jump, boost, handbrake; -127..127."""


_CONTROLS = struct.Struct("<H8b")
RELEASE_SECONDS = 0.2
"""Silence after which all controls are released."""
SEAT_SECONDS = 5.0
"""Silence after which another page of the same address may take the player's car."""


class PlayFeed:
    """Game that one page plays and others may watch: the newest frame and status, and the player's messages.

    Nothing is queued, so a page that is slow or asleep misses frames and costs no memory.

    Attributes:
        commands: JSON objects from the player's page, oldest first; the game removes them.
    """

    live = True

    def __init__(self) -> None:
        self.commands: deque[dict[str, Any]] = deque(maxlen=16)
        self._changed = threading.Condition()
        self._frame, self._frames = b"", 0
        self._status: dict[str, Any] = {}
        self._player: object = None
        self._controls, self._heard = PlayerInput(), -1e9

    @property
    def status(self) -> dict[str, Any]:
        """Copy of what pages know about the game."""
        return dict(self._status)

    def show(self, frame: bytes) -> None:
        """Replace the frame."""
        with self._changed:
            self._frame, self._frames = frame, self._frames + 1
            self._changed.notify_all()

    def tell(self, **status: Any) -> None:  # noqa: ANN401 - any JSON
        """Change values of the status."""
        if any(self._status.get(name, self) != value for name, value in status.items()):
            with self._changed:
                self._status = self._status | status
                self._changed.notify_all()

    @property
    def silence(self) -> float:
        """Seconds since the player's last message; very large before the first."""
        return time.monotonic() - self._heard

    def controls(self) -> PlayerInput:
        """Return the player's newest controls; zeros after `RELEASE_SECONDS` of silence."""
        controls = self._controls
        return controls if self.silence < RELEASE_SECONDS else PlayerInput(controls.number)

    def take(self, page: object, message: bytes | str) -> bool:
        """Accept a message of a page, ignored unless it has the player's seat; return False if it is not valid.

        The first page gets the seat, and keeps it until it leaves or is silent for `SEAT_SECONDS`.
        """
        if isinstance(message, str):
            try:
                command = json.loads(message)
            except (ValueError, RecursionError):
                return False
            if not isinstance(command, dict):
                return False
        elif len(message) != _CONTROLS.size:
            return False
        with self._changed:
            if self._player is None or self.silence > SEAT_SECONDS:
                self._player = page
                self._changed.notify_all()
            if self._player is page:
                self._heard = time.monotonic()
                if isinstance(message, str):
                    self.commands.append(command)
                else:
                    number, *values = _CONTROLS.unpack(message)
                    self._controls = PlayerInput(number, tuple(values))
        return True

    def leave(self, page: object) -> None:
        """Free the seat if the page has it, and release the controls."""
        with self._changed:
            if self._player is page:
                self._player, self._controls, self._heard = None, PlayerInput(), -1e9

    def pieces(self, page: object = None) -> Iterator[bytes | str | dict[str, Any]]:
        """Yield the newest status (with `player`: whether the page has the seat) and frame as they change, else b""."""
        told: dict[str, Any] = {}
        sent = 0
        while True:
            with self._changed:
                if sent == self._frames and told == self._status | {"player": self._player is page}:
                    self._changed.wait(_POLL_SECONDS)
                status, frame = self._status | {"player": self._player is page}, b""
                if told == status and sent != self._frames:
                    frame, sent = self._frame, self._frames
            yield frame if told == status else status
            told = status
