"""ReplayWriter and read_replay: write games to a file and read them.

replay = read_replay("game.frl")
game = replay.games[0]
game.columns["ball_pos"]     # [frames, 3] float32, uu
game.events[0]               # {"kind": "goal", "frame": 412, "seconds": 27.4, "team": 0, "car": 0}
"""

import io
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from envs.replays.format import (
    BEGIN,
    CHUNK,
    END,
    EVENTS,
    HEADER,
    START,
    Column,
    check_columns,
    column_of,
    frames_in,
    game_columns,
    pack,
    pack_chunk,
    pack_json,
    unpack,
    unpack_chunk,
    unpack_json,
)

SUFFIX = ".frl"
CHUNK_FRAMES = 150
MOST_BYTES = 1 << 30
"""Maximum size of an unpacked file."""
Event = dict[str, Any]
"""`kind`, `frame`, `seconds`, `team`, `car` (for a goal the team's last touch, or None); a goal also has `score`."""


class Sink(Protocol):
    """Target of a replay: a file, or an object that forwards the bytes."""

    def write(self, data: bytes, /) -> object:
        """Write the next bytes."""


class ReplayWriter:
    """Writer of games, chunk by chunk, so that they can be read while they are played."""

    def __init__(
        self, sink: Sink, columns: Sequence[Column], about: Mapping[str, Any], chunk_frames: int = CHUNK_FRAMES
    ) -> None:
        """Write the header.

        Args:
            sink: Receives the bytes.
            columns: Columns of every frame.
            about: Other contents of the header, as JSON.
            chunk_frames: Frames per chunk: few for live viewers, many for a small file.

        Raises:
            ValueError: The columns or the header exceed the reader's limits.
        """
        check_columns(columns)
        self.columns, self._sink, self._chunk_frames = tuple(columns), sink, chunk_frames
        described = [vars(column) | {"shape": list(column.shape)} for column in columns]
        sink.write(START + pack_json(HEADER, {**about, "columns": described}))
        self._frames: list[Mapping[str, NDArray[Any]]] = []
        self._events: list[Event] = []

    def begin(self, about: Mapping[str, Any]) -> None:
        """Begin a game."""
        self._sink.write(pack_json(BEGIN, about))

    def add(self, frame: Mapping[str, NDArray[Any]], events: Sequence[Event] = ()) -> None:
        """Add a frame, an array for each column, and its events."""
        self._frames.append(frame)
        self._events += events
        if len(self._frames) >= self._chunk_frames:
            self.flush()

    def flush(self) -> None:
        """Write the frames and events added so far."""
        data = pack(CHUNK, pack_chunk(self.columns, self._frames)) if self._frames else b""
        data += pack_json(EVENTS, {"events": self._events}) if self._events else b""
        self._frames, self._events = [], []
        if data:
            self._sink.write(data)

    def end(self, result: Mapping[str, Any]) -> None:
        """End the game."""
        self.flush()
        self._sink.write(pack_json(END, result))


@dataclass
class Game:
    """One game of a replay.

    Attributes:
        about: Information from the start of the game.
        events: Events of the game, in order.
        result: Result from the end of the game; None if the game is still running or was cut off.
        num_frames: Number of frames.
    """

    about: dict[str, Any]
    events: list[Event] = field(default_factory=list)
    result: dict[str, Any] | None = None
    num_frames: int = 0
    _columns: tuple[Column, ...] = ()
    _chunks: list[bytes] = field(default_factory=list)
    _path: str | os.PathLike[str] = ""

    @cached_property
    def columns(self) -> dict[str, NDArray[np.float32]]:
        """Name -> `[frames, *shape]` float32; unpacked on first access.

        Raises:
            ValueError: A damaged chunk; one line that names the file.
        """
        empty = [{c.name: np.zeros((0, *c.shape), np.float32) for c in self._columns}]
        try:
            parts = [unpack_chunk(self._columns, chunk) for chunk in self._chunks] or empty
            found = {name: np.concatenate([part.pop(name) for part in parts]) for name in list(parts[0])}
        except ValueError as error:
            raise ValueError(f"{self._path}: {error}") from error
        return found


