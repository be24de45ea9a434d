"""RLGymPool steps RLGym environments as they are; RLGymReward pays what RLGym's function pays."""

import random
from contextlib import contextmanager
from functools import partial

import numpy as np
import pytest
from rlgym.api import RewardFunction
from rlgym.rocket_league.done_conditions import TimeoutCondition as RLGymTimeout
from rlgym.rocket_league.reward_functions import CombinedReward as RLGymCombined
from rlgym.rocket_league.reward_functions import GoalReward as RLGymGoal
from rlgym.rocket_league.reward_functions import TouchReward as RLGymTouch
from rlgym.rocket_league.state_mutators import FixedTeamSizeMutator, KickoffMutator, MutatorSequence

from benchmarks.rlgym_guide import InAir, SpeedTowardBall, VelocityBallToGoal, build_env
from envs import CombinedReward, GoalReward, InAirReward, SpeedTowardBallReward, TouchReward, VelocityBallToGoalReward
from envs.adapters.rlgym_pool import RLGymPool, RLGymReward, to_rlgym
from envs.dones import GoalCondition, TimeoutCondition
from envs.loggers import GameMetrics, StateLogger
from envs.pool.rocket_pool import RocketSimPool
from envs.resets import Kickoff, MixedStates, RandomState


def short_env(team_size=1, seconds=1.0):
    env = build_env(team_size)
    env.truncation_cond.conditions[0].timeout_seconds = seconds
    return env


@pytest.mark.parametrize("team_size", [1, 2])
def test_the_pool_is_the_environment_driven_by_hand(team_size):
    build = partial(short_env, team_size)
    pool = RLGymPool(build, 2, seed=1)
    assert pool.num_envs == 4 * team_size and pool.single_action_space.n == 90
    obs, _ = pool.reset(seed=7)
    envs = [build(), build()]
    generators = [(random.Random(seed).getstate(), np.random.MT19937(seed).state) for seed in (7, 8)]

    @contextmanager
    def own_generators(index):
        python, numpy = generators[index]
        random.setstate(python)
        np.random.set_state(numpy)
        yield
        generators[index] = random.getstate(), np.random.get_state(legacy=False)

    by_hand = []
    for index, env in enumerate(envs):
        with own_generators(index):
            by_hand.append(env.reset())
    np.testing.assert_array_equal(obs, np.float32([o for first in by_hand for o in first.values()]))
    choices, ends = np.random.RandomState(0), 0
    for _ in range(60):
        actions = choices.randint(90, size=pool.num_envs)
        obs, rewards, terminated, truncated, infos = pool.step(actions)
        expected, first = [], 0
        for index, env in enumerate(envs):
            agents = list(env.agents)
            chosen = actions[first : first + len(agents), None]
            with own_generators(index):
                final, paid, over, cut = env.step(dict(zip(agents, chosen, strict=True)))
                ended = any(over.values()) or any(cut.values())
                shown = env.reset() if ended else final
            ends += ended
            expected += [(shown[a], final[a], paid[a], over[a], cut[a]) for a in agents]
            first += len(agents)
        columns = [np.array(column) for column in zip(*expected, strict=True)]
        np.testing.assert_array_equal(obs, columns[0].astype(np.float32))
        np.testing.assert_allclose(rewards, columns[2], rtol=1e-6)
        np.testing.assert_array_equal(terminated, columns[3])
        np.testing.assert_array_equal(truncated, columns[4])
        if truncated.any():
            np.testing.assert_array_equal(infos["final_obs"][truncated], columns[1][truncated].astype(np.float32))
            np.testing.assert_array_equal(infos["_final_obs"], truncated | terminated)
    assert ends
    metrics = pool.drain_metrics()
    assert metrics["game/episodes_per_minute"] == pytest.approx((ends, 2 * 60 * 8 / 120 / 60))
    pool.close()


