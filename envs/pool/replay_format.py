"""The format of replay files, readable while they grow, and its writer: records with numeric columns.

A file is `FRLREP`, the version as two bytes, then records: one byte for the kind, the length and the CRC-32 of the
payload and the CRC-32 of these nine bytes, four bytes each (all numbers little-endian), then the payload. The reader
ignores an incomplete last record; anything else that does not fit is an error.

Integers count in units of `scale`: values are rounded by at most half a unit, and clipped to the integer's range. `<f2`
rounds to eleven binary digits (relative error 2**-11, absolute 3e-8 near zero) and keeps NaN; `<f4`, used by
demonstrations, does not round. In a chunk, a column is `[numbers of a frame, frames]`, differenced in time
`differences` times (modulo the integer's range), first all low bytes, then all high ones; zlib compresses all columns
of the chunk together.
"""

import json
import math
import struct
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, BinaryIO, Protocol
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from envs.state.layout import NUM_PADS

DTYPES = ("|u1", "|i1", "<i2", "<u2", "<i4", "<f2", "<f4")
MOST_COLUMNS, MOST_FRAME_BYTES, MOST_CHUNK_BYTES = 64, 1 << 15, 1 << 24
FLAGS = ("present", "on_ground", "is_boosting", "is_supersonic", "is_demoed", "touched", "has_flip")
"""Bits of `car_flags`, the lowest first: fields of `GameState`."""
MOST_ACTIONS = 8
"""Number of most likely actions stored for each car."""
_FRAMES = struct.Struct("<I")


@dataclass(frozen=True)
class Column:
    """One quantity of every frame.

    Attributes:
        name: Name of the quantity.
        dtype: One of `DTYPES`.
        shape: Shape of a frame's array; empty for one number.
        scale: Value of one unit; 1 for floats.
        differences: Order of differencing in time: 0, 1 or 2.
    """

    name: str
    dtype: str
    shape: tuple[int, ...] = ()
    scale: float = 1.0
    differences: int = 0

    def __post_init__(self) -> None:
        whole = all(type(number) is int and number >= 0 for number in (*self.shape, self.differences))
        fits = self.dtype in DTYPES and whole and self.differences <= 2 and 0 < self.scale <= 1e6
        if not fits or (self.dtype in ("<f2", "<f4") and (self.scale != 1 or self.differences)):
            raise ValueError(f"the replay is damaged: there is no column {asdict(self)}")

    @property
    def count(self) -> int:
        """Numbers in a frame."""
        return math.prod(self.shape)

    @property
    def num_bytes(self) -> int:
        """Bytes of a frame."""
        return self.count * np.dtype(self.dtype).itemsize

    def pack(self, values: NDArray[Any]) -> bytes:
        """Encode `values [frames, *shape]` as the column's part of a chunk."""
        dtype, numbers = np.dtype(self.dtype), values.reshape(len(values), -1).T
        if dtype.kind == "f":
            with np.errstate(over="ignore"):
                whole = np.ascontiguousarray(numbers.astype(dtype)).view(dtype.str.replace("f", "u"))
        else:
            limits, unsigned = np.iinfo(dtype), dtype.str.replace("i", "u")
            units = np.rint(np.nan_to_num(numbers.astype(np.float64)) / self.scale)
            whole = np.clip(units, limits.min, limits.max).astype(dtype).view(unsigned)
            for _ in range(self.differences):
                whole = np.diff(whole, axis=1, prepend=np.zeros((len(whole), 1), unsigned))
        planes = np.ascontiguousarray(whole).view(np.uint8).reshape(-1, dtype.itemsize)
        return planes.T.tobytes()

    def unpack(self, data: bytes, frames: int) -> NDArray[np.float32]:
        """Decode the column's part of a chunk to `[frames, *shape]` float32."""
        dtype = np.dtype(self.dtype)
        planes = np.frombuffer(data, np.uint8).reshape(dtype.itemsize, -1)
        unsigned = np.dtype(dtype.str.replace("i", "u").replace("f", "u"))
        whole = np.ascontiguousarray(planes.T).view(unsigned).reshape(self.count, frames)
        for _ in range(self.differences):
            whole = np.cumsum(whole, axis=1, dtype=unsigned)
        numbers = whole.view(dtype).astype(np.float64) * self.scale
        return numbers.T.reshape(frames, *self.shape).astype(np.float32)


