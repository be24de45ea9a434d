"""Observation builders by numbers: scenes worked out by hand, RLGym's reader, and scenes that are turned."""

import math
from collections import deque
from types import SimpleNamespace

import numpy as np
import pytest

from envs.actions import LookupTable
from envs.dones import GoalCondition, NoTouchCondition, TimeoutCondition
from envs.obs import AdvancedObs, AdvancedObsPlus, EntityObs, PrivilegedObs, RelativeObs, StackedObs, TeamRoleObs
from envs.obs.base import slices
from envs.pool.rocket_pool import RocketSimPool
from envs.resets import MixedStates, RandomState
from envs.state.game_state import GameState
from envs.state.layout import CAR_PHYSICS, IS_DEMOED, MIRROR, ON_GROUND, VECTORS
from tests.envs.fakes import build, random_play

BLUE, ORANGE = 0, 1
UNITS = {"pos_coef": 1 / 1000, "lin_vel_coef": 1 / 1000, "ang_vel_coef": 1.0}
CAR_VECTORS = [slice(at.start + CAR_PHYSICS, at.stop + CAR_PHYSICS) for at in VECTORS]


def places(builder):
    """Columns by name in 1v1: of the groups (`BALL_POS`), and within the blocks of cars (`CAR_POS`, `OTHER_POS`)."""
    found = {name.upper(): at for name, at in builder.columns(1, 1).items()}
    for prefix, group in (("CAR", "self"), ("OTHER", "other_0")):
        inside = [m._replace(group=m.name) for m in builder.meanings(1, 1) if m.group == group]
        found |= {f"{prefix}_{name.upper()}": at for name, at in slices(inside).items()}
    return SimpleNamespace(**found)


def write_mirrored(state):
    """Fills the rows of the mirrored view from those of the world."""
    for columns in VECTORS[:3]:
        state.ball_rows[:, 1, columns] = state.ball_rows[:, 0, columns] * MIRROR
    state.car_rows[:, :, 1] = state.car_rows[:, :, 0]
    for columns in CAR_VECTORS:
        state.car_rows[:, :, 1, columns] = state.car_rows[:, :, 0, columns] * MIRROR
    state.invalidate()


@pytest.fixture
def scene():
    """1v1: blue 1000 uu before the middle faces +y, orange 2000 uu behind it faces -y, the ball is at x=500."""
    state = GameState(1, 1, 1)
    world = state.world
    world.ball_pos[:], world.ball_vel[:], world.ball_ang_vel[:] = (500, 0, 100), (0, 1000, 0), (1, 2, 3)
    world.car_pos[0] = (0, -1000, 17), (0, 2000, 17)
    world.car_forward[0] = (0, 1, 0), (0, -1, 0)
    world.car_right[0] = (-1, 0, 0), (1, 0, 0)
    world.car_up[0] = (0, 0, 1)
    world.car_vel[0] = (100, 0, 0), (0, -2000, 0)
    world.car_ang_vel[0] = (0, 0, 0.5), (4, 0, 0)
    state.car_rows[:, :, 0, ON_GROUND] = (1, 0)
    state.boost[:] = (25, 100)
    write_mirrored(state)
    state.demo_respawn_timer[0, ORANGE], state.car_rows[0, ORANGE, :, IS_DEMOED] = 2, 1
    state.has_flipped[0, ORANGE] = True
    state.supersonic_time[0, ORANGE] = 0.25
    state.controls[0] = (1, -1, 0, 0, 0, 0, 1, 0), (0.5, 0, 1, -1, 0, 1, 0, 1)
    state.pad_timers[0, 13] = 4.0  # (0, -1024), beside blue
    state.pad_timers[0, 26] = 2.0  # (0, 2816), behind orange
    state.ticks_since_touch[0] = 5 * 120
    return state


def close(actual, expected):
    np.testing.assert_allclose(actual, expected, rtol=0, atol=1e-5)


# ---------------------------------------------------------------- AdvancedObs


