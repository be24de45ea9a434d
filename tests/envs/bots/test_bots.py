"""The scripted bots: what they say they do, in real games; alike for both colours; with every kind of action parser."""

import gymnasium
import numpy as np
import pytest

from envs.actions import (
    ActionParser,
    ContinuousAction,
    Controls,
    DelayAction,
    HybridTable,
    LookupTable,
    MultiDiscreteAction,
    RepeatAction,
)
from envs.audit.replay import reorder_cars, swap_sides
from envs.bots import BOTS, AerialShooter, BallChaser, IdleBot, KickoffThenShoot, RandomBot, TeamBots, nearest_actions
from envs.bots.aerial import TIMES, predict_flight
from envs.bots.scripted import (
    CircleBot,
    HopBot,
    HoverBot,
    angle_and_distance,
    arrival_seconds,
    landing_seconds,
    predict_ball,
)
from envs.dones import TimeoutCondition
from envs.matches.matches import PoolFactory, record_trace
from envs.pool.rocket_pool import RocketSimPool
from envs.resets import ExplicitState, Kickoff, MixedStates, RandomState, TurtledStart
from tests.envs.fakes import Scene


def trace_of(bot, seconds, team_size=1, arenas=6, seed=0, **settings):
    return record_trace(
        PoolFactory(RocketSimPool), bot, seconds, seed, num_arenas=arenas, team_size=team_size, **settings
    )


def touches_a_minute(trace):
    """Contacts that begin, by car-minute."""
    touched = np.array([state.touched for state in trace.steps])
    begun = touched[1:] & ~touched[:-1]
    return begun.sum() / (trace.minutes * trace.first.present.sum())


def goals(trace):
    """[blue's, orange's]"""
    scored = np.array([state.scoring_team for state in trace.steps])
    return [int((scored == team).sum()) for team in (0, 1)]


@pytest.mark.slow
def test_idle_cars_stay_where_they_are_and_chasers_touch_the_ball():
    trace = trace_of(IdleBot(), 4, team_size=2)
    first, last = trace.steps[15], trace.steps[-1]
    np.testing.assert_allclose(last.world.car_pos, first.world.car_pos, atol=0.1)
    assert not any(state.controls.any() for state in trace.steps)
    mixed = {"state_setter": MixedStates([Kickoff(), RandomState()], [1, 1])}
    assert touches_a_minute(trace_of(BallChaser(), 15, team_size=(1, 0), **mixed)) > 12
    assert touches_a_minute(trace_of(RandomBot(), 15, team_size=(1, 0), **mixed)) < 2


@pytest.mark.slow
@pytest.mark.parametrize("colour", [0, 1])
def test_shooters_score_in_an_empty_net_and_never_in_their_own(colour):
    trace = trace_of(KickoffThenShoot(), 30, team_size=[(1, 0), (0, 1)][colour])
    scored = goals(trace)
    assert scored[colour] >= 9  # three a minute in six arenas
    assert scored[1 - colour] == 0


@pytest.mark.slow
def test_shooters_beat_idle_cars_with_either_colour():
    blue, orange = goals(trace_of(TeamBots(KickoffThenShoot(), IdleBot()), 40))
    assert blue >= 4 and orange == 0
    blue, orange = goals(trace_of(TeamBots(IdleBot(), KickoffThenShoot()), 40))
    assert orange >= 4 and blue == 0


def test_a_shooter_drives_to_the_kickoff_and_then_gets_behind_the_ball():
    first = trace_of(KickoffThenShoot(), 4, team_size=(1, 0), arenas=5)
    touched = np.array([state.touched[:, 0] for state in first.steps])
    assert touched.any(axis=0).all()  # every kickoff is reached within four seconds
    setter = ExplicitState([[0, 4000, 17]], ball_pos=(0, 3000, 93.15), car_yaw=[-np.pi / 2])  # the ball lies behind it
    around = trace_of(KickoffThenShoot(), 6, team_size=(1, 0), arenas=1, state_setter=setter).steps
    hit = next(number for number, state in enumerate(around) if state.touched[0, 0])
    y = [(state.world.car_pos[0, 0, 1], state.world.ball_pos[0, 1]) for state in around[:hit]]
    assert any(car < ball - 300 for car, ball in y)
    assert around[hit].world.ball_vel[0, 1] > 500  # and not toward its own goal


