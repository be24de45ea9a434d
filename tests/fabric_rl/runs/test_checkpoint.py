"""Checkpoint files: exact round trips, and every way in which a file can be bad."""

import copy
import hashlib
import io
import os
import random
import signal
import socket
import warnings
from collections import OrderedDict, deque
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from lightning import Fabric

from envs import RocketSimPool
from envs.state.layout import CAR_DETAILS, CAR_STATE
from fabric_rl.ranks.collectives import gather_object
from fabric_rl.runs.checkpoint import (
    _MARK,
    _TRAILER,
    CheckpointWarning,
    NewerFormatError,
    decode_state,
    encode_state,
    load_latest,
    prune,
    read,
    verify,
    write,
)
from fabric_rl.runs.records import checkpoint_name, checkpoint_steps, list_checkpoints
from fabric_rl.types import CheckpointError


def bits(tensor):
    return tensor.reshape(-1).view(torch.uint8).tolist()


def same(a, b):
    """Equal to the bit, in value, type, dtype, shape and order."""
    if type(a) is not type(b):
        return False
    if isinstance(a, torch.Tensor):
        return a.dtype == b.dtype and a.shape == b.shape and bits(a) == bits(b)
    if isinstance(a, np.ndarray) and a.dtype.names:  # field by field: what lies between fields is anything
        return a.dtype == b.dtype and all(same(a[name], b[name]) for name in a.dtype.names)
    if isinstance(a, np.ndarray | np.generic):
        return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
    if isinstance(a, dict):
        return list(a) == list(b) and all(same(a[key], b[key]) for key in a)
    if isinstance(a, list | tuple | deque):
        return len(a) == len(b) and all(map(same, a, b)) and getattr(a, "maxlen", 0) == getattr(b, "maxlen", 0)
    return a == b or (a != a and b != b)


def through_a_file(state, folder):
    write(folder / "state.ckpt", {"it": state})
    return read(folder / "state.ckpt")["it"]


def structured(dtype):
    """Every byte of every field counts up."""
    array = np.zeros((2, 3), dtype)
    for i, field in enumerate(dtype.names):
        array[field] = np.arange(array[field].size).reshape(array[field].shape) + i
    return array


# ---------------------------------------------------------------- round trips


@pytest.mark.parametrize(
    "state",
    [
        [2**63, -(2**63), -(2**63) - 1, 2**200, -(2**3000), torch.float32, torch.Size([2, 3]), torch.device("cpu")],
        [(), (1, (2, [3])), deque([1, 2], maxlen=3), deque(), {1, 2}, frozenset({(1, 2)}), OrderedDict(b=1, a=2)],
        {1: "int", "1": "str", None: 0, 0.5: 1, (1, 2): {}, 2**70: 1, "__type__": "array"},
        {False: 0, np.int64(3): 1, b"k": 2},
        OrderedDict({(1, 2): 3}),
        {"__type__": "array"},
        [np.float32(0.1), np.float64(0.1), np.bool_(True), np.int8(-3), np.uint64(2**64 - 1), np.str_("x")],
        [np.array([b"ab"]), np.array([1j]), np.datetime64("2024-01-01"), np.array([np.nan, -np.nan, -0.0])],
        [structured(CAR_STATE), structured(CAR_DETAILS), structured(CAR_DETAILS)[0, 1], structured(CAR_STATE)[0]],
        random.Random(3).getstate(),
        [torch.tensor([1, 2], dtype=dtype) for dtype in (torch.bool, torch.uint8, torch.int64, torch.bfloat16)],
    ],
    ids=lambda state: type(state).__name__,
)
def test_everything_comes_back_exactly(state, tmp_path):
    assert same(through_a_file(state, tmp_path), state)
    assert same(decode_state(encode_state(state)), state)


