"""What the reward tests share: hand-made scenes, recorded play, and its mirror images."""

import numpy as np

from envs import (
    GameState,
    GoalCondition,
    Kickoff,
    MixedStates,
    NoTouchCondition,
    RandomState,
    Reward,
    RocketSimPool,
    StateSetter,
    TimeoutCondition,
)
from envs.state.layout import BOOST, IS_DEMOED, ON_GROUND, TOUCHED
from tests.envs.conftest import Dropped, HeadOn, Shot

ALL = slice(None)


class Scene:
    """A `GameState` written by hand; `step` changes it and lets the rewards look at it."""

    def __init__(self, blue=1, orange=1, arenas=1, present=None):
        self.state = GameState(arenas, blue, orange, present)
        self.state.clear(np.arange(arenas))
        self.state.world.ball_pos[:] = (0, 0, 93.15)
        self.state.world.car_pos[:] = (1000, -2000, 17)
        self.state.complete()

    def put(self, ticks=0, ball=None, ball_vel=None, arena=ALL, touched=None, **cars):
        """Writes; `cars` are lists with one entry per car: pos, vel, up, forward, boost, on_ground, demoed, ..."""
        state, world = self.state, self.state.world
        state.episode_ticks[arena] += ticks
        if ball is not None:
            world.ball_pos[arena] = ball
        if ball_vel is not None:
            world.ball_vel[arena] = ball_vel
        state.car_rows[arena, :, 0, TOUCHED] = 0 if touched is None else touched
        for name, values in cars.items():
            if name in ("pos", "vel", "up", "forward"):
                getattr(world, f"car_{name}")[arena] = values
            elif name in ("boost", "on_ground"):
                state.car_rows[arena, :, 0, BOOST if name == "boost" else ON_GROUND] = values
            elif name == "demoed":
                state.demo_respawn_timer[arena] = np.multiply(values, 2.0)
                state.car_rows[arena, :, 0, IS_DEMOED] = values
            elif name in ("bump_victim", "bump_cooldown"):
                state.details[name][arena] = values
            else:
                getattr(state, name)[arena] = values
        if "on_ground" in cars:
            state.details["wheels"][arena] = np.asarray(values_of(cars, "on_ground"))[..., None]
        self.state.complete()
        return self

    def first(self, *rewards):
        for reward in rewards:
            reward.reset(np.ones(self.state.num_arenas, bool), self.state)
        return self

    def step(self, reward, ticks=8, **changes):
        """What `reward` pays for a step that leads to the changed scene; of the first arena, as a list."""
        self.put(ticks, **changes)
        return reward.compute(self.state)[0].tolist()


def values_of(cars, name):
    return np.asarray(cars[name], bool)


class Crash(StateSetter):
    """Every car flies or drives at the ball, which may be high or on its way to a goal: touches of every kind."""

    def apply(self, state, mask, rng):
        world = state.world
        for arena in np.flatnonzero(mask):
            height = rng.choice([93, 400, 900, 1500])
            ball = np.array([rng.uniform(-800, 800), rng.uniform(-4600, 4600), height])
            world.ball_pos[arena] = ball
            world.ball_vel[arena] = (0, rng.choice([-1500, 0, 1500]), 0 if height < 100 else 150)
            for car in range(state.num_cars):
                angle = 2 * np.pi * car / state.num_cars + rng.uniform(-0.3, 0.3)
                forward = np.array([np.cos(angle), np.sin(angle), 0])
                spot = ball - forward * rng.uniform(250, 500)
                world.car_pos[arena, car] = (*spot[:2], max(17, height - 60) if height > 100 else 17)
                world.car_vel[arena, car] = forward * rng.uniform(1200, 2000) + (0, 0, 150 if height > 100 else 0)
                world.car_forward[arena, car] = forward
                world.car_right[arena, car] = (-forward[1], forward[0], 0)
                state.has_jumped[arena, car] = height > 100 and rng.random() < 0.7
            state.set_on_ground(arena, np.full(state.num_cars, height < 100))
            state.boost[arena] = 50


class Tape(Reward):
    """Keeps everything that a reward is shown."""

    def __init__(self):
        self.shown = []

    def reset(self, mask, state):
        self.shown.append((mask.copy(), state.copy()))

    def compute(self, state):
        self.shown.append((None, state.copy()))
        return np.zeros((state.num_arenas, state.num_cars), np.float32)


def record(team_size, arenas=6, steps=220, seed=3, **settings):
    """Random play with goals, demolitions, touches and resets: (mask, state) of a reset, (None, state) of a step."""
    tape = Tape()
    setters = [Kickoff(), RandomState(), Shot(), Shot(into_blue_goal=True), Dropped(), HeadOn(), Crash()]
    done = [GoalCondition(), NoTouchCondition(1.0), TimeoutCondition(2.0)]
    setter = MixedStates(setters, [1, 2, 1, 1, 1, 2, 6])
    pool = RocketSimPool(
        arenas, team_size, reward=tape, state_setter=setter, done=done, num_threads=1, seed=seed, **settings
    )
    pool.reset()
    rng = np.random.default_rng(seed)
    for _ in range(steps):
        pool.step(rng.integers(90, size=pool.num_envs))
    pool.close()
    return tape.shown


def replay(reward, shown):
    """`[steps, A, C]` what `reward` pays."""
    paid = []
    for mask, state in shown:
        if mask is None:
            paid.append(reward.compute(state).copy())
        else:
            reward.reset(mask, state)
    return np.stack(paid)


def rearranged(state, order, mirrored=False):
    """The same situation with the cars in another order; mirrored, the field is rotated and the colours exchanged."""
    other = state.copy()
    other.car_rows[:] = state.car_rows[:, order]
    other.present[:] = state.present[:, order]
    for name in ("car_states", "details", "controls"):
        getattr(other, name)[:] = getattr(state, name)[:, order]
    place = np.append(np.argsort(order), -1)
    other.details["bump_victim"] = place[other.details["bump_victim"]]
    other.last_touch_car[:] = place[state.last_touch_car]
    if mirrored:
        other.ball_rows[:] = other.ball_rows[:, ::-1].copy()
        other.car_rows[:] = other.car_rows[:, :, ::-1].copy()
        other.pad_timers[:] = other.pad_timers[:, ::-1].copy()
    other.invalidate()
    return other
