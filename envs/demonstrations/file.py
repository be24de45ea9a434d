"""DemonstrationWriter and Demonstration: write episodes to a file and read them one after the other.

demonstration = Demonstration("chaser.frd")
for episode in demonstration.episodes():
    episode.columns["controls"]     # [frames, cars, 8] float32

The format is the same as for replays (`envs.pool.replay_format`): checksummed records, chunks of columns. But columns
differ, floats are not rounded, and incomplete files are rejected. An episode of T steps has T + 1 frames, including the
final one. `action`, `reward` and `controls` are stored in the frame that they led to.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from envs.pool.replay_format import (
    CHUNK,
    END,
    HEADER,
    TOTAL,
    Column,
    ReplayWriter,
    check_columns,
    column_from_header,
    iter_records,
    num_frames,
    pack_json,
    unpack_chunk,
    unpack_json,
)
from envs.state.game_state import GameState
from envs.state.layout import CAR_ID
from fabric_rl.base.files import read_error_context, replacing

SUFFIX = ".frd"
STATES, OBSERVATIONS = "states", "observations"
"""Kinds: game states of RocketSim, for any observation builder and action parser; or observations."""
MOST_EPISODE_BYTES = 1 << 30
"""Maximum size of one episode, as float32."""
_CUT_OFF = "cut off before its end; record or convert it again"


class DemonstrationWriter:
    """Writer of episodes to a file, which appears under its name when the `with` block ends without an error."""

    def __init__(self, path: str | os.PathLike[str], columns: Sequence[Column], about: Mapping[str, Any]) -> None:
        """Write the header.

        Args:
            path: The file; an existing one is replaced at the end.
            columns: Columns of every frame.
            about: Other contents of the header, as JSON: `demonstration` (STATES or OBSERVATIONS), names, and more.

        Raises:
            ValueError: The header or the columns do not fit the kind of demonstration.
            OSError: The file cannot be written.
        """
        _check_kind(about, columns)
        self.path, self.episodes, self.steps = Path(path), 0, 0
        with ExitStack() as stack:
            self._file = stack.enter_context(replacing(self.path))
            self._writer = ReplayWriter(self._file, columns, about)
            self._stack = stack.pop_all()

    def __enter__(self) -> "DemonstrationWriter":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None:
            self._stack.__exit__(kind, error, trace)
            return
        with self._stack:
            self._file.write(pack_json(TOTAL, {"episodes": self.episodes, "steps": self.steps}))

    def add(self, frames: Sequence[Mapping[str, NDArray[Any]]], result: Mapping[str, Any]) -> None:
        """Add a complete episode.

        Args:
            frames: T + 1 frames, each with an array for every column.
            result: `terminated` is a bool; other keys are stored unchanged.

        Raises:
            ValueError: The episode exceeds the reader's limit.
            OSError: The file cannot be written.
        """
        _check_length(self._writer.columns, len(frames))
        self._writer.begin({})
        for frame in frames:
            self._writer.add(frame)
        self._writer.end(result)
        self.episodes, self.steps = self.episodes + 1, self.steps + len(frames) - 1


@dataclass(frozen=True)
class Episode:
    """One episode of a demonstration.

    Attributes:
        columns: Name -> `[T + 1, *shape]` float32, finite.
        result: End of the episode, see `DemonstrationWriter.add`.
    """

    columns: dict[str, NDArray[np.float32]]
    result: dict[str, Any]

    @property
    def steps(self) -> int:
        """Number of steps, T."""
        return len(next(iter(self.columns.values()))) - 1

    @property
    def terminated(self) -> bool:
        """True if the episode terminated, False if it was truncated."""
        return self.result.get("terminated") is True


class Demonstration:
    """A file of episodes, read one after the other.

    Attributes:
        path: The file.
        about: Header.
        columns: Columns of every frame.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        """Read the header.

        Raises:
            ValueError: The file is not a demonstration, or is damaged; the message names the file.
            OSError: The file cannot be read.
        """
        self.path = Path(path)
        if not self.path.is_file():
            there = os.path.lexists(path)
            raise FileNotFoundError(f"{path}: {'not a regular file' if there else 'there is no such file'}")
        with _naming(self.path), self.path.open("rb") as file:
            kind, payload = next(iter_records(file), (b"", b""))
            if kind != HEADER:
                raise ValueError(_CUT_OFF)
            self.about = unpack_json(payload)
            if self.about.get("demonstration") not in (STATES, OBSERVATIONS):
                raise ValueError("this is not a demonstration (its numbers are rounded); use fabric-rl demos record")
            self.columns = tuple(map(column_from_header, self.about["columns"]))
            check_columns(self.columns)
            _check_kind(self.about, self.columns)

    @property
    def of_states(self) -> bool:
        """True if the file contains game states."""
        return bool(self.about["demonstration"] == STATES)

    def episodes(self) -> Iterator[Episode]:
        """Yield all episodes, in order.

        Raises:
            ValueError: The file is damaged or incomplete; the message names it.
        """
        chunks: list[dict[str, NDArray[np.float32]]] | None = None
        total, found, frames = {"episodes": 0, "steps": 0}, None, 0
        with _naming(self.path), self.path.open("rb") as file:
            for kind, payload in islice(iter_records(file), 1, None):
                if (kind in (CHUNK, END)) == (chunks is None) or found is not None:
                    raise ValueError("the replay is damaged: its records are out of order")
                if kind == TOTAL:
                    found = unpack_json(payload)
                elif kind == CHUNK and chunks is not None:
                    frames += num_frames(self.columns, payload)
                    _check_length(self.columns, frames)
                    chunks.append(unpack_chunk(self.columns, payload))
                elif kind == END and chunks is not None:
                    episode, chunks = self._episode(chunks, unpack_json(payload), total["episodes"]), None
                    total = {"episodes": total["episodes"] + 1, "steps": total["steps"] + episode.steps}
                    yield episode
                else:
                    chunks, frames = [], 0
            if found != total:
                raise ValueError(_CUT_OFF)

    def _episode(self, chunks: list[dict[str, NDArray[np.float32]]], result: dict[str, Any], number: int) -> Episode:
        if sum(len(next(iter(chunk.values()))) for chunk in chunks) < 2:
            raise ValueError(f"the replay is damaged: episode {number} has no steps")
        columns = {column.name: np.concatenate([chunk[column.name] for chunk in chunks]) for column in self.columns}
        for name, values in columns.items():
            if not np.isfinite(values).all():
                raise ValueError(f"{name} contains NaN or infinity in episode {number}")
        return Episode(columns, result)


