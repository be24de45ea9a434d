"""Every reward of the library on scenes made by hand, with the numbers computed by hand."""

import math

import numpy as np
import pytest

from envs import (
    AdvancedTouchReward,
    AerialDistanceReward,
    AnnealedReward,
    BadOrientationReward,
    BallTravelReward,
    BasicAerialReward,
    BasicShotReward,
    BoostChangeReward,
    BoostKeepReward,
    ClippedReward,
    CollectBoostReward,
    CombinedReward,
    DemoReward,
    EMANormalizedReward,
    EventReward,
    FaceBallReward,
    FlipResetReward,
    GoalReward,
    GoalViewReward,
    InAirReward,
    JumpShotReward,
    Kickoff,
    KickoffReward,
    LiuDistanceBallToGoalReward,
    LiuDistancePlayerToBallReward,
    LookupTable,
    NegativeVelocityTowardOwnGoalReward,
    PerSecondReward,
    PossessionReward,
    PotentialReward,
    RecoveryAndLandingReward,
    Reward,
    RocketSimPool,
    SaveBoostReward,
    SaveReward,
    SpeedTowardBallReward,
    StateSetter,
    StrongHitReward,
    TeamSpiritReward,
    TimeoutCondition,
    TouchReward,
    WavedashReward,
)
from envs.bots import IdleBot, KickoffThenShoot
from envs.bots.base import TeamBots
from envs.rewards.potential import flies_into_goal, goal_view, height_after
from envs.state.layout import BOOST_PICKUPS, DEMOS, SAVES, SHOTS
from tests.envs.conftest import HeadOn
from tests.envs.rewards.reward_play import Scene

UP, DOWN, SIDE = (0, 0, 1), (0, 0, -1), (1, 0, 0)


def close(paid, expected, atol=1e-5):
    np.testing.assert_allclose(paid, expected, rtol=0, atol=atol)


# ---------------------------------------------------------------- ball


def test_speed_toward_the_own_net_is_charged():
    scene, reward = Scene(), NegativeVelocityTowardOwnGoalReward()
    close(scene.step(reward, ball=(0, 0, 0), ball_vel=(0, -3000, 0)), [-0.5, 0])
    close(scene.step(reward, ball_vel=(0, 1500, 0)), [0, -0.25])
    close(scene.step(reward, ball=(3000, -2000, 0), ball_vel=(0, -3000, 0)), [-0.5 * 0.8, 0])  # a 3-4-5 triangle


def test_a_goal_is_paid_to_one_team_and_charged_to_the_other():
    scene, reward = Scene(blue=2, orange=1), GoalReward()
    assert scene.step(reward, ball=(0, 5200, 100)) == [0, 0, 0]  # on the line
    assert scene.step(reward, ball=(0, 5300, 100)) == [1, 1, -1]
    assert scene.step(reward, ball=(0, -5300, 100)) == [-1, -1, 1]


def test_liu_distances():
    ball, player = LiuDistanceBallToGoalReward(), LiuDistancePlayerToBallReward()
    scene = Scene()
    paid = scene.step(ball, ball=(0, 1000, 321.3875))
    close(paid, [math.exp(-(5000 - 971.25) / 12000), math.exp(-(7000 - 971.25) / 12000)])
    assert scene.step(ball, ball=(0, 5600, 321.3875))[0] == 1
    paid = scene.step(player, ball=(0, 0, 100), pos=[(300, 400, 100), (0, 50, 100)])
    close(paid, [math.exp(-(500 - 91.25) / 4600), 1])
    assert scene.step(player, demoed=[1, 0])[0] == 0


def test_ball_travel():
    reward = BallTravelReward(0.5, 1, 2, -3, 4, 5, -6)
    scene = Scene(2, 1)
    scene.put(ball=(0, 0, 100)).first(reward)
    close(scene.step(reward, ball=(1024, 0, 100), touched=[1, 0, 0]), [0, 0, 0])  # nobody touched before
    close(scene.step(reward, ball=(1024, 1024, 100)), [0, 0, 0])
    close(scene.step(reward, ball=(1024, 2048, 100), touched=[0, 1, 0]), [0.2, 0.4, 0])  # a pass over 2048 uu
    close(scene.step(reward, ball=(0, 2048, 100), touched=[0, 1, 0]), [0, 0.05, 0])
    close(scene.step(reward, ball=(0, 1024, 100), touched=[0, 0, 1]), [0, -0.3, 0.4])  # a giveaway
    close(scene.step(reward, ball=(1024, 1024, 100), touched=[1, 1, 0]), [0.2, 0.2, -0.3])  # two pairs: halves
    close(scene.step(reward, ball=(1024, 5300, 100)), [5 * 4276 / 10240] * 2 + [0])  # both of blue scored
    scene = Scene()
    scene.put(ball=(0, 0, 100)).first(reward)
    scene.step(reward, touched=[0, 1])
    close(scene.step(reward, ball=(0, 5300, 100)), [0, -6 * 5300 / 10240])
    scene.put(ball=(0, 0, 100)).first(reward)
    scene.step(reward, touched=[1, 0])
    close(
        scene.step(reward, ball=(0, 5300, 100), touched=[0, 1]), [-3 * 5300 / 10240, 4 * 5300 / 10240]
    )  # orange's touch
    high = BallTravelReward(own_touch=1, goal=0, own_goal=0, by_height=True)
    scene.put(ball=(0, 0, 100)).first(high)
    scene.step(high, touched=[1, 0])
    paid = scene.step(high, ball=(1000, 0, 100), touched=[1, 0])
    close(paid, [1000 * 100 * 2 / (5120 * 2044), 0])


