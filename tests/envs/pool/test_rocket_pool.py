"""RocketSimPool as a vector environment: autoreset, determinism, metrics, broken physics."""

import numpy as np
import pytest
import RocketSim
from gymnasium.vector import AutoresetMode, VectorEnv

from envs import (
    CombinedReward,
    DefaultObs,
    GoalCondition,
    Kickoff,
    MixedStates,
    NoTouchCondition,
    RandomState,
    Reward,
    RewardSignals,
    RocketSimPool,
    StateSetter,
    TimeoutCondition,
    TouchReward,
)
from tests.envs.comparing import assert_same


def random_setter():
    return MixedStates([Kickoff(), RandomState()], [1, 2])


def short_episodes():
    return [GoalCondition(), TimeoutCondition(1.0)]


def play(pool, steps, rng_seed=0, arenas=None):
    """Random play, each arena with its own action stream (`arenas` names them); everything that step returned."""
    rngs = [np.random.default_rng(rng_seed + i) for i in (arenas or range(pool.num_arenas))]
    outputs = [pool.reset()[0].copy()]
    for _ in range(steps):
        actions = np.concatenate([rng.integers(90, size=pool.num_cars) for rng in rngs])
        obs, rewards, terminated, truncated, infos = pool.step(actions)
        final = infos["final_obs"] if infos else np.zeros_like(obs)
        outputs.append(np.concatenate((obs, final, np.stack((rewards, terminated, truncated), axis=1)), axis=1))
    return outputs


def test_is_a_gymnasium_vector_env():
    pool = RocketSimPool(2, (2, 1), num_threads=1)
    assert isinstance(pool, VectorEnv)
    assert pool.num_envs == 6
    assert pool.metadata["autoreset_mode"] is AutoresetMode.SAME_STEP
    assert pool.single_action_space.n == 90
    assert pool.action_space.shape == (6,)
    assert pool.single_observation_space.shape == (52 + 3 * 20,)
    obs, info = pool.reset(seed=3)
    assert obs in pool.observation_space
    assert info == {}
    obs, rewards, terminated, truncated, infos = pool.step(pool.action_space.sample())
    assert obs in pool.observation_space
    assert rewards.shape == terminated.shape == truncated.shape == (6,)
    assert (rewards.dtype, terminated.dtype, truncated.dtype) == (np.float32, bool, bool)
    assert infos == {}
    assert len(pool.arenas) == pool.num_seeds == 2
    pool.close()


def test_default_observation_is_padded_to_three_a_team():
    assert RocketSimPool(1, 1, obs=DefaultObs(), num_threads=1).single_observation_space.shape == (172,)


def test_step_needs_reset_and_one_action_per_car():
    pool = RocketSimPool(2, 1, num_threads=1)
    with pytest.raises(RuntimeError, match="reset"):
        pool.step(np.zeros(4, np.int64))
    pool.reset()
    with pytest.raises(ValueError, match=r"\[3\] actions for 4 cars"):
        pool.step(np.zeros(3, np.int64))
    with pytest.raises(ValueError, match="one integer"):
        pool.reset(seed=[1, 2])


@pytest.mark.parametrize("terminates", [True, False])
def test_autoreset_in_the_same_step(shot, terminates):
    """Arena 0 ends by a goal (terminated) or by the clock (truncated); arena 1 goes on."""

    class Other(StateSetter):
        """The shot in arena 0, first a quiet kickoff in arena 1; every later episode is a kickoff."""

        calls = 0

        def apply(self, state, mask, rng):
            self.calls += 1
            setter = shot() if self.calls == 1 and terminates else Kickoff()
            setter.apply(state, mask, rng)

    class OnlyFirst(TimeoutCondition):
        def check(self, state):
            return super().check(state) & (state.arena_index == 0)

    done = GoalCondition() if terminates else OnlyFirst(0.4)
    pool = RocketSimPool(2, 1, state_setter=Other(), done=done, num_threads=1)
    pool.reset()
    step, infos = 0, {}
    while not infos and step < 100:
        obs, _, terminated, truncated, infos = pool.step(np.full(4, 7))
        step += 1
    assert terminates or step == 6
    assert terminated.tolist() == [terminates, terminates, False, False]
    assert truncated.tolist() == [not terminates, not terminates, False, False]
    assert infos["_final_obs"].tolist() == [True, True, False, False]
    final = infos["final_obs"]
    assert final.shape == obs.shape
    ball_y = 1 * 6000 * final[:2, 1]
    if terminates:
        assert ball_y[0] > 5215.5 and ball_y[1] < -5215.5  # the goal, seen by blue and by orange
    else:
        assert (obs[:2, 61:63] != final[:2, 61:63]).any()  # the cars had moved
    first = np.zeros_like(obs[:2])
    pool.obs_builder.build(pool.state.select(np.array([0])), first[None])
    np.testing.assert_array_equal(obs[:2], first)
    assert obs[0, 1] == 0 and pool.state.episode_ticks.tolist() == [0, step * 8]
    assert not np.shares_memory(obs, final)
    np.testing.assert_array_equal(obs[2:], final[2:])
    _, _, terminated, truncated, infos = pool.step(np.full(4, 7))
    assert not terminated.any() and not truncated.any() and infos == {}


