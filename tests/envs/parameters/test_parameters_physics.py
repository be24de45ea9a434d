"""What each parameter does to RocketSim, and to a pool in numbers by hand."""

import functools

import numpy as np
import pytest
import RocketSim

from envs.actions import ContinuousAction, HybridTable
from envs.parameters import PARAMETERS, Constant, Gaussian, MultirangeUniform, Uniform
from envs.parameters.live import default_values, mutator_config
from envs.resets import RandomState
from envs.sim.arena import SimArena, init_rocketsim
from tests.envs.parameters.test_parameters import TICK, HighBall, pool_with


class Scenes:
    """Short plays of one arena with given parameters. Each returns numbers that say what happened."""

    def __init__(self, values):
        init_rocketsim()
        self.sim = SimArena([0, 1], large_cells=True)
        self.sim.set_mutators(mutator_config(values))
        self.sim._replace_bodies()
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
    parser = HybridTable()
    pool_with({"action_delay_ticks": Uniform(0, 3)}, 1, action=parser)
    assert parser.horizon_ticks == 8 + 8
    parser = HybridTable()
    pool_with({"gravity": Constant(600)}, 1, action=parser)
    assert parser.horizon_ticks == 8 + 1


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


@pytest.mark.parametrize("radius", [30, 80, 100, 101, 200])
def test_a_ball_of_any_size_lies_on_the_ground_at_kickoff(radius):
    pool = pool_with({"ball_radius": Constant(radius)}, 2, episode_seconds=0.2)
    pool.reset()
    for _ in range(5):  # beyond the first episode, too
        np.testing.assert_allclose(pool.state.world.ball_pos[:, 2], radius + 1.9, atol=0.5)
        pool.step(np.zeros(4, np.int64))
    assert [arena.ball.get_radius() for arena in pool.arenas] == pytest.approx([radius, radius], abs=1e-3)


def test_flags_and_whole_numbers_are_rounded_and_tails_are_clipped():
    samplers = {"unlimited_flips": Uniform(0, 1), "demo_mode": Uniform(0, 2), "ball_drag": Gaussian(0.01, 0.5)}
    pool = pool_with(samplers, 16, team_size=(1, 0))
    pool.reset()
    values = pool.parameters
    assert set(values["unlimited_flips"]) == {0, 1} and set(values["demo_mode"]) == {0, 1}
    assert values["ball_drag"].min() == 0 and 0.5 < values["ball_drag"].max() <= 1
    configs = [arena.get_mutator_config() for arena in pool.arenas]
    assert [config.unlimited_flips for config in configs] == values["unlimited_flips"].astype(bool).tolist()
    assert [config.demo_mode for config in configs] == values["demo_mode"].tolist()
    assert [config.ball_drag for config in configs] == pytest.approx(values["ball_drag"].tolist(), rel=1e-6)


def test_a_large_ball_leaves_no_trace_in_later_episodes():
    """Room for it costs time, and changes the order in which the engine finds contacts."""
    after, fresh = (pool_with({}, 6, team_size=3, state_setter=RandomState(), episode_seconds=6) for _ in range(2))
    after.set_parameters({"ball_radius": 150.0})
    after.reset(seed=0)
    after.set_parameters({"ball_radius": 91.25})
    fresh.set_parameters({"ball_radius": 91.25})
    dice = np.random.default_rng(0)
    for pool in (after, fresh):
        pool.reset(seed=1)
    for _ in range(40):
        actions = dice.integers(90, size=36)
        assert np.array_equal(after.step(actions)[0], fresh.step(actions)[0])


def test_a_removed_parameter_holds_until_the_episode_ends():
    pool, fresh = (pool_with({}, 2, state_setter=HighBall(), episode_seconds=2) for _ in range(2))
    pool.reset(seed=0)
    pool.set_parameters({"gravity": 100.0})
    pool.reset(seed=0)
    nothing = np.full(4, 16)
    pool.step(nothing)
    pool.set_parameters({})
    fresh.load_state_dict(pool.state_dict())
    for each in (pool, fresh):
        before = each.state.world.ball_vel[:, 2].copy()
        each.step(nothing)
        np.testing.assert_allclose(each.state.world.ball_vel[:, 2] - before, -100 * 8 * TICK, rtol=0.1)
    for _ in range(40):
        pool.step(nothing)
    before = pool.state.world.ball_vel[:, 2].copy()
    pool.step(nothing)
    np.testing.assert_allclose(pool.state.world.ball_vel[:, 2] - before, -650 * 8 * TICK, rtol=0.1)


class FastBall(RandomState):
    def apply(self, state, mask, rng):
        super().apply(state, mask, rng)
        state.world.ball_pos[mask], state.world.ball_vel[mask] = (0, 0, 1000), (0, 8000, 0)
        state.pad_timers[mask] = 30


def test_states_that_changed_physics_allow_can_begin_an_episode():
    changed = {"boost_pad_cooldown_small": Uniform(1, 40), "ball_max_speed": Constant(9000)}
    pool = pool_with(changed, 1, state_setter=FastBall())
    pool.reset(seed=0)
    assert pool.state.pad_timers.max() == 30
    for name in changed:
        fewer = {other: sampler for other, sampler in changed.items() if other != name}
        with pytest.raises(ValueError, match=r"in arena 0 pad" if "pad" in name else r"in arena 0 the ball"):
            pool_with(fewer, 1, state_setter=FastBall()).reset(seed=0)
