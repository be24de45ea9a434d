"""What a factory comes to is found through every partial around it."""

from functools import partial

import pytest

from envs import Kickoff, ProcessPool, RocketSimPool
from envs.partials import taken_apart
from fabric_rl.flags.parser import FlagParser
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
