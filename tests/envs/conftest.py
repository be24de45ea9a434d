"""Shared by the environment tests: RLGym's own reader of live arenas, and situations that random play rarely meets."""

from collections import Counter

import numpy as np
import pytest
from rlgym.rocket_league.api import GameConfig
from rlgym.rocket_league.api import GameState as RLGymState
from rlgym.rocket_league.sim import RocketSimEngine

from envs import GameState, StateSetter


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


class Shot(StateSetter):
    """The ball flies into orange's goal (or blue's) within half a second; the cars stand at their own back walls."""

    def __init__(self, into_blue_goal: bool = False):
        self.side = -1 if into_blue_goal else 1

    def apply(self, state: GameState, mask: np.ndarray, rng: np.random.Generator) -> None:
        world = state.world
        for arena in np.flatnonzero(mask):
            world.ball_pos[arena] = (0, 4500 * self.side, 300)
            world.ball_vel[arena] = (0, 2500 * self.side, 0)
            for car in range(state.num_cars):
                x = 1500 + 400 * (car % state.num_blue if state.num_blue else car)
                world.car_pos[arena, car] = (x, -4000 if state.team[car] == 0 else 4000, 17)


class HeadOn(StateSetter):
    """The first blue and the first orange car meet nose to nose, blue supersonic: a demolition within two steps."""

    def apply(self, state: GameState, mask: np.ndarray, rng: np.random.Generator) -> None:
        world = state.world
        for arena in np.flatnonzero(mask):
            world.ball_pos[arena] = (2000, 0, 93.15)
            for car in range(state.num_cars):
                world.car_pos[arena, car] = (-3000 + 500 * car, 3000, 17)
            for car, y, speed in ((0, -200, 2300), (state.num_blue, 200, 1000)):
                if car >= state.num_cars:
                    continue
                facing = -1 if y > 0 else 1
                world.car_pos[arena, car] = (0, y, 17)
                world.car_forward[arena, car] = (0, facing, 0)
                world.car_right[arena, car] = (-facing, 0, 0)
                world.car_vel[arena, car] = (0, facing * speed, 0)
            state.boost[arena] = 50


class Dropped(Shot):
    """The ball falls onto the last car: a touch within three steps, whatever the car does."""

    def apply(self, state: GameState, mask: np.ndarray, rng: np.random.Generator) -> None:
        super().apply(state, mask, rng)
        for arena in np.flatnonzero(mask):
            state.world.ball_pos[arena] = state.world.car_pos[arena, -1] + np.array([0, 0, 200], np.float32)
            state.world.ball_vel[arena] = (0, 0, -1500)


@pytest.fixture
def dropped():
    return Dropped


@pytest.fixture
def shot():
    return Shot


@pytest.fixture
def head_on():
    return HeadOn