def test_possession():
    scene, reward = Scene(), PossessionReward()
    scene.first(reward)
    assert scene.step(reward) == [0, 0]
    assert scene.step(reward, touched=[0, 1]) == [-1, 1]
    assert scene.step(reward) == [-1, 1]
    assert scene.step(reward, touched=[1, 1]) == [0, 0]
    assert scene.step(reward, touched=[1, 0]) == [1, -1]
    scene.first(reward)
    assert scene.step(reward) == [0, 0]


# ---------------------------------------------------------------- car


@pytest.mark.parametrize(
    ("touched", "speed", "paid"),
    [
        ([1, 0], -100, [1, -1]),
        ([0, 1], 100, [-1, 1]),
        ([1, 1], 100, [1, -1]),  # both in one step: the ball flies toward orange's goal
        ([1, 1], -100, [-1, 1]),
        ([1, 1], 0, [0, 0]),
        ([0, 0], 0, [0, 0]),
    ],
)
def test_the_first_at_a_kickoff_is_paid(touched, speed, paid):
    scene, reward = Scene(), KickoffReward()
    scene.put(ball=(0, 0, 93))
    scene.first(reward)
    assert scene.step(reward) == [0, 0]
    assert scene.step(reward, touched=touched, ball_vel=(0, speed, 0)) == paid
    moved = [0, 0] if speed else [1, -1]  # it still lies there
    assert scene.step(reward, touched=[1, 0]) == moved


def test_each_kickoff_of_a_game_is_paid_once():
    pool = RocketSimPool(
        4, 1, reward=KickoffReward(), state_setter=Kickoff(), done=TimeoutCondition(5), num_threads=1, seed=1
    )
    pool.reset()
    bot = TeamBots(KickoffThenShoot(), IdleBot())
    paid = sum(pool.step(bot.actions(pool.state, pool.action_parser))[1].reshape(4, 2) for _ in range(3 * 75))
    pool.close()
    assert paid.tolist() == [[3, -3]] * 4


@pytest.mark.parametrize("elsewhere", [{"ball": (2, 0, 93)}, {"ball": (0, -2, 93)}, {"ball_vel": (0, 0, 2)}])
def test_a_touch_that_is_no_kickoff(elsewhere):
    scene, reward = Scene(), KickoffReward()
    scene.put(**({"ball": (0, 0, 93)} | elsewhere))
    scene.first(reward)
    assert scene.step(reward, touched=[1, 0]) == [0, 0]


def test_guide_rewards_and_signed_speed():
    scene = Scene()
    scene.put(ball=(0, 0, 17), pos=[(-1000, 0, 17), (300, -400, 17)], vel=[(-1150, 0, 0), (0, 1000, 0)])
    close(SpeedTowardBallReward().compute(scene.state)[0], [0, 0.8 * 1000 / 2300])
    close(SpeedTowardBallReward(signed=True).compute(scene.state)[0], [-0.5, 0.8 * 1000 / 2300])
    scene.put(forward=[(1, 0, 0), (0, 1, 0)])
    close(FaceBallReward().compute(scene.state)[0], [1, 0.8])


def test_absent_cars_are_not_in_the_air():
    scene = Scene(2, 1, present=np.array([[True, False, True]]))
    scene.put(on_ground=[0, 0, 1])
    assert InAirReward().compute(scene.state).tolist() == [[1, 0, 0]]


def test_bad_orientation():
    scene, reward = Scene(), BadOrientationReward()
    lying = {"up": [(0.6, 0, -0.8), (0, 0, -1)], "pos": [(0, 0, 50), (0, 0, 50)], "on_ground": [0, 0]}
    close(scene.step(reward, **lying), [-0.8, -1])
    close(scene.step(reward, pos=[(0, 0, 250), (0, 0, 150)]), [0, -1])  # high in the air
    close(scene.step(reward, on_ground=[0, 1]), [0, 0])  # on the ceiling of something
    close(scene.step(reward, on_ground=[0, 0], has_flipped=[0, 1], flip_time=[0, 0.3]), [0, 0])  # flipping
    close(scene.step(reward, flip_time=[0, 0.9]), [0, -1])
    close(scene.step(reward, demoed=[0, 1]), [0, 0])


