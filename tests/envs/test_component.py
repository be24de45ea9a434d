"""Component: the tree of a pool's parts, and components that name what they remember."""

from functools import partial
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest

from envs import CombinedReward, EventReward, FaceBallReward, GoalReward, Reward, RewardSignals, TouchReward
from envs.component import Component, unique_names
from envs.factories import to_config, unwrap_partial
from envs.pool.rocket_pool import RocketSimPool
from envs.processes.process_pool import ProcessPool
from envs.resets import Kickoff
from envs.state.game_state import GameState
from fabric_rl.base.parser import FlagParser
from fabric_rl.types import EnvFactory


class Counter(Component):
    _in_state_dict: ClassVar[dict[str, str]] = {"total": "_total"}

    def __init__(self, total):
        self._total = np.array(total, np.float32)


class Several(Component):
    _in_state_dict: ClassVar[dict[str, str]] = {"parts": "parts", "named": "named", "phase": "phase"}

    def __init__(self, first, second, third, phase):
        self.parts, self.named, self.phase = (Counter(first), Counter(second)), {"third": Counter(third)}, phase


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


class Tuned(RocketSimPool):
    def __init__(self, num_arenas=3, **others):
        super().__init__(num_arenas, **others)


def test_nested_partials_are_one_call():
    call = unwrap_partial(partial(partial(RocketSimPool, 4, tick_skip=6), 2, tick_skip=8))
    assert call == (RocketSimPool, (4, 2), {"tick_skip": 8})
    assert call.arguments() == {"num_arenas": 4, "team_size": 2, "tick_skip": 8}
    assert unwrap_partial(RocketSimPool) == (RocketSimPool, (), {})
    call = unwrap_partial(partial(ProcessPool, RocketSimPool, 2))
    assert call.arguments() == {"factory": RocketSimPool, "num_workers": 2}
    setter = Kickoff()
    assert unwrap_partial(partial(Tuned, 2, state_setter=setter)).arguments() == {
        "num_arenas": 2,
        "state_setter": setter,
    }
    with pytest.raises(TypeError, match="unexpected keyword argument 'arenas'"):
        unwrap_partial(partial(RocketSimPool, arenas=4)).arguments()


def test_what_jsonargparse_hands_out_is_the_class():
    flags = ["--env=envs.ProcessPool", "--env.factory=envs.RocketSimPool", "--env.factory.num_arenas=5"]
    parser = FlagParser(exit_on_error=False)
    parser.add_argument("--env", type=EnvFactory)
    call = unwrap_partial(parser.instantiate(parser.parse_args(flags)).env)
    assert call.function is ProcessPool and call.args == ()
    inner = unwrap_partial(call.arguments()["factory"])
    assert inner.function is RocketSimPool and inner.arguments()["num_arenas"] == 5


def test_parts_are_written_in_the_words_of_a_configuration():
    reward = CombinedReward([TouchReward(), GoalReward()], [1.0, 10.0])
    pool = partial(RocketSimPool, 4, (1, 1), reward=reward, collision_meshes=Path("meshes"))
    terms = [{"class_path": "envs.TouchReward"}, {"class_path": "envs.GoalReward"}]
    assert to_config(partial(ProcessPool, pool, num_workers=np.int64(2))) == {
        "class_path": "envs.ProcessPool",
        "init_args": {
            "factory": {
                "class_path": "envs.RocketSimPool",
                "init_args": {
                    "num_arenas": 4,
                    "team_size": [1, 1],
                    "reward": {
                        "class_path": "envs.CombinedReward",
                        "init_args": {"rewards": terms, "weights": [1.0, 10.0]},
                    },
                    "collision_meshes": "meshes",
                },
            },
            "num_workers": 2,
        },
    }
    assert to_config(RocketSimPool) == "envs.RocketSimPool" and to_config(Tuned) == f"{__name__}.Tuned"


class Forgets:
    def __init__(self, size):
        self.double = 2 * size


class Changed:
    def __init__(self, size=1):
        self.size, self.seen = size, 0


def test_what_cannot_be_built_again_is_not_written():
    assert to_config(Changed(3))["init_args"] == {"size": 3}
    changed = Changed(3)
    changed.seen = 1
    for value, name in ((lambda: 1, "<lambda>"), (Forgets(2), "Forgets"), (changed, "Changed")):
        with pytest.raises(ValueError, match=name):
            to_config([value])


@pytest.mark.parametrize(
    ("labels", "names"),
    [
        (["A", "A", "B", "A"], ["A", "A_2", "B", "A_3"]),
        (["A_2", "A"], ["A_2", "A"]),
        (["A", "A", "A_2"], ["A", "A_2", "A_2_2"]),
    ],
)
def test_names_are_unique(labels, names):
    assert unique_names(labels) == names
