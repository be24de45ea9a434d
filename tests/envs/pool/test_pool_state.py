"""Exact resume of cars and balls that touch: where the physics engine remembers most and shows every difference."""

import hashlib
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import RocketSim

from envs import (
    CombinedReward,
    ContinuousAction,
    GoalReward,
    InAirReward,
    Reward,
    StateSetter,
    VelocityBallToGoalReward,
)
from envs.dones import GoalCondition, NoTouchCondition, TimeoutCondition
from envs.obs import DefaultObs
from envs.pool.rocket_pool import RocketSimPool
from envs.resets import Kickoff, MixedStates, RandomState
from envs.resets.simple import Scramble
from envs.sim import arena as sim_arena
from envs.state.layout import IS_DEMOED
from envs.state.view import bases
from tests.envs.fakes import assert_same

NOTHING = 16  # a row of the lookup table without boost and jump; which one does not matter


class Pile(StateSetter):
    """All cars and the ball in one heap: in a corner, on the grass, there lying on their roofs, or in a goal."""

    PLACES = ((3300, 4300, 100), (500, 1000, 60), (-800, -300, 60), (0, -5400, 80))

    def apply(self, state, mask, rng):
        world, shape = state.world, (state.num_cars, 3)
        for arena in np.flatnonzero(mask):
            kind = int(rng.integers(4))
            place = np.array(self.PLACES[kind])
            world.ball_pos[arena] = *(place[:2] + rng.uniform(0, 20, 2)), rng.uniform(92, 160)
            world.ball_vel[arena] = rng.uniform(-800, 800, 3)
            around = 2 * np.pi * (np.arange(state.num_cars) + rng.random(state.num_cars) / 2) / state.num_cars
            circle = np.stack((np.cos(around), np.sin(around), np.zeros_like(around)), axis=-1)
            world.car_pos[arena] = place + 140 * circle + rng.uniform((0, 0, -30), (40, 40, 60), shape)
            world.car_vel[arena] = rng.uniform(-700, 700, shape)
            pitch, yaw, roll = rng.uniform(-3, 3, shape).T.astype(np.float32)
            if kind == 2:
                pitch, roll = np.zeros_like(pitch), np.full_like(roll, np.pi)
            state.set_car_rotation(arena, pitch, yaw, roll)
            state.boost[arena] = rng.uniform(0, 100, state.num_cars)


class Meeting(StateSetter):
    """The first blue and the first orange car bump into each other nose to nose, too slow for a demolition."""

    def apply(self, state, mask, rng):
        world = state.world
        for arena in np.flatnonzero(mask):
            world.ball_pos[arena] = (2000, 0, 93.15)
            for car in range(state.num_cars):
                world.car_pos[arena, car] = (-3000 + 500 * car, 3000, 17)
            for car, facing, speed in ((0, 1, 1400), (state.num_blue, -1, 300)):
                world.car_pos[arena, car] = (0, -120 * facing, 17)
                world.car_forward[arena, car] = (0, facing, 0)
                world.car_right[arena, car] = (-facing, 0, 0)
                world.car_vel[arena, car] = (0, facing * speed, 0)


SIZES = [(1, 1), (3, 3), (1, 0), (2, 2)]


def piled(threads=1, sizes=SIZES):
    """Ten arenas, whose episodes last one second."""
    setter = MixedStates([Pile(), Kickoff()], [5, 1])
    return RocketSimPool(10, sizes, state_setter=setter, done=[TimeoutCondition(1.0)], num_threads=threads)


def play(pool, steps, seed):
    """Every ball, car (without its id and its counters) and pad after every step of random play."""
    rng, out = np.random.default_rng(seed), []
    for _ in range(steps):
        pool.step(rng.integers(90, size=pool.num_envs))
        out += [pool.state.ball_rows.copy(), pool.state.car_rows[..., IS_DEMOED:].copy(), pool.state.pad_timers.copy()]
        out += [pool.state.car_states["timers"].copy(), pool.state.car_states["flags"].copy()]
    return out


def disturb_heap(rng, junk):
    """Takes and gives back memory in pieces of about the size of RocketSim's objects."""
    for size in rng.choice([520, 1000, 1980, 2010, 2100, 4000], 200).tolist():
        junk.append(bytearray(size))
        if len(junk) > 200:
            junk.pop(int(rng.integers(len(junk))))