def test_an_environment_is_the_same_alone_and_among_others():
    """Worker processes have one part each, so the number of workers changes nothing."""
    build = partial(short_env, 1)
    both, alone = RLGymPool(build, 2, seed=3), RLGymPool(build, 1, seed=4)
    assert (both.num_seeds, both.num_envs) == (2, 4)
    choices, ends = np.random.default_rng(0), 0
    for seed in (None, 8):
        obs, _ = both.reset(seed=seed)
        np.testing.assert_array_equal(obs[2:], alone.reset(seed=None if seed is None else seed + 1)[0])
        for _ in range(40):
            actions = choices.integers(90, size=4)
            obs, _, _, truncated, _ = both.step(actions)
            np.testing.assert_array_equal(obs[2:], alone.step(actions[2:])[0])
            ends += int(truncated.any())
    assert ends
    both.close()
    alone.close()


def test_rlgym_rewards_pay_what_the_pools_own_pay(shot, dropped):
    theirs = RLGymCombined(
        (InAir(), 0.5), (SpeedTowardBall(), 1.0), (VelocityBallToGoal(), 2.0), (RLGymGoal(), 10.0), (RLGymTouch(), 3.0)
    )
    ours = CombinedReward(
        [InAirReward(), SpeedTowardBallReward(), VelocityBallToGoalReward(), GoalReward(), TouchReward()],
        [0.5, 1.0, 2.0, 10.0, 3.0],
    )
    with pytest.warns(UserWarning, match="us in 1v1"):
        adapter = RLGymReward(theirs)
    rewards = {}
    for name, reward in (("ours", ours), ("theirs", adapter)):
        setter = MixedStates([Kickoff(), RandomState(), shot(), shot(into_blue_goal=True), dropped()], [1] * 5)
        pool = RocketSimPool(
            4, [(2, 2), (1, 0)], reward=reward, state_setter=setter, done=[GoalCondition(), TimeoutCondition(2)]
        )
        pool.reset(seed=3)
        rng = np.random.default_rng(0)
        rewards[name] = np.array([pool.step(rng.integers(90, size=pool.num_envs))[1] for _ in range(150)])
        pool.close()
    np.testing.assert_allclose(rewards["theirs"], rewards["ours"], atol=2e-5)
    assert (np.abs(rewards["ours"]) > 9).any(), "no goal"


class Own(RewardFunction):
    """Not made of parts."""

    def reset(self, agents, initial_state, shared_info):
        pass

    def get_rewards(self, agents, state, is_terminated, is_truncated, shared_info):
        return dict.fromkeys(agents, -0.5)


def with_reward(reward):
    env = short_env()
    env.reward_fn = reward
    return env


def test_the_parts_of_the_reward_are_reported_by_class():
    pool = RLGymPool(partial(with_reward, RLGymCombined((InAir(), 2.0), Own(), (InAir(), -1.0))), 2, seed=1)
    pool.reset(seed=3)
    paid = np.concatenate([pool.step(np.full(pool.num_envs, 40 + i % 50))[1] for i in range(12)])
    metrics = pool.drain_metrics()
    air = metrics["reward/InAir"][0] / 2
    assert air > 0 and metrics["reward/Own"] == (-24, 48) and metrics["reward/InAir_2"] == (-air, 48)
    assert paid.sum() == pytest.approx(sum(metrics[f"reward/{name}"][0] for name in ("InAir", "Own", "InAir_2")))
    assert metrics["reward_percent/InAir_2"] == (100 * air, 3 * air + 24)
    assert pool.drain_metrics()["reward/Own"] == (0, 0)
    alone = RLGymPool(partial(with_reward, Own()), 1)
    alone.reset()
    alone.step(np.zeros(2, int))
    assert alone.drain_metrics()["reward/Own"] == (-1, 2)


class BallOnTheNose(KickoffMutator):
    """The ball flies into the first car, which touches it in the first step."""

    def apply(self, state, shared_info):
        super().apply(state, shared_info)
        car = next(iter(state.cars.values())).physics
        state.ball.position = car.position + 160 * car.forward + np.array([0, 0, 76])
        state.ball.linear_velocity = -1000 * car.forward


