"""GameMetrics: by hand on states from numbers, and in real play beside sums that are worked out another way."""

import numpy as np
import pytest

from envs import GameMetrics, GameState, ProcessPool, RocketSimPool, TimeoutCondition
from tests.envs.conftest import Dropped

EVERY, NEVER = np.ones(1, bool), np.zeros(1, bool)
CARS = [(0, 0, 17), (1000, 0, 500)]


def means(logger):
    return {name: total / count if count else None for name, (total, count) in logger.drain_metrics().items()}


def test_by_hand():
    """Two steps of 12 ticks: one car drives and boosts, the other falls; then a touch, a shot, and a demolition."""
    logger = GameMetrics()
    logger.reset(EVERY, GameState.from_numbers(CARS, boost=[50, 80]))
    first = GameState.from_numbers(CARS, car_vel=[(600, 800, 0), (0, 0, -200)], boost=[46, 100], episode_ticks=12)
    logger.update(first, NEVER)
    second = GameState.from_numbers(
        CARS, boost=[42, 0], touched=[True, False], ball_pos=(0, 0, 300), demo_respawn_timer=[0, 3], episode_ticks=24
    )
    second.shots[0, 0], second.demos[0, 0], second.saves[0, 1] = 2, 1, 1
    logger.update(second, EVERY)
    minutes = 2 * 24 / 120 / 60
    assert means(logger) == pytest.approx(
        {
            "game/speed": (1000 + 200 + 0) / 3,  # of the demolished car nothing counts
            "game/boost": (46 + 100 + 42) / 3,
            "game/air_share": 1 / 3,
            "game/boost_used_per_minute": (4 + 4) / minutes,
            "game/touch_height": 300,
            "game/shots_per_minute": 2 / minutes,
            "game/demos_per_minute": 1 / minutes,
            "game/saves_per_minute": 1 / minutes,
        }
    )
    assert set(means(logger).values()) == {None}
    logger.update(GameState.from_numbers(CARS, touched=[True, False], episode_ticks=36), NEVER)
    assert logger.drain_metrics()["game/touch_height"] == (0, 0)  # the same contact
    logger.reset(EVERY, GameState.from_numbers(CARS, boost=100))
    logger.update(GameState.from_numbers(CARS, boost=33, touched=[True, True], episode_ticks=12), NEVER)
    again = logger.drain_metrics()
    assert again["game/boost_used_per_minute"][0] == 134 and again["game/touch_height"][1] == 2


def factory(seed=0, num_arenas=4, first_arena=0, num_threads=1):
    sizes, done = [(1, 1), (2, 1)], TimeoutCondition(0.5)
    parts = {"state_setter": Dropped(), "done": done, "loggers": [GameMetrics()], "first_arena": first_arena}
    return RocketSimPool(num_arenas, sizes, seed=seed, num_threads=num_threads, **parts)


def play(pool, steps, seed=1):
    rng = np.random.default_rng(seed)
    for _ in range(steps):
        pool.step(rng.integers(90, size=pool.num_envs))
        yield pool


def test_real_play_with_absent_cars_and_many_episodes():
    pool, speed, boost, air, cars = factory(), 0.0, 0.0, 0.0, 0
    pool.reset()
    for _ in play(pool, 5):  # before the first episode ends
        state = pool.state
        here = state.present & ~state.is_demoed
        speed += np.linalg.norm(state.world.car_vel[here].astype(float), axis=-1).sum()
        boost, air, cars = boost + state.boost[here].sum(), air + (~state.on_ground[here]).sum(), cars + here.sum()
    found = pool.drain_metrics()
    assert found["game/speed"] == pytest.approx((speed, cars)) and found["game/boost"] == pytest.approx((boost, cars))
    assert found["game/air_share"] == (air, cars)
    assert found["game/shots_per_minute"][1] == pytest.approx(found["game/touches_per_minute"][1])
    list(play(pool, 60))
    found = pool.drain_metrics()
    assert found["game/touch_height"][1] == found["game/touches_per_minute"][0] > 20
    assert found["game/shots_per_minute"][1] == pytest.approx(found["game/touches_per_minute"][1])
    pool.close()


def test_saved_in_the_middle_it_goes_on():
    whole, fresh = factory(), factory(seed=9)
    whole.reset()
    list(play(whole, 11))
    saved = whole.state_dict()
    fresh.reset()
    fresh.load_state_dict(saved)
    for pool in (whole, fresh):
        list(play(pool, 40, seed=2))
    assert whole.drain_metrics() == fresh.drain_metrics()


def test_processes_report_the_same():
    alone, pool = factory(), ProcessPool(factory, num_workers=2, seed=0)
    try:
        for each in (alone, pool):
            each.reset(seed=3)
            list(play(each, 30))
        ours = alone.drain_metrics()
        for name, pair in pool.drain_metrics().items():
            assert pair == pytest.approx(ours.get(name, pair)), name
    finally:
        pool.close()