@pytest.mark.slow
@pytest.mark.parametrize(("seed", "sizes"), [(0, SIZES), (1, SIZES), (2, SIZES), (3, [(1, 0)])])
def test_cars_in_contact_are_restored_to_the_bit(seed, sizes):
    rng, junk = np.random.default_rng(seed), []
    live, played = piled(2, sizes), piled(1, sizes)
    played.reset(seed=100 + seed)
    live.reset(seed=10 * seed)
    play(played, 35, seed=7)
    for _ in range(4):
        play(live, int(rng.integers(1, 9)), seed=seed)
        snapshot = live.state_dict()
        went_on = play(live, 20, seed=1)
        disturb_heap(rng, junk)
        played.load_state_dict(snapshot)  # into a pool that has played
        assert_same(went_on, play(played, 20, seed=1))
        live.load_state_dict(pickle.loads(pickle.dumps(snapshot)))  # into the one that saved
        assert_same(went_on, play(live, 20, seed=1))
    fresh = piled(1, sizes)
    fresh.load_state_dict(snapshot)
    assert_same(went_on, play(fresh, 20, seed=1))


@pytest.mark.slow
def test_an_episode_in_contact_is_that_of_a_new_pool():
    used = piled()
    used.reset(seed=0)
    for seed in (1, 2, 3):
        play(used, 10 * seed, seed=seed)
        fresh = piled()
        np.testing.assert_array_equal(used.reset(seed=seed)[0], fresh.reset(seed=seed)[0])
        assert_same(play(used, 12, seed=0), play(fresh, 12, seed=0))


def digest(pool):
    return hashlib.sha256(b"".join(array.tobytes() for array in play(pool, 40, seed=1))).hexdigest()


def digest_of(path):
    pool = piled()
    pool.load_state_dict(pickle.loads(Path(path).read_bytes()))
    return digest(pool)


@pytest.mark.slow
def test_another_process_goes_on_to_the_bit(tmp_path):
    pool = piled()
    pool.reset(seed=4)
    play(pool, 4, seed=0)
    saved = tmp_path / "snapshot"
    saved.write_bytes(pickle.dumps(pool.state_dict()))
    here = Path(__file__)
    script = (
        f"import sys; sys.path[:0] = [{str(here.parents[3])!r}, {str(here.parent)!r}]; "
        f"import {here.stem} as tests; print(tests.digest_of({str(saved)!r}))"
    )
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120, check=False)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.split()[-1] == digest(pool)


def test_rocketsim_goes_through_the_cars_in_an_order_that_the_heap_does_not_change():
    """`reset_kickoff` hands the spawns of a seed to the cars of a team in RocketSim's own order."""
    pool = RocketSimPool(2, 4, num_threads=1)
    rng, junk, orders = np.random.default_rng(0), [], set()
    for _ in range(200):
        disturb_heap(rng, junk)
        pool.reset()
        for sim in pool._arenas.sims:
            sim.arena.reset_kickoff(1)
            orders.add(tuple(get().pos.as_tuple() for get in sim.car_states))
    assert len(orders) == 1


@pytest.mark.slow
def test_few_attempts_find_that_order_in_a_fragmented_heap(monkeypatch):
    """The addresses of all cars of an attempt differ from those of the one before, so their hashes do, too."""
    usual, tried = sim_arena.has_usual_car_order, []

    def counted(*args):
        tried[-1] += 1
        return usual(*args)

    monkeypatch.setattr(sim_arena, "has_usual_car_order", counted)
    for seed in range(20):
        rng = np.random.default_rng(seed)
        junk = [bytearray(size) for size in rng.integers(520, 5000, 60_000).tolist()]
        junk = [junk[index] for index in np.flatnonzero(rng.random(len(junk)) < rng.uniform(0.2, 0.9))]
        pool = RocketSimPool(1, 4, num_threads=1)
        for _ in range(80):
            for index in rng.integers(len(junk), size=300).tolist():
                junk[index] = bytearray(int(rng.integers(520, 5000)))
            tried.append(0)
            pool.reset()
    assert max(tried) <= 20


# ---------------------------------------------------------------- what a snapshot must not forget