@pytest.mark.parametrize("bot", [BallChaser(), KickoffThenShoot(), CircleBot(), HoverBot()])
def test_drivers_get_off_their_roofs(bot):
    trace = trace_of(bot, 6, state_setter=TurtledStart(), done=TimeoutCondition(100))
    up = np.array([state.world.car_up[..., 2] for state in trace.steps])
    assert (up[:5] < 0).all()
    assert ((up > 0.9).mean(axis=0) > 0.3).all()


@pytest.mark.parametrize(
    "spin", [(0, 4, 0), (0, -4, 0), (4, 0, 0), (0, 0, 4)], ids=["dives", "rears", "rolls", "turns"]
)
def test_cars_in_the_air_stop_spinning_and_level_out(spin):
    setter = ExplicitState([[0, 0, 1500]], ball_pos=(3000, 3000, 93.15), car_ang_vel=[spin])
    trace = trace_of(HopBot(), 1.5, team_size=(1, 0), arenas=1, state_setter=setter, action=ContinuousAction())
    last = trace.steps[-1].world
    assert last.car_pos[0, 0, 2] > 500 and last.car_up[0, 0, 2] > 0.95
    assert np.linalg.norm(last.car_ang_vel[0, 0]) < 0.5


@pytest.mark.slow
def test_circles_and_hops_go_on_where_they_began():
    trace = trace_of(CircleBot(), 10, arenas=2)
    spots = np.array([state.world.car_pos[0, 0, :2] for state in trace.steps[60:]])
    way = np.linalg.norm(np.diff(spots, axis=0), axis=-1).sum()
    assert way > 3000 and np.ptp(spots, axis=0).max() < 2300
    trace = trace_of(HopBot(), 10)
    assert 0.6 < np.mean([~state.on_ground for state in trace.steps]) < 0.99
    moved = trace.steps[-1].world.car_pos - trace.steps[0].world.car_pos
    assert np.abs(moved[..., :2]).max() < 100


def test_hovering_stays_near_the_ball_and_does_not_touch_it():
    trace = trace_of(HoverBot(), 25, team_size=(1, 0), arenas=5)
    gaps = [np.linalg.norm(state.world.ball_pos - state.world.car_pos[:, 0], axis=-1) for state in trace.steps[90:]]
    assert np.min(gaps) > 200 and np.max(gaps) < 1500
    assert not any(state.touched.any() for state in trace.steps)
    faces = [state.world.car_vel[:, 0] for state in trace.steps[90:]]
    assert np.linalg.norm(faces, axis=-1).mean() > 100  # to and fro


def test_random_is_decided_by_its_seed_and_uses_everything():
    pool = RocketSimPool(num_arenas=2, num_threads=1)
    pool.reset()
    drawn = [[RandomBot(seed).actions(pool.state, pool.action_parser).tolist() for _ in range(2)] for seed in (0, 0, 1)]
    assert drawn[0] == drawn[1] != drawn[2]
    bot = RandomBot(3)
    chosen = np.concatenate([bot.actions(pool.state, pool.action_parser) for _ in range(300)])
    assert np.bincount(chosen, minlength=90).min() > 0 and chosen.max() == 89
    rows = np.concatenate([bot.act(pool.state) for _ in range(100)]).reshape(-1, 8)
    assert [np.unique(column).tolist() for column in rows.T] == [[-1, 0, 1]] * 5 + [[0, 1]] * 3
    pool.close()


@pytest.mark.slow
def test_the_flight_of_the_ball_is_predicted_with_its_bounces():
    setter = RandomState(grounded_share=1.0, ball_on_ground_share=0.1)
    trace = trace_of(IdleBot(), 3, team_size=(1, 0), arenas=60, state_setter=setter)
    places, _ = predict_flight(trace.first)
    for second, share in ((1, 0.8), (2, 0.6)):
        number = int(np.argmin(np.abs(TIMES - second)))
        wrong = np.linalg.norm(places[:, number] - trace.steps[15 * second - 1].world.ball_pos, axis=-1)
        assert (wrong < 60).mean() > share, np.sort(wrong)


