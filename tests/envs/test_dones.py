"""Done conditions: the ball on the ground in real physics, combinations, and RLGym's own conditions beside ours."""

from types import SimpleNamespace

import numpy as np
import pytest
from rlgym.rocket_league.api import PhysicsObject
from rlgym.rocket_league.done_conditions import AnyCondition, NoTouchTimeoutCondition
from rlgym.rocket_league.done_conditions import GoalCondition as RLGymGoal
from rlgym.rocket_league.done_conditions import TimeoutCondition as RLGymTimeout

from envs import GameState, GoalCondition, NoTouchCondition, RandomState, RocketSimPool, TimeoutCondition
from envs.dones import AllOf, AnyOf, BallOnGroundCondition, DoneCondition, PastGoal
from envs.resets import ExplicitState
from tests.envs.fakes import configured, path_of


class Says(DoneCondition):
    """Ends where it is told to."""

    def __init__(self, ends):
        self.ends = np.array(ends, bool)

    def check(self, state):
        return self.ends


def falling(height, speed, ticks=8, age=8, touched=False):
    """Whether the episode ends with the ball at this height and vertical speed, some ticks after the last step."""
    state, condition = GameState(1, 1, 1), BallOnGroundCondition()
    condition.reset(np.array([True]), state)
    state.world.ball_pos[0, 2] = 1000
    state.episode_ticks[:] = age - ticks
    if age > ticks:
        assert not condition.check(state)[0]
    state.episode_ticks[:] = age
    state.world.ball_pos[0, 2], state.world.ball_vel[0, 2] = height, speed
    state.car_rows[0, 0, :, 9] = touched
    return bool(condition.check(state)[0])


@pytest.mark.parametrize(
    ("height", "speed", "ticks", "down"),
    [
        (93.15, 0, 8, True),
        (95.1, 0, 8, True),  # 1.95 above the resting height
        (95.5, -100, 8, False),
        # 8 ticks are 1/15 s: gravity makes that 650 / 2 / 225 = 1.444 uu
        (140, 600, 8, False),  # 140 - 40 - 1.44 = 98.56
        (140, 660, 8, True),  # 140 - 44 - 1.44 = 94.56 <= 95.15
        (140, 640, 8, False),  # 140 - 42.67 - 1.44 = 95.89
        (140, 660, 4, False),
        (140, 1320, 4, False),  # 140 - 44 - 0.36 = 95.64
        (140, 1340, 4, True),  # 140 - 44.67 - 0.36 = 94.97
        (1000, -2000, 8, False),
        (1000, 6000, 8, False),
        (450, 6000, 8, True),
    ],
)
def test_a_bounce_between_two_steps(height, speed, ticks, down):
    assert falling(height, speed, ticks, age=16) is down
    assert falling(height, speed, ticks, age=ticks) is down  # the first step of an episode


def test_a_ball_hit_up_in_the_air_has_not_bounced():
    assert falling(200, 3000) and not falling(200, 3000, touched=True)
    assert falling(94, 3000, touched=True)