def test_what_a_snapshot_keeps_of_touches_bumps_and_pads(dropped):
    touched = RocketSimPool(1, 2, state_setter=dropped(), num_threads=1)
    bumped = RocketSimPool(1, 2, state_setter=Meeting(), num_threads=1)
    for pool, name, expected in ((touched, "last_touch", [3]), (bumped, "bump_victim", [[2, -1, 0, -1]])):
        pool.reset(seed=0)
        for _ in range(4):
            pool.step(np.full(4, NOTHING))
        assert getattr(pool.state, name).tolist() == expected
        pool.state_dict()
        pool.state.details_stale[:] = True  # read the live arena, not the saved rows
        assert getattr(pool.state, name).tolist() == expected
    # RocketSim lets that car take the pad from further away than others.
    pool = RocketSimPool(1, 1, num_threads=1)
    pool.reset(seed=0)
    sim = pool._arenas.sims[0]
    pad, car = sim.pads[0], sim.cars[1].get_state()
    car.pos = pad.get_pos()
    sim.cars[1].set_state(car)
    pool.step(np.full(2, NOTHING))
    assert pad.get_state().prev_locked_car_id == sim.cars[1].id
    pool.state_dict()
    assert pad.get_state().prev_locked_car_id == sim.cars[1].id
    assert sim.pads[1].get_state().prev_locked_car_id == 0
    # RocketSim adds an impulse of its own to a hit, but not in two ticks in a row.
    pool = RocketSimPool(2, 1, state_setter=dropped(), tick_skip=1, num_threads=1)
    pool.reset(seed=0)
    while not pool.state.touched.any():
        pool.step(np.full(4, NOTHING))
    restored = pool._arenas.sims[0]
    restored.restore(restored.snapshot())
    pool.step(np.full(4, NOTHING))
    velocity = pool.state.world.ball_vel
    np.testing.assert_allclose(velocity[0], velocity[1], atol=5)


# ---------------------------------------------------------------- other pools


PADDED = DefaultObs(zero_padding=3)


def play_all(pool, steps, seed):
    """Everything that comes out of random play, as one list of arrays."""
    rng, out = np.random.default_rng(seed), []
    for _ in range(steps):
        obs, reward, terminated, truncated, infos = pool.step(rng.integers(90, size=pool.num_envs))
        out += [obs, reward, terminated, truncated, infos.get("final_obs", np.zeros(0)), pool.state.pad_timers.copy()]
    return out


# ---------------------------------------------------------------- mixed team sizes


def test_arenas_take_team_sizes_in_turns_and_play_as_they_would_alone():
    dones = [GoalCondition(), NoTouchCondition(1.5)]
    mixed = RocketSimPool(6, [(1, 0), (1, 1), (3, 2)], obs=PADDED, done=dones, num_threads=2)
    assert mixed.num_envs == 2 * (1 + 2 + 5)
    assert mixed.state.present.sum(axis=1).tolist() == [1, 2, 5, 1, 2, 5]
    alone = [
        RocketSimPool(1, size, obs=PADDED, done=dones, num_threads=1)
        for size in [(1, 0), (1, 1), (3, 2), (1, 0), (1, 1), (3, 2)]
    ]
    start, _ = mixed.reset(seed=3)
    np.testing.assert_array_equal(start, np.concatenate([p.reset(seed=3 + i)[0] for i, p in enumerate(alone)]))
    rng, ends = np.random.default_rng(0), 0
    for _ in range(60):
        actions = rng.integers(90, size=mixed.num_envs)
        obs, rewards, terminated, truncated, infos = mixed.step(actions)
        parts, first = [], 0
        for pool in alone:
            parts.append(pool.step(actions[first : first + pool.num_envs]))
            first += pool.num_envs
        for ours, theirs in zip((obs, rewards, terminated, truncated), zip(*parts, strict=True), strict=False):
            np.testing.assert_array_equal(ours, np.concatenate(theirs[: len(alone)]))
        if truncated.any():
            ends += 1
            finals = np.concatenate([p[4].get("final_obs", np.zeros((len(p[1]), obs.shape[1]))) for p in parts])
            np.testing.assert_array_equal(infos["final_obs"][truncated], finals[truncated])
    assert ends
    minutes = 60 * 8 / 120 / 60
    assert mixed.drain_metrics()["reward/GoalReward"][1] == 60 * mixed.num_envs
    assert play_all(mixed, 1, 0)
    assert mixed.drain_metrics()["game/touches_per_minute"][1] == pytest.approx(minutes / 60 * mixed.num_envs)


