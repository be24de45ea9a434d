"""Observation builders, rewards, conditions, setters: symmetry of the sides, and what bad input says."""

import numpy as np
import pytest

from envs import (
    CombinedReward,
    DefaultObs,
    FaceBallReward,
    GameState,
    GoalCondition,
    GoalReward,
    InAirReward,
    Kickoff,
    MixedStates,
    NoTouchCondition,
    RandomState,
    Reward,
    RocketSimPool,
    SpeedTowardBallReward,
    TimeoutCondition,
    TouchReward,
    VelocityBallToGoalReward,
)
from envs.sim.arena import init_rocketsim
from envs.state.layout import ON_GROUND

REWARDS = [
    SpeedTowardBallReward(),
    InAirReward(),
    VelocityBallToGoalReward(),
    GoalReward(),
    TouchReward(),
    FaceBallReward(),
]


def a_state(team_size=2, num_arenas=6):
    """Random play after some steps, one arena with a goal, so that nothing is symmetric by chance."""
    pool = RocketSimPool(
        num_arenas, team_size, state_setter=RandomState(), done=[TimeoutCondition(100)], num_threads=1, seed=2
    )
    pool.reset()
    rng = np.random.default_rng(0)
    for _ in range(25):
        pool.step(rng.integers(90, size=pool.num_envs))
    state = pool.state.select(np.arange(num_arenas))
    for view, y in ((state.world, 5300), (state.mirrored, -5300)):
        view.ball_pos[0, 1] = y
        view.ball_vel[0, 1] = y / 2
    state.car_rows[1, 0, :, 9] = 1  # a touch
    state.pad_timers[:, :3] = (1.0, 2.0, 3.0)
    return state


def mirror(state):
    """The same situation with the colours exchanged: teams swapped, the field rotated by 180 degrees."""
    swapped = state.select(np.arange(state.num_arenas))
    order = np.r_[state.num_blue : state.num_cars, 0 : state.num_blue]
    swapped.ball_rows[:] = state.ball_rows[:, ::-1]
    swapped.car_rows[:] = state.car_rows[:, order, ::-1]
    swapped.car_states[:] = state.car_states[:, order]
    swapped.pad_timers[:] = state.pad_timers[:, ::-1]
    swapped.invalidate()
    return swapped, order


@pytest.mark.parametrize("reward", REWARDS, ids=lambda r: type(r).__name__)
def test_rewards_do_not_know_colours(reward):
    state = a_state()
    swapped, order = mirror(state)
    paid = reward.compute(state)
    assert (paid != 0).any() and paid.dtype == np.float32
    np.testing.assert_allclose(reward.compute(swapped), paid[:, order], rtol=0, atol=1e-6)


def test_own_view_is_each_cars_side():
    state = a_state()
    np.testing.assert_array_equal(state.own.ball_pos[:, 0], state.world.ball_pos)
    np.testing.assert_array_equal(state.own.ball_pos[:, 3], state.mirrored.ball_pos)
    np.testing.assert_array_equal(state.own.car_vel[:, 1], state.world.car_vel[:, 1])
    np.testing.assert_array_equal(state.own.car_vel[:, 2], state.mirrored.car_vel[:, 2])
    np.testing.assert_array_equal(state.own.pad_timers[:, 2], state.pad_timers[:, ::-1])
    np.testing.assert_allclose(state.mirrored.car_pos, state.world.car_pos * [-1, -1, 1])


def test_ball_to_goal_pays_for_the_opponents_net_only():
    state = GameState(2, 1, 1)
    state.world.ball_pos[:] = state.mirrored.ball_pos[:] = (0, 0, 0)
    for view, sign in ((state.world, 1), (state.mirrored, -1)):
        view.ball_vel[0] = (0, sign * 3000, 0)
        view.ball_vel[1] = (0, sign * -1500, 0)
    np.testing.assert_allclose(VelocityBallToGoalReward().compute(state), [[0.5, 0], [0, 0.25]])


def test_hand_computed_rewards():
    state = GameState(1, 1, 1)
    state.clear(np.array([0]))
    state.world.ball_pos[0] = (300, 400, 17)
    state.world.car_pos[0] = [(0, 0, 17), (300, 0, 17)]
    state.world.car_vel[0] = [(2300, 0, 0), (0, -1000, 0)]
    state.car_rows[0, 1, :, ON_GROUND] = 0
    np.testing.assert_allclose(SpeedTowardBallReward().compute(state), [[0.6, 0]], atol=1e-6)
    np.testing.assert_allclose(FaceBallReward().compute(state), [[0.6, 0]], atol=1e-6)  # both face +x
    np.testing.assert_array_equal(InAirReward().compute(state), [[0, 1]])
    combined = CombinedReward([InAirReward(), SpeedTowardBallReward()], [2.0, 10.0])
    np.testing.assert_allclose(combined.compute(state), [[6, 2]], atol=1e-5)
    metrics = combined.drain_metrics()
    assert metrics["reward/InAirReward"] == (2.0, 2)
    assert metrics["reward/SpeedTowardBallReward"] == pytest.approx((6.0, 2))
    assert combined.drain_metrics()["reward/InAirReward"] == (0, 0)