def test_advanced_by_hand(scene):
    builder = AdvancedObs(**UNITS)
    obs, at = build(builder, scene)[0], places(builder)
    close(obs[BLUE, at.BALL_POS], (0.5, 0, 0.1))
    close(obs[ORANGE, at.BALL_POS], (-0.5, 0, 0.1))
    close(obs[ORANGE, at.BALL_VEL], (0, -1, 0))
    close(obs[BLUE, at.BALL_ANG_VEL], (1, 2, 3))
    close(obs[ORANGE, at.PREVIOUS_ACTION], (0.5, 0, 1, -1, 0, 1, 0, 1))
    assert np.flatnonzero(obs[BLUE, at.PADS] == 0).tolist() == [13, 26]
    assert np.flatnonzero(obs[ORANGE, at.PADS] == 0).tolist() == [33 - 26, 33 - 13]
    assert set(obs[:, at.PADS].flat) == {0, 1}
    me, other = obs[BLUE, at.SELF], obs[BLUE, at.OTHER_0]
    close(me[at.CAR_TO_BALL], (0.5, 1, 0.083))
    close(me[at.CAR_BALL_VEL], (-0.1, 1, 0))
    close(me[at.CAR_POS], (0, -1, 0.017))
    close(me[at.CAR_FORWARD], (0, 1, 0))
    close(me[at.CAR_UP], (0, 0, 1))
    close(me[at.CAR_ANG_VEL], (0, 0, 0.5))
    close(me[at.CAR_BOOST.start : at.CAR_DEMOED.stop], (0.25, 1, 1, 0))
    close(other[at.OTHER_TO_BALL], (0.5, -2, 0.083))
    close(other[at.OTHER_VEL], (0, -2, 0))
    close(other[at.OTHER_BOOST.start : at.OTHER_DEMOED.stop], (1, 0, 0, 1))
    close(other[at.OTHER_OFFSET], (0, 3, 0))
    close(other[at.OTHER_REL_VEL], (-0.1, -2, 0))
    close(obs[ORANGE, at.OTHER_0][at.OTHER_OFFSET], (0, 3, 0))
    close(obs[ORANGE, at.OTHER_0][at.OTHER_REL_VEL], (-0.1, -2, 0))


def rlgym_advanced(car, others, state, action):
    """The observation of RLGym 1 in words, from the state of RLGym 2 and one car at a time."""
    orange = car.is_orange
    ball = state.inverted_ball if orange else state.ball
    timers = state.inverted_boost_pad_timers if orange else state.boost_pad_timers

    def describe(one):
        body = one.inverted_physics if orange else one.physics
        return body, [
            *((ball.position - body.position) / 2300),
            *((ball.linear_velocity - body.linear_velocity) / 2300),
            *(body.position / 2300),
            *body.forward,
            *body.up,
            *(body.linear_velocity / 2300),
            *(body.angular_velocity / math.pi),
            *(one.boost_amount / 100, one.on_ground, one.has_flip, one.is_demoed),
        ]

    row = [*(ball.position / 2300), *(ball.linear_velocity / 2300), *(ball.angular_velocity / math.pi)]
    row += [*action, *(timers == 0)]
    me, block = describe(car)
    row += block
    for other in sorted(others, key=lambda one: one.team_num != car.team_num):
        body, block = describe(other)
        row += [*block, *((body.position - me.position) / 2300)]
        row += [*((body.linear_velocity - me.linear_velocity) / 2300)]
    return row


def test_advanced_agrees_with_rlgyms_reader(rlgym_reader, head_on):
    pool = RocketSimPool(3, 2, obs=AdvancedObs(), state_setter=head_on(), done=[TimeoutCondition(100)], num_threads=1)
    pool.reset()
    table, rng, met = LookupTable().table, np.random.default_rng(0), np.zeros(4, bool)
    for _ in range(60):
        actions = rng.integers(90, size=pool.num_envs)
        obs = pool.step(actions)[0].reshape(3, 4, -1)
        for i, arena in enumerate(pool.arenas):
            state = rlgym_reader(arena)
            cars = list(state.cars.values())
            for c, car in enumerate(cars):
                others = [one for one in cars if one is not car]
                close(obs[i, c], rlgym_advanced(car, others, state, table[actions[4 * i + c]]))
                met |= (car.is_demoed, not car.on_ground, not car.has_flip, car.boost_amount > 0)
    assert met.all()
    pool.close()


# ---------------------------------------------------------------- AdvancedObsPlus


