"""Mirrored states and shuffled cars: symmetries of the field, of the physics, and of what was written."""

import numpy as np
import pytest
from rlgym.rocket_league.common_values import BOOST_LOCATIONS

from envs import GameState, RocketSimPool, TimeoutCondition
from envs.resets import (
    ExplicitState,
    Kickoff,
    MirroredStates,
    MixedStates,
    RandomState,
    ShuffledCars,
    StateSetter,
    TurtledStart,
    exchange_teams,
    mirror_left_right,
)
from envs.resets.mixtures import PADS_MIRRORED_X
from tests.envs.fakes import written

ARRAYS = ("ball_pos", "ball_vel", "ball_ang_vel", "car_pos", "car_vel", "car_ang_vel")
BASIS = ("car_forward", "car_right", "car_up")


def a_state(seed=0, blue=2, orange=2, present=None):
    """A random state in which nothing is symmetric, flags, timers and pads included."""
    state, rng = written(RandomState(), blue, orange, seed, present), np.random.default_rng(seed)
    state.pad_timers[:] = rng.uniform(0, 10, (1, 34))
    state.car_timers[:] = rng.uniform(0, 1, state.car_timers.shape)
    state.car_flags[:] = rng.random(state.car_flags.shape) < 0.5
    state.details["wheels"] = rng.random((1, blue + orange, 4)) < 0.5
    state.details["flip_torque"] = rng.uniform(-1, 1, (1, blue + orange, 3)) * (1, 1, 0)
    state.details["auto_flip_direction"] = rng.choice([-1, 1], (1, blue + orange))
    return state


def arrays(state):
    fields = {f"details {name}": state.details[name] for name in state.details.dtype.names}
    return fields | {
        name: getattr(state, name) for name in ("ball_rows", "car_rows", "car_timers", "car_flags", "pad_timers")
    }


def copy(state):
    return state.select(np.arange(state.num_arenas))


@pytest.mark.parametrize("change", [mirror_left_right, exchange_teams])
@pytest.mark.parametrize("seed", range(5))
def test_twice_is_the_state_itself(change, seed):
    state = a_state(seed)
    changed = copy(state)
    change(changed, 0)
    for name in ("ball_rows", "car_rows", "pad_timers", "details wheels"):
        assert (arrays(changed)[name] != arrays(state)[name]).any()
    change(changed, 0)
    for name, array in arrays(state).items():
        np.testing.assert_array_equal(arrays(changed)[name], array, err_msg=name)


@pytest.mark.parametrize("seed", range(5))
def test_the_two_commute_and_rotations_stay_rotations(seed):
    one, other = a_state(seed), a_state(seed)
    mirror_left_right(one, 0)
    exchange_teams(one, 0)
    exchange_teams(other, 0)
    mirror_left_right(other, 0)
    for name in (*ARRAYS, *BASIS):
        np.testing.assert_array_equal(getattr(one.world, name), getattr(other.world, name))
    basis = np.stack([getattr(one.world, name)[0] for name in BASIS], axis=-1)
    np.testing.assert_allclose(np.linalg.det(basis), 1, atol=1e-5)
    np.testing.assert_allclose(
        np.cross(one.world.car_forward[0], one.world.car_right[0]), one.world.car_up[0], atol=1e-5
    )


def test_left_right_by_hand():
    setter = ExplicitState(
        car_pos=[[100, 200, 300]],
        ball_pos=[10, 20, 130],
        ball_vel=[1, 2, 3],
        ball_ang_vel=[1, 2, 3],
        car_rotation=[[0, np.pi / 4, np.pi / 2]],  # nose to +x +y, rolled onto its right side
        car_vel=[[4, 5, 6]],
        car_ang_vel=[[1, -2, 3]],
        pad_timers=[0, 5, *([0] * 32)],
    )
    state = written(setter, 1, 0)
    state.details["wheels"][0, 0] = (True, False, True, False)  # the left ones
    state.details["flip_torque"][0, 0] = (0.5, 0.25, 0)
    state.details["auto_flip_direction"][0, 0] = 1
    mirror_left_right(state, 0)
    world, half = state.world, np.sqrt(0.5)
    np.testing.assert_array_equal(world.ball_pos[0], [-10, 20, 130])
    np.testing.assert_array_equal(world.ball_vel[0], [-1, 2, 3])
    np.testing.assert_array_equal(world.ball_ang_vel[0], [1, -2, -3])
    np.testing.assert_array_equal(world.car_pos[0, 0], [-100, 200, 300])
    np.testing.assert_array_equal(world.car_vel[0, 0], [-4, 5, 6])
    np.testing.assert_array_equal(world.car_ang_vel[0, 0], [1, 2, -3])
    other = written(ExplicitState([[-100, 200, 300]], car_rotation=[[0, 3 * np.pi / 4, -np.pi / 2]]), 1, 0)
    np.testing.assert_allclose(world.car_forward[0, 0], [-half, half, 0], atol=1e-6)
    for name in BASIS:
        np.testing.assert_allclose(getattr(world, name), getattr(other.world, name), atol=1e-6, err_msg=name)
    assert state.wheels_with_contact[0, 0].tolist() == [False, True, False, True]
    assert state.details["flip_torque"][0, 0].tolist() == [-0.5, 0.25, 0]  # it rolls the other way, not pitches
    assert state.details["auto_flip_direction"][0, 0] == -1
    assert np.flatnonzero(state.pad_timers[0]).tolist() == [2]  # (-1792, -4184) -> (1792, -4184)


