"""State setters that write states themselves."""

import re

import numpy as np
import pytest

from envs import GameState, LookupTable, RocketSimPool, TimeoutCondition
from envs.resets import (
    ExplicitState,
    Kickoff,
    MirroredStates,
    MixedStates,
    RandomState,
    ShuffledCars,
    StateSetter,
    TurtledStart,
    check_start,
)
from envs.resets.initial_states import describe_problems, find_problems, inside_field, wall_distance
from tests.envs.fakes import configured, path_of, written

IDLE = int(np.flatnonzero(~LookupTable().table.any(axis=1))[0])
JUMP = int(np.flatnonzero((LookupTable().table == [0, 0, 0, 0, 0, 1, 0, 0]).all(axis=1))[0])
SETTERS = {
    "kickoff": Kickoff(),
    "random": RandomState(),
    "turtled": TurtledStart(0.5, max_speed=500, max_spin=2),
    "mixed": MixedStates([Kickoff(), RandomState(), TurtledStart()], [1, 1, 1]),
    "mirrored": MirroredStates(RandomState()),
    "shuffled": ShuffledCars(Kickoff()),
}


def rows(state):
    names = ("ball_rows", "car_rows", "car_timers", "car_flags", "wheels_with_contact", "pad_timers")
    return {name: getattr(state, name) for name in names}


def pool_with(setter, num_arenas=2, team_size=1, **kwargs):
    kwargs = {"done": [TimeoutCondition(1000)], "num_threads": 1} | kwargs
    return RocketSimPool(num_arenas, team_size, state_setter=setter, **kwargs)


# ---------------------------------------------------------------------- all setters


@pytest.mark.parametrize("name", SETTERS)
def test_the_same_generator_gives_the_same_state(name):
    first, again, other = (written(SETTERS[name], seed=seed) for seed in (5, 5, 6))
    for key, array in rows(first).items():
        np.testing.assert_array_equal(array, rows(again)[key])
    assert (first.car_rows != other.car_rows).any()


@pytest.mark.parametrize("name", SETTERS)
def test_only_the_arenas_asked_for_are_written(name):
    state = GameState(3, 1, 1)
    state.clear(np.arange(3))
    before = state.select(np.array([0, 2]))
    SETTERS[name].apply(state, np.array([False, True, False]), np.random.default_rng(0))
    for key, array in rows(state.select(np.array([0, 2]))).items():
        np.testing.assert_array_equal(array, rows(before)[key])
    assert state.world.ball_pos[1].any()


@pytest.mark.slow
@pytest.mark.parametrize("name", SETTERS)
def test_arenas_do_not_depend_on_threads_or_on_how_many_there_are(name):
    few, many = pool_with(SETTERS[name], 3, seed=4), pool_with(SETTERS[name], 8, seed=4, num_threads=2)
    few.reset()
    many.reset()
    actions = np.random.default_rng(0).integers(90, size=(5, many.num_envs))
    for step in actions:
        few.step(step[: few.num_envs])
        many.step(step)
    for key, array in rows(few.state).items():
        np.testing.assert_array_equal(array, rows(many.state)[key][:3])
    assert (many.state.car_rows[0] != many.state.car_rows[1]).any()


@pytest.mark.parametrize("name", SETTERS)
def test_nothing_is_wrong_with_any_start(name):
    found = {problem for seed in range(50) for problem in find_problems(written(SETTERS[name], 3, 3, seed), 0)}
    assert found == ({("a car on its roof", "")} if name in ("turtled", "mixed") else set())


class Counting(StateSetter):
    def __init__(self):
        self.count = 0

    def apply(self, state, mask, rng):
        self.count += 1

    def state_dict(self):
        return {"count": self.count}

    def load_state_dict(self, state):
        self.count = state["count"]


def test_what_an_inner_setter_remembers_is_passed_on():
    def nested():
        inner = Counting()
        return inner, MixedStates([Kickoff(), MirroredStates(ShuffledCars(inner))], [0, 1])

    inner, setter = nested()
    written(setter)
    written(setter)
    other, loaded = nested()
    loaded.load_state_dict(setter.state_dict())
    assert (inner.count, other.count) == (2, 2)
    assert Kickoff().state_dict() == {}