def test_plus_by_hand(scene):
    builder = AdvancedObsPlus(pads_near_car=2, pads_near_ball=1, **UNITS)
    obs, at, columns = build(builder, scene)[0], places(builder), builder.columns(1, 1)
    close(obs[ORANGE, at.BALL_POS], (-0.5, 0, 0.1))
    close(obs[ORANGE, at.POS], (0, -2, 0.017))
    close(obs[ORANGE, at.FORWARD], (0, 1, 0))
    close(obs[ORANGE, at.VEL], (0, 2, 0))
    close(obs[ORANGE, at.ANG_VEL], (-4, 0, 0))
    close(obs[BLUE, at.STATUS], (0.25, 0, 1, 1, 0, 0))
    close(obs[ORANGE, at.STATUS], (1, 0.2, 0, 0, 0, 1))
    close(obs[BLUE, at.JUMPS], np.zeros(9))
    close(obs[ORANGE, at.JUMPS], (0, 0, 0, 0, 1, 1, 0, 0, 0))
    close(obs[BLUE, at.PREVIOUS_ACTION], (1, -1, 0, 0, 0, 0, 1, 0))
    close(obs[:, at.TOUCH_TIME], 0.5)
    # blue faces +y: x=500 is 500 to its left; orange faces -y: 500 to its right
    close(obs[BLUE, at.LOCAL_BALL_POS], (1, -0.5, 0.083))
    close(obs[ORANGE, at.LOCAL_BALL_POS], (2, 0.5, 0.083))
    close(obs[BLUE, at.LOCAL_BALL_VEL], (1, 0.1, 0))
    close(obs[ORANGE, at.LOCAL_BALL_VEL], (-3, 0, 0))
    close(obs[BLUE, at.LOCAL_VEL], (0, -0.1, 0))
    close(obs[BLUE, at.LOCAL_ANG_VEL], (0, 0, 0.5))
    close(obs[ORANGE, at.LOCAL_ANG_VEL], (0, 4, 0))
    close(obs[BLUE, at.BALL_DISTANCE], math.sqrt(0.25 + 1 + 0.083**2))
    close(obs[BLUE, at.LOCAL_OPPONENT_GOAL], (0.998765, 0, 0.049675, 6.127565))
    close(obs[BLUE, at.LOCAL_OWN_GOAL], (-0.997282, 0, 0.073680, 4.131229))
    close(obs[BLUE, at.BALL_TO_OPPONENT_GOAL], (-0.097104, 0.994345, 0.042995, 5.149118))
    close(obs[ORANGE, at.BALL_TO_OWN_GOAL], (0.097104, -0.994345, 0.042995, 5.149118))
    close(obs[BLUE, columns["pad_near_car_0"]], (-0.024, 0, 0.053, 0, 0, 0.4))
    close(obs[ORANGE, columns["pad_near_car_0"]], (-0.816, 0, 0.053, 0, 0, 0.2))
    close(obs[ORANGE, columns["pad_near_car_1"]], (0.976, 0, 0.053, 0, 1, 0))
    close(obs[BLUE, columns["pad_near_ball_0"]], (0, -0.524, -0.03, 0, 1, 0))
    close(obs[ORANGE, columns["pad_near_ball_0"]], (0, 0.524, -0.03, 0, 1, 0))
    other = obs[BLUE, columns["other_0"]]
    close(other[at.OTHER_LOCAL_POS], (3, 0, 0))
    close(other[at.OTHER_LOCAL_VEL], (-2, 0.1, 0))
    close(other[at.OTHER_LOCAL_FORWARD], (-1, 0, 0))
    close(other[at.OTHER_LOCAL_UP], (0, 0, 1))
    close(other[at.OTHER_LOCAL_TO_BALL], (-2, -0.5, 0.083))
    close(other[at.OTHER_POS], (0, 2, 0.017))
    close(other[at.OTHER_VEL], (0, -2, 0))
    close(other[at.OTHER_BOOST.start : at.OTHER_SUPERSONIC.stop], (1, 0.2, 0, 0, 0, 1))


def test_plus_at_its_limits(scene):
    scene.ticks_since_touch[0] = 60 * 120
    obs, at = build(AdvancedObsPlus(), scene)[0], places(AdvancedObsPlus())
    close(obs[:, at.STATUS.start], (0.25, 1))
    close(obs[:, at.TOUCH_TIME], 1)
    scene.world.car_pos[0, BLUE] = (3584, 0, 17)
    write_mirrored(scene)
    builder = AdvancedObsPlus(pads_near_car=34, **UNITS)
    pads = build(builder, scene)[0, BLUE, places(builder).PAD_NEAR_CAR_0.start :][: 34 * 6].reshape(34, 6)
    close(pads[0], (0, 0, 0.056, 1, 1, 0))
    assert pads[:, 3].sum() == 6
    assert (np.diff(np.linalg.norm(pads[:, :3], axis=1)) >= -1e-6).all()