@pytest.mark.parametrize("generator", [np.random.PCG64, np.random.MT19937, np.random.Philox, np.random.SFC64])
def test_numpy_generators_go_on_where_they_were(generator, tmp_path):
    rng = np.random.Generator(generator(7))
    rng.integers(10, size=5, dtype=np.int32)  # leaves half a 64-bit number in the buffer
    restored = np.random.Generator(generator(0))
    restored.bit_generator.state = through_a_file(rng.bit_generator.state, tmp_path)
    assert restored.integers(10, size=9, dtype=np.int32).tolist() == rng.integers(10, size=9, dtype=np.int32).tolist()
    assert restored.normal(size=9).tolist() == rng.normal(size=9).tolist()


def test_torch_generators_go_on_where_they_were(tmp_path):
    generator = torch.Generator().manual_seed(5)
    torch.randperm(100, generator=generator)
    restored = torch.Generator()
    restored.set_state(through_a_file(generator.get_state(), tmp_path))
    assert torch.equal(torch.randperm(50, generator=restored), torch.randperm(50, generator=generator))


def test_module_and_optimizer_go_on_to_the_bit(tmp_path):
    def build():
        module = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4), torch.nn.Linear(4, 2))
        return module, torch.optim.AdamW(module.parameters(), lr=torch.tensor(0.01), betas=(0.8, 0.9))

    def train(module, optimizer, steps):
        for _ in range(steps):
            optimizer.zero_grad()
            module(torch.linspace(-1, 1, 15).view(5, 3)).square().sum().backward()
            optimizer.step()

    module, optimizer = build()
    train(module, optimizer, 3)
    state = through_a_file({"module": module.state_dict(), "optimizer": optimizer.state_dict()}, tmp_path)
    assert same(state["optimizer"], optimizer.state_dict())
    assert vars(state["module"]) == vars(module.state_dict())  # the versions of the layers
    again, its_optimizer = build()
    again.load_state_dict(state["module"])
    its_optimizer.load_state_dict(state["optimizer"])
    train(module, optimizer, 3)
    train(again, its_optimizer, 3)
    assert all(map(torch.equal, module.state_dict().values(), again.state_dict().values()))


def test_a_pool_goes_on_to_the_bit(tmp_path):
    def play(pool, steps):
        rng = np.random.default_rng(1)
        return [pool.step(rng.integers(90, size=pool.num_envs))[:2] for _ in range(steps)]

    pool = RocketSimPool(num_arenas=2, num_threads=1)
    pool.reset(seed=3)
    play(pool, 8)
    snapshot = pool.state_dict()
    loaded = through_a_file(snapshot, tmp_path)
    assert same(loaded, snapshot)
    other = RocketSimPool(num_arenas=2, num_threads=1)
    other.reset(seed=0)
    other.load_state_dict(loaded)
    assert same(play(other, 12), play(pool, 12))


def test_restored_arrays_are_writable_and_apart_from_the_file_state():
    original = np.arange(3)
    primitives = encode_state({"a": original})
    original[0] = 9
    restored = decode_state(primitives)["a"]
    restored[1] = 9
    assert restored.tolist() == [0, 9, 2]
    assert decode_state(primitives)["a"].tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    ("state", "where"),
    [
        ({"env": {"paths": [1, Path("x")]}}, "state['env']['paths'][1]"),
        ({"rng": np.random.default_rng(0)}, "state['rng']"),
        ({"a": np.array([object()])}, "state['a']"),
        ({"stop": signal.SIGINT}, "state['stop']"),  # an IntEnum is no int
        ({"masked": np.ma.array([1], mask=[True])}, "state['masked']"),
    ],
)
def test_what_could_not_be_loaded_again_is_refused_when_writing(state, where, tmp_path):
    with pytest.raises(TypeError, match="checkpoint: ") as error:
        write(tmp_path / "bad.ckpt", state)
    assert where in str(error.value)
    assert list(tmp_path.iterdir()) == []


# ---------------------------------------------------------------- bad files


@pytest.fixture
def good(tmp_path):
    path = tmp_path / checkpoint_name(1000)
    write(path, {"steps": 1000, "weights": torch.arange(50.0)})
    return path


def one_line(error):
    text = str(error.value)
    assert "\n" not in text
    return text