def test_recovery_pays_nothing_for_hopping_and_landing_pays_once():
    scene, reward = Scene(), RecoveryAndLandingReward()
    scene.put(pos=[(0, 0, 17)] * 2, up=[UP, UP], on_ground=[1, 1]).first(reward)
    air, tilted = [(0, 0, 300)] * 2, (0, 0.8, 0.6)
    paid = [scene.step(reward, on_ground=[0, 0], pos=air)]
    close(paid[-1], [-0.5, -0.5])
    paid.append(scene.step(reward, up=[UP, DOWN]))
    close(paid[-1], [0, -1])
    paid.append(scene.step(reward, up=[UP, tilted]))
    close(paid[-1], [0, 0.8])
    paid.append(scene.step(reward, on_ground=[1, 0], up=[UP, DOWN], pos=[(0, 0, 17), (0, 0, 40)]))
    close(paid[-1], [0.5, -1.3])  # one lands on the wheels, the other on the roof
    close(np.sum(paid, axis=0), [0, -2])  # a hop adds up to nothing
    close(scene.step(reward, on_ground=[1, 1], up=[UP, UP]), [0, 2])
    close(scene.step(reward, on_ground=[1, 0], demoed=[0, 1]), [0, 0])
    close(scene.step(reward, on_ground=[1, 1], demoed=[0, 0]), [0, 0])  # respawned


# ---------------------------------------------------------------- boost


def test_boost():
    scene = Scene()
    save, keep, take, change = SaveBoostReward(), BoostKeepReward(), CollectBoostReward(), BoostChangeReward(2, 0.5)
    scene.put(boost=[25, 100]).first(keep, take, change)
    close(save.compute(scene.state)[0], [0.5, 1])
    close(scene.step(keep, ticks=12), [0.05, 0.1])
    scene.put(boost=[49, 64])
    close(take.compute(scene.state)[0], [0.24, 0])
    close(change.compute(scene.state)[0], [2 * 0.2, 0.5 * -0.2])
    scene.put(boost=[0, 64], demoed=[1, 0])
    assert save.compute(scene.state)[0].tolist() == [0, np.float32(0.8)]
    assert not change.compute(scene.state).any() and not take.compute(scene.state).any()
    scene.put(boost=[33, 64], demoed=[0, 0])  # back on the field, with boost that nobody took
    assert not change.compute(scene.state).any() and not take.compute(scene.state).any()


# ---------------------------------------------------------------- touches


def test_strong_hit_pays_neither_gravity_nor_the_ground():
    scene, reward = Scene(), StrongHitReward()
    scene.put(ball_vel=(0, 0, 0)).first(reward)
    close(scene.step(reward, ball_vel=(300, 400, 0), touched=[1, 0]), [math.sqrt(5), 0])
    close(scene.step(reward, ball_vel=(3000, 400, 0)), [0, 0])  # not touched in this step
    fall = 650 * 8 / 120
    close(scene.step(reward, ball_vel=(3000, 400, -fall), touched=[1, 0]), [0, 0], atol=2e-3)
    close(scene.step(reward, ball_vel=(3000, 400, -fall), touched=[1, 1]), [0, 0])
    paid = scene.step(reward, ticks=24, ball_vel=(3000, 400, 400 - 4 * fall), touched=[0, 1])
    close(paid, [0, math.sqrt((400 - 3 * fall) / 100)])  # the smaller of 400 and 400 - 3 * fall


def test_advanced_touch():
    scene, reward = Scene(), AdvancedTouchReward(0.5, 2)
    scene.first(reward)
    close(scene.step(reward, ball_vel=(0, 1500, 2000), touched=[0, 1]), [0, 0.5 + 2 * 2500 / 6000])
    close(scene.step(reward, ball_vel=(0, 0, 0)), [0, 0])


def test_basic_shot_pays_what_the_touch_adds():
    scene, reward = Scene(), BasicShotReward()
    scene.put(ball=(0, 0, 0), ball_vel=(0, 1200, 0)).first(reward)
    close(scene.step(reward, ball_vel=(0, 3000, 0), touched=[1, 0]), [0.3, 0])
    close(scene.step(reward, ball_vel=(0, 3000, 0), touched=[1, 0]), [0, 0])  # it flies there anyway
    close(scene.step(reward, ball_vel=(0, -3000, 0), touched=[1, 1]), [0, 1])  # a clearance into the own net
    close(scene.step(reward, ball_vel=(0, 3000, 0)), [0, 0])


