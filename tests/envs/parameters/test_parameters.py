"""Parameters of the physics: samplers, who gets which values when, and what is set from outside, as lessons do."""

import numpy as np
import pytest

from envs.adapters.gymnasium_envs import GymnasiumEnvs
from envs.dones import NoTouchCondition, TimeoutCondition
from envs.parameters import Constant, Gaussian, MultirangeUniform, ParameterRandomizer, Sampler, Uniform
from envs.pool.rocket_pool import RocketSimPool
from envs.processes.process_pool import ProcessPool
from envs.resets import RandomState
from tests.envs.fakes import assert_same
from tests.envs.processes.process_pool_parts import Trouble

TICK = 1 / 120
SAMPLERS = {"gravity": Uniform(300, 900), "ball_mass": Gaussian(30, 5), "action_delay_ticks": Uniform(0, 9)}


def rng(seed=0):
    return np.random.default_rng(seed)


def pool_with(samplers=None, num_arenas=4, interval=None, episode_seconds=0.4, **settings):
    parameters = ParameterRandomizer(samplers, interval) if samplers is not None else None
    settings = {"done": [TimeoutCondition(episode_seconds)], "num_threads": 1} | settings
    return RocketSimPool(num_arenas, parameters=parameters, **settings)


def play(pool, steps, seed=0):
    """Observations, rewards and ends of random play, and the parameters of every step."""
    dice, out = rng(seed), []
    for _ in range(steps):
        obs, reward, terminated, truncated, _ = pool.step(dice.integers(90, size=pool.num_envs))
        out += [obs, reward, terminated, truncated]
        out += list(pool.parameters.values()) if isinstance(pool, RocketSimPool) else []
    return out


def short_games(num_arenas=5, seed=0, num_threads=None, first_arena=0):
    """What ProcessPool divides."""
    done = [NoTouchCondition(0.3), TimeoutCondition(0.7)]
    return pool_with(SAMPLERS, num_arenas, seed=seed, num_threads=num_threads, first_arena=first_arena, done=done)


def gravity_of(pool):
    return [round(-arena.get_mutator_config().gravity.z, 3) for arena in pool.arenas]


class HighBall(RandomState):
    """The ball hangs high, let go."""

    def apply(self, state, mask, rng):
        super().apply(state, mask, rng)
        state.world.ball_pos[mask], state.world.ball_vel[mask] = (0, 0, 1500), (0, 0, -0.001)
        state.world.ball_ang_vel[mask] = 0


# ---------------------------------------------------------------- samplers


def test_samplers():
    draws = [Uniform(2, 4).sample(r) for r in [rng()] for _ in range(4000)]
    assert 2 <= min(draws) < 2.01 and 3.99 < max(draws) < 4
    assert np.mean(draws) == pytest.approx(3, abs=0.05)
    dice = rng()
    draws = [Gaussian(10, 2).sample(dice) for _ in range(4000)]
    assert (np.mean(draws), np.std(draws)) == (pytest.approx(10, abs=0.15), pytest.approx(2, abs=0.1))
    assert Gaussian(10, 0).sample(dice) == 10
    samplers = {"boost_pad_cooldown_big": Gaussian(10, 5), "ball_max_speed": Uniform(3000, 7000)}
    pool = RocketSimPool(1, parameters=ParameterRandomizer(samplers), num_threads=1)
    bounds = [pool._parameters.largest(name) for name in (*samplers, "boost_pad_cooldown_small")]
    assert bounds[0] > 20 and bounds[1] == pytest.approx(7000) and bounds[2] == 4
    pool.close()
    dice, sampler = rng(), MultirangeUniform([[7, 10], [15, 16]])
    draws = np.array([sampler.sample(dice) for _ in range(4000)])
    low, high = draws[draws < 12], draws[draws > 12]
    assert len(low) / 4000 == pytest.approx(3 / 4, abs=0.03)
    assert 7 <= low.min() < 7.05 and 9.95 < low.max() < 10 and high.min() >= 15 and high.max() < 16


# ---------------------------------------------------------------- who gets what, and when


@pytest.mark.slow
def test_values_depend_neither_on_threads_nor_on_processes_nor_on_the_order_of_the_settings():
    alone = short_games(seed=3, num_threads=1)
    first, _ = alone.reset(seed=9)
    expected = play(alone, 60)
    assert len(set(np.concatenate(expected[4::7]).tolist())) > 15  # gravities
    threads = short_games(seed=3, num_threads=3)
    np.testing.assert_array_equal(threads.reset(seed=9)[0], first)
    assert_same(play(threads, 60), expected)
    turned = dict(reversed(SAMPLERS.items()))
    other = pool_with(turned, 5, seed=3, done=[NoTouchCondition(0.3), TimeoutCondition(0.7)])
    other.reset(seed=9)
    assert_same(play(other, 60), expected)
    metrics = alone.drain_metrics()
    pool = ProcessPool(short_games, 2, seed=3)
    np.testing.assert_array_equal(pool.reset(seed=9)[0], first)
    without = [array for i, array in enumerate(expected) if i % 7 < 4]
    assert_same(play(pool, 60), without)
    assert pool.drain_metrics()["parameters/gravity"] == pytest.approx(metrics["parameters/gravity"])
    pool.close()


def test_episodes_begin_as_they_would_without_parameters():
    plain, tuned = pool_with(state_setter=RandomState()), pool_with(SAMPLERS, state_setter=RandomState())
    np.testing.assert_array_equal(plain.reset(seed=4)[0], tuned.reset(seed=4)[0])
    for _ in range(6):  # the episodes take 6 steps each
        a, b = plain.step(np.zeros(8, np.int64)), tuned.step(np.zeros(8, np.int64))
        assert not np.array_equal(a[0], b[0]) or a[3].all()
    assert a[3].all()
    np.testing.assert_array_equal(a[0], b[0])


