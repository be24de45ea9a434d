"""Parameters of the physics: samplers, and who gets which values when."""

import numpy as np
import pytest

from envs import (
    Constant,
    Gaussian,
    MultirangeUniform,
    NoTouchCondition,
    ParameterRandomizer,
    ProcessPool,
    RandomState,
    RocketSimPool,
    Sampler,
    TimeoutCondition,
    Uniform,
)
from tests.envs.comparing import assert_same
from tests.envs.parameters.parameter_pools import SAMPLERS, play, pool_with, rng, short_games

# ---------------------------------------------------------------- samplers


def test_uniform_fills_its_interval():
    draws = [Uniform(2, 4).sample(r) for r in [rng()] for _ in range(4000)]
    assert 2 <= min(draws) < 2.01 and 3.99 < max(draws) < 4
    assert np.mean(draws) == pytest.approx(3, abs=0.05)


def test_gaussian_has_its_mean_and_deviation():
    dice = rng()
    draws = [Gaussian(10, 2).sample(dice) for _ in range(4000)]
    assert (np.mean(draws), np.std(draws)) == (pytest.approx(10, abs=0.15), pytest.approx(2, abs=0.1))
    assert Gaussian(10, 0).sample(dice) == 10


def test_multirange_takes_intervals_by_their_width():
    dice, sampler = rng(), MultirangeUniform([[7, 10], [15, 16]])
    draws = np.array([sampler.sample(dice) for _ in range(4000)])
    low, high = draws[draws < 12], draws[draws > 12]
    assert len(low) / 4000 == pytest.approx(3 / 4, abs=0.03)
    assert 7 <= low.min() < 7.05 and 9.95 < low.max() < 10 and high.min() >= 15 and high.max() < 16


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: Uniform(2, 2), "Uniform: .*lower one first"),
        (lambda: Uniform(3, float("inf")), "Uniform: .*finite"),
        (lambda: Uniform("a", 2), "Uniform: .*finite"),
        (lambda: Gaussian(1, -1), "Gaussian: st_dev must be 0 or more"),
        (lambda: Gaussian([1, 2], 1), "Gaussian: mean must be one number"),
        (lambda: MultirangeUniform([]), "MultirangeUniform: intervals"),
        (lambda: MultirangeUniform([7, 10]), "MultirangeUniform: each of intervals"),
        (lambda: MultirangeUniform([[7, 10], [20, 15]]), "MultirangeUniform: .*20 and 15"),
        (lambda: Constant(float("nan")), "Constant: value"),
    ],
)
def test_samplers_refuse_what_cannot_work(build, message):
    with pytest.raises(ValueError, match=message):
        build()


# ---------------------------------------------------------------- who gets what, and when


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


def test_a_seed_gives_the_same_values_again():
    pool, other = pool_with({"gravity": Uniform(300, 900)}, seed=3), pool_with({"gravity": Uniform(300, 900)}, seed=9)
    pool.reset(seed=9), other.reset()
    first = pool.parameters["gravity"]
    np.testing.assert_array_equal(first, other.parameters["gravity"])
    pool.reset()
    assert (pool.parameters["gravity"] != first).all()
    pool.reset(seed=8)
    np.testing.assert_array_equal(pool.parameters["gravity"][1:], first[:-1])  # arena i has seed + i


class Alternating(Sampler):
    """A sampler of one's own: one of two values."""

    def sample(self, rng):
        return float(rng.choice([400, 800]))


class Bad(Sampler):
    def sample(self, rng):
        return float("nan")


def test_a_sampler_of_ones_own():
    pool = pool_with({"gravity": Alternating()}, 8)
    pool.reset(seed=0)
    assert set(pool.parameters["gravity"]) == {400, 800}
    with pytest.raises(ValueError, match=r"Bad: sample\(\) must return one finite number, got nan for gravity"):
        pool_with({"gravity": Bad()}).reset()


@pytest.mark.parametrize(
    ("samplers", "error", "message"),
    [
        ({"gravitiy": Constant(1)}, ValueError, "no parameter gravitiy; did you mean gravity.*known: gravity, ball_"),
        ({"car_mass": Constant(1)}, ValueError, "car_mass cannot be changed: RocketSim"),
        ({"tick_skip": Constant(4)}, ValueError, "tick_skip cannot be changed: .*--env.tick_skip"),
        ({"goal_base_threshold_y": Constant(4)}, ValueError, "cannot be changed: the pool counts goals"),
        ({"gravity": 300}, TypeError, "sampler of gravity must be an envs Sampler"),
        ({"gravity": Constant}, TypeError, r"write Constant\(\)"),
        ({"gravity": Uniform(-5, 300)}, ValueError, "gravity must be between 0 and 5000 .* got -5"),
        ({"ball_radius": Constant(300)}, ValueError, "ball_radius must be between 30 and 200"),
        ({"ball_drag": Gaussian(-1, 1)}, ValueError, "ball_drag must be between 0 and 1"),
        ({"action_delay_ticks": Uniform(0, 12)}, ValueError, "action_delay_ticks must be between 0 and 8"),
        ({"respawn_delay": Uniform(0.01, 1)}, ValueError, "respawn_delay must be between 0.1"),
    ],
)
def test_what_cannot_be_drawn_is_refused(samplers, error, message):
    with pytest.raises(error, match=message):
        pool_with(samplers)


def test_settings_that_cannot_work_are_refused():
    with pytest.raises(ValueError, match="resampling_interval must be at least 1"):
        ParameterRandomizer({}, 0)
    with pytest.raises(TypeError, match=r"parameters .--env.parameters. must be an envs ParameterRandomizer"):
        RocketSimPool(1, parameters={"gravity": Constant(600)})