def test_slots_without_a_car_stay_zero():
    pool = RocketSimPool(4, [(1, 0), (2, 2)], obs=PADDED, state_setter=RandomState(), done=[TimeoutCondition(0.5)])
    pool.reset(seed=0)
    for _ in range(20):
        pool.step(np.random.default_rng(1).integers(90, size=pool.num_envs))
        absent = ~pool.state.present
        assert absent.sum() == 2 * 3
        for rows in (pool.state.car_rows, pool.state.controls, pool.state.car_timers, pool.state.wheels_with_contact):
            assert not rows[absent].any()
    assert pool.state.boost[pool.state.present].any()


# ---------------------------------------------------------------- exact resume


def resumable(threads, team_size=2):
    reward = CombinedReward([InAirReward(), VelocityBallToGoalReward(), GoalReward()], [0.1, 1.0, 10.0])
    setter = MixedStates([Kickoff(), RandomState()], [1, 2])
    done = [GoalCondition(), NoTouchCondition(1.0), TimeoutCondition(3.0)]
    return RocketSimPool(4, team_size, reward=reward, state_setter=setter, done=done, num_threads=threads, seed=11)


@pytest.mark.parametrize("team_size", [2, [(1, 0), (1, 1), (3, 3)]], ids=["2v2", "mixed"])
def test_a_restored_pool_goes_on_to_the_bit(team_size):
    pool = resumable(2, team_size)
    pool.reset(seed=1)
    play_all(pool, 37, seed=0)
    snapshot = pool.state_dict()
    went_on = play_all(pool, 80, seed=1)
    assert any(array.dtype == bool and array.any() for array in went_on), "no episode ended"
    metrics = pool.drain_metrics()
    fresh = resumable(1, team_size)
    fresh.load_state_dict(snapshot)
    assert_same(went_on, play_all(fresh, 80, seed=1))
    assert fresh.drain_metrics() == metrics
    play_all(fresh, 20, seed=2)
    fresh.load_state_dict(snapshot)  # into a pool that has played
    assert_same(went_on, play_all(fresh, 80, seed=1))


def test_a_restored_car_keeps_its_flip_boost_and_demolition(head_on):
    pool = RocketSimPool(2, 2, state_setter=head_on(), done=[TimeoutCondition(30)], num_threads=1)
    pool.reset(seed=0)
    play_all(pool, 12, seed=0)
    state = pool.state
    assert state.is_demoed.any() and state.has_flipped.any()
    before = {name: getattr(state, name).copy() for name in ("car_states", "boost", "pad_timers", "jump_time")}
    pool.load_state_dict(pool.state_dict())
    live = [get().demo_respawn_timer for sim in pool._arenas.sims for get in sim.car_states]
    assert live == before["car_states"]["timers"][:, :, 3].reshape(-1).tolist()
    state.details_stale[:] = True
    for name, array in before.items():
        np.testing.assert_array_equal(getattr(state, name), array, err_msg=name)


def test_a_snapshot_of_another_pool_is_refused():
    small, large = RocketSimPool(1, num_threads=1), RocketSimPool(2, num_threads=1)
    for pool in (small, large):
        pool.reset(seed=0)
    with pytest.raises(ValueError, match="2 arenas"):
        small.load_state_dict(large.state_dict())
    other = RocketSimPool(1, 2, num_threads=1)
    with pytest.raises(ValueError, match="same number of arenas and cars"):
        other.load_state_dict(small.state_dict())


# ---------------------------------------------------------------- components that return nonsense


class HalfNaN(Reward):
    """NaN for the second car of the third arena."""

    def compute(self, state):
        rewards = np.zeros((state.num_arenas, state.num_cars), np.float32)
        rewards[2, 1] = np.nan
        return rewards


class InfiniteObs(DefaultObs):
    """Infinity in column 7 of the first car of the second arena."""

    def build(self, state, out):
        super().build(state, out)
        if state.num_arenas > 1 and state.episode_ticks.any():
            out[1, 0, 7] = np.inf


@pytest.mark.parametrize(
    ("component", "message"),
    [
        ({"reward": HalfNaN()}, "HalfNaN: nan in the rewards of arena 2, car 1"),
        ({"reward": CombinedReward([GoalReward(), HalfNaN()], [1, 1])}, "HalfNaN: NaN or infinity in the rewards"),
        ({"obs": InfiniteObs()}, r"InfiniteObs: inf in the observations of arena 1, car 0, column \[7\]"),
    ],
)
def test_numbers_that_are_none_name_their_component(component, message):
    pool = RocketSimPool(3, num_threads=1, **component)
    pool.reset(seed=0)
    with pytest.raises(FloatingPointError, match=message):
        pool.step(np.zeros(pool.num_envs, int))