def test_pads_are_where_their_mirror_images_are():
    pads = np.array(BOOST_LOCATIONS)
    assert sorted(PADS_MIRRORED_X) == list(range(34))
    np.testing.assert_allclose(pads[PADS_MIRRORED_X], pads * [-1, 1, 1], atol=2)


def test_exchanged_teams_see_what_the_others_saw():
    state = a_state(3)
    changed = copy(state)
    exchange_teams(changed, 0)
    order = [2, 3, 0, 1]
    for name in ("ball_pos", "ball_vel", "ball_ang_vel"):
        np.testing.assert_array_equal(getattr(changed.world, name), getattr(state.world, name) * [-1, -1, 1])
    for name in ("car_pos", "car_vel", "car_ang_vel", *BASIS):
        np.testing.assert_array_equal(getattr(changed.world, name), getattr(state.world, name)[:, order] * [-1, -1, 1])
    np.testing.assert_array_equal(changed.boost, state.boost[:, order])
    np.testing.assert_array_equal(changed.car_flags, state.car_flags[:, order])
    np.testing.assert_array_equal(changed.car_timers, state.car_timers[:, order])
    np.testing.assert_array_equal(changed.details["wheels"], state.details["wheels"][:, order])
    np.testing.assert_array_equal(changed.on_ground, state.on_ground[:, order])
    np.testing.assert_array_equal(changed.pad_timers, state.pad_timers[:, ::-1])


class Fixed(StateSetter):
    """Writes a state, optionally changed."""

    def __init__(self, state, change=None):
        self.state = copy(state)
        if change:
            change(self.state, 0)

    def apply(self, state, mask, rng):
        for arena in np.flatnonzero(mask):
            for name in ("ball_rows", "car_rows", "pad_timers", "details"):
                getattr(state, name)[arena] = getattr(self.state, name)[0]


MIRRORED_CONTROLS = np.array([1, -1, 1, -1, -1, 1, 1, 1], np.float32)
"""throttle, steer, pitch, yaw, roll, jump, boost, handbrake"""


@pytest.mark.parametrize("change", [mirror_left_right, exchange_teams])
@pytest.mark.parametrize("grounded", [0.0, 1.0])
def test_the_physics_knows_the_symmetry(change, grounded):
    """Changed state and changed controls give the changed game: 40 ticks of driving, jumping and flying."""
    state = written(RandomState(grounded_share=grounded), 1, 1, 7)
    state.pad_timers[0] = np.random.default_rng(0).uniform(2, 10, 34)
    pools = [
        RocketSimPool(1, 1, state_setter=Fixed(state, by), done=[TimeoutCondition(99)], num_threads=1)
        for by in (None, change)
    ]
    table = pools[0].action_parser.table
    rng = np.random.default_rng(1)
    for pool in pools:
        pool.reset()
    for _ in range(5):
        actions = rng.integers(90, size=2)
        wanted = table[actions] * MIRRORED_CONTROLS if change is mirror_left_right else table[actions][::-1]
        mirrored = np.array([np.flatnonzero((table == row).all(axis=1))[0] for row in wanted])
        pools[0].step(actions)
        pools[1].step(mirrored)
    expected, got = copy(pools[0].state), pools[1].state
    change(expected, 0)
    for name, tolerance in zip(ARRAYS, (1, 4, 0.05, 1, 4, 0.05), strict=True):
        np.testing.assert_allclose(
            getattr(got.world, name), getattr(expected.world, name), atol=tolerance, err_msg=name
        )
    for name in BASIS:
        np.testing.assert_allclose(getattr(got.world, name), getattr(expected.world, name), atol=0.01, err_msg=name)
    np.testing.assert_allclose(got.pad_timers, expected.pad_timers, atol=1e-4)
    np.testing.assert_array_equal(got.on_ground, expected.on_ground)


@pytest.mark.parametrize("direction", [-1, 1])
def test_a_car_that_turns_itself_over_is_mirrored_too(direction):
    """An auto-flip in mid-turn goes on to the other side."""
    state = written(TurtledStart(), 1, 1, 3)
    state.details["is_auto_flipping"], state.details["auto_flip_timer"] = True, 0.4
    state.details["auto_flip_direction"] = direction
    ups = []
    for by in (None, mirror_left_right):
        pool = RocketSimPool(1, 1, state_setter=Fixed(state, by), done=[TimeoutCondition(99)], num_threads=1)
        pool.reset()
        for _ in range(2):
            pool.step(np.zeros(2, np.int64))
        ups.append(pool.state.world.car_up[0].copy())
    assert (np.linalg.norm(ups[0][:, :2], axis=-1) > 0.1).all()  # both are turning
    np.testing.assert_allclose(ups[1], ups[0] * (-1, 1, 1), atol=0.01)


