"""Parts that return nonsense, and settings that cannot work: one line that names the part or the argument."""

import gymnasium
import numpy as np
import pytest

from benchmarks.rlgym_guide import build_env
from envs import CombinedReward, GoalReward, Reward, RewardSignals
from envs.actions import LookupTable
from envs.adapters.rlgym_pool import RLGymPool
from envs.dones import AllOf, AnyOf, DoneCondition, GoalCondition
from envs.obs import AdvancedObs, ObsBuilder, PrivilegedObs, StackedObs
from envs.pool.rocket_pool import RocketSimPool
from envs.resets import Kickoff, MirroredStates, MixedStates, ShuffledCars, StateSetter


def one_line(error, message):
    return pytest.raises(error, match=rf"^(?!.*\n){message}")


def run(steps=1, **parts):
    pool = RocketSimPool(2, num_threads=1, **parts)
    try:
        pool.reset(seed=0)
        for _ in range(steps):
            pool.step(np.zeros((4, *(pool.single_action_space.shape or ())), pool.single_action_space.dtype))
    finally:
        pool.close()


class Pays(Reward):
    def __init__(self, value):
        self.value = value

    def compute(self, state):
        return self.value


PAID = [
    (None, "NoneType"),
    (1.0, "float"),
    ("high", "str"),
    ([[0.0, 0.0]] * 2, "list"),
    (np.float32(1), "float32"),
    (np.full((2, 2), "a"), r"<U1 of shape \[2, 2\]"),
    (np.zeros((2, 2), complex), r"complex128 of shape \[2, 2\]"),
    (np.zeros(2), r"float64 of shape \[2\]"),
]


@pytest.mark.parametrize(("value", "got"), PAID, ids=[str(got) for _, got in PAID])
def test_a_reward_of_the_wrong_type_is_named(value, got):
    expected = r"compute\(\) returned " + got + r", expected \[arenas, cars\] = \[2, 2\] numbers"
    for reward, name in (
        (Pays(value), "Pays: "),
        (CombinedReward([GoalReward(), Pays(value)], [1, 1]), "Pays: "),
        (RewardSignals({"goal": GoalReward(), "mine": Pays(value)}), r"Pays \(signal mine\): "),
    ):
        with one_line(ValueError, name + expected):
            run(reward=reward)


def test_numbers_of_other_types_are_taken_and_parsers_named():
    run(reward=Pays(np.ones((2, 2), np.int64)))
    run(reward=CombinedReward([Pays(np.ones((2, 2), bool)), Pays(np.ones((2, 2)))], [1, 1]))

    class Parses(LookupTable):
        def parse(self, actions, state):
            return super().parse(actions, state).rows

    class Masks(LookupTable):
        def mask(self, state):
            return np.ones((4, 90), bool)

    with one_line(ValueError, r"Parses: parse\(\) must return envs.actions.Controls, got ndarray"):
        run(action=Parses())
    with one_line(ValueError, r"Masks: mask\(\) must return bools .* got bool of shape \[4, 90\]"):
        run(action=Masks())


class Ends(DoneCondition):
    def __init__(self, value):
        self.value = value

    def check(self, state):
        return self.value


ENDED = [
    (None, "NoneType"),
    (False, "bool"),
    (np.zeros(2), r"float64 of shape \[2\]"),
    (np.zeros(2, np.int8), r"int8 of shape \[2\]"),
    (np.zeros(4, bool), r"bool of shape \[4\]"),
    (np.zeros((2, 2), bool), r"bool of shape \[2, 2\]"),
    (np.zeros((), bool), r"bool of shape \[\]"),
]


@pytest.mark.parametrize(("value", "got"), ENDED, ids=[got for _, got in ENDED])
def test_a_condition_of_the_wrong_type_is_named(value, got):
    for done in (Ends(value), [GoalCondition(), Ends(value)], AnyOf(Ends(value)), AllOf(GoalCondition(), Ends(value))):
        with one_line(ValueError, rf"Ends: check\(\) returned {got}, expected bools of shape \[arenas\] = \[2\]"):
            run(done=done)


class Columns(ObsBuilder):
    """Six columns, of which it writes `written`, from numbers of `shape`."""

    def __init__(self, written=slice(0, 6), shape=(6,), dtype=np.float32, bad_when_playing=False):
        self.written, self.shape, self.dtype, self.later = written, shape, dtype, bad_when_playing

    def space(self, num_blue, num_orange):
        return gymnasium.spaces.Box(-1, 1, (6,), self.dtype)

    def build(self, state, out):
        if self.later and not state.episode_ticks.any():
            out[:] = 0
        else:
            out[..., self.written] = np.ones((state.num_arenas, state.num_cars, *self.shape))
        return out


