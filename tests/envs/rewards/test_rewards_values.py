"""Every reward of the library on scenes made by hand, with the numbers computed by hand."""

import math
from functools import partial

import numpy as np
import pytest

import envs
from envs.bots import IdleBot, KickoffThenShoot, TeamBots
from envs.rewards.potential import flies_into_goal, goal_view, height_after
from envs.state.layout import BOOST_PICKUPS, DEMOS, SAVES, SHOTS
from tests.envs.fakes import HeadOn, Scene, from_the_other_side

UP, DOWN, SIDE = (0, 0, 1), (0, 0, -1), (1, 0, 0)


def close(paid, expected, atol=1e-5):
    np.testing.assert_allclose(paid, expected, rtol=0, atol=atol)


def begin(**changes):
    """An episode begins with this scene."""
    return "begin", changes


def then(expected=None, **changes):
    """What is paid for a step to this scene; without `expected`, whatever it is."""
    return expected, changes


FLOOR, AIR = [(0, 0, 17)] * 2, [(0, 0, 300)] * 2
LIE = {"up": [(0.6, 0, -0.8), (0, 0, -1)], "pos": [(0, 0, 50), (0, 0, 50)], "on_ground": [0, 0]}
FALL = 650 * 8 / 120
THREAT = {"ball": (0, -3000, 300), "ball_vel": (0, -2000, 0)}
HIGH = 256 + 0.5 * (2044 - 91.25 - 256)
BUMP = {"bump_victim": [2, -1, -1], "bump_cooldown": [0.25, 0, 0], "vel": [(0, 0, 0), (0, 0, 0), (0, 1150, 0)]}
MATE = {"bump_victim": [2, 0, -1], "bump_cooldown": [0.1, 0.25, 0], "vel": [(0, 575, 0), (0, 0, 0), (0, 2300, 0)]}
SPENT = {"has_flipped": [1, 0], "flip_time": [0.9, 0], "on_ground": [0, 1], "up": [UP, UP]}
FLIP = {"has_flipped": [1, 0], "flip_time": [0.05, 0], "vel": [(1460, 0, 0), (1460, 0, 0)]}
BOTH_FLIP = {"on_ground": [0, 0], "has_flipped": [1, 1], "flip_time": [0.1, 0.1]}
FLOWN = (556 + 0.5 * 706) / 1.5 - 256
WALL = {"on_ground": [1, 1], "pos": [(4000, 0, 900), (0, 0, 17)], "ball": (3900, 0, 900)}
TRAVEL = partial(envs.BallTravelReward, 0.5, 1, 2, -3, 4, 5, -6)
ON_ITS_WAY = [(-1000, 0, 17), (300, -400, 17)]
AT_BALL = {"ball": (0, 0, 17), "pos": ON_ITS_WAY, "vel": [(-1150, 0, 0), (0, 1000, 0)]}

