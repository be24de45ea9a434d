"""StackedObs: frames through real episode ends, parts of the arenas, second looks, exact resume."""

from collections import deque

import numpy as np
import pytest

from envs import GameState, GoalCondition, MixedStates, NoTouchCondition, RandomState, RocketSimPool, TimeoutCondition
from envs.obs import AdvancedObs, EntityObs, PrivilegedObs, StackedObs
from tests.envs.comparing import build

ARENAS, CARS = 5, 2


def make_pool(obs, shot, **kwargs):
    setter = MixedStates([RandomState(), shot(), shot(into_blue_goal=True)], [1, 1, 1])
    done = [GoalCondition(), NoTouchCondition(0.6), TimeoutCondition(1.5)]
    return RocketSimPool(ARENAS, 1, obs=obs, state_setter=setter, done=done, num_threads=1, seed=4, **kwargs)


def by_arena(obs):
    return obs.reshape(ARENAS, CARS, *obs.shape[1:])


@pytest.mark.slow
@pytest.mark.parametrize("num_frames", [1, 2, 4])
@pytest.mark.parametrize("inner", [AdvancedObs, EntityObs])
def test_frames_are_the_last_observations_of_the_same_episode(inner, num_frames, shot):
    """Against frames kept by hand from a pool that plays the same games with single frames."""
    plain, stacked = make_pool(inner(), shot), make_pool(StackedObs(inner(), num_frames), shot)
    single, obs = by_arena(plain.reset()[0]), by_arena(stacked.reset()[0])
    memory = [deque([frame] * num_frames, maxlen=num_frames) for frame in single]
    rng, goals, cuts, partial = np.random.default_rng(0), 0, 0, 0
    for _ in range(80):
        for i in range(ARENAS):
            np.testing.assert_array_equal(obs[i], np.concatenate(memory[i], axis=-1))
        actions = rng.integers(90, size=plain.num_envs)
        single, _, terminated, truncated, infos = plain.step(actions)
        obs, *_, stacked_infos = stacked.step(actions)
        single, obs = by_arena(single), by_arena(obs)
        done = (terminated | truncated)[::CARS]
        for i in range(ARENAS):
            if done[i]:
                memory[i].appendleft(by_arena(infos["final_obs"])[i])
                final = by_arena(stacked_infos["final_obs"])[i]
                np.testing.assert_array_equal(final, np.concatenate(memory[i], axis=-1))
                memory[i].extend([single[i]] * num_frames)
            else:
                memory[i].appendleft(single[i])
        goals, cuts = goals + terminated.sum(), cuts + truncated.sum()
        partial += 0 < done.sum() < ARENAS
    assert goals and cuts and partial
    plain.close(), stacked.close()


@pytest.fixture
def states(shot):
    """Copies of the states of ten steps of one episode in every arena, the beginning first."""
    pool = RocketSimPool(
        ARENAS, 1, state_setter=RandomState(), done=[TimeoutCondition(100)], num_threads=1, seed=1, obs=AdvancedObs()
    )
    pool.reset()
    rng, kept = np.random.default_rng(0), [pool.state.select(np.arange(ARENAS))]
    for _ in range(10):
        pool.step(rng.integers(90, size=pool.num_envs))
        kept.append(pool.state.select(np.arange(ARENAS)))
    pool.close()
    return kept


def begin(builder, state):
    builder.reset(np.ones(ARENAS, bool), state)
    return build(builder, state)


def test_a_second_look_at_the_same_situation_is_no_step(states):
    builder = StackedObs(AdvancedObs(), 3)
    begin(builder, states[0])
    build(builder, states[1])
    first = build(builder, states[2])
    np.testing.assert_array_equal(build(builder, states[2]), first)
    np.testing.assert_array_equal(build(builder, states[2].select(np.array([3, 1]))), first[[3, 1]])
    newest, middle, oldest = np.split(build(builder, states[3]), 3, axis=-1)
    for frame, state in ((newest, states[3]), (middle, states[2]), (oldest, states[1])):
        np.testing.assert_array_equal(frame, build(AdvancedObs(), state))