def test_a_file_cut_short_anywhere_is_refused(good):
    whole = good.read_bytes()
    for size in (0, 1, 47, 48, 49, len(whole) // 2, len(whole) - 48, len(whole) - 1):
        good.write_bytes(whole[:size])
        with pytest.raises(CheckpointError, match="is truncated") as error:
            read(good)
        assert str(good) in one_line(error)


def test_a_mark_alone_and_more_than_was_written_are_refused(good):
    whole = good.read_bytes()
    for content in (_MARK, whole + b"x", whole[:-48] * 2 + whole[-48:]):
        good.write_bytes(content)
        with pytest.raises(CheckpointError):
            read(good)


def test_too_little_memory_does_not_make_a_file_bad(good, monkeypatch):
    def load(*args, **kwargs):
        raise MemoryError

    monkeypatch.setattr(torch, "load", load)
    with pytest.raises(MemoryError):
        load_latest(good.parent)


def test_foreign_files_are_refused(tmp_path):
    torch.save({"steps": 1}, tmp_path / "torch.ckpt")
    (tmp_path / "text.ckpt").write_text("hello " * 20)
    (tmp_path / "folder.ckpt").mkdir()
    for name in ("torch", "text"):
        with pytest.raises(CheckpointError, match="fabric-rl did not write it") as error:
            read(tmp_path / f"{name}.ckpt")
        one_line(error)
    for name in ("folder", "missing"):
        with pytest.raises(CheckpointError, match="cannot be read") as error:
            read(tmp_path / f"{name}.ckpt")
        one_line(error)


def seal(path, content):
    """A trailer that is right, for any content: what somebody could do on purpose."""
    path.write_bytes(content + _TRAILER.pack(_MARK, len(content), hashlib.sha256(content).digest()))


class Evil:
    def __init__(self, victim):
        self.victim = victim

    def __reduce__(self):
        return os.mkdir, (str(self.victim),)


def test_a_file_that_wants_to_execute_code_is_refused_unexecuted(tmp_path):
    torch.save({"steps": 1, "evil": Evil(tmp_path / "executed")}, tmp_path / "inner")
    seal(tmp_path / "evil.ckpt", (tmp_path / "inner").read_bytes())
    with pytest.raises(CheckpointError, match="would execute code") as error:
        read(tmp_path / "evil.ckpt")
    one_line(error)
    assert not (tmp_path / "executed").exists()
    torch.load(tmp_path / "inner", weights_only=False)
    assert (tmp_path / "executed").exists()  # it was a real one


def test_sealed_nonsense_is_refused(tmp_path):
    contents = {"bytes": b"no archive at all", "empty": b""}
    for name, state in {
        "tag": {"__type__": "unknown"},
        "shape": {"__type__": "scalar", "dtype": 3},
        "list": [1],
    }.items():
        torch.save(state, tmp_path / "inner")
        contents[name] = (tmp_path / "inner").read_bytes()
    for name, content in contents.items():
        seal(tmp_path / f"{name}.ckpt", content)
        with pytest.raises(CheckpointError, match="was rejected") as error:
            read(tmp_path / f"{name}.ckpt")
        one_line(error)


# ---------------------------------------------------------------- folders


def test_a_tensor_is_saved_once_and_without_the_rest_of_its_storage(tmp_path):
    weight = torch.zeros(1000, 1000)
    write(tmp_path / "a.ckpt", {"row": weight[5], "tied": weight[6], "again": weight[5]})
    assert (tmp_path / "a.ckpt").stat().st_size < 20_000
    assert read(tmp_path / "a.ckpt")["row"].shape == (1000,)
    assert torch.load(tmp_path / "a.ckpt", weights_only=True)["row"].shape == (1000,)  # torch itself opens the file


def fill(folder, *steps):
    for n in steps:
        write(folder / checkpoint_name(n), {"steps": n})


def spoil(path):
    content = bytearray(path.read_bytes())
    content[100] ^= 1
    path.write_bytes(content)


def steps_in(folder):
    return [checkpoint_steps(path) for path in list_checkpoints(folder)]


def test_names_sort_by_steps(tmp_path):
    assert checkpoint_name(1_000_000) == "step_000001000000.ckpt"
    fill(tmp_path, 5, 10**13, 999_999_999_999, 40)
    for name in ("step_x.ckpt", "final.ckpt", "step_000000000050.ckpt.bak"):
        (tmp_path / name).write_bytes(b"")
    assert steps_in(tmp_path) == [5, 40, 999_999_999_999, 10**13]
    assert list_checkpoints(tmp_path / "missing") == []
    with pytest.raises(ValueError, match=r"final\.ckpt"):
        checkpoint_steps(tmp_path / "final.ckpt")


def test_the_newest_good_one_is_found_and_each_damaged_one_told_once(tmp_path):
    fill(tmp_path, 10, 20, 30, 40)
    spoil(tmp_path / checkpoint_name(30))
    (tmp_path / checkpoint_name(40)).write_bytes(b"")
    before = sorted(path.name for path in tmp_path.iterdir())
    with pytest.warns(CheckpointWarning) as warned:
        found = load_latest(tmp_path)
    assert found == (tmp_path / checkpoint_name(20), {"steps": 20})
    assert [checkpoint_name(n) in str(w.message) for n, w in zip((40, 30), warned, strict=True)] == [True, True]
    assert sorted(path.name for path in tmp_path.iterdir()) == before


def test_no_checkpoint_is_none_but_only_damaged_ones_are_an_error(tmp_path):
    assert load_latest(tmp_path / "missing") is None
    assert load_latest(tmp_path) is None
    fill(tmp_path, 10)
    spoil(tmp_path / checkpoint_name(10))
    with pytest.warns(CheckpointWarning), pytest.raises(CheckpointError, match="none of the 1 checkpoints"):
        load_latest(tmp_path)


def test_prune_keeps_the_newest(tmp_path):
    fill(tmp_path, 10, 20, 30, 40)
    assert [checkpoint_steps(path) for path in prune(tmp_path, 2)] == [10, 20]
    assert steps_in(tmp_path) == [30, 40]
    assert prune(tmp_path, 5) == []


def test_prune_never_removes_the_newest_good_one(tmp_path):
    fill(tmp_path, 10, 20, 30, 40)
    spoil(tmp_path / checkpoint_name(30))
    spoil(tmp_path / checkpoint_name(40))
    prune(tmp_path, 2)
    assert steps_in(tmp_path) == [20, 30, 40]
    spoil(tmp_path / checkpoint_name(20))
    assert prune(tmp_path, 1) == []


def test_content_is_on_disk_before_the_name_and_the_name_before_write_returns(tmp_path, monkeypatch):
    calls = []
    fsync, replace = os.fsync, os.replace
    monkeypatch.setattr(os, "fsync", lambda handle: (calls.append(os.fstat(handle)), fsync(handle)))
    monkeypatch.setattr(os, "replace", lambda a, b: (calls.append((Path(a), Path(b))), replace(a, b)))
    path = tmp_path / checkpoint_name(1)
    write(path, {"steps": 1})
    content, (temporary, final), *folder = calls
    assert (content.st_size, content.st_ino) == (path.stat().st_size, path.stat().st_ino)
    assert (temporary.parent, final) == (tmp_path, path)
    if os.name == "posix":
        assert [status.st_ino for status in folder] == [tmp_path.stat().st_ino]


@pytest.mark.skipif(os.name != "posix", reason="limits the size of files")
def test_a_full_disk_leaves_the_checkpoints_and_nothing_else(tmp_path):
    import resource

    fill(tmp_path, 10)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, hard))
    try:
        with pytest.raises(CheckpointError, match="cannot be written") as error:
            write(tmp_path / checkpoint_name(20), {"weights": torch.zeros(100_000)})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    one_line(error)
    assert isinstance(error.value.__cause__, OSError)
    assert [path.name for path in tmp_path.iterdir()] == [checkpoint_name(10)]
    assert load_latest(tmp_path) == (tmp_path / checkpoint_name(10), {"steps": 10})


