"""Files that somebody has damaged or forged: each is read, or refused in one line, with little memory."""

import gzip
import io
import json
import random
import tracemalloc
import zipfile
import zlib

import numpy as np
import pytest

from envs import RocketSimPool
from envs.demonstrations import Demonstration
from envs.demonstrations.file import STATES, DemonstrationWriter, columns_of_states, frame_from_state
from envs.pool.replay_format import FILE_START, iter_records, pack_record
from envs.resets import Kickoff, ReplayedStates, TrainingPack, save_states
from fabric_rl.base.files import checksum
from tests.envs.fakes import written

MOST_MEMORY = 1 << 27
"""Bytes that reading a small file may take, whatever it says about itself."""


def states(folder):
    save_states(folder / "a.npz", [written(Kickoff(), 1, 1, seed) for seed in range(5)])
    return (folder / "a.npz").read_bytes()


def old_states(folder):
    """As before there was a checksum."""
    return states(folder)[: -len(checksum(b""))]


def demonstration(folder):
    frames = [frame_from_state(written(Kickoff(), 1, 1, seed)) for seed in range(5)]
    about = {"demonstration": STATES, "names": ["a", "b"], "teams": [0, 1], "demonstrators": [0, 1], "tick_skip": 8}
    with DemonstrationWriter(folder / "a.frd", columns_of_states(2), about) as writer:
        writer.add(frames, {"terminated": True})
        writer.add(frames, {"terminated": False})
    return (folder / "a.frd").read_bytes()


def packs(folder):
    things = {"position": [0, 900, 100], "linear_velocity": [1.5, 2e2, 300], "euler_angles": [0.1, 4.0, -0.2]}
    shot = {"time_limit": 5.0, "ball": things, "car": things}
    pack = {"metadata": {"type": "Striker", "tags": ["Shots"], "code": "AAAA"}, "shots": [shot] * 3}
    return (json.dumps(pack) + "\n").encode() * 2


def packed(folder):
    return gzip.compress(packs(folder))


def load_packs(path):
    TrainingPack(path=path)


def read_demonstration(path):
    return list(Demonstration(path).episodes())


KINDS = {
    "states": (states, "m.npz", ReplayedStates),
    "old states": (old_states, "m.npz", ReplayedStates),
    "demonstrations": (demonstration, "m.frd", read_demonstration),
    "packs": (packs, "m.jsonl", load_packs),
    "packed packs": (packed, "m.jsonl.gz", load_packs),
}


def damaged(raw, rng):
    """Other bytes: a flipped bit most of the time; else a piece is lost, repeated, overwritten or put elsewhere."""
    content, at = bytearray(raw), rng.randrange(len(raw))
    end = min(len(raw), at + rng.choice([1, 4, 50, len(raw)]))
    way = rng.choice(["bit", "bit", "bit", "lost", "repeated", "overwritten", "moved"])
    if way == "bit":
        content[at] ^= 1 << rng.randrange(8)
    elif way == "lost":
        del content[at:end]
    elif way == "repeated":
        content[at:at] = content[at:end]
    elif way == "overwritten":
        content[at:end] = rng.randbytes(end - at)
    else:
        piece = content[at:end]
        del content[at:end]
        place = rng.randrange(len(content) + 1)
        content[place:place] = piece
    return bytes(content)


def forged(name, raw, rng):
    """The same, inside of the file's own checksums."""
    if name.endswith(".npz"):
        with zipfile.ZipFile(io.BytesIO(raw)) as source:
            members = {member: source.read(member) for member in source.namelist()}
        chosen, made = rng.choice(list(members)), io.BytesIO()
        start = members[chosen][:128]
        with zipfile.ZipFile(made, "w") as target:
            for member, content in members.items():
                other = damaged(start, rng) + content[128:] if rng.random() < 0.7 else damaged(content, rng)
                target.writestr(member, other if member == chosen else content)
        return made.getvalue() + checksum(made.getvalue())
    if name.endswith(".frd"):
        records = list(iter_records(io.BytesIO(raw)))
        number = rng.randrange(len(records))
        records[number] = (records[number][0], damaged(records[number][1], rng))
        return FILE_START + b"".join(pack_record(*record) for record in records)
    return gzip.compress(damaged(gzip.decompress(raw), rng)) if name.endswith(".gz") else damaged(raw, rng)


def refusal(load, path):
    """Reads the file; the error, if there is one, which must be one line."""
    tracemalloc.reset_peak()
    before, error = tracemalloc.get_traced_memory()[0], None
    try:
        load(path)
    except ValueError as caught:
        error = str(caught)
    assert tracemalloc.get_traced_memory()[1] - before < MOST_MEMORY
    assert error is None or (path.name in error and "\n" not in error)
    return error


@pytest.fixture
def traced():
    tracemalloc.start()
    yield
    tracemalloc.stop()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("number", [60, pytest.param(300, marks=pytest.mark.slow)])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # numbers of any size