def test_an_observation_of_the_wrong_shape_is_named():
    for obs in (Columns(shape=(7,)), StackedObs(Columns(shape=(7,)), 2), Columns(shape=(7,), bad_when_playing=True)):
        with one_line(ValueError, r"Columns: build\(\) could not write to out, .* \[2, 2, 6\]: could not broadcast"):
            run(obs=obs)
    with one_line(ValueError, r"Columns: build\(\) could not write to out"):
        run(obs=StackedObs(Columns(shape=(7,), bad_when_playing=True), 2))


@pytest.mark.parametrize("written", [slice(0, 5), slice(0, 0), slice(1, 5)])
def test_columns_that_nobody_writes_are_named(written):
    left = sorted(set(range(6)) - set(range(6)[written]))
    what = f"column {left[0]}" if len(left) == 1 else rf"{len(left)} columns \(the first is {left[0]}\)"
    shape = (len(range(6)[written]),)
    expected = rf"build\(\) left {what} of 6 unwritten"
    with one_line(ValueError, "Columns: " + expected):
        run(steps=0, obs=Columns(written, shape))
    with one_line(ValueError, "Columns: " + expected):
        run(steps=0, obs=StackedObs(Columns(written, shape), 2))
    with one_line(ValueError, r"PrivilegedObs: build\(\) left"):
        run(steps=0, obs=PrivilegedObs(AdvancedObs(), Columns(written, shape)))


def test_written_nan_and_absent_cars_are_told_from_unwritten():
    class NaN(Columns):
        def build(self, state, out):
            out[:] = np.nan

    with pytest.raises(FloatingPointError, match="NaN: nan in the observations of arena 0, car 0"):
        run(steps=0, obs=NaN())
    run(obs=Columns(), team_size=[(1, 1), (1, 1)])

    class Present(Columns):
        def build(self, state, out):
            out[state.present] = 1

    pool = RocketSimPool(2, [(1, 0), (1, 1)], obs=Present(), num_threads=1)
    assert pool.reset()[0].shape == (3, 6)


@pytest.mark.parametrize("dtype", [np.float64, np.int8])
def test_observations_are_float32(dtype):
    with one_line(ValueError, r"Columns: space\(\) must return a float32 Box"):
        RocketSimPool(1, obs=Columns(dtype=dtype))


class Spoils(StateSetter):
    def apply(self, state, mask, rng):
        Kickoff().apply(state, mask, rng)
        state.boost[mask] = 500


def test_the_innermost_setter_is_named():
    bad = Spoils()
    for setter, name in (
        (MixedStates([Kickoff(), bad], [0, 1]), r"Spoils \(in MixedStates\)"),
        (MirroredStates(bad), r"Spoils \(in MirroredStates\)"),
        (ShuffledCars(MixedStates([bad], [2])), r"Spoils \(in MixedStates\) \(in ShuffledCars\)"),
    ):
        with one_line(ValueError, f"{name}: in arena 0 car 0 would start with boost 500"):
            run(steps=0, state_setter=setter)


@pytest.mark.parametrize(
    ("actions", "message"),
    [
        (None, "RocketSimPool: actions must be an array of numbers, got NoneType"),
        ("a", "RocketSimPool: actions must be an array of numbers, got str"),
        (["a"] * 4, "RocketSimPool: actions must be an array of numbers"),
        ([[1], [1, 2], 3, 4], "RocketSimPool: actions must be an array of numbers"),
        (3, "RocketSimPool: actions must have 4 rows, one per car, got shape"),
        ([1, 2, 90, 4], "LookupTable: action 90"),
    ],
)
def test_actions_that_are_none(actions, message):
    pool = RocketSimPool(2, num_threads=1)
    pool.reset(seed=0)
    with one_line(ValueError, message):
        pool.step(actions)
    pool.step([1, 2, 3, 4])  # nothing had happened
    assert pool.state.episode_ticks.tolist() == [8, 8]


def test_rlgym_pools_refuse_actions_and_states():
    pool = RLGymPool(build_env, 1)
    pool.reset(seed=0)
    for actions, message in (
        ([3, 90], "action 90 of sub-environment 1 is outside 0..89"),
        ([-1, 3], "action -1 of sub-environment 0"),
        (None, "actions must be an array of numbers, got NoneType"),
    ):
        with one_line(ValueError, f"RLGymPool: {message}"):
            pool.step(actions)
    pool.step([3, 4])
    for call in (pool.state_dict, lambda: pool.load_state_dict({})):
        with one_line(TypeError, "RLGymPool: RLGym environments cannot be"):
            call()
