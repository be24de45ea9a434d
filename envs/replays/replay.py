"""read_replay and render_frames: read recorded games, and draw them.

replay = read_replay("game.frl")
game = replay.games[0]
game.columns["ball_pos"]     # [frames, 3] float32, uu
game.events[0]               # {"kind": "goal", "frame": 412, "seconds": 27.4, "team": 0, "car": 0}
"""

import io
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rlgym.rocket_league.common_values import TICKS_PER_SECOND

from envs.pool.frame import SIZE, Shot, render_frame
from envs.pool.replay_format import (
    BEGIN,
    CHUNK,
    END,
    EVENTS,
    FLAGS,
    HEADER,
    Column,
    Event,
    ReplayWriter,
    check_columns,
    column_from_header,
    game_columns,
    iter_records,
    num_frames,
    unpack_chunk,
    unpack_json,
)
from envs.state.game_state import GameState
from envs.state.layout import CAR_BASIS, Float
from envs.state.view import bases
from fabric_rl.base.files import open_regular, read_error_context

MOST_UNPACKED_BYTES = 1 << 30


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
            ValueError: A chunk is damaged; the message names the file.
        """
        empty = [{c.name: np.zeros((0, *c.shape), np.float32) for c in self._columns}]
        with read_error_context(str(self._path)):
            parts = [unpack_chunk(self._columns, chunk) for chunk in self._chunks] or empty
            return {name: np.concatenate([part.pop(name) for part in parts]) for name in list(parts[0])}


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
            raise ValueError("this is not a file")
        return _read(Path(path))
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error
    except (AttributeError, LookupError, RecursionError, TypeError) as error:  # what a forged record lacks
        raise ValueError(f"{path}: the replay is damaged: {error!r}") from error


def _read(path: Path) -> Replay:
    about: dict[str, Any] | None = None
    columns: tuple[Column, ...] = ()
    games: list[Game] = []
    with open_regular(path, MOST_UNPACKED_BYTES) as file:
        for kind, payload in iter_records(file):
            if (kind == HEADER) != (about is None) or (kind in (CHUNK, EVENTS, END) and not games):
                raise ValueError("the replay is damaged: its records are out of order")
            if kind == HEADER:
                about = unpack_json(payload)
                columns = tuple(map(column_from_header, about["columns"]))
                check_columns(columns)
                _check_about(about, columns)
            elif kind == BEGIN:
                games.append(Game(unpack_json(payload), _columns=columns, _path=path))
            elif kind == CHUNK:
                games[-1].num_frames += num_frames(columns, payload)
                games[-1]._chunks.append(payload)
            elif kind == EVENTS:
                games[-1].events += unpack_json(payload)["events"]
            else:
                games[-1].result = unpack_json(payload)
    if about is None:
        raise ValueError("the replay has no frames yet; try again in a moment")
    for game in games:
        _check_events(game)
    frames = sum(game.num_frames for game in games)
    if frames * sum(4 * column.count for column in columns) > MOST_UNPACKED_BYTES:
        raise ValueError(f"{frames:,} frames are too many to read at once")
    return Replay(about, games)


def _check_events(game: Game) -> None:
    """Drop the events of frames that a cut-off file lacks; raise a ValueError for forged ones."""
    for event in game.events:
        frame, team = event["frame"], event.get("team", 0)
        if type(frame) is not int or frame < 0 or team not in (0, 1) or not isinstance(event["kind"], str):
            raise ValueError(f"the replay is damaged: there is no such event as {event}")
    game.events = [event for event in game.events if event["frame"] < game.num_frames]


def _check_about(about: Mapping[str, Any], columns: Sequence[Column]) -> None:
    """Raise a ValueError unless the header belongs to a replay."""
    if "demonstration" in about:
        raise ValueError("this is a demonstration, not a replay; see fabric-rl demos show")
    names = about.get("names", ["", ""])
    if not isinstance(names, list) or len(names) != 2:
        raise ValueError(f"the replay is damaged: names must be two, got {names!r}")
    cars, shapes = len(about["teams"]), {column.name: column.shape for column in columns}
    if wrong := [column.name for column in game_columns(cars) if shapes.get(column.name) != column.shape]:
        raise ValueError(f"the replay is damaged: it lacks {', '.join(wrong)} of {cars} cars")


def extract_games(replay: Replay, pieces: Iterable[tuple[Game, int, int]] | None = None) -> bytes:
    """Return a replay of parts of another replay, each a separate game that begins at time 0.

    `pieces` are game, first frame and end frame (exclusive) of each part; default: all games. Values do not change.
    Raise a ValueError if a chunk is damaged.
    """
    sink = io.BytesIO()
    writer = ReplayWriter(sink, [column_from_header(said) for said in replay.about["columns"]], replay.about)
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


_AT_ONCE = 64


def render_frames(
    replay: Replay, frames_per_second: float, size: tuple[int, int] = SIZE
) -> Iterator[NDArray[np.uint8]]:
    """Yield images `[H, W, 3]` uint8 of all games, see `film`; motion is interpolated linearly between frames."""
    for game in (game for game in replay.games if game.num_frames):
        shots = film(replay, game, frames_per_second)
        for first in range(0, len(shots), _AT_ONCE):
            times, some = zip(*shots[first : first + _AT_ONCE], strict=True)
            states = states_at(game, replay.about["teams"], np.array(times))
            yield from (render_frame(states, row, size, shot) for row, shot in enumerate(some))


_BEFORE_SECONDS, _AFTER_SECONDS, _SLOWER = 2.4, 1.3, 2
_LONGEST_FILM = 3 * 3600
"""Seconds of game."""


def film(replay: Replay, game: Game, frames_per_second: float) -> list[tuple[float, Shot]]:
    """Return the time in ticks of each picture of a game, and what else is in it; goals are shown again, slowly."""
    ticks, names = game.columns["ticks"].astype(float), (str(replay.about["names"][0]), str(replay.about["names"][1]))
    begins = np.append(np.flatnonzero(game.columns["begins"]), game.num_frames)
    step = TICKS_PER_SECOND / frames_per_second
    if not len(ticks):
        raise ValueError("the game has no frames")
    if not ticks[-1] <= _LONGEST_FILM * TICKS_PER_SECOND:
        raise ValueError(f"a game of more than {_LONGEST_FILM // 3600} hours is too long for a video")
    moments: list[tuple[float, Event | None]] = [(float(tick), None) for tick in np.arange(0, ticks[-1] + 1, step)]
    goals = {event["frame"]: event for event in game.events if event["kind"] == "goal"}
    ends = {frame: ticks[begins[begins > frame][0] - 1] for frame in goals}
    for frame, goal in sorted(goals.items(), reverse=True):
        first = max(ticks[begins[begins <= frame].max(initial=0)], ticks[frame] - _BEFORE_SECONDS * TICKS_PER_SECOND)
        until = min(ends[frame] - 1, ticks[frame] + _AFTER_SECONDS * TICKS_PER_SECOND)
        after = sum(tick < ends[frame] for tick, again in moments if again is None)
        moments[after:after] = [(float(tick), goal) for tick in np.arange(first, until, step / _SLOWER)]

    def shot(tick: float, again: Event | None) -> Shot:
        goal = again or next(
            (goals[frame] for frame in goals if 0 <= tick - ticks[frame] < ends[frame] - ticks[frame]), None
        )
        if goal is None:
            return Shot(names)
        age = (tick - ticks[goal["frame"]]) / TICKS_PER_SECOND
        burst = game.columns["ball_pos"][goal["frame"]].astype(float) if age > 0 else None
        banner = f"{'replay' if again else 'goal!'} {names[goal['team']][:20]}"
        return Shot(names, banner, goal["team"], burst, age, again is not None, (goal["score"][0], goal["score"][1]))

    return [(tick, shot(tick, again)) for tick, again in moments]


def states_at(game: Game, teams: Sequence[int], times: NDArray[np.float64]) -> GameState:
    """Return the visible state of a game at several times (in ticks), one per row.

    `episode_ticks` count from the beginning of the game.
    """
    columns, blue = game.columns, teams.count(0)
    at = np.maximum(columns["ticks"].searchsorted(times, side="right") - 1, 0)
    after = np.minimum(at + 1, game.num_frames - 1)
    after = np.where(columns["begins"][after] > 0, at, after)  # no interpolation into the next episode
    share = (times - columns["ticks"][at]) / np.maximum(columns["ticks"][after] - columns["ticks"][at], 1)

    def between(name: str) -> Float:
        start, end = columns[name][at], columns[name][after]
        if name == "car_rotation":
            end = end * np.where((start * end).sum(axis=-1, keepdims=True) < 0, -1, 1)  # q and -q are the same
        moved: Float = start + (end - start) * share.reshape(-1, *[1] * (start.ndim - 1)).astype(np.float32)
        return moved

    flags = {name: (columns["car_flags"][at].astype(np.uint8) >> bit & 1) > 0 for bit, name in enumerate(FLAGS)}
    state = GameState(len(times), blue, len(teams) - blue, flags["present"])
    state.clear(np.arange(len(times)))
    state.world.ball_pos[:], state.world.car_pos[:] = between("ball_pos"), between("car_pos")
    state.car_rows[..., 0, CAR_BASIS] = bases(between("car_rotation")).reshape(*flags["present"].shape, 9)
    state.boost[:], state.pad_timers[:] = columns["car_boost"][at], columns["pad_timers"][at]
    state.boost_active_time[:] = flags["is_boosting"]
    state.demo_respawn_timer[:] = flags["is_demoed"]
    state.episode_ticks[:] = times
    for event in game.events:
        if event["kind"] == "goal":
            for team, car in ((0, 0), (1, blue)):
                state.goals[at >= event["frame"], car : car + 1] = event["score"][team]
    return state