def test_jump_shot():
    scene, reward = Scene(), JumpShotReward()
    scene.put(ball=(0, 0, 511), on_ground=[0, 0], has_jumped=[1, 1]).first(reward)
    close(scene.step(reward, ball_vel=(0, 1000, 0), touched=[1, 0]), [0.25, 0])
    close(scene.step(reward, ball_vel=(0, 2000, 0), touched=[1, 0]), [0, 0])  # the same contact
    close(scene.step(reward, ball_vel=(0, 1000, 0), touched=[0, 0]), [0, 0])
    close(scene.step(reward, ball_vel=(0, 0, 0), touched=[1, 0]), [0, 0])  # toward the own net
    close(scene.step(reward, ball_vel=(0, -500, 0), touched=[0, 1], has_jumped=[1, 0]), [0, 0])  # fell off a wall
    scene.step(reward)
    close(scene.step(reward, ball_vel=(0, -900, 0), touched=[0, 1], has_jumped=[1, 1], on_ground=[0, 1]), [0, 0])


def test_basic_aerial():
    scene, reward = Scene(), BasicAerialReward()
    scene.put(on_ground=[0, 0], pos=[(0, 0, 600)] * 2).first(reward)
    height = 256 + 0.5 * (2044 - 91.25 - 256)
    close(scene.step(reward, ball=(0, 0, height), touched=[1, 0]), [0.5, 0])
    close(scene.step(reward, touched=[1, 0]), [0, 0])
    scene.step(reward)
    close(scene.step(reward, touched=[1, 1], pos=[(0, 0, 200), (0, 0, 600)], on_ground=[0, 1]), [0, 0])


def test_save():
    scene, reward = Scene(), SaveReward()
    threat = {"ball": (0, -3000, 300), "ball_vel": (0, -2000, 0)}
    scene.put(**threat).first(reward)
    assert scene.step(reward, ball_vel=(2000, 500, 0), touched=[1, 1]) == [1, 0]
    scene.step(reward, **threat)
    assert scene.step(reward, ball_vel=(0, -1500, 0), touched=[1, 0]) == [0, 0]  # still going in
    scene.step(reward, ball=(0, -3000, 300), ball_vel=(3000, -500, 0))
    assert scene.step(reward, ball_vel=(0, 500, 0), touched=[1, 0]) == [0, 0]  # would have missed
    scene.step(reward, ball=(0, 3000, 300), ball_vel=(0, 2000, 0))
    assert scene.step(reward, ball_vel=(2000, 0, 0), touched=[0, 1]) == [0, 1]
    scene.step(reward, **threat)
    assert scene.step(reward, ball=(0, -5300, 300), ball_vel=(0, 500, 0), touched=[1, 0]) == [0, 0]  # behind the line


@pytest.mark.slow
def test_where_a_free_ball_goes_agrees_with_rocketsim():
    """`flies_into_goal` against what really happens to balls that nobody touches, within two seconds."""

    class Free(StateSetter):
        def apply(self, state, mask, rng):
            for arena in np.flatnonzero(mask):
                state.world.ball_pos[arena] = (rng.uniform(-1500, 1500), rng.uniform(2000, 4500), rng.uniform(94, 900))
                aim = np.array([rng.uniform(-1400, 1400), 5200, 0]) - state.world.ball_pos[arena]
                speed = aim[:2] / np.linalg.norm(aim[:2]) * rng.uniform(1200, 3000)
                state.world.ball_vel[arena] = (*speed, rng.uniform(-600, 600))
                state.world.car_pos[arena, 0] = (0, -4500, 17)

    idle = np.flatnonzero(~LookupTable().table.any(axis=1))
    pool = RocketSimPool(80, (1, 0), state_setter=Free(), done=TimeoutCondition(1000), num_threads=1)
    pool.reset(seed=0)
    expected = flies_into_goal(pool.state.world.ball_pos, pool.state.world.ball_vel, 2.0)
    scored = np.zeros(80, bool)
    for _ in range(34):
        pool.step(np.full(80, idle[0] if len(idle) else 8))
        scored |= pool.state.goal_scored
    assert 15 < scored.sum() < 65
    assert (scored == expected).mean() > 0.93


def test_height_after_bounces():
    at = np.array([93.15, 418.15, 418.15, 93.15], np.float32)
    seconds = np.array([1.0, 1.0, 1.5, 0.5], np.float32)
    speed = np.array([0.0, 0.0, 0.0, 325.0], np.float32)
    # From 325 uu above the floor it lands after 1 s at 650 uu/s and comes back with 390 uu/s.
    close(height_after(at, speed, seconds), [93.15, 93.15, 93.15 + 390 * 0.5 - 325 * 0.25, 93.15 + 81.25], atol=0.1)