def _check_kind(about: Mapping[str, Any], columns: Sequence[Column]) -> None:
    """Raise a ValueError if header or columns do not fit the kind of demonstration."""
    of_states = about["demonstration"] == STATES
    kind = ("teams", "demonstrators", "tick_skip") if of_states else ("env", "observation_space", "action_space")
    if missing := [key for key in ("names", *kind) if key not in about]:
        raise ValueError(f"its header lacks {', '.join(missing)}; see docs/file_formats.md")
    shapes = {column.name: column.shape for column in columns}
    wanted = {"obs": shapes.get("obs"), "action": shapes.get("action"), "reward": ()}
    if of_states:
        wanted = {
            column.name: column.shape for column in columns_of_states(len(about["teams"]), INTENDED_CONTROLS in shapes)
        }
    for name, shape in wanted.items():
        if name not in shapes:
            raise ValueError(f"it lacks the column {name}")
        if shapes[name] != shape:
            raise ValueError(f"its column {name} has the shape {list(shapes[name])}, expected {list(shape or ())}")


def _check_length(columns: Sequence[Column], frames: int) -> None:
    size = 4 * frames * sum(column.count for column in columns)
    if size > MOST_EPISODE_BYTES:
        raise ValueError(f"an episode is larger than {MOST_EPISODE_BYTES >> 20:,} MiB; end it earlier")


@contextmanager
def _naming(path: Path) -> Iterator[None]:
    """Turn an error in the block into a ValueError that begins with the name of the file and says "demonstration"."""
    with read_error_context(str(path)):
        try:
            yield
        except ValueError as error:
            raise ValueError(str(error).replace("replay", "demonstration")) from error


ACTION_MASK = "action_mask"
"""Column `[n]` of observations: 1 for each discrete action that is allowed next; its last frame has no meaning."""


WEIGHT = "weight"
"""Column: weight of the step that led to the frame, for each car: 1 for recorded data, less for inferred data."""


INTENDED_CONTROLS = "meant"
"""Column `[C, 8]`: controls that the player chose; present if some of the executed `controls` are random."""


def columns_of_states(num_cars: int, noisy: bool = False) -> list[Column]:
    """Return the columns of states: `weight`, `meant` if `noisy`, and the columns of `GameState` (world view).

    `ball` and `cars` are RocketSim's rows (`envs.state.layout` names their columns); `details` has `CAR_DETAILS`.
    """
    state, of_a_car = GameState(1, num_cars, 0), (num_cars,)
    found = [_column(name, array) for name, array in _rows(state).items()]
    found.append(Column(WEIGHT, "<f4", of_a_car))
    found += [_column(name, array) for name, array in _details(state).items()]
    return [*found, Column(INTENDED_CONTROLS, "<f4", (*of_a_car, 8))] if noisy else found


def _rows(state: GameState) -> dict[str, NDArray[Any]]:
    """Return column -> array `[A, ...]` of the state."""
    return {
        "episode_ticks": state.episode_ticks,
        "ticks_since_touch": state.ticks_since_touch,
        "last_touch": state.last_touch_car,
        "ball": state.ball_rows[:, 0],
        "pad_timers": state.pad_timers,
        "present": state.present,
        "cars": state.car_rows[:, :, 0],
        "timers": state.car_timers,
        "flags": state.car_flags,
        "controls": state.controls,
    }


def _details(state: GameState) -> dict[str, NDArray[Any]]:
    """Return column -> array of the state's details."""
    return {name: state.details[name] for name in state.details.dtype.names or ()}


def _column(name: str, array: NDArray[Any]) -> Column:
    dtype = {"b": "|u1", "i": "<i4" if "ticks" in name else "|i1"}.get(array.dtype.kind, "<f4")
    return Column(name, dtype, array.shape[1:])


def frame_from_state(state: GameState) -> dict[str, NDArray[Any]]:
    """Return the first arena of a state as a frame of copies, with weight 1; stale details are read first."""
    state.read_stale_details()
    frame = {name: array[0].copy() for name, array in (_rows(state) | _details(state)).items()}
    frame["cars"][:, CAR_ID] = 0  # differs between simulations
    return frame | {WEIGHT: np.ones(state.num_cars, np.float32)}


def states_from_columns(columns: dict[str, NDArray[np.float32]], num_blue: int) -> GameState:
    """Return the frames of an episode as one state with an arena for each frame, including the mirrored view."""
    present = columns["present"] > 0
    state = GameState(len(present), num_blue, present.shape[1] - num_blue, present)
    stored = _rows(state) | _details(state)
    for name, array in stored.items():
        array[:] = columns[name]
    state.complete()
    for name, array in stored.items():  # `complete` overwrites some recorded numbers
        array[:] = columns[name]
    state.invalidate()
    return state