@pytest.mark.parametrize("cars", [1, 3, 5])
def test_both_teams_have_the_same_kickoff_and_all_five_are_drawn(cars):
    seen = set()
    for seed in range(60):
        state = written(Kickoff(), cars, cars, seed)
        blue, forward = state.world.car_pos[0, :cars], state.world.car_forward[0]
        np.testing.assert_array_equal(state.world.car_pos[0, cars:], blue * [-1, -1, 1])
        np.testing.assert_allclose(forward[cars:], forward[:cars] * [-1, -1, 1], atol=1e-6)
        assert len(np.unique(blue, axis=0)) == cars and (blue[:, 1] < 0).all() and state.wheels_with_contact.all()
        assert (state.boost == np.float32(33.3)).all()
        seen.add(tuple(blue[0]))
    assert len(seen) == 5


def test_random_states_keep_clear_and_keep_their_shares():
    setter, grounded, ball_low = RandomState(grounded_share=0.25, ball_on_ground_share=0.5), [], []
    for seed in range(200):
        state = written(setter, 3, 3, seed)
        spots = np.concatenate((state.world.car_pos[0], state.world.ball_pos))
        assert np.linalg.norm(spots[:, None] - spots[None], axis=-1)[~np.eye(7, dtype=bool)].min() >= 399
        on_ground = state.on_ground[0]
        np.testing.assert_array_equal(state.world.car_pos[0, :, 2] == 17, on_ground)
        assert (state.world.car_up[0, on_ground, 2] > 1 - 1e-6).all()
        basis = np.stack([getattr(state.world, f"car_{name}")[0] for name in ("forward", "right", "up")], axis=1)
        np.testing.assert_allclose(np.linalg.det(basis), 1, atol=1e-5)
        grounded.append(on_ground.mean())
        ball_low.append(state.world.ball_pos[0, 2] < 94)
    assert abs(np.mean(grounded) - 0.25) < 0.05
    assert abs(np.mean(ball_low) - 0.5) < 0.12


def test_resting_random_states():
    world = written(RandomState(False, False, grounded_share=1, ball_on_ground_share=1)).world
    assert not world.ball_vel.any() and not world.car_vel.any() and not world.car_ang_vel.any()
    pool = pool_with(RandomState(random_ball_speed=False, random_car_speed=False, grounded_share=1), 8, seed=1)
    pool.reset()
    height = pool.state.world.ball_pos[:, 2].copy()
    for _ in range(3):
        pool.step(np.full(pool.num_envs, IDLE))
    # 0.2 s: 650 / 2 * 0.04 = 13 uu
    np.testing.assert_allclose(height - pool.state.world.ball_pos[:, 2], 13, atol=0.6)
    state = GameState(20, 1, 1)
    state.clear(np.arange(20))
    RandomState(grounded_share=1, ball_on_ground_share=1).apply(state, np.ones(20, bool), np.random.default_rng(0))
    world = state.world
    assert not world.ball_vel[..., 2].any() and not world.car_ang_vel.any()
    assert (np.linalg.norm(world.ball_vel, axis=-1) > 100).any()
    speed = np.einsum("aci,aci->ac", world.car_vel, world.car_forward)
    np.testing.assert_allclose(world.car_vel, speed[..., None] * world.car_forward, atol=1e-3)
    assert (speed >= 0).all() and speed.max() > 1500


def test_setters_from_the_command_line():
    explicit = path_of("ExplicitState", car_pos=[[0, -9, 17], [0, 9, 17]], car_yaw=[1.5, -1.5], boost=[10, 20])
    mixed = path_of("MixedStates", weights=[1, 2], setters=[explicit, path_of("TurtledStart", max_spin=2)])
    setter = configured(StateSetter, path_of("resets.MirroredStates", probability=0.25, inner=mixed))
    assert setter.probability == 0.25
    assert setter.inner.setters[1].max_spin == 2
    np.testing.assert_array_equal(setter.inner.setters[0].boost, [10, 20])


