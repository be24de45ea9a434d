"""Rewards against rlgym-tools' classes, where those are right."""

import copy

import numpy as np
import pytest
from rlgym.rocket_league.reward_functions import TouchReward as RLGymTouch

import envs
from envs.adapters.rlgym_pool import to_rlgym
from tests.envs.fakes import Scene, record

TOOLS = "rlgym_tools.rocket_league.reward_functions"
pytest.importorskip(TOOLS, reason="needs rlgym-tools")

from rlgym_tools.rocket_league.reward_functions import (  # noqa: E402
    advanced_touch_reward,
    aerial_distance_reward,
    ball_travel_reward,
    boost_change_reward,
    boost_keep_reward,
    demo_reward,
    distribute_rewards_wrapper,
    flip_reset_reward,
    goal_prob_reward,
    velocity_player_to_ball_reward,
    wavedash_reward,
)


def compare(mine, theirs, shown, skip=None, atol=1e-5, forgive=None):
    """Plays `shown` to both; returns how many rewards were not zero. `skip(state)` tells `[A, C]` what differs."""
    each, paid = {}, 0
    for mask, state in shown:
        names = [f"blue-{i}" for i in range(state.num_blue)] + [f"orange-{i}" for i in range(state.num_orange)]
        if mask is not None:
            mine.reset(mask, state)
            for arena in np.flatnonzero(mask).tolist():
                each[arena] = copy.deepcopy(theirs)
                each[arena].reset(names, to_rlgym(state, arena), {})
            if skip:
                skip(mask, state)
            continue
        ours = mine.compute(state)
        left_out = skip(None, state) if skip else np.zeros(ours.shape, bool)
        for arena in range(state.num_arenas):
            ended = dict.fromkeys(names, bool(state.goal_scored[arena]))
            expected = each[arena].get_rewards(names, to_rlgym(state, arena), ended, dict.fromkeys(names, False), {})
            for slot, name in enumerate(names):
                if not left_out[arena, slot] and ours[arena, slot] != forgive:
                    assert abs(ours[arena, slot] - expected[name]) <= atol + 1e-4 * abs(expected[name]), (name, arena)
                    paid += expected[name] != 0
    return paid


@pytest.fixture(scope="module")
def play():
    return record(2, arenas=4, steps=150, seed=1)


class LostBumps:
    """Leaves out arenas where the attacker met another car after the one it demolished: rlgym-tools misses those."""

    def __call__(self, mask, state):
        met = (state.bump_victim[:, :, None] == np.arange(state.num_cars)) & (state.team[:, None] != state.team)
        return np.repeat((state.is_demoed & ~met.any(axis=1)).any(axis=1)[:, None], state.num_cars, axis=1)


class Demolished:
    """Leaves out cars that are or just were demolished: rlgym-tools pays them for being given boost."""

    def __init__(self):
        self.before = False

    def __call__(self, mask, state):
        before, self.before = self.before, state.is_demoed
        return before | state.is_demoed


def test_touches_boost_demolitions_and_views(play):
    theirs = advanced_touch_reward.AdvancedTouchReward(0.7, 0.5, use_touch_count=False)
    assert compare(envs.AdvancedTouchReward(0.7, 0.5), theirs, play) > 20
    theirs = boost_change_reward.BoostChangeReward(1.5, 0.5)
    assert compare(envs.BoostChangeReward(1.5, 0.5), theirs, play, Demolished()) > 100
    assert compare(envs.BoostKeepReward(), boost_keep_reward.BoostKeepReward(), play, Demolished()) > 100
    assert compare(envs.DemoReward(2.0, 0.5), demo_reward.DemoReward(2.0, 0.5), play, LostBumps()) >= 4
    assert compare(envs.GoalViewReward(0.99), goal_prob_reward.GoalViewReward(0.99), play, atol=1e-4) > 1000


