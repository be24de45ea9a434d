"""Replays and demonstrations of which fields and bytes were changed, with right checksums, and what reads them.

    python tests/campaigns/mutated_replays.py --number 300 --seed 0

A replay must be read, or refused by one line that names it; so must a demonstration, but a forged one may end in
another error, too, as docs/security.md says. Nothing may hang, or take more memory than a file of its size may.
`NASTY` are 30 replays for the browser's page, made to stop it or to take all memory.
"""

import json
import multiprocessing
import random
import resource
import struct
import sys
import zlib
from collections import Counter, defaultdict
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from envs.demonstrations import Demonstration
from envs.pool.replay_format import (
    BEGIN,
    CHUNK,
    END,
    EVENTS,
    FILE_START,
    HEADER,
    TOTAL,
    iter_records,
    pack_json,
    pack_record,
)
from envs.replays.replay import read_replay
from tests.campaigns.campaign import ROOT, aligned, main

REPLAY = ROOT / "tests/fixtures/replays/one_goal.frl"
DEMONSTRATIONS = [ROOT / f"configs/demonstrations/{name}.frd" for name in ("cartpole", "chaser_1v1")]
SECONDS, MOST_MIB = 20, 512
STRANGE = [None, True, -1, 0, 2, 0.5, 10**9, 2**31, 10**30, 1e308, float("inf"), float("nan"), "", "x" * 1000, "<i4"]
STRANGE += [[], {}, [[]], [-1], [0], [1e9], [2**40, 0], ["a"], [[["a"]]], {"a": 1}]
GOOD, BAD = ("loads", "one line"), ("other error", "several lines", "hung", "memory")


def records_of(path):
    with path.open("rb") as file:
        return list(iter_records(file))


def leaves(content, path=()):
    """Paths of everything in it; of long lists, of the first items."""
    yield path
    inside = content.items() if isinstance(content, dict) else enumerate(content) if isinstance(content, list) else ()
    for key, value in [*inside][:20]:
        yield from leaves(value, (*path, key))


def changed(content, path, value=None, removed=False):
    """A copy in which something is replaced, or missing."""
    if not path:
        return value
    key, *rest = path
    other = content.copy()
    if removed and not rest:
        del other[key]
    else:
        other[key] = changed(content[key], rest, value, removed)
    return other


def mutate(records, rng):
    """(the bytes of a file of which one field, number, byte or record was changed, what was done)."""
    records = list(records)
    number = 0 if rng.random() < 0.4 else rng.randrange(len(records))
    kind, payload = records[number]
    way = rng.choice(["field", "field", "field", "removed", "frames", "byte", "head", "order", "cut"])
    what = f"record {number}, {kind.decode()}: {way}"
    if way in ("field", "removed"):
        while kind == CHUNK:
            number = rng.randrange(len(records))
            kind, payload = records[number]
        content = json.loads(payload)
        path = rng.choice(list(leaves(content)))
        other = changed(content, path, rng.choice(STRANGE), removed=way == "removed")
        records[number] = (kind, json.dumps(other).encode())
        what = f"record {number}, {kind.decode()}: {way} {'.'.join(map(str, path))}"
    elif way == "frames":
        number = rng.choice([number for number, (kind, _) in enumerate(records) if kind == CHUNK])
        frames = struct.pack("<I", rng.choice([0, 1, 2**16, 2**31, 2**32 - 1]))
        records[number] = (CHUNK, frames + records[number][1][4:])
    elif way == "byte":
        at = rng.randrange(len(payload))
        records[number] = (kind, payload[:at] + bytes([rng.randrange(256)]) + payload[at + 1 :])
    elif way == "order":
        rng.shuffle(records)
    data = FILE_START + b"".join(pack_record(kind, payload) for kind, payload in records)
    if way == "head":  # the checksums of what stands before a payload are wrong then
        at = rng.choice([rng.randrange(8), 8 + rng.randrange(13), rng.randrange(len(data))])
        data = data[:at] + bytes([data[at] ^ rng.randrange(1, 256)]) + data[at + 1 :]
    return (data[: rng.randrange(len(data))] if way == "cut" else data), what


def read_everything(path):
    if path.suffix == ".frl":
        for game in read_replay(path).games:
            assert game.columns
    else:
        for episode in Demonstration(path).episodes():
            assert episode.steps


def peak_mib():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def outcome(path):
    """How reading it ended, and the message."""
    try:
        read_everything(path)
    except ValueError as error:
        fine = str(error).startswith(str(path)) and "\n" not in str(error)
        return ("one line" if fine else "several lines"), str(error)
    except Exception as error:
        return "other error", f"{type(error).__name__}: {error}"
    return "loads", ""


def _reader(pipe):
    """Reads the files whose names come; it has a process of its own, which can be killed."""
    while True:
        how, line = outcome(Path(pipe.recv()))
        pipe.send((how, line, peak_mib()))