def test_combined_reward_keeps_two_of_a_kind_apart():
    combined = CombinedReward([InAirReward(), InAirReward()], [1.0, 2.0])
    names = [f"{kind}/{name}" for kind in ("reward", "reward_percent") for name in ("InAirReward", "InAirReward_2")]
    assert list(combined.drain_metrics()) == names


def test_mixed_states_draw_by_weight_and_only_where_asked():
    state, rng = GameState(2, 1, 1), np.random.default_rng(0)
    setter, kickoffs = MixedStates([Kickoff(), RandomState()], [1, 3]), 0
    for _ in range(400):
        state.clear(np.array([0, 1]))
        setter.apply(state, np.array([False, True]), rng)
        kickoffs += np.allclose(state.boost[1], 33.3)
    assert not state.boost[0].any()
    assert 70 <= kickoffs <= 130


def test_conditions():
    state = GameState(3, 1, 1)
    state.world.ball_pos[:, 1] = (5215.4, 5215.6, -5215.6)
    assert GoalCondition().check(state).tolist() == [False, True, True]
    assert state.scoring_team.tolist() == [-1, 0, 1]
    state.episode_ticks[:] = state.ticks_since_touch[:] = (0, 119, 120)
    assert TimeoutCondition(1).check(state).tolist() == [False, False, True]
    assert NoTouchCondition(1).check(state).tolist() == [False, False, True]
    assert (GoalCondition.truncates, TimeoutCondition.truncates, NoTouchCondition.truncates) == (False, True, True)


class Flat(Reward):
    def compute(self, state):
        return np.zeros(3, np.float32)


@pytest.mark.parametrize(
    ("build", "error", "message"),
    [
        (lambda: RocketSimPool(num_arenas=0), ValueError, "RocketSimPool: num_arenas"),
        (lambda: RocketSimPool(1, team_size=0), ValueError, "RocketSimPool: team_size"),
        (lambda: RocketSimPool(1, team_size=(1, -1)), ValueError, "RocketSimPool: team_size"),
        (lambda: RocketSimPool(1, team_size=(1, 1, 1)), ValueError, "RocketSimPool: team_size"),
        (lambda: RocketSimPool(1, team_size=5), ValueError, "RocketSimPool: team_size"),
        (lambda: RocketSimPool(1, tick_skip=0), ValueError, "RocketSimPool: tick_skip"),
        (lambda: RocketSimPool(1, action_delay_ticks=9), ValueError, "RocketSimPool: action_delay_ticks"),
        (lambda: RocketSimPool(1, num_threads=0), ValueError, "RocketSimPool: num_threads"),
        (lambda: RocketSimPool(1, obs=GoalReward()), TypeError, "obs .* must be an envs ObsBuilder, got GoalReward"),
        (lambda: RocketSimPool(1, action=DefaultObs()), TypeError, "action .* must be .* ActionParser, got DefaultObs"),
        (
            lambda: RocketSimPool(1, reward=GoalReward),
            TypeError,
            r"reward .* must be an envs Reward, got the class GoalReward; write GoalReward\(\)",
        ),
        (lambda: RocketSimPool(1, state_setter="x"), TypeError, "state_setter .* must be .* StateSetter, got str"),
        (lambda: RocketSimPool(1, done=[Kickoff()]), TypeError, "done .* must be .* DoneCondition, got Kickoff"),
        (lambda: RocketSimPool(1, collision_meshes="/nowhere"), FileNotFoundError, "--env.collision_meshes"),
        (lambda: init_rocketsim("/nowhere"), FileNotFoundError, "/nowhere"),
        (lambda: CombinedReward([InAirReward()], [1, 2]), ValueError, "CombinedReward: 1 rewards but 2 weights"),
        (lambda: CombinedReward([], []), ValueError, "CombinedReward"),
        (lambda: CombinedReward(["x"], [1]), TypeError, "CombinedReward: rewards must be .* got str"),
        (lambda: CombinedReward([InAirReward], [1]), TypeError, r"the class InAirReward; write InAirReward\(\)"),
        (lambda: CombinedReward([Flat()], [1]).compute(GameState(1, 1, 1)), ValueError, "Flat: compute"),
    ],
)
def test_bad_input_is_one_clear_line(build, error, message):
    with pytest.raises(error, match=message) as caught:
        build()
    assert "\n" not in str(caught.value)


def test_a_reward_of_the_wrong_shape_is_named():
    pool = RocketSimPool(2, 1, reward=Flat(), num_threads=1)
    pool.reset()
    with pytest.raises(ValueError, match=r"Flat: compute\(\) returned shape \[3\]"):
        pool.step(np.zeros(4, np.int64))