# ---------------------------------------------------------------- RelativeObs


def test_relative_by_hand(scene):
    builder = RelativeObs(num_pads=1, **UNITS)
    obs, at, columns = build(builder, scene)[0], places(builder), builder.columns(1, 1)
    close(obs[BLUE, at.VEL], (0, -0.1, 0))
    close(obs[ORANGE, at.VEL], (2, 0, 0))
    close(obs[ORANGE, at.ANG_VEL], (0, 4, 0))
    close(obs[ORANGE, at.STATUS], (1, 0.2, 0, 0, 0, 1))
    close(obs[ORANGE, at.JUMPS], (0, 0, 0, 0, 1, 1, 0, 0, 0))
    close(obs[ORANGE, at.PREVIOUS_ACTION], (0.5, 0, 1, -1, 0, 1, 0, 1))
    close(obs[BLUE, at.BALL_POS], (1, -0.5, 0.083))
    close(obs[ORANGE, at.BALL_VEL], (-3, 0, 0))
    close(obs[BLUE, at.BALL_ANG_VEL], (2, -1, 3))
    close(obs[:, at.WORLD_UP], [(0, 0, 1)] * 2)
    close(obs[BLUE, at.OPPONENT_GOAL], (6.12, 0, 0.304388))
    close(obs[BLUE, at.OWN_GOAL], (-4.12, 0, 0.304388))
    close(obs[ORANGE, at.OPPONENT_GOAL], (7.12, 0, 0.304388))
    close(obs[BLUE, columns["pad_0"]], (-0.024, 0, 0.053, 0, 0, 0.4))
    other = obs[ORANGE, columns["other_0"]]
    close(other[at.OTHER_POS], (3, 0, 0))
    close(other[at.OTHER_VEL], (-2, 0.1, 0))
    close(other[at.OTHER_FORWARD], (-1, 0, 0))
    close(other[at.OTHER_UP], (0, 0, 1))
    close(other[at.OTHER_ANG_VEL], (0, 0, 0.5))
    close(other[at.OTHER_BOOST.start : at.OTHER_SUPERSONIC.stop], (0.25, 0, 1, 1, 0, 0))
    # Nose up, wheels on the wall at +x: forward is +z, the roof points to -x, the right side to -y.
    world = scene.world
    world.car_forward[0, BLUE], world.car_right[0, BLUE], world.car_up[0, BLUE] = (0, 0, 1), (0, -1, 0), (-1, 0, 0)
    write_mirrored(scene)
    obs = build(RelativeObs(**UNITS), scene)[0, BLUE]
    close(obs[at.BALL_POS], (0.083, -1, -0.5))
    close(obs[at.WORLD_UP], (1, 0, 0))
    close(obs[at.OPPONENT_GOAL], (0.304388, -6.12, 0))


def rotation(yaw, pitch, roll):
    """A rotation matrix of three turns about x, y and z."""
    c, s = np.cos((roll, pitch, yaw)), np.sin((roll, pitch, yaw))
    about_x = np.array([[1, 0, 0], [0, c[0], -s[0]], [0, s[0], c[0]]])
    about_y = np.array([[c[1], 0, s[1]], [0, 1, 0], [-s[1], 0, c[1]]])
    about_z = np.array([[c[2], -s[2], 0], [s[2], c[2], 0], [0, 0, 1]])
    return about_z @ about_y @ about_x


@pytest.fixture(scope="module")
def played():
    return random_play(4, 2)