# ---------------------------------------------------------------------- away from the walls

GROUNDED, SLIDING = RandomState(grounded_share=1), TurtledStart(max_speed=2000, max_spin=5)


@pytest.mark.parametrize("setter", [RandomState(), GROUNDED, SLIDING], ids=["random", "grounded", "turtled"])
def test_random_places_are_clear_of_all_walls(setter):
    states = [written(setter, 3, 3, seed) for seed in range(600)]
    world = [np.concatenate((state.world.car_pos[0], state.world.ball_pos)) for state in states]
    x, y, z = np.abs(np.concatenate(world)).T
    # Ramps reach 256 uu from a wall, a ball has a radius of 91 and a car of less. The corners' walls are x + y = 8064.
    assert x.max() <= 3500 and y.max() <= 4500 and z.max() <= 1800
    assert ((8064 - (x + y)) / np.sqrt(2)).min() > 256 + 91
    assert x.max() > 3450 and y.max() > 4450 and (x + y).max() > 7400  # as far out as before


@pytest.mark.parametrize(
    ("setter", "seeds"),
    [(RandomState(), [8094]), (GROUNDED, [1113, 7177, 8094]), (SLIDING, [2199, 6086, 7231])],
    ids=["random", "grounded", "turtled"],
)
def test_nothing_that_began_near_a_corner_leaves_the_arena(setter, seeds):
    for seed in seeds:
        pool = pool_with(setter, 4, 3, seed=seed)
        pool.reset()
        for _ in range(40):  # 320 ticks
            pool.step(np.full(pool.num_envs, IDLE))
            world = pool.state.world
            x, y, z = np.abs(np.concatenate((world.car_pos.reshape(-1, 3), world.ball_pos))).T
            within = (x <= 4096) & (z <= 2044) & (x + y <= 8064) & ((y <= 5120) | ((x < 893) & (z < 643)))
            assert within.all() and pool.state.world.car_pos[..., 2].min() > 0


# ---------------------------------------------------------------------- on the roof


def test_turtled_cars_lie_on_their_roofs_in_real_physics():
    pool = pool_with(TurtledStart(max_spin=0.5, max_speed=200), 6, 2, seed=1)
    pool.reset()
    yaws = np.arctan2(pool.state.world.car_forward[..., 1], pool.state.world.car_forward[..., 0])
    assert yaws.min() < -2 and yaws.max() > 2
    assert np.linalg.norm(pool.state.world.car_vel, axis=-1).max() > 100
    for step in range(45):  # three seconds
        if step:
            pool.step(np.full(pool.num_envs, IDLE))
        state = pool.state
        assert (state.world.car_up[..., 2] < -0.99).all()
        assert not state.wheels_with_contact.any() and not state.on_ground.any()
        np.testing.assert_allclose(state.world.car_pos[..., 2], 39.65, atol=1.5)
    assert state.has_world_contact.all()
    np.testing.assert_allclose(state.world_contact_normal, np.broadcast_to([0, 0, 1], (6, 4, 3)), atol=1e-3)
    assert np.linalg.norm(state.world.car_vel[..., :2], axis=-1).max() < 20
    pool = pool_with(TurtledStart(), 4, (1, 0), seed=1)
    pool.reset()
    for step in range(30):
        pool.step(np.full(4, JUMP if step < 3 else IDLE))
    assert (pool.state.world.car_up[..., 2] > 0.99).all() and pool.state.on_ground.all()