# ---------------------------------------------------------------- events


def test_events():
    weights = {"goal": 1, "team_goal": 10, "concede": -100, "touch": 0.5, "shot": 3, "save": 7, "boost_pickup": 0.25}
    reward, scene = EventReward(**weights), Scene(2, 1)
    scene.first(reward)
    close(scene.step(reward, touched=[0, 1, 0]), [0, 0.5, 0])
    close(scene.step(reward, touched=[0, 1, 0]), [0, 0, 0])  # the same contact
    scene.state.car_rows[0, :, 0, SHOTS] = (0, 1, 0)
    scene.state.car_rows[0, :, 0, SAVES] = (0, 0, 2)
    scene.state.car_rows[0, :, 0, BOOST_PICKUPS] = (4, 0, 0)
    close(scene.step(reward, touched=[0, 0, 1]), [1, 3, 14.5])
    close(scene.step(reward, ball=(0, 5300, 300)), [10, 11, -100])  # orange touched last, blue's scorer is car 1
    scene.state.car_rows[0, :, 0, SHOTS] = 0  # an arena restored from a snapshot counts from zero
    scene.state.car_rows[0, :, 0, BOOST_PICKUPS] = (1, 0, 0)
    close(scene.step(reward, ball=(0, 0, 300)), [0.25, 0, 0])
    close(scene.step(reward, ball=(0, -5300, 300)), [-100, -100, 11])
    scene.first(reward)
    close(scene.step(reward, ball=(0, -5300, 300)), [-100, -100, 10])  # nobody of orange touched in this episode


def test_demolitions_of_the_real_game_and_after_a_restore():
    events, demo = EventReward(demo=2, demoed=-3), DemoReward(1.5, 0.5)
    setter = HeadOn()
    pool = RocketSimPool(
        1,
        1,
        reward=CombinedReward([events, demo], [1, 1]),
        state_setter=setter,
        done=TimeoutCondition(9),
        num_threads=1,
    )
    pool.reset()
    paid = np.array([pool.step(np.array([8, 8]))[1] for _ in range(20)])
    close(paid.sum(axis=0), [3.5, -3.5])
    assert (paid != 0).any(axis=1).sum() == 1
    scene, reward = Scene(1, 2), EventReward(demo=1)
    scene.state.car_rows[0, 0, 0, DEMOS] = 1
    scene.first(reward)  # demolished one before; the count began anew and is 1 again
    close(scene.step(reward, demoed=[0, 0, 1], bump_victim=[1, -1, 0]), [1, 0, 0])


def test_bumps_are_paid_once():
    scene, reward = Scene(2, 1), DemoReward(0, 0, bump=1)
    scene.put(vel=[(0, 0, 0)] * 3, bump_victim=[-1] * 3).first(reward)
    hit = {"bump_victim": [2, -1, -1], "bump_cooldown": [0.25, 0, 0], "vel": [(0, 0, 0), (0, 0, 0), (0, 1150, 0)]}
    close(scene.step(reward, **hit), [0.5, 0, 0])
    close(scene.step(reward, bump_cooldown=[0.18, 0, 0], vel=[(0, 0, 0), (0, 0, 0), (0, 2300, 0)]), [0, 0, 0])
    hit = {"bump_victim": [2, 0, -1], "bump_cooldown": [0.1, 0.25, 0], "vel": [(0, 575, 0), (0, 0, 0), (0, 2300, 0)]}
    close(scene.step(reward, **hit), [0, -0.25, 0])  # a mate


# ---------------------------------------------------------------- mechanics


def test_flip_reset_lasts_over_a_long_contact():
    scene, reward = Scene(), FlipResetReward(1, 0.5)
    spent = {"has_flipped": [1, 0], "flip_time": [0.9, 0], "on_ground": [0, 1], "up": [UP, UP]}
    scene.put(ball=(0, 0, 900), pos=[(0, 0, 1050), (0, 0, 17)], **spent).first(reward)
    close(scene.step(reward, touched=[1, 0], has_flipped=[0, 0], on_ground=[1, 1]), [1, 0])  # wheels on the ball
    close(scene.step(reward, touched=[1, 0]), [0, 0])  # still on it
    close(scene.step(reward, on_ground=[0, 1]), [0, 0])
    close(scene.step(reward, has_flipped=[1, 0], flip_time=[0.1, 0]), [0, 0])
    close(scene.step(reward, touched=[1, 0], flip_time=[0.2, 0]), [0.5, 0])
    close(scene.step(reward, touched=[1, 0], flip_time=[0.3, 0]), [0, 0])  # once, however long the flip
    close(scene.step(reward, flip_time=[0.9, 0]), [0, 0])
    close(scene.step(reward, touched=[1, 0]), [0, 0])
    paid = scene.step(reward, touched=[1, 0], has_flipped=[0, 0], up=[SIDE, UP])
    close(paid, [0, 0])  # the ball is not under the car
    scene.step(reward, has_flipped=[1, 0])
    close(scene.step(reward, touched=[1, 0], has_flipped=[0, 0], up=[UP, UP]), [1, 0])
    scene.step(reward, on_ground=[1, 1])  # landed: lost
    scene.step(reward, on_ground=[0, 1], has_flipped=[1, 0], flip_time=[0.1, 0])
    close(scene.step(reward, touched=[1, 0]), [0, 0])


