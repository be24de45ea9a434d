"""RocketSimPool as a vector environment: autoreset, determinism, metrics, broken physics."""

import copy
import time
from hashlib import sha256

import numpy as np
import pytest
import RocketSim
from gymnasium.vector import AutoresetMode, VectorEnv

from envs import CombinedReward, GoalReward, InAirReward, Reward, RewardSignals, TouchReward
from envs.actions import ActionTable, ContinuousAction, HybridTable, LookupTable, RepeatAction, StickyButtons
from envs.actions.base import JUMP
from envs.dones import GoalCondition, NoTouchCondition, TimeoutCondition
from envs.obs import AdvancedObs, StackedObs
from envs.pool.rocket_pool import RocketSimPool
from envs.resets import Kickoff, MixedStates, RandomState, ReplayedStates, StateSetter, save_states
from envs.state.game_state import GameState
from tests.envs.fakes import assert_same


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


def test_step_needs_reset_and_one_action_per_car():
    pool = RocketSimPool(2, 1, num_threads=1)
    with pytest.raises(RuntimeError, match="reset"):
        pool.step(np.zeros(4, np.int64))
    pool.reset()
    with pytest.raises(ValueError, match=r"actions must have 4 rows, one per car, got shape \[3\]"):
        pool.step(np.zeros(3, np.int64))
    with pytest.raises(ValueError, match="one non-negative integer"):
        pool.reset(seed=[1, 2])
    with pytest.raises(RuntimeError, match=r"call reset\(\) before state_dict\(\)"):
        a_pool().state_dict()


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


@pytest.mark.slow
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


def test_resets_with_seeds_and_episodes_stand_alone():
    pool = RocketSimPool(2, 1, state_setter=RandomState(), num_threads=1, seed=5)
    first = pool.reset()[0]
    goes_on = pool.reset()[0]
    again = pool.reset(seed=5)[0]
    other = pool.reset(seed=6)[0]
    np.testing.assert_array_equal(first, again)
    assert (first != goes_on).any() and (first != other).any()
    np.testing.assert_array_equal(first[2:], other[:2])  # arena 1 of seed 5 is arena 0 of seed 6
    assert (first[:2] != first[2:]).any()

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


# ---------------------------------------------------------------- the probe of the debug mode


IDLE, JUMPING = (
    int(np.flatnonzero((LookupTable().table == row).all(axis=1))[0]) for row in (np.zeros(8), np.eye(8)[JUMP])
)


def jumps(obs, begins, mask):
    """Presses jump in every second step, for a press that is held is one press."""
    jumps.calls = 0 if begins.all() else jumps.calls + 1
    return np.full(len(obs), JUMPING if jumps.calls % 2 else IDLE)


@pytest.mark.slow
def test_who_jumps_gets_up_and_who_idles_does_not():
    pool = RocketSimPool(2, [(1, 1), (2, 1)], num_threads=1)
    pool.reset(seed=0)
    before, seen = copy.deepcopy(pool.state_dict()["state"]), []

    def idles(obs, begins, mask):
        seen.append((obs.shape, begins.sum()))
        return np.full(len(obs), IDLE)

    (idle,) = pool.inspector.probe(idles)
    assert idle == "0 of 20 cars that lay on their roofs stood up within 3 s"
    assert seen[0] == ((20, *pool.single_observation_space.shape), 20) and {begun for _, begun in seen[1:]} == {0}
    (line,) = pool.inspector.probe(jumps)
    assert line.startswith("20 of 20 cars that lay on their roofs stood up within 3 s, after ")
    assert 0.3 < float(line.split()[-4]) < 2.5
    assert [line] == pool.inspector.probe(jumps)  # the same places every time
    for name, array in pool.state.state_dict().items():
        np.testing.assert_array_equal(array, before[name], err_msg=name)
    pool.close()


