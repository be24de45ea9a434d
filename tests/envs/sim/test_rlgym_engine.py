"""The pool beside RLGym's own environment: same kickoff, same actions, same seconds."""

import numpy as np
import pytest
from rlgym.api import RLGym, StateMutator
from rlgym.rocket_league import common_values as rl
from rlgym.rocket_league.action_parsers import LookupTableAction, RepeatAction
from rlgym.rocket_league.done_conditions import AnyCondition, NoTouchTimeoutCondition
from rlgym.rocket_league.done_conditions import GoalCondition as RLGymGoal
from rlgym.rocket_league.done_conditions import TimeoutCondition as RLGymTimeout
from rlgym.rocket_league.obs_builders import DefaultObs as RLGymObs
from rlgym.rocket_league.reward_functions import GoalReward as RLGymGoalReward
from rlgym.rocket_league.sim import RocketSimEngine
from rlgym.rocket_league.state_mutators import FixedTeamSizeMutator, KickoffMutator, MutatorSequence

from envs import ExplicitState, GoalCondition, Kickoff, LookupTable, NoTouchCondition, RocketSimPool, TimeoutCondition


class SameKickoff(StateMutator):
    """RLGym's kickoff on the spawns that the pool drew, with RLGym's own positions and yaws."""

    def __init__(self, car_pos):
        self.car_pos = car_pos

    def apply(self, state, shared_info):
        KickoffMutator().apply(state, shared_info)  # the ball, the boost, zero velocities
        for car, pos in zip(state.cars.values(), self.car_pos, strict=True):
            spawns = KickoffMutator.SPAWN_ORANGE_POS if car.is_orange else KickoffMutator.SPAWN_BLUE_POS
            yaws = KickoffMutator.SPAWN_ORANGE_YAW if car.is_orange else KickoffMutator.SPAWN_BLUE_YAW
            spawn = int(np.abs(spawns - pos).max(axis=1).argmin())
            car.physics.position = spawns[spawn].copy()
            car.physics.euler_angles = np.array([0, yaws[spawn], 0], dtype=np.float32)


def rlgym_env(car_pos, team_size, rlbot_delay):
    return RLGym(
        state_mutator=MutatorSequence(FixedTeamSizeMutator(team_size, team_size), SameKickoff(car_pos)),
        obs_builder=RLGymObs(
            zero_padding=None,
            pos_coef=np.array([1 / rl.SIDE_WALL_X, 1 / rl.BACK_NET_Y, 1 / rl.CEILING_Z]),
            lin_vel_coef=1 / rl.CAR_MAX_SPEED,
            ang_vel_coef=1 / rl.CAR_MAX_ANG_VEL,
        ),
        action_parser=RepeatAction(LookupTableAction(), repeats=8),
        reward_fn=RLGymGoalReward(),
        termination_cond=RLGymGoal(),
        truncation_cond=AnyCondition(NoTouchTimeoutCondition(5.0), RLGymTimeout(7.0)),
        transition_engine=RocketSimEngine(rlbot_delay=rlbot_delay),
    )


def flat(per_agent):
    return np.array([per_agent[agent] for agent in per_agent])


FORWARD_BOOST, LEFT_BOOST, RIGHT_BOOST = 18, 14, 22  # rows of the lookup table


def drive_at_the_ball(state, rng):
    """Steers all cars at the ball with boost, one step in five at random: they meet it after two seconds or so."""
    to_ball = state.world.ball_pos[0] - state.world.car_pos[0]
    side = (to_ball * state.world.car_right[0]).sum(axis=1) / np.linalg.norm(to_ball, axis=1)
    steer = np.where(side > 0.1, RIGHT_BOOST, np.where(side < -0.1, LEFT_BOOST, FORWARD_BOOST))
    return np.where(rng.random(len(steer)) < 0.2, rng.integers(90, size=len(steer)), steer)


def follow(team_size, seed, rlbot_delay):
    """Steps both until the first episode ends; returns the largest difference, and how long and why it ended."""
    done = [GoalCondition(), NoTouchCondition(5.0), TimeoutCondition(7.0)]
    delay = 1 if rlbot_delay else 0
    pool = RocketSimPool(
        1, team_size, state_setter=Kickoff(), done=done, action_delay_ticks=delay, num_threads=1, seed=seed
    )
    obs, _ = pool.reset()
    env = rlgym_env(pool.state.world.car_pos[0].copy(), team_size, rlbot_delay)
    expected = env.reset()
    worst = float(np.abs(obs - flat(expected)).max())
    rng = np.random.default_rng(seed)
    touched = False
    for step in range(1, 200):
        actions = drive_at_the_ball(pool.state, rng)
        obs, _, terminated, truncated, infos = pool.step(actions)
        expected, _, rl_terminated, rl_truncated = env.step(
            {agent: np.array([action]) for agent, action in zip(env.agents, actions, strict=True)}
        )
        touched |= any(car.ball_touches for car in env.state.cars.values())
        reached = infos["final_obs"] if infos else obs
        worst = max(worst, float(np.abs(reached - flat(expected)).max()))
        assert terminated.tolist() == flat(rl_terminated).tolist(), step
        assert truncated.tolist() == flat(rl_truncated).tolist(), step
        if infos:
            return worst, step, touched
    raise AssertionError("the episode must end within the 7 s of TimeoutCondition")


@pytest.mark.slow
@pytest.mark.parametrize("rlbot_delay", [True, False])
@pytest.mark.parametrize("team_size", [1, 3])
def test_same_kickoff_and_actions_give_rlgyms_episode(team_size, rlbot_delay):
    met = [follow(team_size, seed, rlbot_delay) for seed in range(4)]
    assert max(worst for worst, _, _ in met) < 1e-6, met
    assert any(touched for _, _, touched in met), met
    assert max(steps for _, steps, _ in met) >= 75, met  # five seconds in which a difference could grow


def test_lookup_table_is_rlgyms():
    ours, theirs = LookupTable().table, LookupTableAction.make_lookup_table()
    assert ours.shape == (90, 8)
    np.testing.assert_array_equal(ours, theirs)


def test_boost_burns_as_fast_as_in_rlgym():
    """RocketSim's own rate is a thousandth higher."""
    setter = ExplicitState([[0, -4000, 17]], car_yaw=[0.5], boost=100)
    pool = RocketSimPool(1, (1, 0), state_setter=setter, num_threads=1)
    pool.reset()
    boost = []
    for _ in range(16):
        pool.step(np.array([FORWARD_BOOST]))
        boost.append(float(pool.state.boost[0, 0]))
    pool.close()
    assert boost[0] - boost[15] == pytest.approx(rl.BOOST_CONSUMPTION_RATE, rel=1e-4)  # a second


def test_the_controls_of_an_action_are_its_row():
    parser = LookupTable()
    names = ("throttle", "steer", "pitch", "yaw", "roll", "jump", "boost", "handbrake")
    for row, controls in zip(parser.table, parser.controls(np.arange(90)), strict=True):
        assert [float(getattr(controls, name)) for name in names] == row.tolist()