@pytest.mark.parametrize("colour", [0, 1])
def test_an_aerial_shooter_scores_from_the_air(colour):
    side = (1, -1)[colour]
    ball = {"ball_pos": (600 * side, 2000 * side, 900), "ball_vel": (0, 300 * side, 500)}
    setter = ExplicitState([[0, -500 * side, 17]], car_yaw=[side * np.pi / 2], boost=100.0, **ball)
    trace = trace_of(AerialShooter(), 5, [(1, 0), (0, 1)][colour], 1, state_setter=setter, action=ContinuousAction())
    first = next(state for state in trace.steps if state.touched.any())
    assert first.world.ball_pos[0, 2] > 300 and not first.on_ground.any()
    assert goals(trace)[colour] == 1


def test_an_aerial_shooter_picks_up_boost_on_its_way():
    setter = ExplicitState([[-3072, -4400, 17]], car_yaw=[np.pi / 2], boost=0.0, ball_pos=(-2500, 4000, 93.15))
    trace = trace_of(AerialShooter(), 3, (1, 0), 1, state_setter=setter)
    assert trace.steps[-1].boost_pickups[0, 0] >= 2


@pytest.fixture(scope="module")
def busy_tape():
    setter = MixedStates([Kickoff(), RandomState(), TurtledStart()], [1, 2, 1])
    return trace_of(TeamBots(BallChaser(), KickoffThenShoot()), 6, team_size=3, arenas=3, state_setter=setter)


@pytest.mark.parametrize("name", sorted(set(BOTS) - {"random"}))
@pytest.mark.parametrize("seen", [swap_sides, reorder_cars])
def test_bots_know_neither_colours_nor_places(busy_tape, name, seen):
    bot, (other, order) = BOTS[name](), seen(busy_tape)
    assert sorted(order.tolist()) == list(range(6)) and order.tolist() != list(range(6))
    for (_, state), (_, changed) in zip(busy_tape.states_with_resets, other.states_with_resets, strict=True):
        np.testing.assert_allclose(bot.act(changed), bot.act(state)[:, order], atol=1e-4)


def test_blue_and_orange_play_the_same_game():
    """From a symmetric start the whole game stays symmetric, until rounding tells."""
    setter = ExplicitState([[-500, -2000, 17], [500, 2000, 17]], car_yaw=[0.5, 0.5 - np.pi])
    trace = trace_of(KickoffThenShoot(), 1.5, arenas=1, state_setter=setter, action=ContinuousAction())
    for state in trace.steps:
        blue, orange = state.own.car_pos[0]
        np.testing.assert_allclose(blue, orange, atol=0.5)
    assert trace.steps[-1].own.car_pos[0, 0, 1] > -1500


def test_teams_are_played_by_their_own_bots(busy_tape):
    state = busy_tape.steps[-1]
    both = TeamBots(IdleBot(), BallChaser()).act(state)
    assert not both[:, :3].any()
    np.testing.assert_array_equal(both[:, 3:], BallChaser().act(state)[:, 3:])


class Listed(ActionParser):
    """Four discrete actions without a table to look at."""

    action_space = gymnasium.spaces.Discrete(4)
    ROWS = np.array(
        [[-1, 0, 0, 0, 0, 0, 0, 0], [1, 0, 0, 0, 0, 0, 0, 0], [1, 1, 0, 0, 0, 0, 0, 0], [0] * 8], np.float32
    )

    def parse(self, actions, state):
        return Controls(self.ROWS[actions], ContinuousAction().parse(self.ROWS[actions], state).cars)


def test_nearest_rows_do_what_is_meant():
    parser, rows = LookupTable(), LookupTable().table
    np.testing.assert_array_equal(nearest_actions(parser, rows, np.zeros(90, bool)), np.arange(90))
    ground = np.arange(24)
    np.testing.assert_array_equal(nearest_actions(parser, rows[:24], np.ones(24, bool)), ground)
    wanted = np.zeros((5, 8), np.float32)
    wanted[0, :2] = 1, -0.4  # on wheels: straight on
    wanted[1, :2] = 1, -0.7  # left
    wanted[2, [2, 5]] = -1, 1  # a front flip
    wanted[3, [0, 6]] = 1, 1  # boost
    wanted[4, [0, 2]] = 1, 0.8  # in the air: nose up, whatever the throttle
    on_ground = np.array([True, True, True, True, False])
    rows = LookupTable().table[nearest_actions(LookupTable(), wanted, on_ground)]
    assert rows[0].tolist() == [1, 0, 0, 0, 0, 0, 0, 0]
    assert rows[1].tolist() == [1, -1, 0, -1, 0, 0, 0, 0]
    assert rows[2].tolist() == [0, 0, -1, 0, 0, 1, 0, 1]
    assert rows[3].tolist() == [1, 0, 0, 0, 0, 0, 1, 0]
    assert rows[4, 2:6].tolist() == [1, 0, 0, 0] and rows[4, 6] == 0


