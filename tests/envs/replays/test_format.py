"""The replay file: what comes back of what was written, and what of a damaged, cut-off or newer one."""

import io
import json
import struct
import zlib
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from envs.pool.replay_format import (
    CHUNK,
    DTYPES,
    FILE_START,
    HEADER,
    Column,
    ReplayWriter,
    check_columns,
    column_from_header,
    game_columns,
    iter_records,
    pack_chunk,
    pack_json,
    pack_record,
    unpack_chunk,
)
from envs.replays.replay import read_replay

OWN = [Column("place", "<i2", (2, 3), 0.2, 2), Column("flags", "|u1", (2,)), Column("pay", "<f2", (2,))]
COLUMNS = [*game_columns(2), *OWN]
ABOUT = {"names": ["a", "b"], "teams": [0, 1], "ticks_per_second": 120, "tick_skip": 8, "rewards": []}
TOUCH = {"kind": "touch", "frame": 12, "seconds": 0.8, "team": 1, "car": 1}
GOAL = TOUCH | {"kind": "goal", "score": [1, 0]}


def frame(number):
    usual = {column.name: np.zeros(column.shape) for column in game_columns(2)} | {"ticks": np.array(8 * number)}
    place = np.arange(6, dtype=np.float32).reshape(2, 3) * 10 + number
    return usual | {"place": place, "flags": np.array([number % 7, 3]), "pay": np.array([number / 8, -1.5], np.float32)}


def written(games=2, frames=25, chunk_frames=10, about=ABOUT, columns=COLUMNS, event=TOUCH, change=None):
    sink = io.BytesIO()
    writer = ReplayWriter(sink, columns, about, chunk_frames)
    for game in range(games):
        writer.begin({"number": game})
        for number in range(frames):
            writer.add(frame(number + game) | (change or {}), [event] if number == 12 else [])
        writer.end({"score": [game, 0]})
    return sink.getvalue()


def read(tmp_path, data):
    path = tmp_path / "game.frl"
    path.write_bytes(data)
    return read_replay(path)


def test_what_was_written_comes_back(tmp_path):
    replay = read(tmp_path, written())
    assert replay.about["names"] == ["a", "b"] and [game.about["number"] for game in replay.games] == [0, 1]
    second = replay.games[1]
    assert second.num_frames == 25 and second.result == {"score": [1, 0]}
    assert second.events == [TOUCH]
    for name, values in second.columns.items():
        expected = np.stack([frame(number + 1)[name] for number in range(25)])
        assert np.abs(values - expected).max() <= 0.1 + 1e-5 if name == "place" else np.array_equal(values, expected)


def test_a_game_that_is_played_can_be_read_up_to_its_last_chunk(tmp_path):
    """25 frames in chunks of 10: whatever the writer was stopped at, what is whole is read."""
    data, seen = written(games=1), set()
    for end in [*range(len(FILE_START), len(data), 9), len(data)]:
        try:
            replay = read(tmp_path, data[:end])
        except ValueError as error:
            assert "has no frames yet" in str(error) and not seen
            continue
        for game in replay.games:
            seen.add(game.num_frames)
            assert game.columns["place"].shape == (game.num_frames, 2, 3)
    assert seen == {0, 10, 20, 25} and replay.games[0].result


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(st.data())
def test_every_damaged_byte_is_noticed(tmp_path_factory, data):
    whole = written(games=1, frames=5)
    at = data.draw(st.integers(0, len(whole) - 1))
    changed = data.draw(st.integers(1, 255))
    damaged = whole[:at] + bytes([whole[at] ^ changed]) + whole[at + 1 :]
    path = tmp_path_factory.mktemp("damaged") / "game.frl"
    path.write_bytes(damaged)
    with pytest.raises(ValueError) as error:
        for game in read_replay(path).games:
            assert game.columns
    assert str(error.value).startswith(str(path)) and "\n" not in str(error.value)


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(st.binary(max_size=200), st.booleans())
def test_whatever_lies_in_a_file_is_read_or_refused_in_one_line(tmp_path_factory, junk, begins_well):
    path = tmp_path_factory.mktemp("junk") / "game.frl"
    path.write_bytes((FILE_START if begins_well else b"") + junk)
    with pytest.raises(ValueError, match="replay"):
        read_replay(path)


def test_a_newer_version_is_named(tmp_path):
    data = written()
    with pytest.raises(ValueError, match=r"game.frl: the replay has format 2, but this fabric-rl reads up to 1"):
        read(tmp_path, data[:6] + struct.pack("<H", 2) + data[8:])


def head(*more):
    described = [vars(column) | {"shape": list(column.shape)} for column in game_columns(2)]
    return FILE_START + pack_json(HEADER, ABOUT | {"columns": [*described, *more]})