@pytest.mark.skipif(os.name != "posix", reason="kill -9")
def test_what_a_killed_writer_leaves_is_ignored_and_removed(tmp_path):
    fill(tmp_path, 10)
    child = os.fork()
    if child == 0:
        os.replace = lambda temporary, path: os.kill(os.getpid(), signal.SIGKILL)
        fill(tmp_path, 20)
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
    assert len(list(tmp_path.iterdir())) == 2
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert load_latest(tmp_path) == (tmp_path / checkpoint_name(10), {"steps": 10})
    fill(tmp_path, 30)
    assert sorted(path.name for path in tmp_path.iterdir()) == [checkpoint_name(10), checkpoint_name(30)]


# ---------------------------------------------------------------- several ranks


def pack(fabric):
    """What rank 0 gets; the other one makes sure that it gets nothing."""
    packed = gather_object(fabric, {"rank": fabric.global_rank, "array": np.arange(1 + fabric.global_rank)})
    assert (packed is None) == (fabric.global_rank == 1)
    return packed


@pytest.mark.skipif(os.name != "posix", reason="forks")
def test_one_list_holds_what_every_rank_has(monkeypatch):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        monkeypatch.setenv("MASTER_PORT", str(free.getsockname()[1]))  # and monkeypatch removes it again
    packed = Fabric(accelerator="cpu", devices=2, strategy="ddp_fork").launch(pack)
    assert same(packed, [{"rank": 0, "array": np.array([0])}, {"rank": 1, "array": np.array([0, 1])}])


