"""What a factory comes to is found through every partial around it."""

from functools import partial
from pathlib import Path

import numpy as np
import pytest

from envs import CombinedReward, GoalReward, Kickoff, ProcessPool, RocketSimPool, TouchReward
from envs.partials import as_settings, taken_apart
from fabric_rl.base.parser import FlagParser
from fabric_rl.types import EnvFactory


class Tuned(RocketSimPool):
    def __init__(self, num_arenas=3, **others):
        super().__init__(num_arenas, **others)


def test_nested_partials_are_one_call():
    call = taken_apart(partial(partial(RocketSimPool, 4, tick_skip=6), 2, tick_skip=8))
    assert call == (RocketSimPool, (4, 2), {"tick_skip": 8})
    assert call.named() == {"num_arenas": 4, "team_size": 2, "tick_skip": 8}
    assert taken_apart(RocketSimPool) == (RocketSimPool, (), {})


def test_what_jsonargparse_hands_out_is_the_class():
    flags = ["--env=envs.ProcessPool", "--env.factory=envs.RocketSimPool", "--env.factory.num_arenas=5"]
    parser = FlagParser(exit_on_error=False)
    parser.add_argument("--env", type=EnvFactory)
    call = taken_apart(parser.instantiate(parser.parse_args(flags)).env)
    assert call.function is ProcessPool and call.args == ()
    inner = taken_apart(call.named()["factory"])
    assert inner.function is RocketSimPool and inner.named()["num_arenas"] == 5


def test_a_class_among_the_arguments_of_a_class_is_an_argument():
    call = taken_apart(partial(ProcessPool, RocketSimPool, 2))
    assert call.named() == {"factory": RocketSimPool, "num_workers": 2}


def test_settings_without_a_parameter_keep_their_names():
    setter = Kickoff()
    assert taken_apart(partial(Tuned, 2, state_setter=setter)).named() == {"num_arenas": 2, "state_setter": setter}


def test_wrong_arguments_are_refused():
    with pytest.raises(TypeError, match="unexpected keyword argument 'arenas'"):
        taken_apart(partial(RocketSimPool, arenas=4)).named()


def test_parts_are_written_in_the_words_of_a_configuration():
    reward = CombinedReward([TouchReward(), GoalReward()], [1.0, 10.0])
    pool = partial(RocketSimPool, 4, (1, 1), reward=reward, collision_meshes=Path("meshes"))
    terms = [{"class_path": "envs.TouchReward"}, {"class_path": "envs.GoalReward"}]
    assert as_settings(partial(ProcessPool, pool, num_workers=np.int64(2))) == {
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
    assert as_settings(RocketSimPool) == "envs.RocketSimPool" and as_settings(Tuned) == f"{__name__}.Tuned"


class Forgets:
    def __init__(self, size):
        self.double = 2 * size


class Changed:
    def __init__(self, size=1):
        self.size, self.seen = size, 0


def test_what_cannot_be_built_again_is_not_written():
    assert as_settings(Changed(3))["init_args"] == {"size": 3}
    changed = Changed(3)
    changed.seen = 1
    for value, name in ((lambda: 1, "<lambda>"), (Forgets(2), "Forgets"), (changed, "Changed")):
        with pytest.raises(ValueError, match=name):
            as_settings([value])