def test_turtled_share_speed_and_spin():
    states = [written(TurtledStart(0.25), 3, 3, seed) for seed in range(100)]
    up = np.stack([state.world.car_up[0, :, 2] for state in states])
    grounded = np.stack([state.on_ground[0] for state in states])
    np.testing.assert_array_equal(np.sign(up), np.where(grounded, 1, -1))
    assert abs((up < 0).mean() - 0.25) < 0.06
    for state in states:
        assert not state.world.car_vel.any() and not state.world.car_ang_vel.any() and not state.world.ball_vel.any()
        np.testing.assert_array_equal(state.world.car_pos[0, :, 2], np.where(state.on_ground[0], 17, np.float32(39.65)))
    assert written(TurtledStart(0), 3, 3).on_ground.all()
    states = [written(TurtledStart(0.5, max_speed=300, max_spin=1.5), 3, 3, seed) for seed in range(60)]
    speed = np.concatenate([np.linalg.norm(s.world.car_vel[0], axis=-1) for s in states])
    spin = np.concatenate([s.world.car_ang_vel[0] for s in states])
    turtled = np.concatenate([~s.on_ground[0] for s in states])
    assert 250 < speed.max() <= 300 and 1.2 < np.abs(spin).max() <= 1.5 and spin.min() < 0 < spin.max()
    assert not spin[:, :2].any() and not speed[~turtled].any() and not spin[~turtled].any()


# ---------------------------------------------------------------------- written by hand


def test_explicit_state_arrives_in_the_arena():
    setter = ExplicitState(
        car_pos=[[100, -200, 17], [-300, 400, 500]],
        ball_pos=[10, 20, 300],
        ball_vel=[1000, -2000, 500],
        ball_ang_vel=[1, 2, 3],
        car_rotation=[[0, np.pi / 2, 0], [np.pi / 2, 0, 0]],
        car_vel=[[0, 1000, 0], [1, 2, 3]],
        car_ang_vel=[[0, 0, 0], [0.5, -1, 2]],
        boost=[12.5, 80],
        pad_timers=[*([0] * 33), 7.5],
    )
    pool = pool_with(setter, 2)
    pool.reset()
    state, world = pool.state, pool.state.world
    for arena in (0, 1):
        np.testing.assert_allclose(world.ball_pos[arena], [10, 20, 300], atol=1e-3)
        np.testing.assert_allclose(world.ball_vel[arena], [1000, -2000, 500], atol=1e-3)
        np.testing.assert_allclose(world.ball_ang_vel[arena], [1, 2, 3], atol=1e-6)
        np.testing.assert_allclose(world.car_pos[arena], [[100, -200, 17], [-300, 400, 500]], atol=1e-3)
        np.testing.assert_allclose(world.car_forward[arena], [[0, 1, 0], [0, 0, 1]], atol=1e-6)
        np.testing.assert_allclose(world.car_up[arena], [[0, 0, 1], [-1, 0, 0]], atol=1e-6)
        np.testing.assert_allclose(world.car_vel[arena], [[0, 1000, 0], [1, 2, 3]], atol=1e-3)
        np.testing.assert_allclose(world.car_ang_vel[arena], [[0, 0, 0], [0.5, -1, 2]], atol=1e-6)
        np.testing.assert_array_equal(state.boost[arena], [12.5, 80])
        np.testing.assert_array_equal(state.on_ground[arena], [True, False])
        assert state.pad_timers[arena].tolist() == [*([0] * 33), 7.5]


def test_explicit_defaults_and_absent_cars():
    state = written(ExplicitState([[0, -1000, 17], [0, 1000, 17], [500, 0, 21]], car_yaw=[0, np.pi / 2, 0]), 2, 1)
    np.testing.assert_allclose(state.world.ball_pos[0], [0, 0, 93.15], rtol=1e-6)
    np.testing.assert_allclose(state.world.car_forward[0], [[1, 0, 0], [0, 1, 0], [1, 0, 0]], atol=1e-6)
    np.testing.assert_allclose(state.boost[0], 100 / 3, rtol=1e-6)
    assert state.on_ground[0].tolist() == [True, True, False]
    given = written(ExplicitState([[0, -1000, 17], [0, 1000, 17]], on_ground=[False, True]), 1, 1)
    assert given.on_ground[0].tolist() == [False, True] and given.wheels_with_contact[0, 1].all()
    setter = ExplicitState([[0, -1000, 17], [500, -1000, 17], [0, 1000, 17], [500, 1000, 17]])
    pool = pool_with(setter, 2, [(1, 1), (2, 2)])
    pool.reset()
    np.testing.assert_allclose(pool.state.world.car_pos[0, [0, 2]], [[0, -1000, 17], [0, 1000, 17]])
    assert not pool.state.world.car_pos[0, [1, 3]].any() and pool.state.world.car_pos[1].any(axis=-1).all()


