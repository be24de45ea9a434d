"""What the tests of environments share: comparing, random play, scenes by hand, situations that play rarely meets."""

import numpy as np
from jsonargparse import ArgumentParser

from envs import Reward
from envs.dones import GoalCondition, NoTouchCondition, TimeoutCondition
from envs.pool.rocket_pool import RocketSimPool
from envs.resets import Kickoff, MixedStates, RandomState, StateSetter
from envs.state.game_state import GameState
from envs.state.layout import BOOST, IS_DEMOED, ON_GROUND, TOUCHED


def assert_same(ours, theirs):
    """Two lists of arrays are the same to the bit."""
    assert len(ours) == len(theirs)
    for number, (a, b) in enumerate(zip(ours, theirs, strict=True)):
        np.testing.assert_array_equal(a, b, err_msg=f"array {number}")
        assert a.dtype == b.dtype


def path_of(name, **settings):
    """A component as a configuration writes it."""
    return {"class_path": f"envs.{name}", "init_args": settings}


def configured(kind, text):
    """The component that a configuration describes."""
    parser = ArgumentParser(exit_on_error=False)
    parser.add_argument("--part", type=kind)
    return parser.instantiate(parser.parse_object({"part": text})).part


def build(builder, state):
    """The observations `[A, C, ...]` of a state; NaN where the builder wrote nothing."""
    shape = (state.num_arenas, state.num_cars, *builder.space(state.num_blue, state.num_orange).shape)
    obs = np.full(shape, np.nan, np.float32)
    builder.build(state, obs)
    return obs


def random_play(num_arenas, team_size, steps=20):
    """A copy of the state after some steps of random actions, in the middle of everybody's first episode."""
    setter, done = RandomState(), [TimeoutCondition(100)]
    pool = RocketSimPool(num_arenas, team_size, state_setter=setter, done=done, num_threads=1, seed=2)
    pool.reset()
    rng = np.random.default_rng(0)
    for _ in range(steps):
        pool.step(rng.integers(90, size=pool.num_envs))
    state = pool.state.select(np.arange(num_arenas))
    pool.close()
    return state


def written(setter, blue=2, orange=2, seed=0, present=None):
    """The state that a setter writes into one arena, without a pool."""
    state = GameState(1, blue, orange, present)
    state.clear(np.array([0]))
    setter.apply(state, np.array([True]), np.random.default_rng(seed))
    return state


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


def from_the_other_side(state):
    """The same situation with the colours exchanged on the field turned around, and where its cars were."""
    order = np.r_[state.num_blue : state.num_cars, : state.num_blue]
    other = rearranged(state, order, mirrored=True)
    other.num_blue, other.num_orange, other.team = state.num_orange, state.num_blue, 1 - state.team[order]
    other.invalidate()
    return other, order