SCENES = {
    # ---- ball
    "speed toward the own net is charged": (
        envs.NegativeVelocityTowardOwnGoalReward,
        then([-0.5, 0], ball=(0, 0, 0), ball_vel=(0, -3000, 0)),
        then([0, -0.25], ball_vel=(0, 1500, 0)),
        then([-0.5 * 0.8, 0], ball=(3000, -2000, 0), ball_vel=(0, -3000, 0)),  # a 3-4-5 triangle
    ),
    "speed toward the opponents' net is paid": (
        envs.VelocityBallToGoalReward,
        then([0.5, 0], ball=(0, 0, 0), ball_vel=(0, 3000, 0)),
        then([0, 0.25], ball_vel=(0, -1500, 0)),
    ),
    "a goal is paid to one team and charged to the other": (
        envs.GoalReward,
        then([0, 0, 0], ball=(0, 5200, 100)),  # on the line
        then([1, 1, -1], ball=(0, 5300, 100)),
        then([-1, -1, 1], ball=(0, -5300, 100)),
    ),
    "Liu's distance of the ball to the goal": (
        envs.LiuDistanceBallToGoalReward,
        then([math.exp(-(5000 - 971.25) / 12000), math.exp(-(7000 - 971.25) / 12000)], ball=(0, 1000, 321.3875)),
        then([1, math.exp(-(11600 - 971.25) / 12000)], ball=(0, 5600, 321.3875)),
    ),
    "Liu's distance of the player to the ball": (
        envs.LiuDistancePlayerToBallReward,
        then([math.exp(-(500 - 91.25) / 4600), 1], ball=(0, 0, 100), pos=[(300, 400, 100), (0, 50, 100)]),
        then([0, 1], demoed=[1, 0]),
    ),
    "the way of the ball": (
        TRAVEL,
        begin(ball=(0, 0, 100)),
        then([0, 0, 0], ball=(1024, 0, 100), touched=[1, 0, 0]),  # nobody touched before
        then([0, 0, 0], ball=(1024, 1024, 100)),
        then([0.2, 0.4, 0], ball=(1024, 2048, 100), touched=[0, 1, 0]),  # a pass over 2048 uu
        then([0, 0.05, 0], ball=(0, 2048, 100), touched=[0, 1, 0]),
        then([0, -0.3, 0.4], ball=(0, 1024, 100), touched=[0, 0, 1]),  # a giveaway
        then([0.2, 0.2, -0.3], ball=(1024, 1024, 100), touched=[1, 1, 0]),  # two pairs: halves
        then([5 * 4276 / 10240] * 2 + [0], ball=(1024, 5300, 100)),  # both of blue scored
    ),
    "the way of the ball into the goal": (
        TRAVEL,
        begin(ball=(0, 0, 100)),
        then(touched=[0, 1]),
        then([0, -6 * 5300 / 10240], ball=(0, 5300, 100)),
        begin(ball=(0, 0, 100)),
        then(touched=[1, 0]),
        then([-3 * 5300 / 10240, 4 * 5300 / 10240], ball=(0, 5300, 100), touched=[0, 1]),  # orange's touch
    ),
    "the way of a high ball": (
        partial(envs.BallTravelReward, own_touch=1, goal=0, own_goal=0, by_height=True),
        begin(ball=(0, 0, 100)),
        then(touched=[1, 0]),
        then([1000 * 100 * 2 / (5120 * 2044), 0], ball=(1000, 0, 100), touched=[1, 0]),
    ),
    "possession": (
        envs.PossessionReward,
        begin(),
        then([0, 0]),
        then([-1, 1], touched=[0, 1]),
        then([-1, 1]),
        then([0, 0], touched=[1, 1]),
        then([1, -1], touched=[1, 0]),
        begin(),
        then([0, 0]),
    ),
    # ---- car
    **{
        f"first at a kickoff {touched} {speed}": (
            envs.KickoffReward,
            begin(ball=(0, 0, 93)),
            then([0, 0]),
            then(paid, touched=touched, ball_vel=(0, speed, 0)),
            then([0, 0] if speed else [1, -1], touched=[1, 0]),  # it still lies there
        )
        for touched, speed, paid in (
            ([1, 0], -100, [1, -1]),
            ([0, 1], 100, [-1, 1]),
            ([1, 1], 100, [1, -1]),  # both in one step: the ball flies toward orange's goal
            ([1, 1], -100, [-1, 1]),
            ([1, 1], 0, [0, 0]),
            ([0, 0], 0, [0, 0]),
        )
    },
    **{
        f"no kickoff with {elsewhere}": (
            envs.KickoffReward,
            begin(**{"ball": (0, 0, 93)} | elsewhere),
            then([0, 0], touched=[1, 0]),
        )
        for elsewhere in ({"ball": (2, 0, 93)}, {"ball": (0, -2, 93)}, {"ball_vel": (0, 0, 2)})
    },
    "speed toward the ball": (envs.SpeedTowardBallReward, then([0, 0.8 * 1000 / 2300], **AT_BALL)),
    "signed speed toward the ball": (
        partial(envs.SpeedTowardBallReward, signed=True),
        then([-0.5, 0.8 * 1000 / 2300], **AT_BALL),
    ),
    "facing the ball": (envs.FaceBallReward, then([1, 0.8], **AT_BALL, forward=[(1, 0, 0), (0, 1, 0)])),
    "in the air": (envs.InAirReward, then([0, 1], on_ground=[1, 0])),
    "bad orientation": (
        envs.BadOrientationReward,
        then([-0.8, -1], **LIE),
        then([0, -1], pos=[(0, 0, 250), (0, 0, 150)]),  # high in the air
        then([0, 0], on_ground=[0, 1]),  # on the ceiling of something
        then([0, 0], on_ground=[0, 0], has_flipped=[0, 1], flip_time=[0, 0.3]),  # flipping
        then([0, -1], flip_time=[0, 0.9]),
        then([0, 0], demoed=[0, 1]),
    ),
    "recovery pays nothing for hopping and landing pays once": (
        envs.RecoveryAndLandingReward,
        begin(pos=FLOOR, up=[UP, UP], on_ground=[1, 1]),
        then([-0.5, -0.5], on_ground=[0, 0], pos=AIR),
        then([0, -1], up=[UP, DOWN]),
        then([0, 0.8], up=[UP, (0, 0.8, 0.6)]),
        # One lands on the wheels, the other on the roof; so far the hop adds up to nothing.
        then([0.5, -1.3], on_ground=[1, 0], up=[UP, DOWN], pos=[(0, 0, 17), (0, 0, 40)]),
        then([0, 2], on_ground=[1, 1], up=[UP, UP]),
        then([0, 0], on_ground=[1, 0], demoed=[0, 1]),
        then([0, 0], on_ground=[1, 1], demoed=[0, 0]),  # respawned
    ),
    # ---- boost
    "saved boost": (
        envs.SaveBoostReward,
        then([0.5, 1], boost=[25, 100]),
        then([0, 0.8], boost=[9, 64], demoed=[1, 0]),
    ),
    "kept boost": (envs.BoostKeepReward, begin(boost=[25, 100]), then([0.05, 0.1], ticks=12)),
    "collected boost": (
        envs.CollectBoostReward,
        begin(boost=[25, 100]),
        then([0.24, 0], boost=[49, 64]),
        then([0, 0], boost=[0, 64], demoed=[1, 0]),
        then([0, 0], boost=[33, 64], demoed=[0, 0]),  # back on the field, with boost that nobody took
    ),
    "changes of boost": (
        partial(envs.BoostChangeReward, 2, 0.5),
        begin(boost=[25, 100]),
        then([2 * 0.2, 0.5 * -0.2], boost=[49, 64]),
        then([0, 0], boost=[0, 64], demoed=[1, 0]),
        then([0, 0], boost=[33, 64], demoed=[0, 0]),
    ),
    # ---- touches
    "a strong hit pays neither gravity nor the ground": (
        envs.StrongHitReward,
        begin(ball_vel=(0, 0, 0)),
        then([math.sqrt(5), 0], ball_vel=(300, 400, 0), touched=[1, 0]),
        then([0, 0], ball_vel=(3000, 400, 0)),  # not touched in this step
        then([0, 0], ball_vel=(3000, 400, -FALL), touched=[1, 0]),
        then([0, 0], ball_vel=(3000, 400, -FALL), touched=[1, 1]),
        # The smaller of 400 and 400 - 3 * FALL.
        then([0, math.sqrt((400 - 3 * FALL) / 100)], ticks=24, ball_vel=(3000, 400, 400 - 4 * FALL), touched=[0, 1]),
    ),
    "advanced touch": (
        partial(envs.AdvancedTouchReward, 0.5, 2),
        begin(),
        then([0, 0.5 + 2 * 2500 / 6000], ball_vel=(0, 1500, 2000), touched=[0, 1]),
        then([0, 0], ball_vel=(0, 0, 0)),
    ),
    "a shot pays what the touch adds": (
        envs.BasicShotReward,
        begin(ball=(0, 0, 0), ball_vel=(0, 1200, 0)),
        then([0.3, 0], ball_vel=(0, 3000, 0), touched=[1, 0]),
        then([0, 0], ball_vel=(0, 3000, 0), touched=[1, 0]),  # it flies there anyway
        then([0, 1], ball_vel=(0, -3000, 0), touched=[1, 1]),  # a clearance into the own net
        then([0, 0], ball_vel=(0, 3000, 0)),
    ),
    "jump shot": (
        envs.JumpShotReward,
        begin(ball=(0, 0, 511), on_ground=[0, 0], has_jumped=[1, 1]),
        then([0.25, 0], ball_vel=(0, 1000, 0), touched=[1, 0]),
        then([0, 0], ball_vel=(0, 2000, 0), touched=[1, 0]),  # the same contact
        then([0, 0], ball_vel=(0, 1000, 0), touched=[0, 0]),
        then([0, 0], ball_vel=(0, 0, 0), touched=[1, 0]),  # toward the own net
        then([0, 0], ball_vel=(0, -500, 0), touched=[0, 1], has_jumped=[1, 0]),  # fell off a wall
        then(),
        then([0, 0], ball_vel=(0, -900, 0), touched=[0, 1], has_jumped=[1, 1], on_ground=[0, 1]),
    ),
    "aerial": (
        envs.BasicAerialReward,
        begin(on_ground=[0, 0], pos=[(0, 0, 600)] * 2),
        then([0.5, 0], ball=(0, 0, HIGH), touched=[1, 0]),
        then([0, 0], touched=[1, 0]),
        then(),
        then([0, 0], touched=[1, 1], pos=[(0, 0, 200), (0, 0, 600)], on_ground=[0, 1]),
    ),
    "save": (
        envs.SaveReward,
        begin(**THREAT),
        then([1, 0], ball_vel=(2000, 500, 0), touched=[1, 1]),
        then(**THREAT),
        then([0, 0], ball_vel=(0, -1500, 0), touched=[1, 0]),  # still going in
        then(ball=(0, -3000, 300), ball_vel=(3000, -500, 0)),
        then([0, 0], ball_vel=(0, 500, 0), touched=[1, 0]),  # would have missed
        then(ball=(0, 3000, 300), ball_vel=(0, 2000, 0)),
        then([0, 1], ball_vel=(2000, 0, 0), touched=[0, 1]),
        then(**THREAT),
        then([0, 0], ball=(0, -5300, 300), ball_vel=(0, 500, 0), touched=[1, 0]),  # behind the line
    ),
    "bumps are paid once": (
        partial(envs.DemoReward, 0, 0, bump=1),
        begin(vel=[(0, 0, 0)] * 3, bump_victim=[-1] * 3),
        then([0.5, 0, 0], **BUMP),
        then([0, 0, 0], bump_cooldown=[0.18, 0, 0], vel=[(0, 0, 0), (0, 0, 0), (0, 2300, 0)]),
        then([0, -0.25, 0], **MATE),
    ),
    # ---- mechanics
    "a flip reset lasts over a long contact": (
        partial(envs.FlipResetReward, 1, 0.5),
        begin(ball=(0, 0, 900), pos=[(0, 0, 1050), (0, 0, 17)], **SPENT),
        then([1, 0], touched=[1, 0], has_flipped=[0, 0], on_ground=[1, 1]),  # wheels on the ball
        then([0, 0], touched=[1, 0]),  # still on it
        then([0, 0], on_ground=[0, 1]),
        then([0, 0], has_flipped=[1, 0], flip_time=[0.1, 0]),
        then([0.5, 0], touched=[1, 0], flip_time=[0.2, 0]),
        then([0, 0], touched=[1, 0], flip_time=[0.3, 0]),  # once, however long the flip
        then([0, 0], flip_time=[0.9, 0]),
        then([0, 0], touched=[1, 0]),
        then([0, 0], touched=[1, 0], has_flipped=[0, 0], up=[SIDE, UP]),  # the ball is not under the car
        then(has_flipped=[1, 0]),
        then([1, 0], touched=[1, 0], has_flipped=[0, 0], up=[UP, UP]),
        then(on_ground=[1, 1]),  # landed: lost
        then(on_ground=[0, 1], has_flipped=[1, 0], flip_time=[0.1, 0]),
        then([0, 0], touched=[1, 0]),
    ),
    "wavedash": (
        envs.WavedashReward,
        begin(on_ground=[0, 0], vel=[(1000, 0, 0)] * 2),
        then([0, 0], **FLIP),
        then(flip_time=[0.1, 0], vel=[(2000, 0, 0)] * 2),
        then([0.2, 0], on_ground=[1, 1], has_flipped=[0, 0]),
        then([0, 0]),
        then(**BOTH_FLIP),
        then(flip_time=[0.9, 0.9]),  # the flip is over before it lands
        then([0, 0], on_ground=[1, 1]),
        then(**BOTH_FLIP, vel=[(0, 0, 0)] * 2, demoed=[1, 0]),
        then([0, 2000 / 2300], on_ground=[1, 1], demoed=[0, 0]),  # the first one respawns
    ),
    "wavedash without its acceleration": (
        partial(envs.WavedashReward, by_acceleration=False),
        begin(on_ground=[0, 0], vel=[(1000, 0, 0)] * 2),
        then([0, 0], **FLIP),
        then(flip_time=[0.1, 0], vel=[(2000, 0, 0)] * 2),
        then([1, 0], on_ground=[1, 1], has_flipped=[0, 0]),
    ),
    "aerial distance": (
        partial(envs.AerialDistanceReward, 2, 1, 0.5),
        begin(on_ground=[0, 1], pos=[(0, 0, 556), (0, 0, 17)], ball=(0, 0, 706)),
        then([2 * FLOWN / 5120, 0], touched=[1, 0]),
        then([0, 0], pos=[(300, 400, 556), (0, 0, 17)], ball=(300, 400, 706)),
        then([(600 + 0.5 * 500) / 5120, 0], touched=[1, 0], pos=[(300, 500, 556), (0, 0, 17)]),
        # From the last touch.
        then([(30 + 0.5 * 40) / 5120, 0], touched=[1, 0], pos=[(300, 530, 556), (0, 0, 17)], ball=(300, 440, 706)),
        then(**WALL),
        then([0, 0], touched=[1, 0]),  # drives on a wall
        then([2 * 644 / 5120, 0], on_ground=[0, 1], touched=[1, 0]),
        then(touched=[0, 1]),  # the other car's ball now
        then([2 * 644 / 5120, 0], touched=[1, 0]),
    ),
    # ---- potential and combinators
    "a discounted goal view": (
        partial(envs.GoalViewReward, gamma=0.5),
        begin(ball=(0, 0, 300)),
        then([0.5, -0.5], ball=(0, 5300, 300)),
    ),
    "potential": (
        lambda: envs.PotentialReward(envs.SaveBoostReward(), gamma=0.5),
        begin(boost=[100, 25]),
        then([0.5 * 0.8 - 1, 0.5 * 0.5 - 0.5], boost=[64, 25]),
        then([-0.8, -0.5], ball=(0, 5300, 300)),  # nothing is left of it after a goal
    ),
    "per second": (
        lambda: envs.PerSecondReward(envs.TouchReward()),
        begin(),
        then([1 / 15, 0], ticks=8, touched=[1, 0]),
        then([0, 0.25], ticks=30, touched=[0, 1]),
        begin(ticks=-38),  # a new episode
        then([0.1, 0.1], ticks=12, touched=[1, 1]),
    ),
    "clipped above": (
        lambda: envs.ClippedReward(envs.AdvancedTouchReward(3, 0), low=-0.5, high=2),
        begin(),
        then([2, 0], touched=[1, 0]),
    ),
    "clipped below": (
        lambda: envs.ClippedReward(envs.BoostChangeReward(), low=-0.5, high=2),
        begin(boost=[100, 64]),
        then([-0.5, -0.1], boost=[0, 49]),
    ),
    "normalised: mean squares 0, 1/2 and 1, each older one counting half, corrected by 1 - 0.5^n": (
        lambda: envs.EMANormalizedReward(envs.TouchReward(), half_life=1),
        then([0, 0]),
        then([1 / math.sqrt(0.25 / 0.75), 0], touched=[1, 0]),
        then([1 / math.sqrt((0.125 + 0.5) / 0.875)] * 2, touched=[1, 1]),
    ),
    "normalised and clipped": (
        lambda: envs.EMANormalizedReward(envs.TouchReward(), half_life=1, clip=1.6),
        then([0, 0]),
        then([1.6, 0], touched=[1, 0]),
    ),
    "centred": (
        lambda: envs.EMANormalizedReward(envs.TouchReward(), half_life=1, center=True),
        then([1, -1], touched=[1, 0]),
    ),
    "a sum": (
        lambda: envs.CombinedReward([envs.InAirReward(), envs.SpeedTowardBallReward()], [2.0, 10.0]),
        then(
            [6, 2],
            ball=(300, 400, 17),
            pos=[(0, 0, 17), (300, 0, 17)],
            vel=[(2300, 0, 0), (0, -9, 0)],
            on_ground=[1, 0],
        ),
    ),
}