@pytest.mark.slow
@pytest.mark.parametrize("tick_skip", [1, 4, 8, 16])
def test_every_bounce_of_real_physics_is_seen_once(tick_skip):
    """Balls that fall, fly and roll: found in the step in which a tick had them on the ground."""
    setter = RandomState(random_car_speed=False, grounded_share=1)
    idle = 8
    pools = [
        RocketSimPool(
            24, (1, 0), state_setter=setter, done=[TimeoutCondition(99)], tick_skip=skip, num_threads=1, seed=2
        )
        for skip in (1, tick_skip)
    ]
    for pool in pools:
        pool.reset()
    fine, coarse = pools
    condition = BallOnGroundCondition()
    condition.reset(np.ones(24, bool), coarse.state)
    seen, missed = 0, 0
    for _ in range(480 // tick_skip):
        low, touched = np.zeros(24, bool), np.zeros(24, bool)
        for _ in range(tick_skip):
            fine.step(np.full(24, idle))
            low |= fine.state.world.ball_pos[:, 2] <= 93.15
            touched |= fine.state.touched[:, 0]
        coarse.step(np.full(24, idle))
        found = condition.check(coarse.state)
        # within the margin of 2 uu and within a step after a bounce the two may differ
        assert not (found & ~low & (coarse.state.world.ball_pos[:, 2] > 300)).any()
        free = low & ~touched
        seen += int((free & found).sum())
        missed += int((free & ~found).sum())
    assert seen > 100 // tick_skip and missed == 0


def test_the_ball_on_the_ground_ends_episodes_in_a_pool():
    setter = ExplicitState([[0, -3000, 17]], ball_pos=[0, 0, 500], ball_vel=[0, 0, -0.01])
    for truncates in (False, True):
        pool = RocketSimPool(2, (1, 0), state_setter=setter, done=BallOnGroundCondition(truncates), num_threads=1)
        pool.reset()
        ended = []
        for _ in range(70):
            _, _, terminated, truncated, _ = pool.step(np.full(2, 8))
            ended.append((bool(terminated.any()), bool(truncated.any())))
        # it falls 407 uu in sqrt(2 * 407 / 650) = 1.119 s = 134 ticks: in step 17 of each episode
        assert [i + 1 for i, end in enumerate(ended) if any(end)] == [17, 34, 51, 68]
        assert ended[16] == (not truncates, truncates)


def test_ball_on_ground_resumes():
    state, condition = GameState(2, 1, 1), AllOf(AnyOf(BallOnGroundCondition()))
    condition.reset(np.ones(2, bool), state)
    state.world.ball_pos[:, 2] = 1000
    state.episode_ticks[:] = (80, 160)
    condition.check(state)
    loaded = AllOf(AnyOf(BallOnGroundCondition()))
    loaded.load_state_dict(condition.state_dict())
    state.episode_ticks += 8
    state.world.ball_pos[:, 2], state.world.ball_vel[:, 2] = 300, 1000  # 10 ticks of way: not within 8, within 88
    assert not loaded.check(state).any()
    fresh = BallOnGroundCondition()
    assert fresh.check(state).all()


def test_ball_on_ground_beside_rlgym_tools():
    conditions = pytest.importorskip("rlgym_tools.rocket_league.done_conditions.ball_hit_ground_condition")
    rng = np.random.default_rng(0)
    heights, speeds = rng.uniform(60, 400, 500), rng.uniform(-4000, 4000, 500)
    ours, theirs = [], []
    for height, speed in zip(heights, speeds, strict=True):
        condition = conditions.BallHitGroundCondition()
        condition.reset(["car"], SimpleNamespace(tick_count=8), {})
        ball = PhysicsObject()
        ball.position, ball.linear_velocity = np.array([0, 0, height]), np.array([0, 0, speed])
        theirs.append(condition.is_done(["car"], SimpleNamespace(tick_count=16, ball=ball), {})["car"])
        ours.append(falling(height, speed, age=16))
    before = heights - speeds / 15 - 650 / 2 / 225
    clear = np.abs(np.minimum(heights, before) - 93.15) > 2.1  # outside our margin
    assert clear.sum() > 450
    np.testing.assert_array_equal(np.array(ours)[clear], np.array(theirs)[clear])
    assert 100 < np.sum(ours) < 400


def test_combinations_from_the_command_line():
    inner = [path_of("dones.BallOnGroundCondition"), path_of("dones.TimeoutCondition")]
    done = configured(DoneCondition, path_of("dones.AllOf", conditions=inner, truncates=True))
    assert [type(c).__name__ for c in done.conditions] == ["BallOnGroundCondition", "TimeoutCondition"]
    assert done.truncates


@pytest.mark.parametrize("seconds", [0.1, 0.7, 1.1, 2.0, 2.3])
@pytest.mark.parametrize("tick_skip", [1, 3, 8])
def test_the_same_steps_end_as_in_rlgym(seconds, tick_skip):
    """A scripted game of 700 ticks: touches now and then, and one goal."""
    rng = np.random.default_rng(int(seconds * 10) + tick_skip)
    ours = {
        "touch": NoTouchCondition(seconds),
        "time": TimeoutCondition(seconds),
        "goal": GoalCondition(),
        "any": AnyOf(NoTouchCondition(seconds), TimeoutCondition(2 * seconds)),
    }
    theirs = {
        "touch": NoTouchTimeoutCondition(seconds),
        "time": RLGymTimeout(seconds),
        "goal": RLGymGoal(),
        "any": AnyCondition(NoTouchTimeoutCondition(seconds), RLGymTimeout(2 * seconds)),
    }
    state, agents = GameState(1, 1, 1), ["blue", "orange"]
    for name in ours:
        ours[name].reset(np.array([True]), state)
        theirs[name].reset(agents, SimpleNamespace(tick_count=1000), {})
    ended = dict.fromkeys(ours, 0)
    for tick in range(tick_skip, 700, tick_skip):
        touched = rng.random(2) < 0.01 * tick_skip
        y = 5300 if tick > 300 else 5000
        state.episode_ticks[0] = tick
        state.ticks_since_touch[0] = 0 if touched.any() else state.ticks_since_touch[0] + tick_skip
        state.world.ball_pos[0, 1] = y
        cars = {agent: SimpleNamespace(ball_touches=int(hit)) for agent, hit in zip(agents, touched, strict=True)}
        rlgym = SimpleNamespace(tick_count=1000 + tick, cars=cars, goal_scored=y > 5215.5)
        for name in ours:
            done = theirs[name].is_done(agents, rlgym, {})
            assert set(done.values()) == {bool(ours[name].check(state)[0])}, (name, tick)
            ended[name] += done["blue"]
    assert ended["time"] and ended["goal"] and ended["any"]


def test_goals_timeouts_and_combinations_by_hand():
    state = GameState(3, 1, 1)
    state.world.ball_pos[:, 1] = (5215.4, 5215.6, -5215.6)
    assert GoalCondition().check(state).tolist() == [False, True, True]
    assert state.scoring_team.tolist() == [-1, 0, 1]
    state.episode_ticks[:] = state.ticks_since_touch[:] = (0, 119, 120)
    assert TimeoutCondition(1).check(state).tolist() == [False, False, True]
    assert NoTouchCondition(1).check(state).tolist() == [False, False, True]
    assert (GoalCondition.truncates, TimeoutCondition.truncates, NoTouchCondition.truncates) == (False, True, True)
    state = GameState(4, 1, 1)
    a, b = Says([0, 0, 1, 1]), Says([0, 1, 0, 1])
    for build in (lambda kind: kind(a, b), lambda kind: kind([a, b]), lambda kind: kind([a], b)):
        assert build(AnyOf).check(state).tolist() == [0, 1, 1, 1]
        assert build(AllOf).check(state).tolist() == [0, 0, 0, 1]
    assert AnyOf(a).check(state).dtype == np.bool_
    assert AllOf(a, AnyOf(a, b)).check(state).tolist() == [0, 0, 1, 1]
    assert AnyOf(GoalCondition()).truncates is False
    assert AllOf(TimeoutCondition(), NoTouchCondition()).truncates is True
    assert AnyOf(GoalCondition(), TimeoutCondition(), truncates=True).truncates is True
    assert AllOf(TimeoutCondition(), truncates=False).truncates is False


def test_an_episode_continues_for_two_seconds_past_its_goal():
    """Only where the condition ends it with a goal; also if the ball leaves the goal again, and again after a reset."""
    state, goal = GameState(3, 1, 1), PastGoal(GoalCondition())
    timeout = PastGoal(TimeoutCondition(1.0))
    everywhere = np.ones(3, bool)
    for _ in range(2):
        goal.reset(everywhere, state)
        timeout.reset(everywhere, state)
        state.world.ball_pos[:, 1], state.episode_ticks[:] = (5300, 0, -5300), 80
        assert not goal.check(state).any() and goal.held.tolist() == [True, False, True]
        assert not timeout.check(state).any() and not timeout.held.any()
        state.world.ball_pos[:, 1], state.episode_ticks[:] = (5000, 5300, -5300), 312
        assert not goal.check(state).any()
        assert timeout.check(state).tolist() == [True, False, False] and timeout.truncates
        state.episode_ticks[:] = 320
        assert goal.check(state).tolist() == [True, False, True]


def test_a_condition_that_remembers_is_reset_inside_past_goal():
    """The ball is dropped again and again: every episode has the same length."""
    lengths = []
    for done in (BallOnGroundCondition(), PastGoal(BallOnGroundCondition())):
        pool = RocketSimPool(
            1,
            state_setter=ExplicitState(
                ball_pos=(0, 0, 1500), ball_vel=(0, 0, -0.01), car_pos=[[0, -3000, 17], [0, 3000, 17]]
            ),
            done=done,
        )
        pool.reset(seed=0)
        ends = [step for step in range(80) if any(map(np.any, pool.step(np.zeros(2, np.int64))[2:4]))]
        lengths.append(np.diff([-1, *ends]).tolist())
        pool.close()
    assert lengths[0] == lengths[1] and len(lengths[0]) >= 2