# ---------------------------------------------------------------- the rules for first states


BALL_IN_WALL, CAR_IN_WALL, GOAL = "a ball inside a wall", "a car inside a wall", "a ball behind a goal line"
IN_CAR, IN_BALL, ROOF = "a car inside another car", "a car inside the ball", "a car on its roof"
BALL, CAR = "a ball faster than the game allows", "a car faster than the game allows"


def start(**changes):
    """A possible state of two cars, changed: name -> value of the ball or of all, or (slot, value)."""
    state = GameState.from_numbers([(0, -2000, 17), (0, 2000, 17)])
    for name, value in changes.items():
        target = getattr(state, name) if hasattr(state, name) else getattr(state.world, name)
        slot, value = value if isinstance(value, tuple) and isinstance(value[1], list | float) else (None, value)
        target[(0,) if slot is None else (0, slot)] = value
    return state


PROBLEMS = [
    ({}, [], None),
    ({"ball_pos": [0, 0, 30]}, [BALL_IN_WALL], None),
    ({"ball_pos": [0, 5300, 200]}, [GOAL], None),
    ({"ball_pos": [0, 6100, 9]}, [BALL_IN_WALL, GOAL], "the ball would start outside the field, at (0.0, 6100"),
    ({"car_pos": (0, [0, 40, 80])}, [IN_BALL], "the ball and car 0 would start in the same place, at (0.0, 40.0, 80"),
    ({"car_pos": (0, [0, 80, 60])}, [IN_BALL], None),
    ({"car_pos": (0, [29, 2000, 17])}, [IN_CAR], "car 0 and car 1 would start in the same place, at (0.0, 2000"),
    ({"car_pos": (0, [31, 2000, 17])}, [IN_CAR], None),
    ({"car_pos": (0, [0, 2000, 53])}, [], None),  # one on top of the other
    ({"car_pos": (0, [4090, 0, 500])}, [CAR_IN_WALL], None),
    ({"car_pos": (0, [3700, 4600, 17])}, [CAR_IN_WALL], "car 0 would start outside the field"),
    ({"car_pos": (0, [4200, 0, 17])}, [CAR_IN_WALL], "car 0 would start outside the field, at (4200.0, 0.0, 17.0) uu"),
    ({"car_pos": (1, [500, 9, -1])}, [CAR_IN_WALL], "car 1 would start outside the field, at (500.0, 9.0, -1.0) uu"),
    ({"car_pos": (0, [0, 5500, 17])}, [], None),  # in the goal
    ({"car_pos": (0, [0, 5500, 680])}, [CAR_IN_WALL], None),  # above it
    ({"car_up": (0, [0, 0, -1.0])}, [ROOF], None),
    ({"car_up": (0, [1, 0, 0.0])}, [], None),
    ({"car_up": (0, [0, 0, -1.0]), "car_pos": (0, [0, -2000, 400])}, [], None),
    ({"ball_vel": [6000, 0, 0], "car_vel": (1, [0, 2300, 0]), "boost": 100}, [], None),
    ({"ball_vel": [1e5, 0, 0]}, [BALL], "the ball would start with velocity 100000 uu/s; at most 6000 is possible"),
    ({"ball_ang_vel": [0, 5, 5]}, [BALL], "the ball would start with angular velocity 7.07107 rad/s; at most 6 is"),
    ({"car_vel": (1, [0, 2400, 0])}, [CAR], "car 1 would start with velocity 2400 uu/s; at most 2300 is possible"),
    ({"car_ang_vel": (0, [4, 4, 0])}, [CAR], "car 0 would start with angular velocity 5.65685 rad/s; at most 5.5 is"),
    ({"car_ang_vel": (0, [4, 4, 0]), "demo_respawn_timer": (0, 1.0)}, [], None),  # the game leaves it as it was
    ({"boost": (1, 500.0)}, ["a boost out of range"], "car 1 would start with boost 500; it must be from 0 to 100"),
    ({"boost": (0, -1.0)}, ["a boost out of range"], "car 0 would start with boost -1"),
    ({"pad_timers": (7, 11.0)}, ["a pad timer out of range"], "pad 7 would start with pad timer 11; it must be from 0"),
    ({"demo_respawn_timer": (1, -2.0)}, ["a demo_respawn_timer out of range"], "car 1 would start with demo_respawn_"),
    ({"demo_respawn_timer": (0, 1.0), "car_pos": (0, [9000, 0, 17])}, [], None),
]