@pytest.mark.parametrize("name", SCENES)
def test_what_is_paid_by_hand(name):
    """Blue and orange are paid the same with the field turned around, too."""
    build, *steps = SCENES[name]
    cars = next(len(expected) for expected, _ in steps if expected not in ("begin", None))
    scene, reward, other = Scene(cars - 1, 1), build(), build()
    for expected, changes in steps:
        scene.put(**{"ticks": 0 if expected == "begin" else 8} | changes)
        turned, order = from_the_other_side(scene.state)
        if expected == "begin":
            scene.first(reward)
            other.reset(np.ones(1, bool), turned)
            continue
        paid, there = reward.compute(scene.state), other.compute(turned)
        assert paid.dtype == np.float32 and paid.shape == (1, cars)
        close(there, paid[:, order])
        if expected is not None:
            close(paid[0], expected, atol=2e-3 if "gravity" in name else 1e-5)


def test_absent_cars_count_nowhere():
    scene = Scene(2, 1, present=np.array([[True, False, True]]))
    scene.put(on_ground=[0, 0, 1])
    assert envs.InAirReward().compute(scene.state).tolist() == [[1, 0, 0]]
    # One of two blue slots is empty: the mean square of (2, 0) is 2, with the empty slot it would be 4/3.
    scene, reward = (
        Scene(2, 1, present=np.array([[True, False, True]])),
        envs.EMANormalizedReward(envs.TouchReward(), 1),
    )
    close(scene.first(reward).step(reward, touched=[1, 0, 0]), [math.sqrt(2), 0, 0])