@pytest.mark.parametrize("car", [0, 1, 2, 3])
@pytest.mark.parametrize("angles", [(2.0, 0, 0), (0, 1.0, 0), (0, 0, -2.5), (1.0, 0.7, 3.0)])
def test_relative_does_not_change_when_the_scene_turns_about_the_car(played, car, angles):
    turn = rotation(*angles)
    turned = played.select(np.arange(4))
    world, center = turned.world, played.world.car_pos[:, car].astype(float)
    world.ball_pos[:] = center + (played.world.ball_pos - center) @ turn.T
    for columns in VECTORS[1:3]:
        turned.ball_rows[:, 0, columns] = played.ball_rows[:, 0, columns] @ turn.T
    world.car_pos[:] = center[:, None] + (played.world.car_pos - center[:, None]) @ turn.T
    for columns in CAR_VECTORS[1:]:
        turned.car_rows[:, :, 0, columns] = played.car_rows[:, :, 0, columns] @ turn.T
    write_mirrored(turned)
    builder = RelativeObs()
    before, after = build(builder, played)[:, car], build(builder, turned)[:, car]
    for name, at in builder.columns(2, 2).items():
        if name in ("opponent_goal", "own_goal", "world_up") or name.startswith("pad_"):
            continue
        np.testing.assert_allclose(after[:, at], before[:, at], rtol=0, atol=1e-5, err_msg=name)
    own_goal = builder.columns(2, 2)["own_goal"]
    assert np.abs(after[:, own_goal] - before[:, own_goal]).max() > 0.1
    plus = AdvancedObsPlus()
    moved = np.abs(build(plus, turned)[:, car] - build(plus, played)[:, car])
    assert moved[:, plus.columns(2, 2)["pos"]].max() < 1e-5 and moved[:, plus.columns(2, 2)["ball_pos"]].max() > 0.1


# ---------------------------------------------------------------- EntityObs


def test_entities_by_hand(scene):
    at = EntityObs
    builder = EntityObs(2, include_pads=True, include_goals=True, **UNITS)
    obs, rows = build(builder, scene)[0], builder.objects
    one_hot = [*range(1, 8)]
    blue = obs[BLUE]
    me, ball, enemy = blue[at.SELF], blue[at.BALL], blue[rows["enemies"]][0]
    assert me[one_hot].tolist() == [1, 0, 0, 0, 1, 0, 0]
    assert ball[one_hot].tolist() == [0, 1, 0, 0, 0, 0, 0]
    assert enemy[one_hot].tolist() == [1, 0, 0, 0, 0, 0, 1]
    assert (blue[rows["pads"], 1:8] == [0, 0, 1, 0, 0, 0, 0]).all()
    assert blue[rows["goals"], 1:8].tolist() == [[0, 0, 0, 1, 0, 0, 1], [0, 0, 0, 1, 0, 1, 0]]
    close(me[at.POS], (0, -1, 0.017))
    close(me[at.OFFSET], 0)
    close(me[at.VEL], (0.1, 0, 0))
    close(me[at.REL_VEL], 0)
    close(me[at.FORWARD], (0, 1, 0))
    close(me[at.UP], (0, 0, 1))
    close(me[at.STATUS], (0.25, 0, 1, 1, 0, 0))
    close(ball[at.POS], (0.5, 0, 0.1))
    close(ball[at.OFFSET], (0.5, 1, 0.083))
    close(ball[at.REL_VEL], (-0.1, 1, 0))
    close(ball[at.ANG_VEL], (1, 2, 3))
    close(ball[at.FORWARD], 0)
    close(enemy[at.OFFSET], (0, 3, 0))
    close(enemy[at.REL_VEL], (-0.1, -2, 0))
    close(enemy[at.ANG_VEL], (4, 0, 0))
    close(enemy[[at.BOOST, at.TIMER, at.ON_GROUND, at.HAS_FLIP, at.SUPERSONIC]], (1, 0.2, 0, 0, 1))
    pads = blue[rows["pads"]]
    close(pads[13, at.POS], (0, -1.024, 0.07))
    close(pads[13, at.OFFSET], (0, -0.024, 0.053))
    close(pads[[13, 26, 0], at.TIMER], (0.4, 0.2, 0))
    close(pads[[13, 3], at.BOOST], (0.12, 1))
    close(obs[ORANGE][rows["pads"]][[33 - 13, 33 - 26], at.TIMER], (0.4, 0.2))
    close(blue[rows["goals"], at.POS], [(0, 5.12, 0.321388), (0, -5.12, 0.321388)])
    close(obs[ORANGE][rows["goals"], at.OFFSET], [(0, 7.12, 0.304388), (0, -3.12, 0.304388)])
    builder = EntityObs(3)
    obs = build(builder, scene)
    mask = obs[..., EntityObs.PRESENT] == 0
    assert mask.dtype == np.bool_ and mask.shape == (1, 2, 7)
    assert mask[0].tolist() == [[False, False, True, True, False, True, True]] * 2
    assert (obs[mask] == 0).all() and (obs[~mask] != 0).any(axis=-1).all()


