"""Stateful: components that name what they remember."""

from typing import ClassVar

import numpy as np
import pytest

from envs.stateful import Stateful


class Counter(Stateful):
    _in_state_dict: ClassVar[dict[str, str]] = {"total": "_total"}

    def __init__(self, total):
        self._total = np.array(total, np.float32)


class Several(Stateful):
    _in_state_dict: ClassVar[dict[str, str]] = {"parts": "parts", "named": "named", "phase": "phase"}

    def __init__(self, first, second, third, phase):
        self.parts, self.named, self.phase = (Counter(first), Counter(second)), {"third": Counter(third)}, phase


def test_a_component_without_memory_saves_nothing():
    assert Stateful().state_dict() == {}
    Stateful().load_state_dict({})


def test_copies_of_all_that_is_named_are_saved_and_restored_into_the_same_objects():
    saved, other = Several(1, 2, 3, "main"), Several(0, 0, 0, "first")
    state = saved.state_dict()
    saved.parts[0]._total += 10
    assert state == {"parts": [{"total": 1}, {"total": 2}], "named": {"third": {"total": 3}}, "phase": "main"}
    parts = other.parts
    other.load_state_dict(state)
    state["parts"][0]["total"] += 10
    assert [float(part._total) for part in (*parts, other.named["third"])] == [1, 2, 3]
    assert (other.parts, other.phase, parts[0]._total.dtype) == (parts, "main", np.float32)


def test_another_number_of_parts_is_refused():
    state = Several(1, 2, 3, "main").state_dict()
    state["parts"].pop()
    with pytest.raises(ValueError, match="zip"):
        Several(1, 2, 3, "main").load_state_dict(state)