ASYMMETRIC = ExplicitState(
    [[100, -1000, 17], [200, -2000, 17], [300, 3000, 17], [400, 4000, 17]], ball_pos=[500, 600, 700], boost=[1, 2, 3, 4]
)


def test_mirrored_states_draw_each_of_four_pictures():
    seen = [tuple(np.sign(written(MirroredStates(ASYMMETRIC), seed=seed).world.ball_pos[0, :2])) for seed in range(400)]
    assert {picture: seen.count(picture) > 60 for picture in seen} == dict.fromkeys(
        [(1, 1), (-1, 1), (1, -1), (-1, -1)], True
    )
    never = [written(MirroredStates(ASYMMETRIC, 0), seed=seed).world.ball_pos[0].tolist() for seed in range(20)]
    assert never == [[500, 600, 700]] * 20
    both = written(MirroredStates(ASYMMETRIC, 1))
    np.testing.assert_array_equal(both.world.ball_pos[0], [500, -600, 700])
    np.testing.assert_array_equal(both.world.car_pos[0, 0], [300, -3000, 17])
    assert both.boost[0].tolist() == [3, 4, 1, 2]
    only_x = written(MirroredStates(ASYMMETRIC, 1, teams=False))
    np.testing.assert_array_equal(only_x.world.ball_pos[0], [-500, 600, 700])
    only_teams = written(MirroredStates(ASYMMETRIC, 1, left_right=False))
    np.testing.assert_array_equal(only_teams.world.ball_pos[0], [-500, -600, 700])
    nested = MirroredStates(ShuffledCars(MixedStates([ASYMMETRIC, RandomState()], [1, 0])), 1)
    np.testing.assert_array_equal(written(nested).world.ball_pos[0], [500, -600, 700])


def test_uneven_teams_and_absent_cars():
    setter = MirroredStates(ExplicitState([[0, -9, 17]] * 3, ball_pos=[500, 600, 700]), 1)
    np.testing.assert_array_equal(written(setter, 1, 2).world.ball_pos[0], [-500, 600, 700])
    with pytest.raises(ValueError, match="exchange_teams: teams must be equal, got 1 blue and 2 orange"):
        exchange_teams(a_state(0, 1, 2), 0)
    one_each = np.array([[True, False, True, False]])
    both = written(MirroredStates(ASYMMETRIC, 1), present=one_each)
    assert both.boost[0, [0, 2]].tolist() == [3, 1]
    for seed in range(20):
        assert written(ShuffledCars(ASYMMETRIC), seed=seed, present=one_each).boost[0, [0, 2]].tolist() == [1, 3]


def test_shuffled_cars_stay_in_their_teams():
    orders = [tuple(written(ShuffledCars(ASYMMETRIC), seed=seed).boost[0].tolist()) for seed in range(200)]
    assert set(orders) == {(1, 2, 3, 4), (2, 1, 3, 4), (1, 2, 4, 3), (2, 1, 4, 3)}
    assert min(orders.count(order) for order in set(orders)) > 25
    for seed in range(20):
        state = written(ShuffledCars(ASYMMETRIC), seed=seed)
        np.testing.assert_array_equal(state.world.car_pos[0, :, 0], state.boost[0] * 100)


def test_shuffling_takes_all_of_a_car_along():
    state = a_state(4, 3, 3)
    order = [2, 0, 1, 3, 4, 5]

    class Drawn:
        permutation = staticmethod(lambda slots: np.array(order)[slots])

    class Writer(StateSetter):
        def apply(self, target, mask, rng):
            for name in ("car_rows", "car_states", "details"):
                getattr(target, name)[:] = getattr(state, name)

    shuffled = GameState(1, 3, 3)
    ShuffledCars(Writer()).apply(shuffled, np.array([True]), Drawn())
    for name in ("car_rows", "car_timers", "car_flags"):
        np.testing.assert_array_equal(getattr(shuffled, name), getattr(state, name)[:, order])
    for name in state.details.dtype.names:
        np.testing.assert_array_equal(shuffled.details[name], state.details[name][:, order])


def test_mixed_states_draw_by_weight_and_only_where_asked():
    state, rng = GameState(2, 1, 1), np.random.default_rng(0)
    setter, kickoffs = MixedStates([Kickoff(), RandomState()], [1, 3]), 0
    for _ in range(400):
        state.clear(np.array([0, 1]))
        setter.apply(state, np.array([False, True]), rng)
        kickoffs += np.allclose(state.boost[1], 33.3)
    assert not state.boost[0].any()
    assert 70 <= kickoffs <= 130