def test_a_pool_is_not_changed_through_its_state():
    """Writing between steps would be lost; state setters write, and copies belong to whoever made them."""
    pool = RocketSimPool(num_arenas=2, num_threads=1)
    pool.reset(seed=0)
    pool.step(np.zeros(pool.num_envs, np.int64))
    state = pool.state
    writes = {
        "an element": lambda: state.world.car_pos.__setitem__((0, 0), 5),
        "in place": lambda: state.world.ball_vel[0].__iadd__(1),
        "the other view": lambda: state.mirrored.car_vel.__setitem__(..., 0),
        "a flag": lambda: state.has_jumped.__setitem__(0, True),
        "by a function": lambda: np.multiply(state.boost, 2, out=state.boost),
    }
    before = state.state_dict()
    for what, write in writes.items():
        with pytest.raises(
            ValueError, match=r"^GameState: pool.state is read-only .* call set_state\(\) of pool.arenas"
        ):
            write()
        assert {name: array.tobytes() for name, array in state.state_dict().items()} == {
            name: array.tobytes() for name, array in before.items()
        }, what
    results = (state.world.car_pos * 2, state.boost.sum(), np.linalg.norm(state.world.car_vel, axis=-1))
    assert [type(result) for result in results] == [np.ndarray, np.float32, np.ndarray]
    copied = state.copy()
    copied.world.car_pos[0] += 1
    copied.boost[:] = 0
    again = RocketSimPool(num_arenas=2, num_threads=1)
    again.load_state_dict(pool.state_dict())
    with pytest.raises(ValueError, match="read-only"):
        again.state.boost[:] = 0

    ball = pool.arenas[0].ball.get_state()
    ball.pos = RocketSim.Vec(0, 0, 1000)
    pool.arenas[0].ball.set_state(ball)
    pool.step(np.zeros(pool.num_envs, np.int64))
    assert pool.state.world.ball_pos[0, 2] == pytest.approx(1000, abs=5)


class SittingOnAPad(StateSetter):
    """The first car waits on a small pad, which it takes every four seconds."""

    def apply(self, state, mask, rng):
        Kickoff().apply(state, mask, rng)
        state.world.car_pos[mask, 0] = -1792, -4184, 17
        state.boost[mask] = 0


def test_counters_of_the_game_continue_after_a_restore():
    """A checkpoint restores the arenas, also of the pool that is saved, in the middle of an episode."""

    def make():
        parts = {"action": ContinuousAction(), "state_setter": SittingOnAPad(), "done": [TimeoutCondition(20)]}
        return RocketSimPool(1, num_threads=1, **parts)

    pool, fresh, still = make(), make(), np.zeros((2, 8), np.float32)
    pool.reset(seed=0)
    for _ in range(20):
        pool.step(still)
    assert pool.state.boost_pickups.tolist() == [[1, 0]]
    fresh.load_state_dict(pool.state_dict())
    for _ in range(230):
        pool.step(still)
        fresh.step(still)
        assert np.array_equal(pool.state.car_rows[..., 1:], fresh.state.car_rows[..., 1:])  # without the engine's ids
    assert pool.state.boost_pickups.tolist() == [[5, 0]]
    assert np.array_equal(pool.state.world.cars[..., 2:7], pool.state.mirrored.cars[..., 2:7])
    for _ in range(60):  # into the next episode
        pool.step(still)
    assert pool.state.boost_pickups.tolist() == [[1, 0]]


def test_the_quaternion_of_a_demolished_car_is_that_of_its_axes():
    pool = RocketSimPool(4, 2, num_threads=1, action=ContinuousAction(), state_setter=Scramble())
    pool.reset(seed=1)
    rng, seen = np.random.default_rng(0), 0
    for _ in range(400):
        controls = rng.uniform(-1, 1, (pool.num_envs, 8)).astype(np.float32)
        controls[:, (0, 6)] = 1
        pool.step(controls)
        for view in (pool.state.world, pool.state.mirrored):
            axes = np.stack([view.car_forward, view.car_right, view.car_up], axis=-2)
            np.testing.assert_allclose(bases(np.asarray(view.car_quaternion)), axes, atol=1e-5)
        seen += int(pool.state.is_demoed.sum())
    assert seen > 20
