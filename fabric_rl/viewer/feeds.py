"""Feeds: where the bytes of a replay come from while somebody watches it."""

import os
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, Protocol

from fabric_rl.runs.records import is_worked_on

GAMES = "games"
"""Folder of a run for those that it records."""
_SUFFIX = ".frl"
BLOCK_BYTES = 1 << 18
_POLL_SECONDS = 0.5
_MOST_GAMES = 20


class Feed(Protocol):
    """The bytes of a replay, for any number of watchers."""

    live: bool
    """Whether it is played right now."""

    def pieces(self) -> Iterator[bytes | str]:
        """From the beginning on; nothing (`b""`) at times where there is nothing new. Ends where nothing can follow.

        A text is what the page says while there is nothing to be seen.
        """


class FileFeed:
    """A file, also one that is still written."""

    live = False

    def __init__(self, path: Path) -> None:
        self._path = path

    def pieces(self) -> Iterator[bytes | str]:
        """See `Feed.pieces`; ends when the file is gone, or another one is there in its place."""
        with self._path.open("rb") as file:
            while self._is(file):
                piece = file.read(BLOCK_BYTES)
                yield piece
                if not piece:
                    threading.Event().wait(_POLL_SECONDS)

    def _is(self, file: BinaryIO) -> bool:
        with suppress(OSError):
            there = self._path.stat()
            return os.path.samestat(there, os.fstat(file.fileno())) and there.st_size >= file.tell()
        return False


class GamesFeed:
    """The newest games of a run's folder, all at once, and each newer one when it comes."""

    live = False

    def __init__(self, folder: Path) -> None:
        """Takes the folder, whose files are replays that are whole when they appear."""
        self._folder = folder

    def says(self) -> str:
        """Return the text that the page shows meanwhile."""
        run = self._folder.absolute().parent
        if is_worked_on(run):
            return f"Waiting for the next game of {run.name} ..."
        return f"{run.name} has ended: fabric-rl watch {self._folder.parent} chaser plays its newest agent."

    def pieces(self) -> Iterator[bytes | str]:
        """See `Feed.pieces`; ends when the folder is gone."""
        sent, said = (0.0, ""), ""
        while self._folder.is_dir():
            if (says := self.says()) != said:
                yield (said := says)
            piece = b""
            with suppress(OSError):  # deleted meanwhile
                new = sorted((game for game in os.scandir(self._folder) if _age(game) > sent), key=_age)
                if new:
                    piece = b"".join(Path(game).read_bytes() for game in new[-_MOST_GAMES:])
                    sent = _age(new[-1])
            yield piece
            if not piece:
                threading.Event().wait(_POLL_SECONDS)


def _age(game: "os.DirEntry[str]") -> tuple[float, str]:
    """Return the time of a game's file and its name; less than all others if it is not complete, or no game."""
    return (game.stat().st_mtime, game.name) if game.name.endswith(_SUFFIX) and game.is_file() else (0.0, "")


class Broadcast:
    """Bytes that one thread writes for all watchers: the beginning of the replay, and the present game."""

    live = True

    def __init__(self, waiting: str = "") -> None:
        """Empty; until something is written the page says what is `waiting`ed for."""
        self._waiting = waiting
        self._changed = threading.Condition()
        self._start = b""
        self._pieces: list[bytes] = []
        self._first = 0  # number of the first piece that is still there
        self._watchers = 0

    def write(self, data: bytes) -> None:
        """Adds a piece; the first one is the beginning that all watchers get."""
        with self._changed:
            if self._start:
                self._pieces.append(data)
            else:
                self._start = data
            self._changed.notify_all()

    def forget(self) -> None:
        """Keeps only the beginning; called when a game is over and before the next one begins."""
        with self._changed:
            self._first += len(self._pieces)
            self._pieces = []

    def wait_for_watchers(self, seconds: float) -> bool:
        """Return True as soon as anybody watches, at the latest after `seconds`."""
        with self._changed:
            return self._changed.wait_for(lambda: self._watchers > 0, seconds)

    def pieces(self) -> Iterator[bytes | str]:
        """See `Feed.pieces`; never ends."""
        with self._changed:
            self._watchers += 1
            self._changed.notify_all()
        try:
            number = -1
            yield self._waiting
            while True:
                with self._changed:
                    if not self._there(number):
                        self._changed.wait(_POLL_SECONDS)
                    number, piece = self._take(number)
                yield piece
        finally:
            with self._changed:
                self._watchers -= 1

    def _there(self, number: int) -> bool:
        return bool(self._start) if number < 0 else number < self._first + len(self._pieces)

    def _take(self, number: int) -> tuple[int, bytes]:
        """The number to ask for next, and all pieces from `number` on; -1 stands for the beginning of the replay."""
        if not self._there(number):
            return number, b""
        if number < 0:
            return self._first, self._start
        at = max(0, number - self._first)
        return self._first + len(self._pieces), b"".join(self._pieces[at:])