def test_each_kickoff_of_a_game_is_paid_once():
    pool = envs.RocketSimPool(
        4,
        1,
        reward=envs.KickoffReward(),
        state_setter=envs.Kickoff(),
        done=envs.TimeoutCondition(5),
        num_threads=1,
        seed=1,
    )
    pool.reset()
    bot = TeamBots(KickoffThenShoot(), IdleBot())
    paid = sum(pool.step(bot.actions(pool.state, pool.action_parser))[1].reshape(4, 2) for _ in range(3 * 75))
    pool.close()
    assert paid.tolist() == [[3, -3]] * 4


@pytest.mark.slow
def test_where_a_free_ball_goes_agrees_with_rocketsim():
    """`flies_into_goal` against what really happens to balls that nobody touches, within two seconds."""

    class Free(envs.StateSetter):
        def apply(self, state, mask, rng):
            for arena in np.flatnonzero(mask):
                state.world.ball_pos[arena] = (rng.uniform(-1500, 1500), rng.uniform(2000, 4500), rng.uniform(94, 900))
                aim = np.array([rng.uniform(-1400, 1400), 5200, 0]) - state.world.ball_pos[arena]
                speed = aim[:2] / np.linalg.norm(aim[:2]) * rng.uniform(1200, 3000)
                state.world.ball_vel[arena] = (*speed, rng.uniform(-600, 600))
                state.world.car_pos[arena, 0] = (0, -4500, 17)

    idle = np.flatnonzero(~envs.LookupTable().table.any(axis=1))
    pool = envs.RocketSimPool(80, (1, 0), state_setter=Free(), done=envs.TimeoutCondition(1000), num_threads=1)
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