@pytest.mark.parametrize("tick_skip", [4, 12])
def test_it_sees_and_acts_as_the_pool_does(tick_skip):
    obs, action = StackedObs(AdvancedObs(), num_frames=2), HybridTable()
    pool = RocketSimPool(1, (3, 0), obs, action, tick_skip=tick_skip, num_threads=1)
    pool.reset(seed=0)
    masks = []

    def choose(obs, begins, mask):
        masks.append(mask)
        return mask.argmax(axis=1)

    (line,) = pool.inspector.probe(choose)
    assert " of 24 cars " in line and masks[0].shape == (24, pool.single_action_space.n)
    assert len(masks) == 360 // tick_skip
    pool.close()


# ---------------------------------------------------------------- what a pool says about itself


def a_pool(**parts):
    return RocketSimPool(2, **({"num_threads": 1} | parts))


def test_the_layout_names_columns_and_rows_and_tells_what_does_not_fit():
    layout = a_pool().layout
    digest = sha256(LookupTable().table.astype("<f4").tobytes()).hexdigest()
    assert layout == {
        "observation columns": "DefaultObs: ball_pos 0-2, ball_vel 3-5, ball_ang_vel 6-8, pad_timers 9-42, "
        "self_flags 43-51, car_0 52-71, car_1 72-91",
        "action table": f"LookupTable: 90 rows, sha256 {digest[:12]}",
    }
    wrapped = a_pool(action=RepeatAction(StickyButtons(HybridTable(), 2), 2)).layout["action table"]
    assert wrapped.startswith("RepeatAction(StickyButtons(HybridTable)): 128 rows, sha256 ")
    assert a_pool(action=ContinuousAction()).layout["action table"] == "ContinuousAction: Box(-1.0, 1.0, (8,), float32)"
    rows = LookupTable().table
    changed = rows.copy()
    changed[3, 1] = 0.5
    tables = [LookupTable(), ActionTable(rows), ActionTable(changed), HybridTable()]
    assert len({a_pool(action=table).layout["action table"] for table in tables}) == 4
    builders = [None, AdvancedObs(), StackedObs(AdvancedObs(), 1), StackedObs(AdvancedObs(), 2)]
    assert len({a_pool(obs=obs).layout["observation columns"] for obs in builders}) == 4
    assert a_pool(team_size=2).layout["observation columns"].endswith("car_3 112-131")


PARTS = {"physics", "gather", "obs", "rewards", "dones_and_resets", "actions"}


def test_timers_cover_the_steps():
    pool = a_pool(done=TimeoutCondition(0.2), action=HybridTable())
    pool.reset(seed=0)
    assert pool.drain_timers() == dict.fromkeys(PARTS, (0.0, 0))
    began = time.perf_counter()
    for _ in range(20):
        pool.step(np.zeros(4, int))
    passed = time.perf_counter() - began
    timers = pool.drain_timers()
    assert set(timers) == PARTS and {count for _, count in timers.values()} == {20}
    assert all(seconds > 0 for seconds, _ in timers.values())
    assert sum(seconds for seconds, _ in timers.values()) <= passed
    assert pool.drain_timers()["physics"] == (0.0, 0)


# ---------------------------------------------------------------- states that do not fit


@pytest.mark.parametrize("snapshot", [{}, {"state": {}}])
def test_something_else_is_no_snapshot(snapshot):
    with pytest.raises(ValueError, match=r"RocketSimPool: this is not a snapshot of a pool; it lacks .*arenas"):
        a_pool().load_state_dict(snapshot)