def test_every_episode_gets_values_of_its_own_and_keeps_them():
    pool = pool_with({"gravity": Uniform(300, 900)})
    pool.reset(seed=0)
    seen = [pool.parameters["gravity"]]
    for _ in range(18):
        truncated = pool.step(np.zeros(8, np.int64))[3].reshape(4, 2)[:, 0]
        new = pool.parameters["gravity"]
        np.testing.assert_array_equal(new != seen[-1], truncated)
        seen.append(new)
    assert len(np.unique(seen)) == 4 * 4
    total, count = pool.drain_metrics()["parameters/gravity"]
    assert (total, count) == (pytest.approx(seen[-1].sum()), 4)
    for index, arena in enumerate(pool.arenas):
        assert -arena.get_mutator_config().gravity.z == pytest.approx(seen[-1][index], rel=1e-6)


def test_an_interval_counts_steps_and_waits_for_the_end_of_the_episode():
    pool = pool_with({"gravity": Uniform(300, 900)}, interval=8)  # episodes of 6 steps
    pool.reset(seed=0)
    changes, before = [], pool.parameters["gravity"]
    for step in range(1, 37):
        pool.step(np.zeros(8, np.int64))
        if (pool.parameters["gravity"] != before).all():
            changes.append(step)
        before = pool.parameters["gravity"]
    assert changes == [12, 24, 36]
    pool.step(np.zeros(8, np.int64))
    pool.set_parameters({"gravity": 100})  # does not wait for the interval
    for _ in range(5):
        pool.step(np.zeros(8, np.int64))
    assert pool.parameters["gravity"].tolist() == [100] * 4


def test_seeds_and_samplers_of_ones_own():
    pool, other = pool_with({"gravity": Uniform(300, 900)}, seed=3), pool_with({"gravity": Uniform(300, 900)}, seed=9)
    pool.reset(seed=9), other.reset()
    first = pool.parameters["gravity"]
    np.testing.assert_array_equal(first, other.parameters["gravity"])
    pool.reset()
    assert (pool.parameters["gravity"] != first).all()
    pool.reset(seed=8)
    np.testing.assert_array_equal(pool.parameters["gravity"][1:], first[:-1])  # arena i has seed + i
    pool = pool_with({"gravity": Alternating()}, 8)
    pool.reset(seed=0)
    assert set(pool.parameters["gravity"]) == {400, 800}
    with pytest.raises(ValueError, match=r"Bad: sample\(\) must return one finite number, got nan for gravity"):
        pool_with({"gravity": Bad()}).reset()


class Alternating(Sampler):
    """A sampler of one's own: one of two values."""

    def sample(self, rng):
        return float(rng.choice([400, 800]))


class Bad(Sampler):
    def sample(self, rng):
        return float("nan")


@pytest.mark.parametrize(
    ("samplers", "message"),
    [
        ({"gravitiy": Constant(1)}, "no parameter gravitiy; did you mean gravity.*known: gravity, ball_"),
        ({"car_mass": Constant(1)}, "car_mass cannot be changed: RocketSim"),
        ({"tick_skip": Constant(4)}, "tick_skip cannot be changed: .*--env.tick_skip"),
        ({"goal_base_threshold_y": Constant(4)}, "cannot be changed: the pool counts goals"),
        ({"gravity": Uniform(-5, 300)}, "gravity must be between 0 and 5000 .* got -5"),
        ({"ball_radius": Constant(300)}, "ball_radius must be between 30 and 200"),
        ({"ball_drag": Gaussian(-1, 1)}, "ball_drag must be between 0 and 1"),
        ({"action_delay_ticks": Uniform(0, 12)}, "action_delay_ticks must be between 0 and 8"),
        ({"respawn_delay": Uniform(0.01, 1)}, "respawn_delay must be between 0.1"),
    ],
)
def test_what_cannot_be_drawn_is_refused(samplers, message):
    with pytest.raises(ValueError, match=message):
        pool_with(samplers)


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
        ({"gravity": "much"}, "gravity must be a finite number"),
    ],
)
def test_what_cannot_be_set_is_refused(values, message):
    pool = pool_with(num_arenas=1)
    for call in (pool.check_parameters, pool.set_parameters):
        with pytest.raises(ValueError, match=message):
            call(values)
    assert pool.parameters == {}


@pytest.mark.slow
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
    pool = pool_with({"gravity": Constant(500)})
    pool.reset()
    with pytest.raises(ValueError, match=r"the parameters gravity, but this one samples none .--env.parameters"):
        pool_with().load_state_dict(pool.state_dict())


# ---------------------------------------------------------------- other environments


def cartpole(num_envs=2, seed=0):
    return GymnasiumEnvs("CartPole-v1", num_envs, seed)


@pytest.mark.slow
def test_gymnasium_and_worker_processes_get_parameters():
    envs = cartpole()
    poles = [env.unwrapped for env in envs.env.envs]
    envs.set_parameters({"gravity": 5, "force_mag": 20})
    assert [(pole.gravity, pole.force_mag) for pole in poles] == [(5.0, 20.0)] * 2
    envs.set_parameters({"force_mag": 7.5})
    assert [(pole.gravity, pole.force_mag) for pole in poles] == [(9.8, 7.5)] * 2
    with pytest.raises(ValueError, match=r"CartPole-v1 has no parameter gravty; known: .*gravity, .*length"):
        envs.set_parameters({"gravty": 1})
    with pytest.raises(ValueError, match="gravity must be one number"):
        envs.check_parameters({"gravity": [1, 2]})
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
    with pytest.raises(ValueError, match="Trouble has no parameters"):
        without.set_parameters({"gravity": 1})
    without.close()