# ---------------------------------------------------------------- PrivilegedObs


def test_privileged_is_the_actors_columns_then_the_critics(scene):
    actor, critic = RelativeObs(), AdvancedObs()
    builder = PrivilegedObs(actor, critic)
    split = builder.actor_features(1, 1)
    assert split == 47 + 36 + 21
    obs = build(builder, scene)
    np.testing.assert_array_equal(obs[..., :split], build(actor, scene))
    np.testing.assert_array_equal(obs[..., split:], build(critic, scene))
    columns = builder.columns(1, 1)
    assert columns["actor/vel"] == slice(0, 3) and columns["critic/ball_vel"] == slice(split + 3, split + 6)


# ---------------------------------------------------------------- stackedObs


ARENAS, CARS = 5, 2


def make_pool(obs, shot, **kwargs):
    setter = MixedStates([RandomState(), shot(), shot(into_blue_goal=True)], [1, 1, 1])
    done = [GoalCondition(), NoTouchCondition(0.6), TimeoutCondition(1.5)]
    return RocketSimPool(ARENAS, 1, obs=obs, state_setter=setter, done=done, num_threads=1, seed=4, **kwargs)


def by_arena(obs):
    return obs.reshape(ARENAS, CARS, *obs.shape[1:])


@pytest.mark.slow
@pytest.mark.parametrize("num_frames", [1, 2, 4])
@pytest.mark.parametrize("inner", [AdvancedObs, EntityObs])
def test_frames_are_the_last_observations_of_the_same_episode(inner, num_frames, shot):
    """Against frames kept by hand from a pool that plays the same games with single frames."""
    plain, stacked = make_pool(inner(), shot), make_pool(StackedObs(inner(), num_frames), shot)
    single, obs = by_arena(plain.reset()[0]), by_arena(stacked.reset()[0])
    memory = [deque([frame] * num_frames, maxlen=num_frames) for frame in single]
    rng, goals, cuts, partial = np.random.default_rng(0), 0, 0, 0
    for _ in range(80):
        for i in range(ARENAS):
            np.testing.assert_array_equal(obs[i], np.concatenate(memory[i], axis=-1))
        actions = rng.integers(90, size=plain.num_envs)
        single, _, terminated, truncated, infos = plain.step(actions)
        obs, *_, stacked_infos = stacked.step(actions)
        single, obs = by_arena(single), by_arena(obs)
        done = (terminated | truncated)[::CARS]
        for i in range(ARENAS):
            if done[i]:
                memory[i].appendleft(by_arena(infos["final_obs"])[i])
                final = by_arena(stacked_infos["final_obs"])[i]
                np.testing.assert_array_equal(final, np.concatenate(memory[i], axis=-1))
                memory[i].extend([single[i]] * num_frames)
            else:
                memory[i].appendleft(single[i])
        goals, cuts = goals + terminated.sum(), cuts + truncated.sum()
        partial += 0 < done.sum() < ARENAS
    assert goals and cuts and partial
    plain.close(), stacked.close()


@pytest.fixture
def states(shot):
    """Copies of the states of ten steps of one episode in every arena, the beginning first."""
    pool = RocketSimPool(
        ARENAS, 1, state_setter=RandomState(), done=[TimeoutCondition(100)], num_threads=1, seed=1, obs=AdvancedObs()
    )
    pool.reset()
    rng, kept = np.random.default_rng(0), [pool.state.select(np.arange(ARENAS))]
    for _ in range(10):
        pool.step(rng.integers(90, size=pool.num_envs))
        kept.append(pool.state.select(np.arange(ARENAS)))
    pool.close()
    return kept


def begin(builder, state):
    builder.reset(np.ones(ARENAS, bool), state)
    return build(builder, state)