# ---------------------------------------------------------------- files that somebody made: lies with a right checksum


def forged(path, state):
    """What `write` would have written of a state that it would never have made."""
    buffer = io.BytesIO()
    torch.save(state, buffer)
    content = buffer.getvalue()
    path.write_bytes(content + _TRAILER.pack(_MARK, len(content), hashlib.sha256(content).digest()))
    return path


def array(dtype, shape, content=bytes(16)):
    data = torch.tensor(list(content), dtype=torch.uint8)
    return {"__type__": "array", "dtype": dtype, "shape": shape, "data": data}


def nested(levels):
    state = {}
    for _ in range(levels):
        state = {"a": state}
    return state


LIES = {
    "objects": array("|O", [2]),
    "objects inside": array([("a", "|O")], [2]),
    "larger than its content": array("<f8", [1000]),
    "smaller than its content": array("<f8", [1]),
    "negative": array("<f8", [-2]),
    "without end": array("<f8", [2**40, 2**20]),
    "no bytes, without end": array("<f8", [0, 2**62], b""),
    "a bool that is none": array("|b1", [16], bytes([7] * 16)),
    "a character that is none": array("<U4", [1], b"\xff" * 16),
    "a tensor of another size": torch.zeros(1).expand(10**9),
    "deep": nested(3000),
    "no type": {"__type__": "module", "items": []},
}


@pytest.mark.parametrize("lie", LIES.values(), ids=LIES)
def test_a_forged_checkpoint_is_refused_in_one_line(tmp_path, lie):
    """numpy would read memory that is not there, call what a pointer says, or allocate without end."""
    try:
        path = forged(tmp_path / "step_000000000001.ckpt", {"a": lie})
    except RecursionError:
        pytest.skip("this Python does not write so deep a file")
    with pytest.raises(CheckpointError, match=r"was rejected: fabric-rl did not write it$"):
        read(path)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="POSIX")
@pytest.mark.parametrize("make", [os.mkdir, getattr(os, "mkfifo", None)])
def test_what_is_no_file_is_refused_without_waiting(tmp_path, make):
    path = tmp_path / "step_000000000001.ckpt"
    make(path)
    for look in (read, verify):
        with pytest.raises(CheckpointError, match="cannot be read: "):
            look(path)


# ---------------------------------------------------------------- formats


def test_a_file_of_a_newer_format_is_refused_in_one_line_and_no_older_one_takes_its_place(tmp_path, monkeypatch):
    write(tmp_path / checkpoint_name(1), {"steps": 1})
    monkeypatch.setattr("fabric_rl.runs.checkpoint.FORMAT", 2)
    write(tmp_path / checkpoint_name(2), {"steps": 2})
    monkeypatch.undo()
    says = r"^checkpoint .*step_000000000002\.ckpt has format 2, but this fabric-rl reads 1; install a newer version$"
    with pytest.raises(NewerFormatError, match=says):
        read(tmp_path / checkpoint_name(2))
    with pytest.raises(NewerFormatError, match=says):
        load_latest(tmp_path)