@pytest.mark.parametrize(("changes", "kinds", "refused"), PROBLEMS, ids=[str(changes) for changes, *_ in PROBLEMS])
def test_problems(changes, kinds, refused):
    state = start(**changes)
    assert [problem.kind for problem in find_problems(state, 0)] == kinds
    if refused is None:
        check_start(state, 0, "Mine")
    else:
        with pytest.raises(ValueError, match=re.escape(f"Mine: in arena 0 {refused}")) as caught:
            check_start(state, 0, "Mine")
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("spoil", "what"),
    [
        (lambda s: s.world.ball_vel, "the ball's state"),
        (lambda s: s.world.car_forward[:, 1], "the state of car 1"),
        (lambda s: s.car_timers[:, 1], "the state of car 1"),
        (lambda s: s.boost[:, 0:1], "the state of car 0"),
        (lambda s: s.pad_timers, "the pad timers"),
    ],
)
def test_the_check_finds_nan(spoil, what):
    state = start()
    spoil(state)[0, 0] = np.nan
    with pytest.raises(ValueError, match=f"Mine: in arena 0 .* NaN or infinity in {what}"):
        check_start(state, 0, "Mine")


def test_absent_cars_are_left_out_and_problems_counted():
    state = written(Kickoff(), 1, 2, present=np.array([[True, True, False]]))
    state.car_rows[0, 2] = np.nan
    check_start(state, 0, "Mine")
    state = GameState(3, 1, 1)
    state.clear(np.arange(3))
    with pytest.raises(ValueError, match="in arena 2 the ball and car 0"):
        check_start(state.select(np.array([2])), 0, "Mine")
    found = [["a"], [], ["b", "a", "a"], *[["a"]] * 4]
    assert describe_problems(found) == [
        "a in 6 of 7 first states (episode 0, 2, 3, 4, 5, ...)",
        "b in 1 of 7 first states (episode 2)",
    ]


@pytest.mark.parametrize(
    ("spot", "distance"),
    [
        ((0, 0, 93), 93),
        ((4096, 0, 1000), 0),
        ((4147, 0, 1000), -51),
        ((0, -5120, 1000), 0),
        ((0, -5171, 1000), -51),  # above the crossbar
        ((1500, 5300, 100), -180),  # beside the goal
        ((880, 5999, 600), 1),
        ((0, 6051, 100), -51),
        ((0, 0, 2095), -51),
        ((3500, 4500, 100), 45.3),
        ((3800, 4900, 100), -449.7),  # behind a corner: 8700 > 8064
    ],
)
def test_the_walls(spot, distance):
    assert wall_distance(*spot) == pytest.approx(distance, abs=0.1)
    assert inside_field(*spot) is (distance >= -50)
    for axis in range(3):
        assert not inside_field(*(float("nan") if axis == each else x for each, x in enumerate(spot)))
    assert not inside_field(*spot[:2], -0.1)


def test_every_place_of_a_real_game_is_inside():
    pool = RocketSimPool(8, 2, state_setter=RandomState(), num_threads=1, seed=3)
    pool.reset()
    rng = np.random.default_rng(0)
    for _ in range(150):
        pool.step(rng.integers(90, size=pool.num_envs))
        for spot in np.concatenate((pool.state.world.car_pos.reshape(-1, 3), pool.state.world.ball_pos)).tolist():
            assert inside_field(*spot)
