"""The pool against RLGym: its state reader and DefaultObs on the live arenas, and the reward code of its guide."""

from collections import Counter

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

from envs import GoalReward, InAirReward, Reward, SpeedTowardBallReward, TouchReward, VelocityBallToGoalReward
from envs.dones import GoalCondition, NoTouchCondition, TimeoutCondition
from envs.obs import DefaultObs
from envs.pool.rocket_pool import RocketSimPool
from envs.resets import ExplicitState, Kickoff, MixedStates, RandomState, StateSetter

GUIDE = {
    "zero_padding": None,
    "pos_coef": np.array([1 / rl.SIDE_WALL_X, 1 / rl.BACK_NET_Y, 1 / rl.CEILING_Z]),
    "lin_vel_coef": 1 / rl.CAR_MAX_SPEED,
    "ang_vel_coef": 1 / rl.CAR_MAX_ANG_VEL,
}
ARENAS = 4


class ReadFinal(StateSetter):
    """Reads an arena with RLGym's engine just before a new episode overwrites it."""

    def __init__(self, inner, reader):
        self.inner, self.reader, self.pool, self.final = inner, reader, None, {}

    def apply(self, state, mask, rng):
        if self.pool is not None:
            for arena in np.flatnonzero(mask):
                self.final[int(arena)] = self.reader(self.pool.arenas[arena])
        self.inner.apply(state, mask, rng)


class KeepTerms(Reward):
    """Sums nothing; remembers what each reward paid in the last step."""

    def __init__(self, *rewards):
        self.rewards, self.paid = rewards, {}

    def compute(self, state):
        self.paid = {type(r).__name__: np.array(r.compute(state)) for r in self.rewards}
        return self.paid["GoalReward"]


def rlgym_obs(builder, state):
    agents = list(state.cars)
    return np.stack([builder.build_obs(agents, state, {})[agent] for agent in agents])


def guide_rewards(state):
    """The guide's rewards in RLGym's terms; ball-to-goal with the opponents' net for both teams."""
    paid = {name: [] for name in ("SpeedTowardBallReward", "InAirReward", "VelocityBallToGoalReward")}
    paid |= {"GoalReward": [], "TouchReward": []}
    for car in state.cars.values():
        to_ball = state.ball.position.astype(float) - car.physics.position
        speed = car.physics.linear_velocity @ to_ball / np.linalg.norm(to_ball)
        paid["SpeedTowardBallReward"].append(max(speed / 2300, 0.0))
        paid["InAirReward"].append(float(not car.on_ground))
        to_net = np.array([0, 6000.0 if car.team_num == 0 else -6000.0, 0]) - state.ball.position
        ball_speed = state.ball.linear_velocity @ to_net / np.linalg.norm(to_net)
        paid["VelocityBallToGoalReward"].append(max(ball_speed / 6000, 0.0))
        goal = 0 if not state.goal_scored else (1 if state.scoring_team == car.team_num else -1)
        paid["GoalReward"].append(goal)
        paid["TouchReward"].append(float(car.ball_touches > 0))
    return paid


def compare_cars(state, arena, live, arena_object):
    """Every field of RLGym's cars and ball against the GameState's row."""
    world = state.world
    np.testing.assert_allclose(
        world.ball_quaternion[arena], unit(live.ball.quaternion, world.ball_quaternion[arena]), atol=1e-5
    )
    np.testing.assert_array_equal(state.pad_timers[arena], live.boost_pad_timers)
    names = list(live.cars)
    for slot, car in enumerate(live.cars.values()):
        at = (arena, slot)
        pairs = [
            (world.car_pos[at], car.physics.position),
            (world.car_vel[at], car.physics.linear_velocity),
            (world.car_ang_vel[at], car.physics.angular_velocity),
            (world.car_forward[at], car.physics.forward),
            (world.car_right[at], car.physics.right),
            (world.car_up[at], car.physics.up),
            (state.boost[at], car.boost_amount),
            (state.flip_torque[at], car.flip_torque),
        ]
        for mine, theirs in pairs:
            np.testing.assert_allclose(mine, theirs, rtol=0, atol=1e-5)
        exact = {
            "on_ground": car.on_ground,
            "wheels_with_contact": list(car.wheels_with_contact),
            "is_demoed": car.is_demoed,
            "demo_respawn_timer": car.demo_respawn_timer,
            "is_supersonic": car.is_supersonic,
            "supersonic_time": car.supersonic_time,
            "is_boosting": car.is_boosting,
            "boost_active_time": car.boost_active_time,
            "handbrake": car.handbrake,
            "has_jumped": car.has_jumped,
            "is_holding_jump": car.is_holding_jump,
            "is_jumping": car.is_jumping,
            "jump_time": car.jump_time,
            "has_flipped": car.has_flipped,
            "is_flipping": car.is_flipping,
            "has_double_jumped": car.has_double_jumped,
            "air_time_since_jump": car.air_time_since_jump,
            "flip_time": car.flip_time,
            "has_flip": car.has_flip,
            "can_flip": car.can_flip,
            "is_auto_flipping": car.is_autoflipping,
            "auto_flip_timer": car.autoflip_timer,
            "auto_flip_direction": car.autoflip_direction,
            "bump_victim": -1 if car.bump_victim_id is None else names.index(car.bump_victim_id),
        }
        for name, theirs in exact.items():
            mine = getattr(state, name)[at]
            assert mine.tolist() == (np.float32(theirs).item() if isinstance(theirs, float) else theirs), name
        angles = world.car_pitch_yaw_roll[at]
        if abs(angles[0]) < 1.5 and not car.is_demoed:
            turned = np.array([car.physics.pitch, car.physics.yaw, car.physics.roll]) - angles
            np.testing.assert_allclose(np.sin(turned), 0, atol=2e-3)
    last = arena_object.ball.get_state().last_hit_car_id
    ids = [car.id for car in sorted(arena_object.get_cars(), key=lambda car: car.id)]
    assert state.last_touch[arena] == (ids.index(last) if last in ids else -1)