def test_speed_toward_the_ball_and_sharing(play):
    mine = envs.PerSecondReward(envs.SpeedTowardBallReward(signed=True))
    assert compare(mine, velocity_player_to_ball_reward.VelocityPlayerToBallReward(), play) > 1000
    mine = envs.PerSecondReward(envs.SpeedTowardBallReward())
    assert compare(mine, velocity_player_to_ball_reward.VelocityPlayerToBallReward(False), play) > 500
    share = distribute_rewards_wrapper.DistributeRewardsWrapper
    theirs = share(RLGymTouch(), selflessness=0.3, team_coef=1.0, opp_coef=0.8)
    assert compare(envs.TeamSpiritReward(envs.TouchReward(), 0.3, 0.8), theirs, play) > 50


class LateGoals:
    """Leaves out arenas with a goal and a touch in the same step; see BallTravelReward."""

    def __call__(self, mask, state):
        late = state.goal_scored & state.touched.any(axis=1)
        return np.repeat(late[:, None], state.num_cars, axis=1)


@pytest.mark.parametrize("by_height", [False, True])
def test_ball_travel(play, by_height):
    weights = (0.5, 1.0, 2.0, -3.0, 4.0, 5.0, -6.0)
    theirs = ball_travel_reward.BallTravelReward(*weights, do_integral=by_height)
    assert compare(envs.BallTravelReward(*weights, by_height=by_height), theirs, play, LateGoals()) > 20
    made = made_up(touch_one=False)
    assert compare(envs.BallTravelReward(*weights, by_height=by_height), theirs, made, LateGoals()) > 500


def made_up(steps=400, touch_one=True, seed=0):
    """States that no physics made: flips, landings and touches at random, so that every branch is met."""
    rng, scene = np.random.default_rng(seed), Scene(2, 2)
    shown = [(np.array([True]), scene.state.copy())]
    for _ in range(steps):
        high = rng.random(4) < 0.8
        pos = np.column_stack((rng.uniform(-400, 400, (4, 2)), np.where(high, rng.uniform(300, 1500, 4), 17)))
        flipped = rng.random(4) < 0.6
        # One car in the air at a time, for classes whose answer depends on the order of the cars or which take a car on
        # the floor under a high ball for a flying one.
        one = np.eye(4)[rng.integers(4)] * high * (rng.random() < 0.5)
        touched = one if touch_one else rng.random(4) < 0.2
        up = rng.normal(size=(4, 3))
        scene.put(
            8,
            ball=(*rng.uniform(-300, 300, 2), rng.uniform(100, 1500)),
            touched=touched,
            pos=pos,
            vel=rng.normal(size=(4, 3)) * 500,
            up=up / np.linalg.norm(up, axis=1, keepdims=True),
            on_ground=~high & (rng.random(4) < 0.7) & (np.asarray(touched) == 0),
            has_flipped=flipped,
            flip_time=rng.choice([0.1, 0.9], 4),
            has_double_jumped=rng.random(4) < 0.1,
            air_time_since_jump=rng.choice([0.2, 1.4], 4, p=[0.9, 0.1]),
        )
        shown.append((None, scene.state.copy()))
    return shown


def test_mechanics_on_made_up_states():
    shown = made_up(1500)
    # A touch that wins a flip back and uses an earlier one is both; rlgym-tools pays for the second only.
    theirs = flip_reset_reward.FlipResetReward(1.0, 0.5)
    assert compare(envs.FlipResetReward(1.0, 0.5), theirs, shown, forgive=1.5) > 15
    theirs = flip_reset_reward.FlipResetReward(0.0, 0.5)
    assert compare(envs.FlipResetReward(0.0, 0.5), theirs, shown) > 2
    assert compare(envs.WavedashReward(), wavedash_reward.WavedashReward(), shown) > 100
    assert compare(envs.WavedashReward(False), wavedash_reward.WavedashReward(False), shown) > 100
    theirs = aerial_distance_reward.AerialDistanceReward(0.5, 2.0, 1.0)
    assert compare(envs.AerialDistanceReward(0.5, 2.0, 1.0), theirs, shown) > 300
