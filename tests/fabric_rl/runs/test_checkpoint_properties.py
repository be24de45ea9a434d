"""Whatever a state holds comes back as it was; whatever happens to a file is noticed."""

import copy
from collections import OrderedDict, deque

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from fabric_rl.runs.checkpoint import from_primitives, read, to_primitives, verify, write
from fabric_rl.types import CheckpointError

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


def assert_same(one, other):
    assert type(one) is type(other)
    if isinstance(one, dict):
        assert [(type(key), key) for key in one] == [(type(key), key) for key in other]
        for key in one:
            assert_same(one[key], other[key])
    elif isinstance(one, list | tuple | deque):
        assert len(one) == len(other) and getattr(one, "maxlen", 0) == getattr(other, "maxlen", 0)
        for pair in zip(one, other, strict=True):
            assert_same(*pair)
    elif isinstance(one, torch.Tensor):
        assert (one.dtype, one.shape) == (other.dtype, other.shape)
        assert one.numpy().tobytes() == other.numpy().tobytes()
    elif isinstance(one, np.ndarray | np.generic):
        assert (one.dtype, one.shape, one.tobytes()) == (other.dtype, other.shape, other.tobytes())
    else:
        assert one == other or (one != one and other != other)


@given(states)
def test_what_is_in_a_state_comes_back(state):
    before = copy.deepcopy(state)
    assert_same(from_primitives(to_primitives(state)), before)
    assert_same(state, before)


@given(st.dictionaries(st.text(max_size=3), states, max_size=3))
def test_what_is_in_a_file_comes_back(tmp_path_factory, state):
    path = tmp_path_factory.getbasetemp() / "step_000000000001.ckpt"
    write(path, state)
    assert_same(read(path), state)


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
            with pytest.raises(CheckpointError, match=r"damaged\.ckpt is (damaged|cut short)"):
                reader(path)
