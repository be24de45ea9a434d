"""Mixed team sizes, exact resume and the errors that name a component."""

import numpy as np
import pytest

from envs import (
    CombinedReward,
    DefaultObs,
    GoalCondition,
    GoalReward,
    InAirReward,
    Kickoff,
    MixedStates,
    NoTouchCondition,
    RandomState,
    Reward,
    RocketSimPool,
    TimeoutCondition,
    VelocityBallToGoalReward,
)
from tests.envs.comparing import assert_same

PADDED = DefaultObs(zero_padding=3)


def play(pool, steps, seed):
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
    assert play(mixed, 1, 0)
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


@pytest.mark.parametrize("size", [[(1, 1), (0, 0)], [(1, 1, 1)], [(5, 1)], []])
def test_unknown_team_sizes_are_refused(size):
    with pytest.raises(ValueError, match="team_size"):
        RocketSimPool(2, size)


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
    play(pool, 37, seed=0)
    snapshot = pool.state_dict()
    went_on = play(pool, 80, seed=1)
    assert any(array.dtype == bool and array.any() for array in went_on), "no episode ended"
    metrics = pool.drain_metrics()
    fresh = resumable(1, team_size)
    fresh.load_state_dict(snapshot)
    assert_same(went_on, play(fresh, 80, seed=1))
    assert fresh.drain_metrics() == metrics
    play(fresh, 20, seed=2)
    fresh.load_state_dict(snapshot)  # into a pool that has played
    assert_same(went_on, play(fresh, 80, seed=1))


def test_a_restored_car_keeps_its_flip_boost_and_demolition(head_on):
    pool = RocketSimPool(2, 2, state_setter=head_on(), done=[TimeoutCondition(30)], num_threads=1)
    pool.reset(seed=0)
    play(pool, 12, seed=0)
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