def test_wavedash():
    scene, reward, plain = Scene(), WavedashReward(), WavedashReward(by_acceleration=False)
    scene.put(on_ground=[0, 0], vel=[(1000, 0, 0)] * 2).first(reward, plain)
    flip = {"has_flipped": [1, 0], "flip_time": [0.05, 0], "vel": [(1460, 0, 0), (1460, 0, 0)]}
    close(scene.step(reward, **flip), [0, 0])
    close(plain.compute(scene.state)[0], [0, 0])
    scene.step(reward, flip_time=[0.1, 0], vel=[(2000, 0, 0)] * 2)
    plain.compute(scene.state)
    close(scene.step(reward, on_ground=[1, 1], has_flipped=[0, 0]), [0.2, 0])
    close(plain.compute(scene.state)[0], [1, 0])
    close(scene.step(reward), [0, 0])
    scene.step(reward, on_ground=[0, 0], has_flipped=[1, 1], flip_time=[0.1, 0.1])
    scene.step(reward, flip_time=[0.9, 0.9])  # the flip is over before it lands
    close(scene.step(reward, on_ground=[1, 1]), [0, 0])
    scene.step(reward, on_ground=[0, 0], has_flipped=[1, 1], flip_time=[0.1, 0.1], vel=[(0, 0, 0)] * 2, demoed=[1, 0])
    close(scene.step(reward, on_ground=[1, 1], demoed=[0, 0]), [0, 2000 / 2300])  # the first one respawns


def test_aerial_distance():
    scene, reward = Scene(), AerialDistanceReward(2, 1, 0.5)
    scene.put(on_ground=[0, 1], pos=[(0, 0, 556), (0, 0, 17)], ball=(0, 0, 706)).first(reward)
    height = (556 + 0.5 * 706) / 1.5 - 256
    close(scene.step(reward, touched=[1, 0]), [2 * height / 5120, 0])
    close(scene.step(reward, pos=[(300, 400, 556), (0, 0, 17)], ball=(300, 400, 706)), [0, 0])
    flown = scene.step(reward, touched=[1, 0], pos=[(300, 500, 556), (0, 0, 17)])
    close(flown, [(600 + 0.5 * 500) / 5120, 0])
    further = scene.step(reward, touched=[1, 0], pos=[(300, 530, 556), (0, 0, 17)], ball=(300, 440, 706))
    close(further, [(30 + 0.5 * 40) / 5120, 0])  # from the last touch
    wall = {"on_ground": [1, 1], "pos": [(4000, 0, 900), (0, 0, 17)], "ball": (3900, 0, 900)}
    scene.step(reward, **wall)
    close(scene.step(reward, touched=[1, 0]), [0, 0])  # drives on a wall
    close(scene.step(reward, on_ground=[0, 1], touched=[1, 0]), [2 * 644 / 5120, 0])
    scene.step(reward, touched=[0, 1])  # the other car's ball now
    close(scene.step(reward, touched=[1, 0]), [2 * 644 / 5120, 0])


# ---------------------------------------------------------------- potential


def test_goal_view_is_the_goal_mouths_solid_angle():
    # From 1 m in front of a wide mouth's middle: half the sphere for an endless wall, so a little less.
    assert 0.45 < goal_view(np.float32(0), np.float32(10), np.float32(321), margin=0) < 0.5
    # Far away: area / distance^2 / (4 pi).
    area = 2 * 892.755 * 642.775
    far = goal_view(np.float32(0), np.float32(50000), np.float32(321.4), margin=0)
    close(far, area / 50000**2 / (4 * math.pi), atol=1e-7)
    share = [float(goal_view(np.float32(x), np.float32(800), np.float32(200))) for x in (-900, 900, 0)]
    assert abs(share[0] - share[1]) < 1e-6 < share[2] - share[0]


