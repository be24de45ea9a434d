"""Checkpoints that somebody has changed, with right checksums, and what resuming makes of them.

    python tests/campaigns/mutated_checkpoints.py --number 500 --seed 0

The run may refuse one, go on with it, or end with a traceback: a right checksum says that fabric-rl wrote the file. But
no code in it runs, the process does not crash, and it does not hang.
"""

import copy
import hashlib
import io
import math
import random
import re
import shutil
import sys
import zipfile
from collections import OrderedDict
from pathlib import Path

import numpy as np
import torch

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from fabric_rl.runs.checkpoint import _MARK, _TRAILER, encode_state, read
from fabric_rl.runs.records import checkpoint_name, list_checkpoints
from tests.campaigns.campaign import Case, main, report, run

RUNS = Path(__file__).parent / "runs"
MORE_STEPS = 64


def leaves(state, path=()):
    """(path, value) of everything that holds no other things."""
    if isinstance(state, dict):
        items = state.items()
    elif isinstance(state, list | tuple):
        items = enumerate(state)
    else:
        yield path, state
        return
    for key, value in items:
        yield from leaves(value, (*path, key))


def dicts(state, path=()):
    """(path, dict) of all dicts with something in them."""
    if isinstance(state, dict) and state:
        yield path, state
    for key, value in state.items() if isinstance(state, dict) else enumerate(state):
        if isinstance(value, dict | list | tuple):
            yield from dicts(value, (*path, key))


def lists(state, path=()):
    if isinstance(state, list) and state:
        yield path, state
    for key, value in state.items() if isinstance(state, dict) else enumerate(state):
        if isinstance(value, dict | list | tuple):
            yield from lists(value, (*path, key))


def replaced(state, path, value):
    """The state with another value there."""
    if not path:
        return value
    if isinstance(state, dict):
        other = type(state)(state)
        if hasattr(state, "_metadata"):
            other._metadata = state._metadata
        other[path[0]] = replaced(state[path[0]], path[1:], value)
        return other
    items = list(state)
    items[path[0]] = replaced(items[path[0]], path[1:], value)
    return type(state)(items)


def name_of(path):
    return "".join(f"[{key!r}]" for key in path)


def bulky(value):
    return (
        isinstance(value, torch.Tensor | np.ndarray) and value.size
        if isinstance(value, np.ndarray)
        else (isinstance(value, torch.Tensor) and value.numel())
    )


# ---------------------------------------------------------------- the kinds: (state, what was done)