def game_columns(num_cars: int, reward_parts: int = 0, values: bool = False, actions: bool = False) -> list[Column]:
    """Return the columns of a game, in the coordinates of `GameState.world`.

    Positions are within 0.1 uu of the game's, velocities within 0.25 uu/s and 0.001 rad/s, the four numbers of a car's
    quaternion (w, x, y, z) within 0.00025, boost (0..100) within 0.25, controls within 0.004, pad timers (s) within
    0.02, probabilities within 0.002; rewards and values have a relative error of 2**-11, below 6e-5 they are within
    3e-8. `ticks` count from the beginning of the game; `begins` is 1 in the first frame after a kickoff. Controls and
    rewards belong to the step that led to the frame, values and probabilities to the decision in it; missing ones are
    NaN or zero.
    """
    cars = (num_cars,)
    found = [
        Column("ticks", "<i4", differences=2),
        Column("begins", "|u1"),
        Column("ball_pos", "<i2", (3,), 0.2, 2),
        Column("ball_vel", "<i2", (3,), 0.5, 1),
        Column("ball_ang_vel", "<i2", (3,), 0.002, 1),
        Column("car_pos", "<i2", (*cars, 3), 0.2, 2),
        Column("car_rotation", "<i2", (*cars, 4), 0.0005, 1),
        Column("car_vel", "<i2", (*cars, 3), 0.5, 1),
        Column("car_boost", "|u1", cars, 0.5),
        Column("car_flags", "|u1", cars),
        Column("car_controls", "|i1", (*cars, 8), 1 / 127),
        Column("pad_timers", "<u2", (NUM_PADS,), 0.04, 1),
    ]
    found += [Column("rewards", "<f2", (*cars, reward_parts))] if reward_parts else []
    found += [Column("value", "<f2", cars)] if values else []
    if actions:
        found.append(Column("actions", "<u2", (*cars, MOST_ACTIONS)))
        found.append(Column("action_probabilities", "|u1", (*cars, MOST_ACTIONS), 1 / 255))
    return found


def column_from_header(said: Mapping[str, Any]) -> Column:
    """Return the column that the header of a file describes."""
    return Column(**{**said, "shape": tuple(said["shape"])})


def check_columns(columns: Sequence[Column]) -> None:
    """Raise a ValueError for columns that are duplicated, too many, or too large in total."""
    names = {column.name for column in columns}
    too_large = sum(column.num_bytes for column in columns) > MOST_FRAME_BYTES
    if len(names) != len(columns) or not 0 < len(columns) <= MOST_COLUMNS or too_large:
        raise ValueError("the replay is damaged: its columns are too many, too large, or have the same name")


def pack_chunk(columns: Sequence[Column], frames: Sequence[Mapping[str, NDArray[Any]]]) -> bytes:
    """Return the payload of a chunk: the number of frames, then all columns, compressed."""
    packed = b"".join(column.pack(np.stack([frame[column.name] for frame in frames])) for column in columns)
    return _FRAMES.pack(len(frames)) + zlib.compress(packed, 9)


def num_frames(columns: Sequence[Column], chunk: bytes) -> int:
    """Return the number of frames declared by a chunk; raise a ValueError if there are too many."""
    frames = int(_FRAMES.unpack_from(chunk)[0]) if len(chunk) >= _FRAMES.size else 0
    if not 0 < frames * sum(column.num_bytes for column in columns) <= MOST_CHUNK_BYTES:
        raise ValueError(f"the replay is damaged: {frames:,} frames in a chunk")
    return frames


def unpack_chunk(columns: Sequence[Column], chunk: bytes) -> dict[str, NDArray[np.float32]]:
    """Return name -> `[frames, *shape]` of each column of a chunk.

    Raises:
        ValueError: The size of the chunk differs from the declared one.
    """
    frames = num_frames(columns, chunk)
    size = frames * sum(column.num_bytes for column in columns)
    inflate = zlib.decompressobj()
    try:
        data = inflate.decompress(chunk[_FRAMES.size :], size + 1)
    except zlib.error as error:
        raise ValueError(f"the replay is damaged: {error}") from error
    if len(data) != size:
        raise ValueError("the replay is damaged: the size of a chunk differs from the declared one")
    found, at = {}, 0
    for column in columns:
        found[column.name] = column.unpack(data[at : at + frames * column.num_bytes], frames)
        at += frames * column.num_bytes
    return found