def test_goal_view_adds_up_to_the_goal():
    scene, reward = Scene(), GoalViewReward()
    scene.put(ball=(0, 0, 300)).first(reward)
    paid = np.array([scene.step(reward, ball=(700 * math.sin(k), 500.0 * k, 300)) for k in range(1, 11)])
    assert (paid[:, 0] == -paid[:, 1]).all() and abs(paid[:, 0]).max() > 0.1
    paid = np.vstack((paid, scene.step(reward, ball=(0, 5300, 300))))
    close(paid.sum(axis=0), [1, -1])  # from an even chance to a goal
    half, discounted = Scene(), GoalViewReward(gamma=0.5)
    half.put(ball=(0, 0, 300)).first(discounted)
    close(half.step(discounted, ball=(0, 5300, 300)), [0.5, -0.5])


def test_potential():
    scene, reward = Scene(), PotentialReward(SaveBoostReward(), gamma=0.5)
    scene.put(boost=[100, 25]).first(reward)
    close(scene.step(reward, boost=[64, 25]), [0.5 * 0.8 - 1, 0.5 * 0.5 - 0.5])
    close(scene.step(reward, ball=(0, 5300, 300)), [-0.8, -0.5])  # nothing is left of it after a goal


def test_a_potential_begins_anew_where_an_episode_does():
    scene, reward = Scene(arenas=2), PotentialReward(SaveBoostReward())
    scene.put(boost=[100, 25]).first(reward)
    scene.put(boost=[64, 25])
    reward.reset(np.array([True, False]), scene.state)
    close(reward.compute(scene.state), [[0, 0], [-0.2, 0]])


# ---------------------------------------------------------------- combinators


class Ones(Reward):
    """Pays every slot, also those without a car."""

    def compute(self, state):
        return np.ones(state.present.shape, np.float32)


def test_the_terms_of_a_sum_are_means_over_the_cars_that_are_there_since_the_last_look():
    scene = Scene(2, 1, present=np.array([[True, False, True]]))
    reward = CombinedReward([TouchReward(), Ones()], [2, 0.5])
    scene.first(reward)
    for touched in ([1, 0, 0], [1, 0, 1]):
        scene.step(reward, touched=touched)
    shares = {"reward_percent/TouchReward": (100 * 6, 8), "reward_percent/Ones": (100 * 2, 8)}
    assert reward.drain_metrics() == {"reward/TouchReward": (2 * 3, 4), "reward/Ones": (0.5 * 4, 4)} | shares
    assert set(reward.drain_metrics().values()) == {(0, 0)}


def test_seconds_count_from_where_each_episode_began():
    scene, reward = Scene(arenas=2), PerSecondReward(Ones())
    scene.first(reward)
    scene.put(60)
    reward.reset(np.array([True, False]), scene.state)
    scene.put(12)
    close(reward.compute(scene.state), [[0.1, 0.1], [0.6, 0.6]])


def test_per_second():
    scene, reward = Scene(), PerSecondReward(TouchReward())
    scene.first(reward)
    close(scene.step(reward, ticks=8, touched=[1, 0]), [1 / 15, 0])
    close(scene.step(reward, ticks=30, touched=[0, 1]), [0, 0.25])
    scene.put(-38).first(reward)  # a new episode
    close(scene.step(reward, ticks=12, touched=[1, 1]), [0.1, 0.1])


def test_team_spirit_and_zero_sum():
    present = np.array([[True, True, False, True, False, False], [True] * 6])
    scene = Scene(3, 3, arenas=2, present=present)
    scene.put(touched=[1, 0, 0, 1, 0, 0])
    paid = TeamSpiritReward(TouchReward(), team_spirit=0.4, opponent_scale=0.5).compute(scene.state)
    mine = [0.6 + 0.4 / 2 - 0.5 * 1, 0.4 / 2 - 0.5 * 1, 0, 0.6 + 0.4 - 0.5 / 2, 0, 0]
    close(paid[0], mine)
    close(paid[1], [0.6 + 0.4 / 3 - 0.5 / 3, *[0.4 / 3 - 0.5 / 3] * 2] * 2)
    scene.put(touched=[1, 1, 0, 1, 0, 0])
    close(TeamSpiritReward(TouchReward(), team_spirit=0.7, opponent_scale=1).compute(scene.state)[1].sum(), 0)
    close(TeamSpiritReward(TouchReward(), team_spirit=0.7).compute(scene.state)[1].sum(), 3)  # unless asked
    alone = Scene(2, 0)
    close(alone.step(TeamSpiritReward(TouchReward()), touched=[1, 0]), [1, 0])