def test_the_component_that_does_not_fit_is_named():
    two = CombinedReward([GoalReward(), InAirReward()], [1, 1])
    pool = a_pool(reward=two, obs=StackedObs(AdvancedObs(), 2))
    pool.reset(seed=0)
    snapshot = pool.state_dict()
    three = CombinedReward([GoalReward(), InAirReward(), GoalReward()], [1, 1, 1])
    for parts, message in (
        ({"reward": three}, "the saved state of the reward CombinedReward does not fit CombinedReward"),
        (
            {"reward": RewardSignals({"a": GoalReward()})},
            "reward CombinedReward does not fit RewardSignals: it lacks 'a'",
        ),
        ({"obs": StackedObs(AdvancedObs(), 3)}, "the obs StackedObs does not fit StackedObs: StackedObs: num_frames=3"),
        ({"done": GoalCondition()}, r"7 components \(Kickoff, LookupTable, StackedObs, .*but this pool has 2 and 5"),
    ):
        other = a_pool(**({"reward": two, "obs": StackedObs(AdvancedObs(), 2)} | parts))
        with pytest.raises(ValueError, match=message) as caught:
            other.load_state_dict(snapshot)
        assert "\n" not in str(caught.value)
    del snapshot["component_names"]  # a snapshot of an earlier version
    pool.load_state_dict(snapshot)


# ---------------------------------------------------------------- copies


def played(steps=10):
    pool = a_pool(state_setter=RandomState(), done=TimeoutCondition(100))
    pool.reset(seed=3)
    for _ in range(steps):
        pool.step(np.full(4, 7))
    return pool


@pytest.mark.parametrize("copied", [GameState.copy, copy.deepcopy])
def test_a_copy_stays_what_it_was(copied):
    pool = played()
    kept, wheels = copied(pool.state), pool.state.wheels_with_contact.copy()
    arrays = {name: array.copy() for name, array in kept.state_dict().items()}
    ball, own = kept.world.ball_pos.copy(), kept.own.car_pos.copy()
    for _ in range(10):
        pool.step(np.full(4, 30))
    assert (pool.state.world.ball_pos != ball).any()
    np.testing.assert_array_equal(kept.world.ball_pos, ball)
    np.testing.assert_array_equal(kept.own.car_pos, own)
    np.testing.assert_array_equal(kept.wheels_with_contact, wheels)  # read from the arena before it went on
    for name, array in kept.state_dict().items():
        np.testing.assert_array_equal(array, arrays[name], err_msg=name)
    kept.world.ball_pos[:] = 0
    assert pool.state.world.ball_pos.any()


def test_a_list_of_copies_is_saved_and_a_list_of_one_state_is_refused(tmp_path):
    pool, copies, live, heights = played(0), [], [], []
    for _ in range(4):
        pool.step(np.full(4, 7))
        copies.append(pool.state.copy())
        live.append(pool.state)
        heights += pool.state.world.ball_pos[:, 2].tolist()
    with pytest.raises(ValueError, match=r"same GameState object several times.*pool.state.copy\(\)") as caught:
        save_states(tmp_path / "live.npz", live)
    assert "\n" not in str(caught.value) and not (tmp_path / "live.npz").exists()
    assert save_states(tmp_path / "states.npz", copies) == 8 == len(ReplayedStates(tmp_path / "states.npz"))
    with np.load(tmp_path / "states.npz") as file:
        np.testing.assert_array_equal(file["ball_pos"][:, 2], np.float32(heights))
    assert save_states(tmp_path / "one.npz", pool.state) == 2
    assert save_states(tmp_path / "played.npz", (pool.state for _ in range(3))) == 6
    for wrong in (3, [3], [pool.state, pool]):
        with pytest.raises(TypeError, match=r"save_states: states must be GameState objects, got (int|RocketSimPool)"):
            save_states(tmp_path / "wrong.npz", wrong)


def test_a_state_shows_its_sizes_and_first_arena():
    pool = a_pool(team_size=[(1, 1), (1, 0)])
    pool.reset(seed=0)
    pool.step(np.zeros(3, int))
    text = repr(pool.state)
    assert text.startswith("GameState(2 arenas, 1 blue and 1 orange slots; arena 0 after 0.07 s: ball at (0, 0, 9")
    assert "blue car 0 at (" in text and "orange car 1 at (" in text and "with boost 33" in text and "\n" not in text
    assert "car 1" not in repr(pool.state.select(np.array([1]))) and "arena 1 after" in repr(pool.state.select([1]))
    assert repr(GameState(0, 1, 1)) == "GameState(0 arenas, 1 blue and 1 orange slots)"