def test_no_touch_clock_starts_anew_with_a_touch(dropped):
    """The ball lands on orange's car within three steps; the clock of 0.5 s then ends the episode later than 0.5 s."""
    lengths = []
    for setter in (Kickoff(), dropped()):
        pool = RocketSimPool(1, 1, state_setter=setter, done=NoTouchCondition(0.5), num_threads=1)
        pool.reset()
        for length in range(1, 100):  # action 8 stands still
            _, _, terminated, truncated, _ = pool.step(np.full(2, 8))
            assert not terminated.any()
            if truncated.any():
                lengths.append(length)
                break
    assert lengths[0] == 8  # 60 ticks, in steps of 8
    assert lengths[1] > 8


@pytest.mark.parametrize("team_size", [1, 3])
def test_trajectories_do_not_depend_on_threads_or_neighbours(team_size):
    def build(num_arenas, num_threads, seed):
        return RocketSimPool(
            num_arenas,
            team_size,
            state_setter=random_setter(),
            done=short_episodes(),
            num_threads=num_threads,
            seed=seed,
        )

    runs = [play(build(5, threads, 7), 40) for threads in (1, 2, 3)]
    assert_same(runs[0], runs[1])
    assert_same(runs[0], runs[2])
    alone = play(build(1, 1, 7 + 3), 40, arenas=[3])
    cars = 2 * team_size
    assert_same([out[3 * cars : 4 * cars] for out in runs[0]], alone)


def test_reset_with_a_seed_repeats_and_other_seeds_differ():
    pool = RocketSimPool(2, 1, state_setter=RandomState(), num_threads=1, seed=5)
    first = pool.reset()[0]
    goes_on = pool.reset()[0]
    again = pool.reset(seed=5)[0]
    other = pool.reset(seed=6)[0]
    np.testing.assert_array_equal(first, again)
    assert (first != goes_on).any() and (first != other).any()
    np.testing.assert_array_equal(first[2:], other[:2])  # arena 1 of seed 5 is arena 0 of seed 6
    assert (first[:2] != first[2:]).any()


def test_an_episode_does_not_depend_on_the_one_before():
    class Fixed(StateSetter):
        def apply(self, state, mask, rng):
            RandomState(grounded_share=0.5).apply(state, mask, np.random.default_rng(1))

    pool = RocketSimPool(1, 3, state_setter=Fixed(), num_threads=1)
    rng = np.random.default_rng(0)
    pool.reset()
    for _ in range(60):  # crashes, bumps, pads taken: nothing of it may last
        pool.step(rng.integers(90, size=6))
    first = play(pool, 60, rng_seed=1)
    second = play(pool, 60, rng_seed=1)
    fresh = play(RocketSimPool(1, 3, state_setter=Fixed(), num_threads=1), 60, rng_seed=1)
    assert_same(first, second)
    assert_same(first, fresh)