@pytest.mark.parametrize("number", [0, -1, 2.0, "2", None, True, [2], torch.tensor(2)])
def test_what_is_no_number_of_a_format_is_damaged_and_an_older_file_takes_its_place(tmp_path, monkeypatch, number):
    write(tmp_path / checkpoint_name(1), {"steps": 1})
    monkeypatch.setattr("fabric_rl.runs.checkpoint.FORMAT", number)
    write(tmp_path / checkpoint_name(2), {"steps": 2})
    monkeypatch.undo()
    with pytest.warns(CheckpointWarning, match="was rejected: fabric-rl did not write it; trying the previous one"):
        assert load_latest(tmp_path) == (tmp_path / checkpoint_name(1), {"steps": 1})


def test_a_file_that_names_no_format_is_of_the_first_one(tmp_path):
    content = io.BytesIO()
    torch.save(encode_state({"steps": 1}), content)
    data = content.getvalue()
    trailer = _TRAILER.pack(_MARK, len(data), hashlib.sha256(data).digest())
    (tmp_path / "first.ckpt").write_bytes(data + trailer)
    assert read(tmp_path / "first.ckpt") == {"steps": 1}


shapes = hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=3)
plain = hnp.boolean_dtypes() | hnp.integer_dtypes(endianness="?") | hnp.floating_dtypes(endianness="?")
dtypes = plain | hnp.unicode_string_dtypes(max_len=3) | hnp.array_dtypes(plain, max_size=3)
tensors = st.sampled_from(["bool", "uint8", "int16", "int64", "float32", "float64"]).flatmap(
    lambda name: hnp.arrays(name, shapes).map(lambda array: torch.from_numpy(np.ascontiguousarray(array)))
)
numbers = st.none() | st.booleans() | st.integers() | st.floats()
keys = st.integers(-5, 5) | st.text(max_size=3) | st.booleans() | st.none()
leaves = numbers | st.text() | st.binary() | dtypes.flatmap(lambda dtype: hnp.arrays(dtype, shapes)) | tensors
leaves |= hnp.arrays(plain, 1).map(lambda array: array[0])
states = st.recursive(
    leaves,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.lists(inner, max_size=4).map(tuple)
        | st.lists(inner, max_size=4).map(lambda items: deque(items, maxlen=5))
        | st.sets(keys, max_size=4)
        | st.frozensets(keys, max_size=4)
        | st.dictionaries(keys | st.tuples(keys, keys) | st.just("__type__"), inner, max_size=4)
        | st.dictionaries(keys, inner, max_size=4).map(OrderedDict)
    ),
    max_leaves=8,
)


@given(st.dictionaries(st.text(max_size=3), states, max_size=3))
def test_what_is_in_a_file_comes_back(tmp_path_factory, state):
    path, before = tmp_path_factory.getbasetemp() / "step_000000000001.ckpt", copy.deepcopy(state)
    write(path, state)
    assert same(read(path), before) and same(state, before)


@pytest.fixture(scope="module")
def content(tmp_path_factory):
    path = tmp_path_factory.mktemp("whole") / "step_000000000001.ckpt"
    write(path, {"agent": torch.arange(5), "steps": 1})
    return path.read_bytes()


@given(data=st.data())
def test_no_changed_byte_and_no_lost_end_goes_unnoticed(content, tmp_path_factory, data):
    place, change = data.draw(st.integers(0, len(content) - 1)), data.draw(st.integers(1, 255))
    damaged = bytearray(content)
    damaged[place] ^= change
    path = tmp_path_factory.getbasetemp() / "damaged.ckpt"
    for bad in (damaged, content[:place], content[place + 1 :]):
        path.write_bytes(bad)
        for reader in (read, verify):
            with pytest.raises(CheckpointError, match=r"damaged\.ckpt is (damaged|truncated)"):
                reader(path)