MAGIC = b"FRLREP"
VERSION = 1
FILE_START = MAGIC + struct.pack("<H", VERSION)
HEADER, BEGIN, CHUNK, EVENTS, END, TOTAL = b"H", b"B", b"C", b"V", b"E", b"T"
"""Kinds of records: header of the file; beginning of a game; its frames; its events; its end; total of all games (only
in demonstrations). All but chunks are JSON objects."""
MOST_BYTES = {HEADER: 1 << 22, BEGIN: 1 << 16, CHUNK: 1 << 24, EVENTS: 1 << 20, END: 1 << 16, TOTAL: 1 << 16}
"""Maximum size of a payload; a longer one is refused before memory is allocated for it."""

_HEAD = struct.Struct("<cII")
_CHECK = struct.Struct("<I")


def pack_record(kind: bytes, payload: bytes) -> bytes:
    """Return a record.

    Raises:
        ValueError: The payload is longer than the reader's limit.
    """
    if len(payload) > MOST_BYTES[kind]:
        raise ValueError(f"a replay can contain at most {MOST_BYTES[kind]:,} bytes in a record {kind.decode()}")
    head = _HEAD.pack(kind, len(payload), crc32(payload))
    return head + _CHECK.pack(crc32(head)) + payload


def pack_json(kind: bytes, content: Mapping[str, Any]) -> bytes:
    """Return a JSON record; raise a ValueError for NaN and infinity."""
    return pack_record(kind, json.dumps(content, separators=(",", ":"), allow_nan=False).encode())


def iter_records(file: BinaryIO) -> Iterator[tuple[bytes, bytes]]:
    """Yield kind and payload of each record from the beginning of a file, up to the last complete one.

    Raises:
        ValueError: The file is not a replay, has a newer version, or is damaged; the message does not name the file.
    """
    start = file.read(len(FILE_START))
    if start[: len(MAGIC)] != MAGIC[: len(start)] or not start:
        raise ValueError("this is not a fabric-rl replay")
    if len(start) < len(FILE_START):
        return
    version = int.from_bytes(start[len(MAGIC) :], "little")
    if version > VERSION:
        raise ValueError(f"the replay has format {version}, but this fabric-rl reads up to {VERSION}; upgrade it")
    if not version:
        raise ValueError("the replay is damaged: it has no version")
    while len(head := file.read(_HEAD.size + _CHECK.size)) == _HEAD.size + _CHECK.size:
        kind, length, check = _HEAD.unpack_from(head)
        if _CHECK.unpack_from(head, _HEAD.size)[0] != crc32(head[: _HEAD.size]) or length > MOST_BYTES.get(kind, -1):
            raise ValueError("the replay is damaged: the header of a record does not match its checksum")
        payload = file.read(length)
        if len(payload) < length:
            return
        if crc32(payload) != check:
            raise ValueError("the replay is damaged: a record does not match its checksum")
        yield kind, payload


def unpack_json(payload: bytes) -> dict[str, Any]:
    """Return the JSON object in a record."""
    content: dict[str, Any] = json.loads(payload)
    return content


SUFFIX = ".frl"
CHUNK_FRAMES = 150
Event = dict[str, Any]
"""`kind`, `frame`, `seconds`, `team`, `car` (for a goal the team's last touch, or None); a goal also has `score`."""


class Sink(Protocol):
    """Target of a replay: a file, or an object that forwards the bytes."""

    def write(self, data: bytes, /) -> object:
        """Write the next bytes."""


class ReplayWriter:
    """Writer of games in chunks, so that they can be read while they are played."""

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
        sink.write(FILE_START + pack_json(HEADER, {**about, "columns": described}))
        self._frames: list[Mapping[str, NDArray[Any]]] = []
        self._events: list[Event] = []

    def begin(self, about: Mapping[str, Any]) -> None:
        """Begin a game."""
        self._sink.write(pack_json(BEGIN, about))

    def add(self, frame: Mapping[str, NDArray[Any]], events: Sequence[Event] = ()) -> None:
        """Add a frame (an array for each column) and its events."""
        self._frames.append(frame)
        self._events += events
        if len(self._frames) >= self._chunk_frames:
            self.flush()

    def flush(self) -> None:
        """Write the frames and events added so far."""
        data = pack_record(CHUNK, pack_chunk(self.columns, self._frames)) if self._frames else b""
        data += pack_json(EVENTS, {"events": self._events}) if self._events else b""
        self._frames, self._events = [], []
        if data:
            self._sink.write(data)

    def end(self, result: Mapping[str, Any]) -> None:
        """End the game."""
        self.flush()
        self._sink.write(pack_json(END, result))