@dataclass(frozen=True)
class Replay:
    """The content of a replay file.

    Attributes:
        about: Header of the file.
        games: Games of the file, in order.
    """

    about: dict[str, Any]
    games: list[Game]


def read_replay(path: str | os.PathLike[str]) -> Replay:
    """Read a replay file, or the existing part of one that is still being written.

    Raises:
        ValueError: The file is not a replay, is damaged, or has a newer version.
        OSError: The file cannot be read.
    """
    try:
        if Path(path).exists() and not Path(path).is_file():
            raise ValueError("this is no file")
        return _read(Path(path))
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error


def _read(path: Path) -> Replay:
    about: dict[str, Any] | None = None
    columns: tuple[Column, ...] = ()
    games: list[Game] = []
    with path.open("rb") as file:
        for kind, payload in unpack(file):
            if (kind == HEADER) != (about is None) or (kind in (CHUNK, EVENTS, END) and not games):
                raise ValueError("a damaged replay: its records are out of order")
            if kind == HEADER:
                about = unpack_json(payload)
                columns = tuple(map(column_of, about["columns"]))
                check_columns(columns)
                _check_about(about, columns)
            elif kind == BEGIN:
                games.append(Game(unpack_json(payload), _columns=columns, _path=path))
            elif kind == CHUNK:
                games[-1].num_frames += frames_in(columns, payload)
                games[-1]._chunks.append(payload)
            elif kind == EVENTS:
                games[-1].events += unpack_json(payload)["events"]
            else:
                games[-1].result = unpack_json(payload)
    if about is None:
        raise ValueError("the replay has just begun; try again in a moment")
    if (frames := sum(game.num_frames for game in games)) * sum(4 * column.count for column in columns) > MOST_BYTES:
        raise ValueError(f"{frames:,} frames are too many to read at once")
    return Replay(about, games)


def _check_about(about: Mapping[str, Any], columns: Sequence[Column]) -> None:
    """Raise a ValueError unless the header is that of a replay."""
    if "demonstration" in about:
        raise ValueError("this is a demonstration, not a replay; see fabric-rl demos show")
    cars, shapes = len(about["teams"]), {column.name: column.shape for column in columns}
    if wrong := [column.name for column in game_columns(cars) if shapes.get(column.name) != column.shape]:
        raise ValueError(f"a damaged replay: it lacks {', '.join(wrong)} of {cars} cars")


def excerpt(replay: Replay, pieces: Iterable[tuple[Game, int, int]] | None = None) -> bytes:
    """Return a replay of parts of another one, each a separate game whose time begins at 0; values do not change.

    Args:
        replay: Source.
        pieces: Game, first frame and end frame (exclusive) of each part; default: all games.

    Returns:
        Content of the file.

    Raises:
        ValueError: Damaged chunks.
    """
    sink = io.BytesIO()
    writer = ReplayWriter(sink, [column_of(said) for said in replay.about["columns"]], replay.about)
    whole = [(game, 0, game.num_frames) for game in replay.games]
    for game, first, last in whole if pieces is None else pieces:
        columns = {name: values[first:last] for name, values in game.columns.items()}
        begin = columns["ticks"][:1].copy()
        start = float(begin.sum()) / float(replay.about["ticks_per_second"])
        writer.begin(game.about)
        columns["ticks"] = columns["ticks"] - begin
        events: dict[int, list[Event]] = {}
        for event in game.events:
            moved = {"frame": event["frame"] - first, "seconds": round(event["seconds"] - start, 3)}
            events.setdefault(event["frame"] - first, []).append(event | moved)
        for frame in range(len(columns["ticks"])):
            now = {name: values[frame] for name, values in columns.items()}
            writer.add(now, events.get(frame, ()))
        writer.end((game.result or {}) if pieces is None else {})
    return sink.getvalue()