HEAD = head()
BEGUN = HEAD + pack_json(b"B", {})
BIG = {"name": "x", "dtype": "<i4", "shape": [30_000], "scale": 1, "differences": 0}


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (FILE_START + struct.pack("<cII", b"C", 2**31, 0), "has no frames yet"),  # no whole head
        (HEAD + HEAD[len(FILE_START) :], "out of order"),
        (FILE_START + pack_json(HEADER, {"columns": []}), "too many, too large"),
        (FILE_START + pack_json(HEADER, {"columns": [BIG]}), "too many, too large"),
        (FILE_START + pack_json(HEADER, {"columns": [BIG | {"shape": [2]}] * 2}), "the same name"),
        (BEGUN + pack_record(CHUNK, struct.pack("<I", 2**31)), "2,147,483,648 frames in a chunk"),
        (
            BEGUN + pack_record(CHUNK, struct.pack("<I", 5) + zlib.compress(bytes(2**20))),
            "differs from the declared one",
        ),
        (BEGUN + pack_record(CHUNK, struct.pack("<I", 5) + zlib.compress(bytes(3))), "differs from the declared one"),
    ],
)
def test_what_no_writer_writes_is_refused(tmp_path, data, message):
    with pytest.raises(ValueError, match=message) as error:
        for game in read(tmp_path, data).games:
            assert game.columns
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    "more",
    [
        {"differences": 10**9},  # which took hours
        {"differences": -1},
        {"differences": "2"},
        {"shape": [-2, -3]},
        {"shape": [0.5]},
        {"shape": 3},
        {"scale": "x"},
        {"scale": 0},
        {"scale": 1e300},
        {"scale": float("nan")},
        {"name": ["x"]},
        {"unknown": 1},
    ],
    ids=str,
)
def test_a_forged_column_is_one_line(tmp_path, more):
    columns = [vars(each) | {"shape": list(each.shape)} for each in COLUMNS]
    columns[-2] |= more
    header = pack_record(HEADER, json.dumps(ABOUT | {"columns": columns}).encode())
    with pytest.raises(ValueError, match=r"game.frl: the replay is damaged: ") as error:
        read(tmp_path, FILE_START + header)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    "record",
    [
        pack_record(HEADER, b"[]"),
        pack_record(HEADER, b"7"),
        pack_record(HEADER, b"{}"),
        pack_record(HEADER, b"[" * 100_000),
        HEAD[len(FILE_START) :] + pack_json(b"B", {}) + pack_json(b"V", {"events": 7}),
        HEAD[len(FILE_START) :] + pack_json(b"B", {}) + pack_json(b"V", {}),
        HEAD[len(FILE_START) :] + pack_json(b"B", {}) + pack_record(b"V", b"null"),
        HEAD[len(FILE_START) :] + pack_json(b"B", {}) + pack_json(b"V", {"events": [{"kind": "goal", "frame": -1}]}),
        HEAD[len(FILE_START) :] + pack_json(b"B", {}) + pack_json(b"V", {"events": [{"kind": "goal", "frame": 0.5}]}),
        HEAD[len(FILE_START) :]
        + pack_json(b"B", {})
        + pack_json(b"V", {"events": [{"kind": "goal", "frame": 0, "team": 7}]}),
    ],
)
def test_a_forged_record_is_one_line(tmp_path, record):
    with pytest.raises(ValueError, match=r"game.frl: the replay is damaged: ") as error:
        read(tmp_path, FILE_START + record)
    assert "\n" not in str(error.value)


def test_what_a_file_promises_takes_no_memory(tmp_path):
    promise = struct.pack("<cII", CHUNK, 2**30, 0)
    file = io.BytesIO(FILE_START + promise + struct.pack("<I", zlib.crc32(promise)))
    with pytest.raises(ValueError, match="header of a record does not match"):
        list(iter_records(file))
    # However many games it is in: four bytes a number, before anything is unpacked.
    data = head({"name": "x", "dtype": "|u1", "shape": [30_000], "scale": 1, "differences": 0})
    data += 5 * (pack_json(b"B", {}) + 4 * pack_record(CHUNK, struct.pack("<I", 550) + b"not unpacked"))
    with pytest.raises(ValueError, match=r"game.frl: 11,000 frames are too many to read at once"):
        read(tmp_path, data)


def test_every_replay_has_the_columns_of_its_cars(tmp_path):
    for missing in game_columns(2):
        changed = [column for column in COLUMNS if column != missing]
        for columns in (changed, [*changed, replace(missing, shape=(7,))]):
            values = {missing.name: np.zeros(7)}
            with pytest.raises(ValueError, match=f"it lacks {missing.name} of"):
                read(tmp_path, written(columns=columns, change=values))


@st.composite
def columns(draw):
    dtype = draw(st.sampled_from(DTYPES))
    whole = "f" not in dtype
    shape = tuple(draw(st.lists(st.integers(1, 4), max_size=3)))
    scale = draw(st.sampled_from([0.0005, 0.2, 1 / 127, 1.0, 40.0])) if whole else 1.0
    return Column("x", dtype, shape, scale, draw(st.integers(0, 2)) if whole else 0)


@settings(max_examples=150, deadline=None)
@given(st.data(), columns(), st.integers(1, 20))
def test_numbers_come_back_within_half_a_unit(data, column, frames):
    dtype = np.dtype(column.dtype)
    if dtype.kind == "f":
        low, high = -60_000.0, 60_000.0
    else:
        low, high = (float(end) * column.scale for end in (np.iinfo(dtype).min, np.iinfo(dtype).max))
    ends = [float(np.float32(end if dtype.kind == "f" else 2 * end)) for end in (low, high)]
    values = data.draw(arrays.arrays(np.float32, (frames, *column.shape), elements=st.floats(*ends, width=32)))
    payload = pack_chunk([column], [{"x": row} for row in values])
    back = unpack_chunk([column], payload)["x"]
    assert back.dtype == np.float32 and back.shape == values.shape
    assert dtype != np.float32 or np.array_equal(back.view(np.uint32), values.view(np.uint32))
    expected = np.clip(values.astype(np.float64), low, high)
    bound = np.abs(expected) * 2.0**-11 + 3e-8 if dtype.kind == "f" else column.scale / 2
    assert (np.abs(back - expected) <= bound * (1 + 1e-6) + np.abs(expected) * 1e-6).all()


def test_columns_survive_their_description():
    for column in COLUMNS:
        said = json.loads(json.dumps(vars(column) | {"shape": list(column.shape)}))
        assert column_from_header(said) == column
    check_columns(COLUMNS)