def unit(quaternion, like):
    """A quaternion and its negative are the same rotation."""
    return quaternion * (1 if np.dot(quaternion, like) > 0 else -1)


def count_events(met, state, previous_boost):
    met["goal"] += bool(state.goal_scored)
    met["pad taken"] += int((state.boost_pad_timers > 0).any())
    for name, car in state.cars.items():
        met["flip"] += car.is_flipping
        met["flip spent"] += bool(car.has_flipped and not car.is_flipping)
        met["jump"] += car.is_jumping
        met["double jump"] += car.has_double_jumped
        met["can flip"] += car.can_flip
        met["boosting"] += car.is_boosting
        met["supersonic"] += car.is_supersonic
        met["handbrake"] += car.handbrake > 0
        met["demo"] += car.is_demoed
        met["touch"] += car.ball_touches > 0
        met["boost gained"] += car.boost_amount > previous_boost.get(name, 100)
        previous_boost[name] = car.boost_amount


def compare_with_rlgym(reader, setters, team_size, obs, reference, steps, seed=0):
    """Random play; every observation, final observation, reward and goal against RLGym's. Returns what was met."""
    setter = ReadFinal(MixedStates(setters, [1] * len(setters)), reader)
    reward = KeepTerms(SpeedTowardBallReward(), InAirReward(), VelocityBallToGoalReward(), GoalReward(), TouchReward())
    done = [GoalCondition(), NoTouchCondition(2.0), TimeoutCondition(4.0)]
    pool = RocketSimPool(
        ARENAS, team_size, obs=obs, reward=reward, state_setter=setter, done=done, num_threads=2, seed=seed
    )
    current, _ = pool.reset()
    setter.pool = pool
    cars = pool.num_cars
    for arena in pool.arenas:
        reader.watch(arena)
    met, rng = Counter(), np.random.default_rng(seed)
    boosts = [{} for _ in range(ARENAS)]
    ticks, no_touch_ticks = np.zeros(ARENAS, int), np.zeros(ARENAS, int)
    builder = RLGymObs(**reference)
    for _ in range(steps):
        setter.final.clear()
        current, _, terminated, truncated, infos = pool.step(rng.integers(90, size=pool.num_envs))
        current = current.reshape(ARENAS, cars, -1)
        ticks, no_touch_ticks = ticks + 8, no_touch_ticks + 8
        for i in range(ARENAS):
            live = reader(pool.arenas[i])
            reached = setter.final.get(i, live)
            np.testing.assert_allclose(current[i], rlgym_obs(builder, live), rtol=0, atol=1e-6)
            compare_cars(pool.state, i, live, pool.arenas[i])
            for name, expected in guide_rewards(reached).items():
                np.testing.assert_allclose(reward.paid[name][i], expected, rtol=0, atol=1e-6, err_msg=name)
            if any(car.ball_touches for car in reached.cars.values()):
                no_touch_ticks[i] = 0
            own = slice(i * cars, (i + 1) * cars)
            assert terminated[own].tolist() == [reached.goal_scored] * cars
            cut = no_touch_ticks[i] >= 240 or ticks[i] >= 480
            assert truncated[own].tolist() == [cut] * cars
            assert (i in setter.final) == (reached.goal_scored or cut)
            count_events(met, reached, boosts[i])
            if i in setter.final:
                final = infos["final_obs"].reshape(ARENAS, cars, -1)[i]
                np.testing.assert_allclose(final, rlgym_obs(builder, reached), rtol=0, atol=1e-6)
                ticks[i] = no_touch_ticks[i] = 0
                met["reset"] += 1
    pool.close()
    return met


@pytest.mark.parametrize(
    ("team_size", "layout"),
    [
        (1, "guide"),
        *(
            pytest.param(*more, marks=pytest.mark.slow)
            for more in [(2, "guide"), (3, "guide"), (1, "defaults"), (2, "defaults")]
        ),
    ],
)
def test_random_play_reads_as_in_rlgym(rlgym_reader, shot, dropped, head_on, team_size, layout):
    obs, reference = (DefaultObs.rlgym_guide(), GUIDE) if layout == "guide" else (DefaultObs(), {})
    setters = [Kickoff(), RandomState(), shot(), shot(into_blue_goal=True), dropped(), head_on()]
    met = compare_with_rlgym(rlgym_reader, setters, team_size, obs, reference, steps=200)
    missing = {"goal", "pad taken", "flip", "flip spent", "jump", "can flip", "boosting", "supersonic"} - set(+met)
    missing |= {"handbrake", "demo", "touch", "boost gained", "double jump", "reset"} - set(+met)
    assert not missing, met


@pytest.mark.slow
@pytest.mark.parametrize("team_size", [(1, 0), (0, 1), (2, 1)])
def test_uneven_teams_read_as_in_rlgym(rlgym_reader, shot, team_size):
    setters = [Kickoff(), RandomState(), shot()]
    met = compare_with_rlgym(rlgym_reader, setters, team_size, DefaultObs.rlgym_guide(), GUIDE, steps=100)
    assert met["goal"] and met["reset"]


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