def test_events():
    weights = {"goal": 1, "team_goal": 10, "concede": -100, "touch": 0.5, "shot": 3, "save": 7, "boost_pickup": 0.25}
    reward, scene = envs.EventReward(**weights), Scene(2, 1)
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
    events, demo = envs.EventReward(demo=2, demoed=-3), envs.DemoReward(1.5, 0.5)
    setter = HeadOn()
    pool = envs.RocketSimPool(
        1,
        1,
        reward=envs.CombinedReward([events, demo], [1, 1]),
        state_setter=setter,
        done=envs.TimeoutCondition(9),
        num_threads=1,
    )
    pool.reset()
    paid = np.array([pool.step(np.array([8, 8]))[1] for _ in range(20)])
    close(paid.sum(axis=0), [3.5, -3.5])
    assert (paid != 0).any(axis=1).sum() == 1
    scene, reward = Scene(1, 2), envs.EventReward(demo=1)
    scene.state.car_rows[0, 0, 0, DEMOS] = 1
    scene.first(reward)  # demolished one before; the count began anew and is 1 again
    close(scene.step(reward, demoed=[0, 0, 1], bump_victim=[1, -1, 0]), [1, 0, 0])


def test_goal_view():
    # From 1 m in front of a wide mouth's middle: half the sphere for an endless wall, so a little less.
    assert 0.45 < goal_view(np.float32(0), np.float32(10), np.float32(321), margin=0) < 0.5
    # Far away: area / distance^2 / (4 pi).
    area = 2 * 892.755 * 642.775
    far = goal_view(np.float32(0), np.float32(50000), np.float32(321.4), margin=0)
    close(far, area / 50000**2 / (4 * math.pi), atol=1e-7)
    share = [float(goal_view(np.float32(x), np.float32(800), np.float32(200))) for x in (-900, 900, 0)]
    assert abs(share[0] - share[1]) < 1e-6 < share[2] - share[0]
    scene, reward = Scene(), envs.GoalViewReward()
    scene.put(ball=(0, 0, 300)).first(reward)
    paid = np.array([scene.step(reward, ball=(700 * math.sin(k), 500.0 * k, 300)) for k in range(1, 11)])
    assert (paid[:, 0] == -paid[:, 1]).all() and abs(paid[:, 0]).max() > 0.1
    paid = np.vstack((paid, scene.step(reward, ball=(0, 5300, 300))))
    close(paid.sum(axis=0), [1, -1])  # from an even chance to a goal


