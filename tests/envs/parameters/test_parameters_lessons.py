"""Parameters that are set from outside, as lessons do, and that are restored; those of other environments."""

import numpy as np
import pytest

from envs import (
    Constant,
    GymnasiumEnvs,
    ProcessPool,
    Uniform,
)
from tests.envs.comparing import assert_same
from tests.envs.parameters.parameter_pools import SAMPLERS, TICK, HighBall, gravity_of, play, pool_with
from tests.envs.processes.process_pool_parts import Trouble

# ---------------------------------------------------------------- set from outside


def test_what_is_set_takes_the_place_of_the_sampler_from_the_next_episode_on():
    pool = pool_with({"gravity": Constant(500), "ball_drag": Constant(0.1)}, 2)
    pool.set_parameters({"gravity": 400})
    pool.reset(seed=0)
    assert gravity_of(pool) == [400, 400]
    pool.set_parameters({"gravity": 300, "ball_mass": 60})
    assert gravity_of(pool) == [300, 300]  # no step was taken yet
    pool.step(np.zeros(4, np.int64))
    pool.set_parameters({"gravity": [700, 800]})
    assert gravity_of(pool) == [300, 300]
    for _ in range(5):
        pool.step(np.zeros(4, np.int64))
    first, second = gravity_of(pool)
    assert first != second and all(700 <= value < 800 for value in (first, second))
    assert [arena.get_mutator_config().ball_mass for arena in pool.arenas] == [30, 30]  # the pool's own again
    assert sorted(pool.parameters) == ["ball_drag", "gravity"]
    pool.set_parameters({})
    for _ in range(6):
        pool.step(np.zeros(4, np.int64))
    assert gravity_of(pool) == [500, 500]


def test_setting_before_the_first_step_changes_nothing_but_the_physics():
    plain, tuned = pool_with(state_setter=HighBall()), pool_with(state_setter=HighBall())
    for pool, gravity in ((plain, 650), (tuned, 325)):
        pool.reset(seed=0)
        before = pool.state.state_dict()
        pool.set_parameters({"gravity": gravity, "ball_drag": 0})
        for name, array in pool.state.state_dict().items():
            np.testing.assert_array_equal(array, before[name])
    plain.step(np.zeros(8, np.int64)), tuned.step(np.zeros(8, np.int64))
    fallen = [1500 - pool.state.world.ball_pos[:, 2] for pool in (plain, tuned)]
    np.testing.assert_allclose(fallen[0], 650 * TICK**2 * 36, atol=0.01)
    np.testing.assert_allclose(fallen[1], 325 * TICK**2 * 36, atol=0.01)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"gravty": 1}, "no parameter gravty"),
        ({"gravity": -1}, "gravity must be between 0 and 5000"),
        ({"gravity": [3, 2]}, r"gravity must be a number or \[min, max\]"),
        ({"gravity": "much"}, "gravity must be finite numbers"),
    ],
)
def test_what_cannot_be_set_is_refused(values, message):
    pool = pool_with(num_arenas=1)
    for call in (pool.check_parameters, pool.set_parameters):
        with pytest.raises(ValueError, match=message):
            call(values)
    assert pool.parameters == {}


@pytest.mark.parametrize("pending", [False, True])
def test_a_restored_pool_goes_on_to_the_bit(pending):
    def build(threads):
        return pool_with(SAMPLERS | {"ball_radius": Uniform(60, 140)}, interval=14, seed=11, num_threads=threads)

    pool = build(2)
    pool.reset(seed=1)
    play(pool, 9)
    pool.set_parameters({"ball_mass": 90, "boost_accel_air": [500, 1500]})
    play(pool, 8)
    now = {"ball_mass": 10 if pending else 90, "boost_accel_air": [500, 1500]}
    if pending:
        pool.set_parameters(now)  # not in any episode yet
    snapshot = pool.state_dict()
    went_on = play(pool, 40, seed=1)
    metrics = pool.drain_metrics()
    assert {"parameters/boost_accel_air", "parameters/gravity"} <= set(metrics)
    for fresh in (build(1), build(2)):
        fresh.reset(seed=5)
        play(fresh, 3)
        fresh.load_state_dict(snapshot)
        fresh.set_parameters(now)  # as lessons do: nothing changes
        assert_same(play(fresh, 40, seed=1), went_on)
        assert fresh.drain_metrics() == metrics


def test_only_lessons_are_restored_too():
    pool = pool_with()
    pool.reset(seed=1)
    pool.set_parameters({"gravity": [300, 400]})
    play(pool, 4)
    snapshot = pool.state_dict()
    went_on = play(pool, 12)
    fresh = pool_with()
    fresh.load_state_dict(snapshot)
    assert_same(play(fresh, 12), went_on)
    plain = pool_with()
    plain.reset(seed=0)
    pool.load_state_dict(plain.state_dict())
    assert pool.parameters == {} and gravity_of(pool) == [650] * 4


def test_a_snapshot_of_other_samplers_is_refused():
    pool = pool_with({"gravity": Constant(500)})
    pool.reset()
    with pytest.raises(ValueError, match=r"draws the parameters gravity, this one none .--env.parameters"):
        pool_with().load_state_dict(pool.state_dict())


# ---------------------------------------------------------------- other environments


def cartpole(num_envs=2, seed=0):
    return GymnasiumEnvs("CartPole-v1", num_envs, seed)


def test_gymnasium_environments_get_their_own_attributes_set():
    envs = cartpole()
    poles = [env.unwrapped for env in envs.env.envs]
    envs.set_parameters({"gravity": 5, "force_mag": 20})
    assert [(pole.gravity, pole.force_mag) for pole in poles] == [(5.0, 20.0)] * 2
    envs.set_parameters({"force_mag": 7.5})
    assert [(pole.gravity, pole.force_mag) for pole in poles] == [(9.8, 7.5)] * 2
    with pytest.raises(ValueError, match=r"CartPole-v1 has no parameter gravty; known: .*gravity, .*length"):
        envs.set_parameters({"gravty": 1})
    with pytest.raises(ValueError, match="gravity takes one number"):
        envs.check_parameters({"gravity": [1, 2]})


def test_worker_processes_get_parameters():
    changed, plain, alone = ProcessPool(cartpole, 2), ProcessPool(cartpole, 2), cartpole()
    changed.set_parameters({"force_mag": 30.0})
    alone.set_parameters({"force_mag": 30.0})
    obs = [env.reset(seed=0)[0] for env in (changed, plain, alone)]
    np.testing.assert_array_equal(obs[0], obs[1])
    obs = [env.step(np.ones(2, np.int64))[0] for env in (changed, plain, alone)]
    np.testing.assert_array_equal(obs[0], obs[2])
    assert not np.array_equal(obs[0], obs[1])
    with pytest.raises(ValueError, match="CartPole-v1 has no parameter gravty; known"):
        changed.check_parameters({"gravty": 1})
    changed.close(), plain.close()
    without = ProcessPool(Trouble, 1)
    with pytest.raises(ValueError, match="Trouble: it has no parameters"):
        without.set_parameters({"gravity": 1})
    without.close()