def test_metrics_count_touches_goals_and_episodes(shot, dropped):
    pool = RocketSimPool(3, 1, state_setter=shot(), done=[GoalCondition()], num_threads=1)
    pool.reset()
    steps, terminated = 0, np.zeros(6, bool)
    while not terminated.all() and steps < 100:
        _, _, terminated, _, _ = pool.step(np.full(6, 8))
        steps += 1
    metrics = pool.drain_metrics()
    minutes = 3 * steps * 8 / 120 / 60
    assert metrics["game/goals_per_minute"] == pytest.approx((3, minutes))
    assert metrics["game/episodes_per_minute"] == pytest.approx((3, minutes))
    assert metrics["game/touches_per_minute"] == pytest.approx((0, minutes * 2))
    assert metrics["game/physics_errors_per_minute"] == pytest.approx((0, minutes))
    assert {name: value for name, value in pool.drain_metrics().items() if value != (0, 0)} == {}

    pool = RocketSimPool(2, 1, state_setter=dropped(), reward=CombinedReward([TouchReward()], [3.0]), num_threads=1)
    pool.reset()
    contacts = previous = paid = 0
    for _ in range(6):
        pool.step(np.full(4, 8))
        touched = pool.state.touched.copy()
        contacts += int((touched & ~np.asarray(previous, bool)).sum())
        paid += int(touched.sum())
        previous = touched
    metrics = pool.drain_metrics()
    assert contacts >= 2
    assert metrics["game/touches_per_minute"][0] == contacts
    assert metrics["reward/TouchReward"] == (3.0 * paid, 6 * 4)


class Always(Reward):
    def compute(self, state):
        return np.ones((state.num_arenas, state.num_cars), np.float32)


def break_physics(arena):
    car = arena.get_cars()[0]
    state = car.get_state()
    state.vel = RocketSim.Vec(float("nan"), 0, 0)
    car.set_state(state)


def test_broken_physics_ends_one_arena_only():
    def build():
        return RocketSimPool(3, 1, reward=Always(), state_setter=RandomState(), num_threads=2, seed=1)

    pool, healthy = build(), build()
    pool.reset(), healthy.reset()
    rng = np.random.default_rng(0)
    for _ in range(3):
        actions = rng.integers(90, size=6)
        last = pool.step(actions)[0].copy()
        healthy.step(actions)
    broken_arena = pool.arenas[1]
    break_physics(broken_arena)
    actions = rng.integers(90, size=6)
    with pytest.warns(RuntimeWarning, match="arena 1"):
        obs, rewards, terminated, truncated, infos = pool.step(actions)
    expected = healthy.step(actions)[0]
    assert truncated.tolist() == [False, False, True, True, False, False]
    assert not terminated.any()
    assert rewards.tolist() == [1, 1, 0, 0, 1, 1]
    assert np.isfinite(obs).all()
    np.testing.assert_array_equal(infos["final_obs"][2:4], last[2:4])  # the last state that made sense
    assert pool.arenas[1] is not broken_arena
    others = [0, 1, 4, 5]
    np.testing.assert_array_equal(obs[others], expected[others])
    assert pool.drain_metrics()["game/physics_errors_per_minute"][0] == 1
    for _ in range(5):
        actions = rng.integers(90, size=6)
        obs, _, _, truncated, _ = pool.step(actions)
        np.testing.assert_array_equal(obs[others], healthy.step(actions)[0][others])
        assert np.isfinite(obs).all() and not truncated.any()


def test_broken_physics_pays_no_reward_signal():
    signals = RewardSignals({"one": Always(), "two": CombinedReward([Always()], [2.0])})
    pool = RocketSimPool(3, 1, reward=signals, state_setter=RandomState(), num_threads=1)
    pool.reset(seed=1)
    pool.step(np.zeros(6, np.int64))
    break_physics(pool.arenas[1])
    with pytest.warns(RuntimeWarning, match="arena 1"):
        infos = pool.step(np.zeros(6, np.int64))[4]
    assert infos["reward_signals"].tolist() == [[1, 2]] * 2 + [[0, 0]] * 2 + [[1, 2]] * 2


def test_demolished_cars_return_where_the_arenas_generator_says(head_on):
    """RocketSim draws the place from a generator that nobody can seed; the pool must not depend on it."""

    def places(seed, num_threads):
        pool = RocketSimPool(8, 1, state_setter=head_on(), num_threads=num_threads, seed=seed)
        pool.reset()
        demoed = np.zeros(8, bool)
        for _ in range(50):
            pool.step(np.full(16, 8))
            demoed |= pool.state.demo_respawn_timer[:, 1] > 0
        assert demoed.all()
        assert (pool.state.demo_respawn_timer == 0).all()  # back after 3 s = 45 steps
        return pool.state.world.car_pos[:, 1].copy()

    first = places(0, 2)
    np.testing.assert_array_equal(first, places(0, 1))
    assert len(np.unique(first[:, 0].round())) >= 3  # four places, drawn for each arena
    assert (np.abs(first[:, 1] - 4608) < 1).all()