def test_episodes_begin_anew_one_by_one():
    scene, reward = Scene(arenas=2), envs.PotentialReward(envs.SaveBoostReward())
    scene.put(boost=[100, 25]).first(reward)
    scene.put(boost=[64, 25])
    reward.reset(np.array([True, False]), scene.state)
    close(reward.compute(scene.state), [[0, 0], [-0.2, 0]])
    scene, reward = Scene(arenas=2), envs.PerSecondReward(Ones())
    scene.first(reward)
    scene.put(60)
    reward.reset(np.array([True, False]), scene.state)
    scene.put(12)
    close(reward.compute(scene.state), [[0.1, 0.1], [0.6, 0.6]])


class Ones(envs.Reward):
    """Pays every slot, also those without a car."""

    def compute(self, state):
        return np.ones(state.present.shape, np.float32)


def test_the_terms_of_a_sum_are_means_over_the_cars_that_are_there_since_the_last_look():
    scene = Scene(2, 1, present=np.array([[True, False, True]]))
    reward = envs.CombinedReward([envs.TouchReward(), Ones()], [2, 0.5])
    scene.first(reward)
    for touched in ([1, 0, 0], [1, 0, 1]):
        scene.step(reward, touched=touched)
    shares = {"reward_percent/TouchReward": (100 * 6, 8), "reward_percent/Ones": (100 * 2, 8)}
    assert reward.drain_metrics() == {"reward/TouchReward": (2 * 3, 4), "reward/Ones": (0.5 * 4, 4)} | shares
    assert set(reward.drain_metrics().values()) == {(0, 0)}