def test_changed_files_are_read_or_refused_in_one_line(tmp_path, traced, kind, number):
    make, name, load = KINDS[kind]
    raw, path, rng = make(tmp_path), tmp_path / name, random.Random(number)
    path.write_bytes(raw)
    assert refusal(load, path) is None
    for case in range(number):
        path.write_bytes(content := damaged(raw, rng) if case % 2 else forged(name, raw, rng))
        error = refusal(load, path)
        if case % 2 and kind in ("states", "demonstrations") and raw[:-48] != content[:-48]:
            assert error is not None  # damage is found, unless it is in the mark of the checksum itself


def test_numbers_as_large_as_floats_can_be_are_refused_by_the_pool(tmp_path):
    for name in ("ball_pos", "car_vel"):
        state = written(Kickoff(), 1, 1)
        getattr(state.world, name)[:] = 3e38
        save_states(tmp_path / "a.npz", state)
        with pytest.raises(ValueError, match=r"ReplayedStates: in arena 0 (the ball|car 0) would start"):
            RocketSimPool(1, 1, state_setter=ReplayedStates(tmp_path / "a.npz"), num_threads=1).reset()


def members_of(raw):
    with zipfile.ZipFile(io.BytesIO(raw)) as source:
        return {name: source.read(name) for name in source.namelist()}


def archive(members, compression=zipfile.ZIP_STORED):
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", compression) as target:
        for name, content in members.items():
            target.writestr(name, content)
    return made.getvalue()


def array(shape):
    """An array without its numbers."""
    made = io.BytesIO()
    np.lib.format.write_array_header_1_0(made, {"descr": "<f4", "fortran_order": False, "shape": shape})
    return made.getvalue()


def directory_says(raw, offset, number):
    """The same archive, whose list of contents says something else about its first member."""
    at = raw.index(b"PK\x01\x02") + offset
    return raw[:at] + number + raw[at + len(number) :]


FORGED = {
    "encrypted": lambda raw: directory_says(raw, 8, b"\1"),
    "lzma": lambda raw: archive(members_of(raw), zipfile.ZIP_LZMA),
    "bz2": lambda raw: archive(members_of(raw), zipfile.ZIP_BZIP2),
    "12 TiB": lambda raw: archive(members_of(raw) | {"boost.npy": array((3 << 40,))}),
    "4 GiB unpacked": lambda raw: directory_says(raw, 24, b"\xff\xff\xff\xff"),
    "less unpacked": lambda raw: directory_says(
        archive({"a.npy": bytes(1 << 28)}, zipfile.ZIP_DEFLATED), 24, b"\x00\1\0\0"
    ),
    "pickle": lambda raw: archive(members_of(raw) | {"boost.npy": array((5, 2)).replace(b"<f4", b"|O ")}),
    "no header": lambda raw: archive(members_of(raw) | {"boost.npy": b""}),
}


@pytest.mark.parametrize("way", FORGED)
def test_archives_that_lie_about_themselves(tmp_path, traced, way):
    path, raw = tmp_path / "m.npz", FORGED[way](old_states(tmp_path))
    path.write_bytes(raw)
    assert "was not written by envs.save_states: " in refusal(ReplayedStates, path)
    path.write_bytes(raw + checksum(raw))
    assert "was not written by envs.save_states: " in refusal(ReplayedStates, path)


def test_a_checksum_follows_the_archive_and_numpy_reads_it(tmp_path):
    raw = states(tmp_path)
    with np.load(tmp_path / "a.npz") as file:
        assert file["boost"].shape == (5, 2)
    path = tmp_path / "m.npz"
    path.write_bytes(bytes(1) + raw)
    with pytest.raises(ValueError, match=r"m\.npz was not written by envs\.save_states: it is damaged: its checksum"):
        ReplayedStates(path)


@pytest.mark.parametrize(
    "line",
    [
        b"[" * 100_000,
        b'{"metadata": {}, "shots": [{"time_limit": 1' + b"0" * 400 + b"}]}",
        packs(None).replace(b"900", b"1" + b"0" * 400),
        packs(None).replace(b"900", b"3.5e38"),
        b'{"metadata": 3, "shots": []}',
    ],
    ids=["nested", "long limit", "long number", "large number", "no metadata"],
)
def test_packs_that_cannot_be_numbers(tmp_path, traced, line):
    for name, content in (("m.jsonl", line), ("m.jsonl.gz", gzip.compress(line))):
        (tmp_path / name).write_bytes(content)
        assert "is not a file of training packs: " in refusal(load_packs, tmp_path / name)


def test_a_pack_that_unpacks_to_too_much(tmp_path, traced):
    path, deflate = tmp_path / "m.jsonl.gz", zlib.compressobj(1, zlib.DEFLATED, 31)
    path.write_bytes(b"".join(deflate.compress(bytes(1 << 20)) for _ in range(200)) + deflate.flush())
    assert "m.jsonl.gz is not a file of training packs: it is larger than 64 MiB" in refusal(load_packs, path)