def test_annealed():
    scene, reward = Scene(), AnnealedReward(TouchReward(), steps=[2, 4], weights=[1.0, 0.2])
    paid = [scene.step(reward, touched=[1, 0])[0] for _ in range(6)]
    close(paid, [1, 1, 1, 0.6, 0.2, 0.2])
    resumed = AnnealedReward(TouchReward(), steps=[2, 4], weights=[1.0, 0.2])
    resumed.load_state_dict({"inner": {}, "taken": 3, "sum": 0.0, "count": 0})
    close(scene.step(resumed, touched=[1, 0]), [0.6, 0])
    total, count = reward.drain_metrics()["reward_weight/TouchReward"]
    assert (total, count) == (pytest.approx(4.0), 6.0)
    assert reward.drain_metrics()["reward_weight/TouchReward"] == (0, 0)
    combined = CombinedReward([AnnealedReward(TouchReward()), TouchReward()], [1, 1])
    scene.step(combined)
    names = set(combined.drain_metrics())
    shares = {"reward_percent/TouchReward", "reward_percent/TouchReward_2"}
    assert names == {"reward/TouchReward", "reward/TouchReward_2", "reward_weight/TouchReward"} | shares


def test_clipped():
    scene, reward = Scene(), ClippedReward(AdvancedTouchReward(3, 0), low=-0.5, high=2)
    scene.first(reward)
    assert scene.step(reward, touched=[1, 0]) == [2, 0]
    spent = ClippedReward(BoostChangeReward(), low=-0.5, high=2)
    scene.put(boost=[100, 64]).first(spent)
    assert scene.step(spent, boost=[0, 49]) == [-0.5, pytest.approx(-0.1)]


def test_normalised():
    scene, reward = Scene(), EMANormalizedReward(TouchReward(), half_life=1)
    assert scene.step(reward) == [0, 0]
    # Mean squares 0, 1/2 and 1, each older one counting half, corrected by 1 - 0.5^n.
    close(scene.step(reward, touched=[1, 0]), [1 / math.sqrt(0.25 / 0.75), 0])
    close(scene.step(reward, touched=[1, 1]), [1 / math.sqrt((0.125 + 0.5) / 0.875)] * 2)
    clipped = EMANormalizedReward(TouchReward(), half_life=1, clip=1.6)
    scene.step(clipped)
    close(scene.step(clipped, touched=[1, 0]), [1.6, 0])
    centred = EMANormalizedReward(TouchReward(), half_life=1, center=True)
    close(scene.step(centred, touched=[1, 0]), [1, -1])


def test_normalised_by_the_cars_that_are_there():
    """One of two blue slots is empty: the mean square of (2, 0) is 2, with the empty slot it would be 4/3."""
    scene, reward = Scene(2, 1, present=np.array([[True, False, True]])), EMANormalizedReward(TouchReward(), 1)
    close(scene.first(reward).step(reward, touched=[1, 0, 0]), [math.sqrt(2), 0, 0])


# ---------------------------------------------------------------- what the log shows


def test_every_event_is_reported_with_its_share():
    """Two touches and a shot, then a goal of the car that touched: 10 and a concede of 4; 2 cars, 3 steps."""
    scene, events = Scene(), EventReward(goal=10, concede=-4, touch=0.5, shot=2)
    whole = CombinedReward([events, InAirReward()], [3.0, 1.0])
    scene.first(whole)
    scene.step(whole, touched=[1, 1])
    scene.step(whole, touched=[1, 1], shots=[1, 0])
    saved = whole.state_dict()
    scene.step(whole, touched=[1, 0], shots=[1, 0], ball=(0, 5300, 100), on_ground=[True, False])
    expected = {"goal": (30, 1000), "concede": (-12, 400), "touch": (3, 100), "shot": (6, 200)}
    metrics = whole.drain_metrics()
    for event, (paid, hundred_times) in expected.items():
        assert metrics[f"reward/EventReward/{event}"] == (paid, 6)
        assert metrics[f"reward_percent/EventReward/{event}"] == (hundred_times, 17)
    assert metrics["reward/EventReward"] == (27, 6) and metrics["reward/InAirReward"] == (1, 6)
    size = 3 * (0.5 + 0.5 + 2 + 10 + 4)
    assert metrics["reward_percent/EventReward"] == (100 * size, size + 1)
    assert metrics["reward_percent/InAirReward"] == (100, size + 1)
    assert set(whole.drain_metrics().values()) == {(0, 0)}
    again = CombinedReward([EventReward(goal=10, concede=-4, touch=0.5, shot=2), InAirReward()], [3.0, 1.0])
    again.load_state_dict(saved)
    assert again.drain_metrics()["reward/EventReward/touch"] == (3, 4)


def test_what_was_saved_without_shares_is_read():
    old, sums = EventReward(touch=1), CombinedReward([TouchReward()], [2.0])
    Scene().first(old)
    old.load_state_dict({name: array for name, array in old.state_dict().items() if name != "events"})
    sums.load_state_dict({"terms": [{}], "sums": np.ones(1), "count": 4})
    metrics = sums.drain_metrics()
    assert metrics == {"reward/TouchReward": (2, 4), "reward_percent/TouchReward": (0, 0)}