def test_team_spirit_and_zero_sum():
    present = np.array([[True, True, False, True, False, False], [True] * 6])
    scene = Scene(3, 3, arenas=2, present=present)
    scene.put(touched=[1, 0, 0, 1, 0, 0])
    paid = envs.TeamSpiritReward(envs.TouchReward(), team_spirit=0.4, opponent_scale=0.5).compute(scene.state)
    mine = [0.6 + 0.4 / 2 - 0.5 * 1, 0.4 / 2 - 0.5 * 1, 0, 0.6 + 0.4 - 0.5 / 2, 0, 0]
    close(paid[0], mine)
    close(paid[1], [0.6 + 0.4 / 3 - 0.5 / 3, *[0.4 / 3 - 0.5 / 3] * 2] * 2)
    scene.put(touched=[1, 1, 0, 1, 0, 0])
    close(envs.TeamSpiritReward(envs.TouchReward(), team_spirit=0.7, opponent_scale=1).compute(scene.state)[1].sum(), 0)
    close(envs.TeamSpiritReward(envs.TouchReward(), team_spirit=0.7).compute(scene.state)[1].sum(), 3)  # unless asked
    alone = Scene(2, 0)
    close(alone.step(envs.TeamSpiritReward(envs.TouchReward()), touched=[1, 0]), [1, 0])


