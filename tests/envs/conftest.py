"""Shared by the environment tests: RLGym's own reader of live arenas, and situations that random play rarely meets."""

from collections import Counter

import pytest
from rlgym.rocket_league.api import GameConfig
from rlgym.rocket_league.api import GameState as RLGymState
from rlgym.rocket_league.sim import RocketSimEngine

from tests.envs.fakes import Dropped, HeadOn, Shot, record


class RLGymReader:
    """Reads any live arena with the code of RLGym's engine, which knows nothing about this project."""

    def __init__(self):
        self.engine = RocketSimEngine()
        config = GameConfig()
        config.gravity, config.boost_consumption, config.dodge_deadzone = 1.0, 1.0, 0.5
        self.engine._game_config = config
        self.touches = {}

    def watch(self, arena):
        """Counts the ball touches of an arena as RLGym does, by RocketSim's callback."""
        counts = self.touches.setdefault(id(arena), Counter())
        arena.set_ball_touch_callback(lambda arena, car, data: counts.update([car.id]))

    def __call__(self, arena) -> RLGymState:
        cars = sorted(arena.get_cars(), key=lambda car: car.id)
        blue = [car for car in cars if int(car.team) == 0]
        orange = [car for car in cars if int(car.team) == 1]
        engine = self.engine
        engine._arena = arena
        engine._cars = {f"blue-{i}": car for i, car in enumerate(blue)}
        engine._cars |= {f"orange-{i}": car for i, car in enumerate(orange)}
        engine._agent_ids = {car.id: name for name, car in engine._cars.items()}
        engine._hitboxes = {car.id: 0 for car in cars}
        counts = self.touches.setdefault(id(arena), Counter())
        engine._touches = {car.id: counts[car.id] for car in cars}
        counts.clear()
        engine._tick_count = 0
        return engine._get_state()


@pytest.fixture
def rlgym_reader():
    return RLGymReader()


@pytest.fixture
def dropped():
    return Dropped


@pytest.fixture
def shot():
    return Shot


@pytest.fixture
def head_on():
    return HeadOn


@pytest.fixture(scope="session")
def tapes():
    """Arenas of 1v1, 2v1 and 3v3, so with absent cars; and 2v2."""
    return [record([(1, 1), (2, 1), (3, 3)]), record(2, arenas=3, seed=5)]