def campaign(folder, number, seed):
    """Reads as many files of each kind, prints a table, and returns how many replays, or hangs, ended badly."""
    context = multiprocessing.get_context("spawn")
    counts, worst, found = defaultdict(Counter), 0.0, []
    rng, reader = random.Random(seed), None
    for source in (REPLAY, *DEMONSTRATIONS):
        records, file = records_of(source), folder / f"mutated{source.suffix}"
        for _ in range(number if source == REPLAY else number // len(DEMONSTRATIONS)):
            data, what = mutate(records, rng)
            file.write_bytes(data)
            if reader is None:
                pipe, theirs = context.Pipe()
                reader = context.Process(target=_reader, args=(theirs,), daemon=True)
                reader.start()
                pipe.send(str(source))
                pipe.recv()
            pipe.send(str(file))
            if pipe.poll(SECONDS):
                how, line, peak = pipe.recv()
                worst, how = max(worst, peak), "memory" if peak > MOST_MIB else how
            else:
                how, line = "hung", ""
            if how in ("memory", "hung"):
                reader.kill()
                reader = None
            counts[source.name][how] += 1
            if how in BAD:
                found.append((source, how, what, line))
    if reader is not None:
        reader.kill()
    rows = {name: [n.total(), *(n[how] for how in (*GOOD, *BAD))] for name, n in counts.items()}
    print(aligned(("files", *GOOD, *BAD), rows), f"\nat most {worst:.0f} MiB")
    for source, how, what, line in found:
        print(f"{how}: {source.name}: {what}\n    {line[:200]}")
    return sum(source == REPLAY or how != "other error" for source, how, _, _ in found)


# ---------------------------------------------------------------- for the page in the browser

RECORDS = records_of(REPLAY)
_HEADER = json.loads(RECORDS[0][1])
_DEEP = b"[" * 500_000 + b"]" * 500_000


def replay(header=None, *, after=None, instead=None):
    """The fixture with another header, with further records behind it, or with other ones after its header."""
    first = (
        pack_json(HEADER, _HEADER | (header or {})) if not isinstance(header, bytes) else pack_record(HEADER, header)
    )
    rest = RECORDS[1:] if instead is None else instead
    return FILE_START + first + b"".join(pack_record(*each) for each in [*rest, *(after or ())])


def column(name, **more):
    """The header with another description of a column."""
    columns = [each | (more if each["name"] == name else {}) for each in _HEADER["columns"]]
    return {"columns": columns}


def infinite(header):
    """The header in JSON with infinity, which pack_json refuses."""
    return json.dumps(_HEADER | header).replace("Infinity", "1e999").encode()


def bomb(frames, number):
    """Chunks of zeros, which are a thousand times smaller packed."""
    size = frames * sum(_size(each) for each in _HEADER["columns"])
    payload = struct.pack("<I", frames) + zlib.compress(bytes(size), 9)
    return [(BEGIN, b"{}"), *[(CHUNK, payload)] * number]


def _size(described):
    count = 1
    for number in described["shape"]:
        count *= number
    return count * int(described["dtype"][-1])


def extra(**described):
    """The header with one more column."""
    return {
        "columns": [
            *_HEADER["columns"],
            {"name": "x", "dtype": "<i4", "shape": [1], "scale": 1, "differences": 0} | described,
        ]
    }


EVENT = {"kind": "goal", "frame": 3, "seconds": 0.2, "team": 0, "car": 0}
NASTY = {
    "no version": lambda: b"FRLREP\xff\xff" + replay()[8:],
    "no replay": lambda: b"GIF89a" * 100,
    "no header": lambda: FILE_START + b"".join(pack_record(*each) for each in RECORDS[1:]),
    "a second header": lambda: replay(after=[RECORDS[0], *RECORDS[1:]]),
    "a header that is a list": lambda: replay(b"[]"),
    "a header that is null": lambda: replay(b"null"),
    "a header without an end": lambda: replay(b'{"a":'),
    "a deep header": lambda: replay(b'{"columns":' + _DEEP + b"}"),
    "no columns": lambda: replay({"columns": []}),
    "many columns": lambda: replay(
        {"columns": _HEADER["columns"] + [dict(_HEADER["columns"][0], name=f"{n}") for n in range(30_000)]}
    ),
    "columns of names of objects": lambda: replay(extra(name="__proto__")),
    "a column of a billion": lambda: replay(extra(shape=[10**9])),
    "columns of more and less than nothing": lambda: replay(extra(shape=[-(10**9)])),
    "a number of unknown kind": lambda: replay(extra(dtype="<c16")),
    "differences without end": lambda: replay(column("ticks", differences=10**9)),
    "a huge time": lambda: replay(column("ticks", scale=1e200)),
    "no time": lambda: replay({"ticks_per_second": 0}),
    "an infinite time": lambda: replay(infinite({"ticks_per_second": 1e-320})),
    "infinite places": lambda: replay(infinite(column("ball_pos", scale=float("inf")))),
    "a hundred thousand cars": lambda: replay({"teams": [0, 1] * 50_000}),
    "no cars": lambda: replay({"teams": []}),
    "no names": lambda: replay({"names": None}),
    "a hundred thousand pads": lambda: replay({"pads": [[0, 0, 70]] * 100_000}),
    "a hundred thousand rewards": lambda: replay({"rewards": ["r"] * 100_000}),
    "no actions": lambda: replay({"actions": [[], []]}),
    "a chunk before a game": lambda: replay(instead=RECORDS[2:]),
    "goals without a score": lambda: replay(after=[(EVENTS, json.dumps({"events": [EVENT]}).encode())]),
    "millions of events": lambda: replay(after=[(EVENTS, b'{"events":[' + b"{}," * 50_000 + b"{}]}")] * 100),
    "a million games": lambda: replay(after=[(BEGIN, b"{}")] * 1_000_000),
    "gigabytes of frames": lambda: replay(instead=[RECORDS[1], *bomb(30_000, 100)[1:], (END, b"{}")]),
    "a chunk that holds more": lambda: replay(
        instead=[RECORDS[1], (CHUNK, struct.pack("<I", 5) + zlib.compress(bytes(2**27), 9))]
    ),
    "what only demonstrations have": lambda: replay(after=[(TOTAL, b"{}")]),
}


if __name__ == "__main__":
    main(__doc__, campaign, 300)