def test_one_memory_may_serve_actor_and_critic(states):
    shared = StackedObs(AdvancedObs(), 2)
    builder = PrivilegedObs(shared, shared)
    begin(builder, states[0])
    obs = build(builder, states[1])
    actor, critic = np.split(obs, 2, axis=-1)
    np.testing.assert_array_equal(actor, critic)
    np.testing.assert_array_equal(actor, np.concatenate([build(AdvancedObs(), s) for s in (states[1], states[0])], -1))


def test_reset_reaches_the_masked_arenas_only(states):
    builder = PrivilegedObs(AdvancedObs(), StackedObs(AdvancedObs(), 2))
    begin(builder, states[0])
    before = build(builder, states[1])
    builder.reset(np.arange(ARENAS) == 2, states[5])
    part = build(builder, states[5].select(np.array([2])))
    single = build(AdvancedObs(), states[5])
    np.testing.assert_array_equal(part[0], np.concatenate([single[2]] * 3, axis=-1))
    after = build(builder, states[6])
    width = single.shape[-1]
    np.testing.assert_array_equal(after[2, :, 2 * width :], single[2])
    others = [0, 1, 3, 4]
    np.testing.assert_array_equal(after[others][..., 2 * width :], before[others][..., :width])


def test_reset_reaches_builders_within(states):
    builder = StackedObs(StackedObs(AdvancedObs(), 2), 2)
    begin(builder, states[0])
    build(builder, states[1])
    obs = begin(builder, states[5])
    np.testing.assert_array_equal(obs, np.concatenate([build(AdvancedObs(), states[5])] * 4, axis=-1))


@pytest.mark.parametrize(
    "make",
    [
        lambda: StackedObs(AdvancedObs(), 3),
        lambda: StackedObs(EntityObs(), 2),
        lambda: StackedObs(StackedObs(AdvancedObs(), 2), 2),
        lambda: PrivilegedObs(AdvancedObs(), StackedObs(AdvancedObs(), 3)),
    ],
)
def test_saved_and_loaded_it_goes_on_as_before(make, states):
    builder, other, ignorant = make(), make(), make()
    begin(builder, states[0])
    for state in states[1:4]:
        build(builder, state)
    saved = builder.state_dict()
    assert saved and all(isinstance(value, np.ndarray) for value in saved.values())
    expected = [build(builder, state) for state in states[4:7]]
    other.load_state_dict(saved)
    differs = False
    for state, obs in zip(states[4:7], expected, strict=True):
        np.testing.assert_array_equal(build(other, state), obs)
        differs |= not np.array_equal(build(ignorant, state), obs)
    assert differs
    third = make()  # neither of the two has written into what was saved
    third.load_state_dict(saved)
    np.testing.assert_array_equal(build(third, states[4]), expected[0])


def test_a_pool_with_stacked_frames_resumes_exactly(shot):
    pool, other = (make_pool(StackedObs(AdvancedObs(), 3), shot) for _ in range(2))
    pool.reset()
    rng = np.random.default_rng(0)
    for _ in range(10):
        pool.step(rng.integers(90, size=pool.num_envs))
    snapshot = pool.state_dict()
    other.load_state_dict(snapshot)
    for _ in range(20):
        actions = rng.integers(90, size=pool.num_envs)
        np.testing.assert_array_equal(other.step(actions)[0], pool.step(actions)[0])
    pool.close(), other.close()


def test_what_was_saved_before_anything_was_built_loads():
    builder = StackedObs(AdvancedObs(), 2)
    builder.load_state_dict(StackedObs(AdvancedObs(), 2).state_dict())
    state = GameState(2, 1, 1)
    single = build(AdvancedObs(), state)
    np.testing.assert_array_equal(build(builder, state), np.concatenate([single, single], axis=-1))


def test_frames_of_another_number_are_refused(states):
    builder = StackedObs(AdvancedObs(), 2)
    begin(builder, states[0])
    with pytest.raises(ValueError, match="StackedObs: num_frames=3, but the saved state has 2 frames") as caught:
        StackedObs(AdvancedObs(), 3).load_state_dict(builder.state_dict())
    assert "\n" not in str(caught.value)