def test_a_contact_at_the_end_of_an_episode_does_not_go_on_in_the_next():
    env = build_env(1)
    env.truncation_cond = RLGymTimeout(8 / 120)  # a step
    env.state_mutator = MutatorSequence(FixedTeamSizeMutator(1, 1), BallOnTheNose())
    pool = RLGymPool(lambda: env, 1, seed=1)
    pool.reset()
    for _ in range(4):
        assert pool.step(np.full(2, 8))[3].all()
    assert pool.drain_metrics()["game/touches_per_minute"][0] == 4


def test_a_part_that_pays_nan_is_named():
    class Broken(Own):
        def get_rewards(self, agents, *rest):
            return dict.fromkeys(agents, np.nan)

    pool = RLGymPool(partial(with_reward, RLGymCombined(Own(), Broken())), 1)
    with pytest.raises(FloatingPointError, match="RLGymPool: Broken returned NaN or infinity"):
        pool.step(np.zeros(2, int))


class Diary(StateLogger):
    """Keeps everything that it is shown."""

    def __init__(self):
        self.seen = []

    def update(self, state, done):
        self.seen.append(("step", done.copy(), state.copy()))

    def reset(self, mask, state):
        self.seen.append(("reset", mask.copy(), state.copy()))

    def drain_metrics(self):
        return {}


@pytest.mark.parametrize("loggers", [1, 2])
def test_loggers_see_the_games_of_all_environments(loggers):
    """What they are shown is, field by field, what RLGymReward's translation makes of it in the other direction."""
    sizes = iter([(2, 1), (1, 1)])
    diary, envs = Diary(), []

    def build():
        envs.append(short_env(1, seconds=0.5))
        envs[-1].state_mutator = MutatorSequence(FixedTeamSizeMutator(*next(sizes)), KickoffMutator())
        envs[-1].obs_builder.zero_padding = 3
        return envs[-1]

    pool = RLGymPool(build, 2, seed=1, loggers=[diary, GameMetrics()][:loggers])
    pool.reset(seed=3)
    kind, mask, first = diary.seen[-1]
    assert kind == "reset" and mask.all() and first.present.tolist() == [[True, True, True], [True, False, True]]
    rng, ended = np.random.default_rng(0), 0
    for _ in range(40):
        *_, infos = pool.step(rng.integers(90, size=pool.num_envs))
        if "final_obs" in infos:
            (step, done, last), (reset, begun, state) = diary.seen[-2:]
            assert (step, reset) == ("step", "reset") and (done == begun).all() and done.any()
            assert (last.episode_ticks[done] > 0).all() and (state.episode_ticks[done] == 0).all()
            ended += int(done.sum())
        state = diary.seen[-1][2]
        for index, env in enumerate(envs):
            ours, theirs = to_rlgym(state, index), env.state
            assert ours.tick_count == theirs.tick_count
            np.testing.assert_allclose(ours.ball.position, theirs.ball.position, rtol=1e-6)
            np.testing.assert_allclose(ours.boost_pad_timers, theirs.boost_pad_timers, rtol=1e-6)
            blue_first = sorted(theirs.cars.values(), key=lambda car: car.team_num)
            for mine, car in zip(ours.cars.values(), blue_first, strict=True):
                assert (mine.team_num, mine.on_ground, mine.has_jumped) == (car.team_num, car.on_ground, car.has_jumped)
                assert mine.boost_amount == pytest.approx(car.boost_amount)
                assert mine.wheels_with_contact == car.wheels_with_contact
                np.testing.assert_allclose(mine.physics.linear_velocity, car.physics.linear_velocity, rtol=1e-6)
                np.testing.assert_allclose(mine.physics.rotation_mtx, car.physics.rotation_mtx, atol=1e-6)
    assert ended > 5
    np.testing.assert_array_equal(state.mirrored.car_pos, state.world.car_pos * (-1, -1, 1))
    metrics = pool.drain_metrics()
    assert ("game/speed" in metrics) == (loggers == 2)
    if loggers == 2:
        assert metrics["game/speed"][0] > 0 and metrics["game/speed"][1] == 40 * 5
        assert metrics["game/saves_per_minute"][1] == pytest.approx(40 * 5 * 8 / 120 / 60)