def test_other_parsers_get_what_they_take():
    wanted = np.array([[1, -0.3, 0, 0.6, 0, 1, 0, 0]], np.float32)
    ground = np.ones(1, bool)
    numbers = nearest_actions(ContinuousAction(), wanted, ground)
    np.testing.assert_allclose(numbers, [[1, -0.3, 0, 0.6, 0, 1, -1, -1]])
    assert nearest_actions(MultiDiscreteAction(5), wanted, ground).tolist() == [[4, 1, 2, 3, 2, 1, 0, 0]]
    held = RepeatAction(DelayAction(MultiDiscreteAction(), 1), 2)
    assert nearest_actions(held, wanted, ground).tolist() == [[2, 1, 1, 2, 1, 1, 0, 0]]
    assert nearest_actions(Listed(), np.array([[-0.8] + [0] * 7, [1, 0.9] + [0] * 6], np.float32), ground).tolist() == [
        0,
        2,
    ]

    class Odd(ActionParser):
        action_space = ContinuousAction().action_space

        def parse(self, actions, state):
            raise AssertionError

    with pytest.raises(ValueError, match=r"Odd: bots can play with action tables, .* this one has Box"):
        nearest_actions(Odd(), np.zeros((1, 8), np.float32), np.ones(1, bool))


@pytest.mark.parametrize(
    "action",
    [LookupTable(), HybridTable(), ContinuousAction(), MultiDiscreteAction(), RepeatAction(HybridTable(), 2)],
    ids=lambda action: type(action).__name__,
)
@pytest.mark.parametrize("bot", [BallChaser(), RandomBot()], ids=["chaser", "random"])
def test_all_bots_play_with_all_parsers_and_team_sizes(action, bot):
    trace = trace_of(bot, 4, team_size=[(1, 1), (2, 1)], arenas=4, action=action)
    touched = any(state.touched.any() for state in trace.steps)
    assert touched or isinstance(bot, RandomBot)


def close(found, expected):
    np.testing.assert_allclose(found[0], expected, rtol=1e-5, atol=1e-3)


def test_where_things_will_be_and_when():
    scene = Scene().put(ball=(100, 200, 1000), ball_vel=(300, -400, 500))
    seconds = np.full((1, 2), 2.0, np.float32)
    high = 1000 + 2 * 500 - 650 / 2 * 4
    close(predict_ball(scene.state, seconds), [(700, -600, high), (-700, 600, high)])
    scene.put(ball=(4000, 200, 1000), ball_vel=(300, 6000, -500))  # into a corner, and down to the ground
    close(predict_ball(scene.state, seconds), [(4004.75, 5028.75, 91.25), (-4004.75, -5028.75, 91.25)])
    scene = Scene().put(ball=(0, 0, 525), ball_vel=(0, 0, 0))
    close(landing_seconds(scene.state), [1, 1])  # 325 uu under gravity
    close(landing_seconds(scene.put(ball=(0, 0, 200.001), ball_vel=(0, 0, 650)).state), [2, 2])
    close(landing_seconds(scene.put(ball=(0, 0, 199), ball_vel=(0, 0, 650)).state), [0, 0])
    scene = Scene().put(pos=[(0, 0, 17), (0, 0, 17)], vel=[(0, 2000, 0), (0, 100, 0)])
    target = np.array([[(1800, 2400, 900)] * 2], np.float32)
    close(arrival_seconds(scene.state, target), [1.5, 2.5])  # 3,000 uu on the ground, at 2,000 and at least 1,200
    scene = Scene().put(pos=[(0, 0, 17), (0, 0, 17)], forward=[(0, 1, 0), (0, -1, 0)])
    scene.state.world.car_right[0] = [(1, 0, 0), (-1, 0, 0)]
    scene.state.complete()
    angle, distance = angle_and_distance(scene.state, np.array([[(300, 300, 17), (300, 0, 17)]], np.float32))
    close(angle, [np.pi / 4, np.pi / 2])  # to the right, from each car's own side
    close(distance, [300 * 2**0.5, 300])