def flipped_bit(state, rng):
    path, value = rng.choice([leaf for leaf in leaves(state) if bulky(leaf[1])])
    raw = bytearray(value.numpy().tobytes() if isinstance(value, torch.Tensor) else value.tobytes())
    bit = rng.randrange(8 * len(raw))
    raw[bit // 8] ^= 1 << bit % 8
    if isinstance(value, torch.Tensor):
        other = torch.frombuffer(raw, dtype=torch.uint8).clone().view(value.dtype).reshape(value.shape)
    else:
        other = np.frombuffer(bytes(raw), value.dtype).reshape(value.shape).copy()
    return replaced(state, path, other), f"bit {bit} of {name_of(path)}"


def other_shape(state, rng):
    path, value = rng.choice([leaf for leaf in leaves(state) if bulky(leaf[1])])
    ways = [lambda x: x[None], lambda x: x.reshape(-1)[:-1], lambda x: x[:0] if x.ndim else x[None, None]]
    if value.ndim > 1:
        ways += [lambda x: x.reshape(-1), lambda x: x[:, :-1], lambda x: x.swapaxes(0, 1)]
    other = rng.choice(ways)(value)
    other = other.contiguous() if isinstance(other, torch.Tensor) else np.ascontiguousarray(other)
    return replaced(state, path, other), f"{name_of(path)} {list(other.shape)}"


def other_dtype(state, rng):
    path, value = rng.choice([leaf for leaf in leaves(state) if bulky(leaf[1])])
    kinds = [torch.float64, torch.float16, torch.int64, torch.uint8, torch.bool, torch.complex64, torch.float32]
    if isinstance(value, torch.Tensor):
        kind = rng.choice([kind for kind in kinds if kind != value.dtype])
        return replaced(state, path, value.to(kind)), f"{name_of(path)} {kind}"
    kind = rng.choice(
        [k for k in ("f8", "f4", "i8", "u1", "?", "c16", "U8", "S8", "M8[s]") if k != value.dtype.str[1:]]
    )
    return replaced(state, path, value.astype("i8").astype(kind)), f"{name_of(path)} {kind}"


def removed_key(state, rng):
    path, inside = rng.choice(list(dicts(state)))
    key = rng.choice(list(inside))
    other = type(inside)((k, v) for k, v in inside.items() if k != key)
    return replaced(state, path, other), f"no {name_of((*path, key))}"


def renamed_key(state, rng):
    path, inside = rng.choice(list(dicts(state)))
    key = rng.choice(list(inside))
    other = type(inside)((f"{k}_" if k == key else k, v) for k, v in inside.items())
    return replaced(state, path, other), f"{name_of((*path, key))} renamed"


def added_key(state, rng):
    path, inside = rng.choice(list(dicts(state)))
    name = rng.choice(["extra", 7, "class_path", "__class__"])
    return replaced(state, path, type(inside)(inside) | {name: 1}), f"{name!r} in {name_of(path)}"


STRANGE = [
    None,
    True,
    0,
    -1,
    10**30,
    0.5,
    "text",
    "",
    b"bytes",
    [],
    {},
    [[1], 2],
    {"a": {}},
    (),
    torch.zeros(2),
    np.zeros(2),
]


def other_kind(state, rng):
    path, value = rng.choice(list(leaves(state)))
    other = rng.choice([x for x in STRANGE if type(x) is not type(value)])
    return replaced(state, path, other), f"{name_of(path)} {other!r}"


def other_container(state, rng):
    path, inside = rng.choice([*dicts(state), *lists(state)])
    if not path:
        return other_container(state, rng)
    other = rng.choice([x for x in STRANGE if type(x) is not type(inside)])
    return replaced(state, path, other), f"{name_of(path)} {other!r}"


def out_of_range(state, rng):
    numbers = [leaf for leaf in leaves(state) if type(leaf[1]) in (int, float)]
    arrays = [leaf for leaf in leaves(state) if bulky(leaf[1])]
    path, value = rng.choice(numbers if rng.random() < 0.5 else arrays)
    if not bulky(value):
        other = rng.choice(
            [-1 - abs(value), 10**25, -(10**400)] if type(value) is int else [math.nan, math.inf, -math.inf]
        )
        shown = other if abs(other) < 10**30 else "huge"
        return replaced(state, path, other), f"{name_of(path)} {shown}"
    floats = value.is_floating_point() if isinstance(value, torch.Tensor) else value.dtype.kind == "f"
    other = value.clone() if isinstance(value, torch.Tensor) else value.copy()
    what = rng.choice([math.nan, math.inf]) if floats else rng.choice([-7, 2**40])
    unsigned = other.dtype in (torch.uint8, torch.bool, np.dtype("uint8"), np.dtype("bool"))
    if unsigned:
        what = 255
    flat = other.reshape(-1)
    if other.dtype in (torch.bool, np.dtype("bool")):
        flat.view(torch.uint8 if isinstance(value, torch.Tensor) else np.uint8)[rng.randrange(len(flat))] = what
    else:
        flat[rng.randrange(len(flat))] = what
    return replaced(state, path, other), f"{what} in {name_of(path)}"


def other_length(state, rng):
    path, inside = rng.choice(list(lists(state)))
    other = inside[:-1] if rng.random() < 0.5 else [*inside, inside[-1]]
    return replaced(state, path, other), f"{name_of(path)} of {len(other)}"


KINDS = [flipped_bit, other_shape, other_dtype, removed_key, renamed_key, added_key, other_kind, other_container]
KINDS += [out_of_range, other_length]


# ---------------------------------------------------------------- lies below the state


class Evil:
    def __init__(self, canary):
        self.canary = canary

    def __reduce__(self):
        return eval, (f"open({str(self.canary)!r}, 'w').close()",)


def an_array(primitives, rng):
    """One of the arrays as they lie in the file."""
    found = []

    def look(x):
        if isinstance(x, dict) and x.get("__type__") in ("array", "scalar"):
            found.append(x)
        for item in x.values() if isinstance(x, dict) else x if isinstance(x, list | tuple) else ():
            look(item)

    look(primitives)
    return rng.choice(found) if found else None


def lie(state, rng, canary):
    """The bytes of a file that lies about itself."""
    primitives = encode_state(state)
    array = an_array(primitives, rng)
    ways = ["pickle", "nested", "cycle", "shared", "tag", "hex", "compressed", "stride", "size", "versions", "meta"]
    ways += ["object", "dtype", "shape", "negative", "huge", "bool", "characters", "subarray"] if array else []
    way = rng.choice(ways)
    size = array and len(array["data"])
    changes = {
        "object": lambda: array.update(dtype="|O", shape=[size // 8]),
        "dtype": lambda: array.update(dtype=rng.choice(["<f16", "<U999", "|V8", "T", "<f8,<f8", "", "f", [["a"]], 8])),
        "subarray": lambda: array.update(dtype=("|O", (3,)), shape=[1]),
        "shape": lambda: array.update(shape=[*array["shape"], 2]),
        "negative": lambda: array.update(shape=[-1, -size]),
        "huge": lambda: array.update(shape=[2**40, 2**40]),
        "bool": lambda: array.update(dtype="|b1", shape=[size], data=torch.full((size,), 7, dtype=torch.uint8)),
        "characters": lambda: array.update(
            dtype="<U1", shape=[size // 4], data=torch.full((size // 4 * 4,), 255, dtype=torch.uint8)
        ),
        "pickle": lambda: primitives.update(evil=Evil(canary)),
        "tag": lambda: primitives.update(steps={"__type__": "os.system", "items": []}),
        "hex": lambda: primitives.update(steps={"__type__": "int", "hex": "f" * 10**6}),
        "stride": lambda: primitives.update(agent=OrderedDict(w=torch.zeros(1).expand(10**6, 10**6))),
        "meta": lambda: primitives.update(agent=OrderedDict(w=torch.zeros(10**6, 10**6, device="meta"))),
    }
    if way in changes:
        changes[way]()
    if way == "nested":
        deep = []
        for _ in range(100_000):
            deep = [deep]
        primitives["metrics"] = deep
    if way == "cycle":
        primitives["callbacks"].append(primitives["callbacks"])
    if way == "shared":
        many = [0]
        for _ in range(60):
            many = [many, many]
        primitives["metrics"] = many
    if way == "versions":
        primitives["agent"]._metadata = {"": {"version": [1, {}]}, "x": 7}
    buffer = io.BytesIO()
    if way == "nested":
        limit = sys.getrecursionlimit()
        sys.setrecursionlimit(10**6)
        try:
            deep_pickle(primitives, buffer)
        finally:
            sys.setrecursionlimit(limit)
    else:
        torch.save(primitives, buffer)
    content = buffer.getvalue()
    if way in ("compressed", "size"):
        content = archive_again(content, way)
    return content, way


def deep_pickle(primitives, buffer):
    """As torch.save, which would need a stack as deep as the list: the pickle is written by hand."""
    shallow = dict(primitives, metrics="MARK")
    torch.save(shallow, buffer)
    old = buffer.getvalue()
    depth = 100_000
    pickled = re.sub(
        rb"X\x04\x00\x00\x00MARK(q.)?",
        lambda match: b"]" * depth + b"a" * (depth - 1),
        zipfile.ZipFile(io.BytesIO(old)).read("archive/data.pkl"),
    )
    repacked(buffer, old, {"data.pkl": pickled})


def repacked(buffer, old, changed, compression=zipfile.ZIP_STORED):
    buffer.seek(0)
    buffer.truncate()
    with zipfile.ZipFile(io.BytesIO(old)) as source, zipfile.ZipFile(buffer, "w", compression) as target:
        for name in source.namelist():
            target.writestr(name, changed.get(name.partition("/")[2], source.read(name)))


def archive_again(content, way):
    buffer = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as source:
        pickled = source.read("archive/data.pkl")
    if way == "size":  # a tensor of more numbers than were saved
        pickled = re.sub(rb"K(.)\x85", lambda match: b"J" + (10**9).to_bytes(4, "little") + b"\x85", pickled, count=1)
    repacked(
        buffer, content, {"data.pkl": pickled}, zipfile.ZIP_DEFLATED if way == "compressed" else zipfile.ZIP_STORED
    )
    return buffer.getvalue()


# ---------------------------------------------------------------- the campaign


def sealed(path, content):
    path.write_bytes(content + _TRAILER.pack(_MARK, len(content), hashlib.sha256(content).digest()))


def bits(path):
    """A hash of what decides how a run goes on."""
    state = read(path)
    digest = hashlib.sha256()
    for name in ("agent", "optimizer", "ranks", "callbacks", "iteration", "steps"):
        for at, value in leaves(state[name]):
            if "param_groups" not in at and "cuda" not in at:
                digest.update(repr(at).encode())
                digest.update(
                    value.numpy().tobytes()
                    if isinstance(value, torch.Tensor)
                    else value.tobytes()
                    if isinstance(value, np.ndarray)
                    else repr(value).encode()
                )
    return digest.hexdigest()


def prepared(folder):
    """name -> (run folder with one checkpoint, its state)."""
    bases, runs = {}, folder / "bases"
    names = [path.stem for path in sorted(RUNS.glob("*.yaml"))]
    first = [
        Case(
            "base",
            name,
            ["--config", str(RUNS / f"{name}.yaml"), "--runs_dir", str(runs), "--run_id", name],
            lambda err: True,
        )
        for name in names
    ]
    (folder / "first").mkdir()
    failed = report(run(first, folder / "first"))
    assert not failed
    for name in names:
        kept = runs / name
        *_, last = [path for path in list_checkpoints(kept / "checkpoints") if read(path)["exact"]]
        for path in list_checkpoints(kept / "checkpoints"):
            if path != last:
                path.unlink()
        bases[name] = [kept, read(last)]
    return bases


def resumed(runs, name, steps):
    return ["--runs_dir", str(runs), "--run_id", name, "--resume", "--total_timesteps", str(steps + MORE_STEPS)]


def cases(bases, folder, number, seed):
    """Makes the cases one by one, each with a run folder of its own."""
    rng = random.Random(seed)
    runs = folder / "runs"
    for index in range(number):
        name = rng.choice(list(bases))
        source, state = bases[name]
        own, canary = runs / f"{index:04d}", folder / f"canary-{index:04d}"
        shutil.copytree(source, own, ignore=shutil.ignore_patterns("*.ckpt", "tensorboard"))
        if rng.random() < 0.2:
            kind = "lies of the file"
            content, what = lie(copy.deepcopy(state), rng, canary)
        else:
            mutate = rng.choice(KINDS)
            kind = mutate.__name__.replace("_", " ")
            other, what = mutate(state, rng)
            buffer = io.BytesIO()
            torch.save(encode_state(other), buffer)
            content = buffer.getvalue()
        sealed(own / "checkpoints" / checkpoint_name(state["steps"]), content)
        words = resumed(runs, own.name, state["steps"])
        yield Case(kind, f"{index} ({name}): {what}", words, lambda err: True, canary=canary, trusted=True)


def campaign(folder, number, seed):
    """Runs it; returns what `report` does."""
    bases = prepared(folder)
    (folder / "forks").mkdir()
    return report(run(cases(bases, folder, number, seed), folder / "forks"))


if __name__ == "__main__":
    main(__doc__, campaign, 500)
