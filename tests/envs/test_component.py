"""Component: the tree of a pool's parts, and components that name what they remember."""

from typing import ClassVar

import numpy as np
import pytest

from envs import EventReward, FaceBallReward, GameState, Reward, RewardSignals
from envs.component import Component


class Counter(Component):
    _in_state_dict: ClassVar[dict[str, str]] = {"total": "_total"}

    def __init__(self, total):
        self._total = np.array(total, np.float32)


class Several(Component):
    _in_state_dict: ClassVar[dict[str, str]] = {"parts": "parts", "named": "named", "phase": "phase"}

    def __init__(self, first, second, third, phase):
        self.parts, self.named, self.phase = (Counter(first), Counter(second)), {"third": Counter(third)}, phase


def test_a_component_without_memory_saves_nothing():
    assert Component().state_dict() == {}
    Component().load_state_dict({})


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


class Watched(Component):
    """Counts its resets, and reports them."""

    def __init__(self, name):
        self.name, self.begun = name, []

    def reset(self, mask, state):
        self.begun.append((mask.tolist(), state))

    def drain_metrics(self):
        return {self.name: (float(len(self.begun)), 1.0)}


class Around(Component):
    """Writes nothing of its own: what is inside is found."""

    def __init__(self, *inner):
        self.inner, self.more, self.named = inner[0], list(inner[1:3]), {"last": inner[3]}
        self._hidden, self.number = inner[4], 7


def test_reset_and_metrics_reach_all_that_is_inside():
    parts = [Watched(name) for name in "abcde"]
    tree = Around(Around(*parts), *(Watched(name) for name in "fgh"), Watched("hidden"))
    mask = np.array([True, False])
    tree.reset(mask, "state")
    assert [part.begun for part in parts] == [[([True, False], "state")]] * 4 + [[]]  # what is private is not a part
    assert tree.drain_metrics() == dict.fromkeys("abcdfgh", (1.0, 1.0))
    assert [getattr(part, "name", "") for part in tree.walk()] == ["", "", *"abcd", *"fgh"]


def test_a_reward_around_others_needs_neither_reset_nor_metrics():
    """A user's own wrapper, written with nothing but `compute`."""

    class Doubled(Reward):
        def __init__(self, reward: Reward):
            self.reward = reward

        def compute(self, state):
            return 2 * self.reward.compute(state)

    before = GameState.from_numbers([(0, -1000, 17), (0, 2000, 17)])
    after = GameState.from_numbers([(0, -1000, 17), (0, 2000, 17)], ball_pos=(0, 5300, 100), touched=[True, False])
    doubled = Doubled(EventReward(goal=10.0, concede=-5.0))
    doubled.reset(np.ones(1, bool), before)
    assert doubled.compute(after).tolist() == [[20.0, -10.0]]
    assert doubled.remembers() and not Doubled(FaceBallReward()).remembers()
    assert RewardSignals({"event": EventReward(goal=1.0)}).remembers()