def test_annealed():
    scene, reward = Scene(), envs.AnnealedReward(envs.TouchReward(), steps=[2, 4], weights=[1.0, 0.2])
    paid = [scene.step(reward, touched=[1, 0])[0] for _ in range(6)]
    close(paid, [1, 1, 1, 0.6, 0.2, 0.2])
    resumed = envs.AnnealedReward(envs.TouchReward(), steps=[2, 4], weights=[1.0, 0.2])
    resumed.load_state_dict({"inner": {}, "taken": 3, "sum": 0.0, "count": 0})
    close(scene.step(resumed, touched=[1, 0]), [0.6, 0])
    total, count = reward.drain_metrics()["reward_weight/TouchReward"]
    assert (total, count) == (pytest.approx(4.0), 6.0)
    assert reward.drain_metrics()["reward_weight/TouchReward"] == (0, 0)
    combined = envs.CombinedReward([envs.AnnealedReward(envs.TouchReward()), envs.TouchReward()], [1, 1])
    scene.step(combined)
    names = set(combined.drain_metrics())
    shares = {"reward_percent/TouchReward", "reward_percent/TouchReward_2"}
    assert names == {"reward/TouchReward", "reward/TouchReward_2", "reward_weight/TouchReward"} | shares


def test_every_event_is_reported_with_its_share():
    """Two touches and a shot, then a goal of the car that touched: 10 and a concede of 4; 2 cars, 3 steps."""
    scene, events = Scene(), envs.EventReward(goal=10, concede=-4, touch=0.5, shot=2)
    whole = envs.CombinedReward([events, envs.InAirReward()], [3.0, 1.0])
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
    again = envs.CombinedReward(
        [envs.EventReward(goal=10, concede=-4, touch=0.5, shot=2), envs.InAirReward()], [3.0, 1.0]
    )
    again.load_state_dict(saved)
    assert again.drain_metrics()["reward/EventReward/touch"] == (3, 4)


def test_what_was_saved_without_shares_is_read():
    old, sums = envs.EventReward(touch=1), envs.CombinedReward([envs.TouchReward()], [2.0])
    Scene().first(old)
    old.load_state_dict({name: array for name, array in old.state_dict().items() if name != "events"})
    sums.load_state_dict({"terms": [{}], "sums": np.ones(1), "count": 4})
    metrics = sums.drain_metrics()
    assert metrics == {"reward/TouchReward": (2, 4), "reward_percent/TouchReward": (0, 0)}