def test_one_memory_and_second_looks(states):
    builder = StackedObs(AdvancedObs(), 3)
    begin(builder, states[0])
    build(builder, states[1])
    first = build(builder, states[2])
    np.testing.assert_array_equal(build(builder, states[2]), first)
    np.testing.assert_array_equal(build(builder, states[2].select(np.array([3, 1]))), first[[3, 1]])
    newest, middle, oldest = np.split(build(builder, states[3]), 3, axis=-1)
    for frame, state in ((newest, states[3]), (middle, states[2]), (oldest, states[1])):
        np.testing.assert_array_equal(frame, build(AdvancedObs(), state))
    shared = StackedObs(AdvancedObs(), 2)
    builder = PrivilegedObs(shared, shared)
    begin(builder, states[0])
    obs = build(builder, states[1])
    actor, critic = np.split(obs, 2, axis=-1)
    np.testing.assert_array_equal(actor, critic)
    np.testing.assert_array_equal(actor, np.concatenate([build(AdvancedObs(), s) for s in (states[1], states[0])], -1))


def test_reset_reaches_the_masked_arenas_only(states):
    builder = PrivilegedObs(AdvancedObs(), StackedObs(AdvancedObs(), 2))
    begin(builder, states[0])
    before = build(builder, states[1])
    builder.reset(np.arange(ARENAS) == 2, states[5])
    part = build(builder, states[5].select(np.array([2])))
    single = build(AdvancedObs(), states[5])
    np.testing.assert_array_equal(part[0], np.concatenate([single[2]] * 3, axis=-1))
    after = build(builder, states[6])
    width = single.shape[-1]
    np.testing.assert_array_equal(after[2, :, 2 * width :], single[2])
    others = [0, 1, 3, 4]
    np.testing.assert_array_equal(after[others][..., 2 * width :], before[others][..., :width])


@pytest.mark.parametrize("outer", [lambda inner: StackedObs(inner, 2), TeamRoleObs])
def test_columns_of_the_critic_are_not_shown_to_the_actor(outer):
    with pytest.raises(ValueError, match=r"Obs: inner must not be a PrivilegedObs; put .*Obs inside the actor"):
        outer(PrivilegedObs(AdvancedObs(), AdvancedObs())).space(1, 1)


@pytest.mark.parametrize(
    "make",
    [
        lambda: StackedObs(AdvancedObs(), 3),
        lambda: StackedObs(EntityObs(), 2),
        lambda: StackedObs(StackedObs(AdvancedObs(), 2), 2),
        lambda: PrivilegedObs(AdvancedObs(), StackedObs(AdvancedObs(), 3)),
    ],
)
def test_saved_and_loaded_it_goes_on_as_before(make, states):
    builder, other, ignorant = make(), make(), make()
    begin(builder, states[0])
    for state in states[1:4]:
        build(builder, state)
    saved = builder.state_dict()
    assert saved and all(isinstance(value, np.ndarray) for value in saved.values())
    expected = [build(builder, state) for state in states[4:7]]
    other.load_state_dict(saved)
    differs = False
    for state, obs in zip(states[4:7], expected, strict=True):
        np.testing.assert_array_equal(build(other, state), obs)
        differs |= not np.array_equal(build(ignorant, state), obs)
    assert differs
    third = make()  # neither of the two has written into what was saved
    third.load_state_dict(saved)
    np.testing.assert_array_equal(build(third, states[4]), expected[0])


def test_a_pool_with_stacked_frames_resumes_exactly(shot):
    pool, other = (make_pool(StackedObs(AdvancedObs(), 3), shot) for _ in range(2))
    pool.reset()
    rng = np.random.default_rng(0)
    for _ in range(10):
        pool.step(rng.integers(90, size=pool.num_envs))
    snapshot = pool.state_dict()
    other.load_state_dict(snapshot)
    for _ in range(20):
        actions = rng.integers(90, size=pool.num_envs)
        np.testing.assert_array_equal(other.step(actions)[0], pool.step(actions)[0])
    pool.close(), other.close()


def test_frames_saved_too_early_or_of_another_number(states):
    builder = StackedObs(AdvancedObs(), 2)
    builder.load_state_dict(StackedObs(AdvancedObs(), 2).state_dict())
    state = GameState(2, 1, 1)
    single = build(AdvancedObs(), state)
    np.testing.assert_array_equal(build(builder, state), np.concatenate([single, single], axis=-1))
    builder = StackedObs(AdvancedObs(), 2)
    begin(builder, states[0])
    with pytest.raises(ValueError, match="StackedObs: num_frames=3, but the saved state has 2 frames") as caught:
        StackedObs(AdvancedObs(), 3).load_state_dict(builder.state_dict())
    assert "\n" not in str(caught.value)
