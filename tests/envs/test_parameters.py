"""Parameters of the physics: samplers, what each one does to RocketSim, who gets which values and when."""

import functools

import numpy as np
import pytest
import RocketSim

from envs import (
    Constant,
    ContinuousAction,
    Gaussian,
    GymnasiumEnvs,
    HybridTable,
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
from envs.parameters import PARAMETERS
from envs.parameters.catalogue import default_values, mutators
from envs.physics import SimArena, init_rocketsim
from tests.envs.process_pool_parts import Trouble

TICK = 1 / 120


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


def assert_same(ours, theirs):
    assert len(ours) == len(theirs)
    for a, b in zip(ours, theirs, strict=True):
        np.testing.assert_array_equal(a, b)


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


# ---------------------------------------------------------------- RocketSim takes every parameter


class Scenes:
    """Short plays of one arena with given parameters. Each returns numbers that say what happened."""

    def __init__(self, values):
        init_rocketsim()
        self.sim = SimArena([0, 1], roomy=True)
        self.sim.set_mutators(mutators(values))
        self.sim._renew()
        self.arena, (self.car, self.other) = self.sim.arena, self.sim.cars
        self.put_car(self.other, (3000, 4000, 17))
        self.put_ball((0, 0, 800), (0, 0, 0.01))

    def put_ball(self, pos, vel=(0, 0, 0)):
        ball = RocketSim.BallState()
        ball.pos, ball.vel = RocketSim.Vec(*pos), RocketSim.Vec(*vel)
        self.arena.ball.set_state(ball)

    def put_car(self, car, pos, vel=(0, 0, 0), angles=(0, 0, 0), boost=50.0, airborne=False):
        state = RocketSim.CarState()
        state.pos, state.vel, state.boost = RocketSim.Vec(*pos), RocketSim.Vec(*vel), boost
        state.rot_mat = RocketSim.Angle(*angles).as_rot_mat()
        if airborne:
            state.has_jumped, state.is_on_ground, state.wheels_with_contact = True, False, (False,) * 4
        car.set_state(state)

    def press(self, **buttons):
        controls = RocketSim.CarControls()
        for name, value in buttons.items():
            setattr(controls, name, value)
        self.car.set_controls(controls)

    def ball(self):
        state = self.arena.ball.get_state()
        return [*state.pos.as_tuple(), *state.vel.as_tuple()]

    def car_now(self):
        state = self.car.get_state()
        return [*state.pos.as_tuple(), *state.vel.as_tuple(), state.boost]

    def fall(self):
        self.arena.step(60)
        return self.ball()

    def roll(self):
        self.put_ball((0, 0, 800), (1000, 0, 0))
        self.arena.step(60)
        return self.ball()

    def bounce(self):
        self.put_ball((0, 0, 300), (500, 0, -1500))
        self.arena.step(90)
        return self.ball()

    def drive(self):
        self.put_car(self.car, (0, -4000, 17))
        self.press(throttle=1.0, boost=True)
        self.arena.step(60)
        return self.car_now()

    def fly(self):
        self.put_car(self.car, (0, -4000, 900), airborne=True)
        self.press(boost=True)
        self.arena.step(30)
        return self.car_now()

    def jump(self):
        self.put_car(self.car, (0, -4000, 17))
        self.press(jump=True)
        self.arena.step(20)
        return self.car_now()

    def land_on_roof(self):
        self.put_car(self.car, (0, -3000, 200), (500, 0, -1000), (0, 0, np.pi))
        self.arena.step(40)
        return self.car_now()

    def hit(self):
        self.put_ball((0, -3500, 93.15))
        self.put_car(self.car, (0, -4000, 17), (0, 1500, 0), (np.pi / 2, 0, 0))
        self.arena.step(40)
        return self.ball()

    def bump(self, speed=1500, ticks=40):
        self.put_car(self.car, (0, -300, 17), (0, speed, 0), (np.pi / 2, 0, 0))
        self.put_car(self.other, (0, 0, 17))
        self.arena.step(ticks)
        state = self.other.get_state()
        return [*state.vel.as_tuple(), state.is_demoed, state.demo_respawn_timer]

    def demolish(self):
        return self.bump(2300)

    def demolish_own_team(self):
        self.other = self.arena.add_car(RocketSim.Team.BLUE)
        return self.bump(2300)

    def respawn(self):
        self.car.respawn(3)
        return [self.car.get_state().boost]

    def pads(self):
        cooldowns = []
        for pad in (self.sim.pads[3], self.sim.pads[0]):
            full = RocketSim.BoostPadState()
            full.is_active = True
            pad.set_state(full)
            x, y, _ = pad.get_pos().as_tuple()
            self.put_car(self.car, (x, y, 17), boost=0)
            self.arena.step(2)
            cooldowns.append(pad.get_state().cooldown)
        return cooldowns

    def flip_again_and_again(self, pitch=-1.0):
        self.put_car(self.car, (0, 0, 1500), airborne=True)
        speeds = []
        for press in range(40):
            self.press(pitch=pitch, jump=press % 2 == 1)
            self.arena.step(8)
            speeds += self.car.get_state().vel.as_tuple()
        return speeds

    def jump_again_and_again(self):
        return self.flip_again_and_again(pitch=0.0)


EFFECTS = [
    ("gravity", 300, Scenes.fall),
    ("gravity", 300, Scenes.fly),
    ("ball_mass", 100, Scenes.hit),
    ("ball_radius", 60, Scenes.bounce),
    ("ball_radius", 200, Scenes.bounce),
    ("ball_max_speed", 500, Scenes.roll),
    ("ball_drag", 0.5, Scenes.roll),
    ("ball_world_friction", 0, Scenes.bounce),
    ("ball_world_restitution", 0.9, Scenes.bounce),
    ("ball_hit_extra_force_scale", 3, Scenes.hit),
    ("car_world_friction", 2, Scenes.land_on_roof),
    ("car_world_restitution", 0.9, Scenes.land_on_roof),
    ("boost_accel_ground", 2000, Scenes.drive),
    ("boost_accel_air", 2000, Scenes.fly),
    ("boost_used_per_second", 10, Scenes.drive),
    ("jump_accel", 3000, Scenes.jump),
    ("jump_immediate_force", 600, Scenes.jump),
    ("bump_force_scale", 3, Scenes.bump),
    ("bump_cooldown_time", 0, Scenes.bump),
    ("respawn_delay", 1, Scenes.demolish),
    ("boost_pad_cooldown_big", 20, Scenes.pads),
    ("boost_pad_cooldown_small", 1, Scenes.pads),
    ("car_spawn_boost_amount", 100, Scenes.respawn),
    ("unlimited_flips", 1, Scenes.flip_again_and_again),
    ("unlimited_double_jumps", 1, Scenes.jump_again_and_again),
    ("enable_team_demos", 1, Scenes.demolish_own_team),
    ("enable_car_car_collision", 0, Scenes.bump),
    ("enable_car_ball_collision", 0, Scenes.hit),
    ("demo_mode", 2, Scenes.demolish),
    ("demo_mode", 1, functools.partial(Scenes.bump, speed=800)),
]


@pytest.mark.parametrize(("name", "value", "scene"), EFFECTS, ids=[f"{name}={value}" for name, value, _ in EFFECTS])
def test_every_parameter_takes_effect(name, value, scene):
    normal, default = scene(Scenes({})), default_values(1)[name]
    assert scene(Scenes({name: default})) == normal
    changed = scene(Scenes({name: value}))
    assert max(abs(a - b) for a, b in zip(changed, normal, strict=True)) > 0.4


def test_the_table_above_has_all_parameters():
    assert {name for name, _, _ in EFFECTS} | {"action_delay_ticks"} == set(PARAMETERS)
    for name, parameter in PARAMETERS.items():
        assert parameter.low <= default_values(1)[name] <= parameter.high, name


# ---------------------------------------------------------------- in a pool, with numbers by hand


class HighBall(RandomState):
    """The ball hangs high, let go."""

    def apply(self, state, mask, rng):
        super().apply(state, mask, rng)
        state.world.ball_pos[mask], state.world.ball_vel[mask] = (0, 0, 1500), (0, 0, -0.001)
        state.world.ball_ang_vel[mask] = 0


def test_a_ball_falls_as_its_arenas_gravity_says():
    pool = pool_with({"gravity": Uniform(200, 1200), "ball_drag": Constant(0)}, state_setter=HighBall(), seed=3)
    pool.reset()
    gravity = pool.parameters["gravity"]
    assert len(set(gravity)) == 4 and (gravity >= 200).all() and (gravity < 1200).all()
    for _ in range(5):
        pool.step(np.zeros(8, np.int64))
    ticks = 5 * 8  # velocity first, then place: z = z0 - g dt^2 (1 + 2 + ... + n)
    fallen = gravity * TICK**2 * ticks * (ticks + 1) / 2
    np.testing.assert_allclose(1500 - pool.state.world.ball_pos[:, 2], fallen, atol=0.2)


def test_boost_is_used_up_at_the_rate_that_was_drawn():
    parameters = {"boost_used_per_second": MultirangeUniform([[10, 20], [50, 90]]), "action_delay_ticks": Constant(0)}
    pool = pool_with(parameters, action=ContinuousAction(), state_setter=RandomState(), episode_seconds=5, seed=1)
    pool.reset()
    pool.state.boost[:] = 0
    before = np.array([[car.get_state().boost for car in arena.get_cars()] for arena in pool.arenas])
    boost = np.zeros((8, 8), np.float32)
    boost[:, 6] = 1
    for _ in range(2):
        pool.step(boost)
    rate = pool.parameters["boost_used_per_second"]
    used = before - np.array([[car.get_state().boost for car in arena.get_cars()] for arena in pool.arenas])
    enough = before > 90 * 0.15
    assert enough.any(axis=1).sum() >= 3
    expected = np.repeat(rate[:, None] * 16 * TICK, 2, axis=1)
    assert np.abs(used - expected)[enough].min() == pytest.approx(0, abs=1e-3)
    assert np.median(np.abs(used - expected)[enough]) == pytest.approx(0, abs=1e-3)  # the rest took a pad


def test_each_arena_has_the_action_delay_that_was_drawn():
    pool = pool_with({"action_delay_ticks": Uniform(0, 9)}, 12, action=ContinuousAction(), team_size=(1, 0))
    pool.reset(seed=2)
    delay = pool.parameters["action_delay_ticks"]
    assert set(delay) <= set(range(9)) and len(set(delay)) > 4
    jump = np.zeros((12, 8), np.float32)
    jump[:, 5] = 1
    pool.step(jump)
    # A jump's first push is 875/3 uu/s; while the button is held there are 4375/3 uu/s^2 more, less gravity.
    speed = pool.state.world.car_vel[:, 0, 2]
    assert (speed[delay == 8] < 10).all() and (speed[delay < 8] > 250).all()
    means = [speed[delay == ticks].mean() for ticks in sorted(set(delay))]
    assert (np.diff(means) < 1).all() and means[0] > means[-2] + 20


def test_looking_ahead_reaches_as_far_as_the_longest_delay():
    parser = HybridTable()
    pool_with({"action_delay_ticks": Uniform(0, 3)}, 1, action=parser)
    assert parser.horizon_ticks == 8 + 8
    parser = HybridTable()
    pool_with({"gravity": Constant(600)}, 1, action=parser)
    assert parser.horizon_ticks == 8 + 1


@pytest.mark.parametrize("radius", [30, 80, 100, 101, 200])
def test_a_ball_of_any_size_lies_on_the_ground_at_kickoff(radius):
    pool = pool_with({"ball_radius": Constant(radius)}, 2, episode_seconds=0.2)
    pool.reset()
    for _ in range(5):  # beyond the first episode, too
        np.testing.assert_allclose(pool.state.world.ball_pos[:, 2], radius + 1.9, atol=0.5)
        pool.step(np.zeros(4, np.int64))
    assert [arena.ball.get_radius() for arena in pool.arenas] == pytest.approx([radius, radius], abs=1e-3)


def test_flags_and_whole_numbers_are_rounded_and_tails_are_clipped():
    samplers = {
        "unlimited_flips": Uniform(0, 1),
        "demo_mode": Uniform(0, 2),
        "ball_drag": Gaussian(0.01, 0.5),
    }
    pool = pool_with(samplers, 16, team_size=(1, 0))
    pool.reset()
    values = pool.parameters
    assert set(values["unlimited_flips"]) == {0, 1} and set(values["demo_mode"]) == {0, 1}
    assert values["ball_drag"].min() == 0 and 0.5 < values["ball_drag"].max() <= 1
    configs = [arena.get_mutator_config() for arena in pool.arenas]
    assert [config.unlimited_flips for config in configs] == values["unlimited_flips"].astype(bool).tolist()
    assert [config.demo_mode for config in configs] == values["demo_mode"].tolist()
    assert [config.ball_drag for config in configs] == pytest.approx(values["ball_drag"].tolist(), rel=1e-6)


# ---------------------------------------------------------------- who gets what, and when


SAMPLERS = {"gravity": Uniform(300, 900), "ball_mass": Gaussian(30, 5), "action_delay_ticks": Uniform(0, 9)}


def short_games(num_arenas=5, seed=0, num_threads=None, first_arena=0):
    """What ProcessPool divides."""
    done = [NoTouchCondition(0.3), TimeoutCondition(0.7)]
    return pool_with(SAMPLERS, num_arenas, seed=seed, num_threads=num_threads, first_arena=first_arena, done=done)


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


# ---------------------------------------------------------------- set from outside


def gravity_of(pool):
    return [round(-arena.get_mutator_config().gravity.z, 3) for arena in pool.arenas]


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
