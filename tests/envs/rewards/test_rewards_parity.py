"""Rewards against rlgym-tools' classes, where those are right."""

import copy

import numpy as np
import pytest
from rlgym.rocket_league.reward_functions import CombinedReward as RLGymCombined
from rlgym.rocket_league.reward_functions import GoalReward as RLGymGoal
from rlgym.rocket_league.reward_functions import TouchReward as RLGymTouch

import envs
from envs.adapters.rlgym_pool import to_rlgym
from envs.bots import BallChaser, KickoffThenShoot, RandomBot, TeamBots
from tests.envs.fakes import Crash, Dropped, HeadOn, Scene, Tape, record

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
    stack_reward,
    velocity_player_to_ball_reward,
    wavedash_reward,
)
from rlgym_tools.rocket_league.reward_functions.auto_reward_normalizer import AutoRewardNormalizer  # noqa: E402
from rlgym_tools.rocket_league.reward_functions.auto_reward_normalizer.simple_z_normalizer import (  # noqa: E402
    SimpleZNormalizer,
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
    """Leaves out arenas where the attacker met another car after the one it demolished, or others met that, too.

    rlgym-tools takes every car that met the demolished one last, mates included, for an attacker.
    """

    def __call__(self, mask, state):
        met = state.bump_victim[:, :, None] == np.arange(state.num_cars)
        by_opponents = (met & (state.team[:, None] != state.team)).any(axis=1)
        lost = state.is_demoed & ((met.sum(axis=1) != 1) | ~by_opponents)
        return np.repeat(lost.any(axis=1)[:, None], state.num_cars, axis=1)


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


@pytest.mark.slow
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


# ---------------------------------------------------------------------- real games


class FlipResets(envs.StateSetter):
    """Every car has used its flip and flies upside down under the ball, wheels first: it wins the flip back."""

    def apply(self, state, mask, rng):
        world = state.world
        for arena in np.flatnonzero(mask):
            for car in range(state.num_cars):
                world.car_pos[arena, car] = (1200 * car - 1800, 0, 900)
                world.car_vel[arena, car] = (0, 0, 700)
                world.car_up[arena, car], world.car_right[arena, car] = (0, 0, -1), (0, -1, 0)
            lucky = rng.integers(state.num_cars)
            world.ball_pos[arena] = (1200 * lucky - 1800 + rng.uniform(-30, 30), 0, 1060)
            world.ball_vel[arena] = (0, 0, 150)
            state.has_jumped[arena] = state.has_flipped[arena] = True
            state.air_time_since_jump[arena] = 2.0
            state.boost[arena] = 50


def games(team_size, players, setter, seconds, steps=1000):
    """What a reward is shown in games of these players, one bot for each team."""
    tape, done = Tape(), [envs.GoalCondition(), envs.NoTouchCondition(10.0), envs.TimeoutCondition(seconds)]
    settings = {"reward": tape, "state_setter": setter, "done": done, "action": envs.ContinuousAction()}
    pool = envs.RocketSimPool(4, team_size, num_threads=1, seed=team_size, **settings)
    pool.reset()
    bots = TeamBots(*players)
    bots.reset(np.ones(4, bool), pool.state)
    for _ in range(steps):
        done = np.concatenate(pool.step(bots.actions(pool.state, pool.action_parser))[2:4])
        bots.reset(done.reshape(2, 4, -1).any(axis=(0, 2)), pool.state)
    pool.close()
    return tape.shown


class Since:
    """Leaves out a car, or an arena's cars, for the rest of an episode in which the two are meant to differ."""

    def __init__(self, differs, whole_arena=False):
        self.differs, self.whole_arena, self.off = differs, whole_arena, None

    def __call__(self, mask, state):
        if mask is not None:
            self.off = np.zeros(state.present.shape, bool) if self.off is None else self.off & ~mask[:, None]
            return self.off
        now = self.differs(state)
        self.off |= now.any(axis=1, keepdims=True) if self.whole_arena else now
        return self.off


def flies_otherwise(state):
    """A car that touches below 256 uu or with wheels on something, two that touch; wheels on a wall after a touch."""
    low = (state.world.car_pos[..., 2] < 256) | state.on_ground | state.is_demoed
    return (
        (state.touched & low)
        | (state.touched & (state.touched.sum(axis=1, keepdims=True) > 1))
        | (low & (state.world.car_pos[..., 2] >= 256))
    )


class LongContact(Since):
    """Leaves out cars whose wheels stay on the ball after they won a flip back (or on a high wall)."""

    def __init__(self):
        super().__init__(self.stays)

    def __call__(self, mask, state):
        off = super().__call__(mask, state)
        self.before = state.has_flip
        return off

    def stays(self, state):
        wins = state.touched & state.has_flip & ~self.before
        return state.on_ground & (state.world.car_pos[..., 2] > 300) & ~wins


class OldBumps(LostBumps):
    """Leaves out cars that paid or suffer for a bump of an earlier step, too: rlgym-tools pays for 0.25 s."""

    def __init__(self):
        self.cooldown = None

    def __call__(self, mask, state):
        before, self.cooldown = self.cooldown, state.bump_cooldown.copy()
        if mask is not None:
            return None
        old = (state.bump_victim >= 0) & ~(self.cooldown > before)
        return super().__call__(mask, state) | old


def pairs():
    """Name -> ours, rlgym-tools' (or RLGym's), and where they are meant to differ."""
    tools_speed = velocity_player_to_ball_reward.VelocityPlayerToBallReward
    share, travel = distribute_rewards_wrapper.DistributeRewardsWrapper, ball_travel_reward.BallTravelReward
    weights = (0.5, 1.0, 2.0, -3.0, 4.0, 5.0, -6.0)
    touch = advanced_touch_reward.AdvancedTouchReward(0.7, 0.5, use_touch_count=False)
    per_second, speed = envs.PerSecondReward, envs.SpeedTowardBallReward
    spirit = share(RLGymTouch(), selflessness=0.3, team_coef=1.0, opp_coef=0.8)
    summed = envs.CombinedReward([envs.TouchReward(), envs.GoalReward()], [0.3, 7.0])
    flies = aerial_distance_reward.AerialDistanceReward(0.5, 2.0, 1.0)
    return {
        "AdvancedTouchReward": (envs.AdvancedTouchReward(0.7, 0.5), touch, None),
        "AerialDistanceReward": (envs.AerialDistanceReward(0.5, 2.0, 1.0), flies, Since(flies_otherwise, True)),
        "BallTravelReward": (envs.BallTravelReward(*weights), travel(*weights), LateGoals()),
        "BallTravelReward by height": (
            envs.BallTravelReward(*weights, by_height=True),
            travel(*weights, do_integral=True),
            LateGoals(),
        ),
        "BoostChangeReward": (
            envs.BoostChangeReward(1.5, 0.5),
            boost_change_reward.BoostChangeReward(1.5, 0.5),
            Demolished(),
        ),
        "BoostKeepReward": (envs.BoostKeepReward(), boost_keep_reward.BoostKeepReward(), Demolished()),
        "DemoReward": (envs.DemoReward(2.0, 0.5), demo_reward.DemoReward(2.0, 0.5), LostBumps()),
        "DemoReward with bumps": (envs.DemoReward(2.0, 0.5, 0.7), demo_reward.DemoReward(2.0, 0.5, 0.7), OldBumps()),
        "FlipResetReward": (envs.FlipResetReward(1.0, 0.5), flip_reset_reward.FlipResetReward(1.0, 0.5), LongContact()),
        "GoalViewReward": (envs.GoalViewReward(0.99), goal_prob_reward.GoalViewReward(0.99), None),
        "SpeedTowardBallReward, signed": (per_second(speed(signed=True)), tools_speed(), None),
        "SpeedTowardBallReward": (per_second(speed()), tools_speed(False), None),
        "TeamSpiritReward": (envs.TeamSpiritReward(envs.TouchReward(), 0.3, 0.8), spirit, None),
        "WavedashReward": (envs.WavedashReward(), wavedash_reward.WavedashReward(), None),
        "WavedashReward, 1 each": (envs.WavedashReward(False), wavedash_reward.WavedashReward(False), None),
        "CombinedReward of TouchReward and GoalReward": (
            summed,
            RLGymCombined((RLGymTouch(), 0.3), (RLGymGoal(), 7.0)),
            None,
        ),
    }


def setups():
    """Players, first states and length of the episodes in seconds."""
    crashes = envs.MixedStates([Crash(), Dropped(), FlipResets()], [2, 1, 3])
    return {
        "random": ((RandomBot(1), RandomBot(2)), envs.MixedStates([envs.Kickoff(), envs.RandomState()], [1, 1]), 30.0),
        "scripted": ((BallChaser(), KickoffThenShoot()), envs.MixedStates([envs.Kickoff(), HeadOn()], [2, 1]), 30.0),
        "in the air": ((BallChaser(), RandomBot(3)), crashes, 2.0),
    }


@pytest.mark.slow
@pytest.mark.parametrize("team_size", [1, 2])
def test_real_games_pay_as_in_rlgym_tools(team_size, record_property):
    """In 1v1 and 2v2, of random and of scripted players; docs/reproducibility.md has the largest differences."""
    found = {}
    for players, setter, seconds in setups().values():
        shown = games(team_size, players, setter, seconds)
        rlgym = [[to_rlgym(state, arena) for arena in range(state.num_arenas)] for _, state in shown]
        for name, (mine, theirs, skip) in pairs().items():
            found.setdefault(name, []).append(differences(mine, theirs, shown, rlgym, skip))
    for name, each in found.items():
        paid, left_out, worst = (sum(x[0] for x in each), sum(x[1] for x in each), max(x[2] for x in each))
        record_property(name, f"{paid} paid, {left_out} left out, largest {worst:.1e}")
        assert worst < 2e-5, name
        assert paid >= (0 if team_size == 1 and name == "DemoReward" else 3), name


def differences(mine, theirs, shown, rlgym, skip):
    """Number of rewards that are not zero, of those left out, and the largest difference of the others."""
    each, paid, left_out, worst = {}, 0, 0, 0.0
    for (mask, state), games in zip(shown, rlgym, strict=True):
        names = list(games[0].cars)
        if mask is not None:
            mine.reset(mask, state)
            for arena in np.flatnonzero(mask).tolist():
                each[arena] = copy.deepcopy(theirs)
                each[arena].reset(names, games[arena], {})
            if skip:
                skip(mask, state)
            continue
        ours, off = mine.compute(state), skip(None, state) if skip else np.zeros(state.present.shape, bool)
        for arena, game in enumerate(games):
            ended = dict.fromkeys(names, bool(state.goal_scored[arena]))
            expected = each[arena].get_rewards(names, game, ended, dict.fromkeys(names, False), {})
            for slot, name in enumerate(names):
                if off[arena, slot]:
                    left_out += expected[name] != 0 or ours[arena, slot] != 0
                else:
                    paid += expected[name] != 0
                    worst = max(worst, abs(float(ours[arena, slot]) - expected[name]))
    return paid, left_out, worst


@pytest.mark.parametrize("center", [False, True])
def test_standardized_rewards_and_lists_of_rewards(center, play):
    """Of one arena, since rlgym-tools' normalizer knows one game; with the same half-life and without a clip."""
    tracker = SimpleZNormalizer(0.5 ** (1 / 100), clip=1e9, center=center)
    inner = velocity_player_to_ball_reward.VelocityPlayerToBallReward()
    normalizer = AutoRewardNormalizer(inner, tracker, AutoRewardNormalizer.BEFORE_NORM)
    theirs = stack_reward.StackReward([normalizer, RLGymTouch()])
    speed = envs.PerSecondReward(envs.SpeedTowardBallReward(signed=True))
    normalized = envs.EMANormalizedReward(speed, half_life=100, clip=1e9, center=center)
    mine = envs.RewardSignals({"speed": normalized, "touch": envs.TouchReward()})
    for mask, state in play:
        state, game = state.select(np.array([0])), to_rlgym(state, 0)
        names, no = list(game.cars), dict.fromkeys(game.cars, False)
        if mask is None:
            mine.compute(state)
            expected = theirs.get_rewards(names, game, no, no, {})
            assert mine.last[0] == pytest.approx(np.stack([expected[name] for name in names]), rel=1e-4, abs=1e-4)
        elif mask[0]:
            mine.reset(np.ones(1, bool), state)
            theirs.reset(names, game, {})
