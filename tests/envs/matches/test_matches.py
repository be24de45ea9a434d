"""Matches: results, sides, and policies as bots."""

import numpy as np
import pytest

from envs import AdvancedObs, ContinuousAction, Kickoff, LookupTable, RepeatAction, RocketSimPool, StackedObs
from envs.bots import BallChaser, Bot, IdleBot, KickoffThenShoot, PolicyBot, RandomBot
from envs.matches.matches import PAIRS_AT_ONCE, Matches, play_matches
from envs.matches.statistics import MatchKickoffs
from envs.resets import check_start
from envs.resets.simple import KICKOFF_BOOST
from envs.state.game_state import GameState


def results(*goals):
    goals = np.array(goals)
    return Matches(goals, np.zeros_like(goals), minutes=1.0, cars=1, statistics={})


class Watching(Bot):
    """Plays as another and keeps what it sees: places of ball and cars, and what each car was told in the last step."""

    def __init__(self, inner=None):
        self.inner = inner or BallChaser()
        self.games = []

    def act(self, state):
        places = np.concatenate([state.world.ball_pos[:, None], state.world.car_pos], axis=1)
        controls = state.controls.reshape(state.num_arenas, -1)
        self.games.append(np.concatenate([places.reshape(state.num_arenas, -1), controls], axis=1))
        return self.inner.act(state)

    def reset(self, mask, state):
        self.inner.reset(mask, state)


def watched(player, opponent, **settings):
    """Results, and every match from the world's side: `[P, 2, steps, 9 places and 16 controls]`."""
    seen = []

    def watching(seed):
        seen.append(Watching(player(seed)))
        return seen[-1]

    matches = play_matches(watching, opponent, **settings)
    games = np.concatenate([np.stack(each.games, axis=1).reshape(2, PAIRS_AT_ONCE, -1, 25) for each in seen], axis=1)
    return matches, games.swapaxes(0, 1)


def chaser(seed):
    return BallChaser()


def shooter(seed):
    return KickoffThenShoot()


@pytest.mark.slow
def test_a_shooter_beats_one_that_stands_still_on_either_side():
    for player, opponent, sign in ((shooter, lambda seed: IdleBot(), 1), (lambda seed: IdleBot(), shooter, -1)):
        matches = play_matches(player, opponent, num_pairs=2, minutes=0.5)
        differences = sign * (matches.goals[..., 0] - matches.goals[..., 1])
        assert matches.goals.shape == (2, 2, 2) and (differences > 0).all(), matches.goals
        busy, still = matches.touches[..., ::sign].reshape(-1, 2).T
        assert (busy > 0).all() and (still < 10).all()  # the ball may hit it


@pytest.mark.slow
@pytest.mark.parametrize("opponent", [shooter, RandomBot], ids=["scripted", "drawing"])
def test_a_pair_depends_on_seed_and_number_not_on_threads_or_how_many_there_are(opponent):
    settings = {"minutes": 0.1, "seed": 5}
    few, first = watched(chaser, opponent, num_pairs=3, num_threads=1, **settings)
    many, again = watched(chaser, opponent, num_pairs=PAIRS_AT_ONCE + 1, num_threads=2, **settings)
    assert (few.goals == many.goals[:3]).all() and (few.touches == many.touches[:3]).all()
    assert (first == again[:PAIRS_AT_ONCE]).all()
    _, other = watched(chaser, opponent, num_pairs=1, minutes=0.1, seed=6)
    assert (first != other).any(axis=(2, 3)).all()  # not even the pairs of the seed's neighbour are among them


@pytest.mark.slow
def test_no_two_pairs_are_the_same_games():
    _, games = watched(chaser, shooter, num_pairs=2 * PAIRS_AT_ONCE, minutes=0.1)
    for half in (0, 1):
        assert len(np.unique(games[:, half].reshape(len(games), -1), axis=0)) == len(games)
        assert len(np.unique(games[:, half, 0, :9].round(3), axis=0)) == len(games)  # nor begin from the same places


@pytest.mark.slow
def test_sides_change_and_players_draw_anew():
    """Deterministic, from the same kickoffs: the same game to the bit, with sides changed."""
    matches, games = watched(chaser, chaser, num_pairs=PAIRS_AT_ONCE, minutes=0.25, seed=1)
    assert (games[:, 0] == games[:, 1]).all()
    assert (matches.goals[:, 0] == matches.goals[:, 1, ::-1]).all() and matches.goals.any()
    assert (matches.differences == 0).all()
    _, games = watched(chaser, lambda seed: IdleBot(), num_pairs=1, minutes=0.02)
    driving, standing = slice(9, 17), slice(17, 25)  # what blue and orange are told
    assert games[0, 0, :, driving].any() and not games[0, 0, :, standing].any()
    assert games[0, 1, :, standing].any() and not games[0, 1, :, driving].any()
    _, games = watched(RandomBot, RandomBot, num_pairs=1, minutes=0.02)
    assert (games[0, 0, 0] == games[0, 1, 0]).all() and (games[0, 0] != games[0, 1]).any()


@pytest.mark.slow
@pytest.mark.parametrize("tick_skip", [4, 8, 30])
def test_first_controls_come_late_by_whole_decisions(tick_skip):
    _, games = watched(chaser, chaser, num_pairs=PAIRS_AT_ONCE, minutes=0.01, tick_skip=tick_skip)
    told = games[..., 9:].reshape(PAIRS_AT_ONCE, 2, -1, 2, 8).any(axis=-1)  # row k is after k steps
    late = told.argmax(axis=2) - 1
    assert late.min() == 0 and late.max() == (MatchKickoffs.MAX_DELAY - 1) // tick_skip
    assert tick_skip == 30 or (late[..., 0] != late[..., 1]).any()


@pytest.mark.slow
def test_progress_is_told_up_to_the_end():
    told = []
    play_matches(chaser, chaser, num_pairs=PAIRS_AT_ONCE + 1, minutes=0.005, progress=told.append)
    assert told == sorted(told) and len(told) == 2 * 4 and told[3] == 0.5 and told[-1] == 1


@pytest.mark.parametrize("name", ["num_pairs", "minutes", "team_size"])
def test_refuses_nothing(name):
    with pytest.raises(ValueError, match=f"{name} must be .*, got 0"):
        play_matches(chaser, chaser, **{name: 0})
    with pytest.raises(ValueError, match="seed must be one non-negative integer, got -1"):
        play_matches(chaser, chaser, seed=-1)


@pytest.mark.parametrize("mixed", [False, True])
def test_policy_bot_sees_and_does_what_it_would_in_a_pool_of_its_own(mixed):
    """Its own frames, its own parser, and no row of cars that are not there."""
    sizes = [(1, 1), (1, 0)] if mixed else 1
    seen, begun = [], []
    rng = np.random.default_rng(0)
    plan = rng.integers(90, size=(12, 3 if mixed else 4))

    def choose(obs, begins, mask):
        seen.append(obs.copy())
        begun.append(begins.copy())
        return plan[len(seen) - 1]

    def pool(**parts):
        return RocketSimPool(num_arenas=2, team_size=sizes, state_setter=Kickoff(), seed=3, **parts)

    def builder():
        return StackedObs(AdvancedObs(), num_frames=3)

    own = pool(obs=builder(), action=LookupTable())
    expected = [own.reset()[0]]
    for actions in plan[:-1]:
        expected.append(own.step(actions)[0])

    guest = pool(obs=AdvancedObs(), action=LookupTable())
    bot = PolicyBot(choose, builder(), LookupTable())
    guest.reset()
    bot.reset(np.ones(2, bool), guest.state)
    for _ in plan:
        guest.step(bot.actions(guest.state, guest.action_parser))
    assert (np.array(seen) == np.array(expected)).all()
    assert begun[0].all() and not np.any(begun[1:])


def test_policy_bot_uses_its_own_parser_and_results_count():
    """The pool has no idea of the repetition."""
    table, asked = LookupTable().table, []

    def choose(obs, begins, mask):
        asked.append(len(asked))
        return np.full(len(obs), 10 * len(asked))

    pool = RocketSimPool(num_arenas=1, action=ContinuousAction())
    bot = PolicyBot(choose, AdvancedObs(), RepeatAction(LookupTable(), steps=2))
    pool.reset()
    bot.reset(np.ones(1, bool), pool.state)
    for row in (10, 10, 30, 30):
        pool.step(bot.actions(pool.state, pool.action_parser))
        assert (pool.state.controls[0] == table[row]).all()
    matches = results([(2, 1), (0, 0)], [(1, 3), (4, 0)])
    assert (matches.wins, matches.draws, matches.losses) == (2, 1, 1)
    assert matches.differences.tolist() == [0.5, 1.0]


def kickoffs_of(seeds, order, cars=1):
    """The states that arenas begin with, in that order."""
    setter, found = MatchKickoffs([np.random.SeedSequence(seed) for seed in seeds], 2 * cars), []
    state = GameState(len(seeds), cars, cars)
    for arena in order:
        state.clear(np.array([arena]))
        setter.apply(state, np.arange(len(seeds)) == arena, np.random.default_rng(len(found)))
        state.invalidate()
        check_start(state, arena, "MatchKickoffs")
        found.append((arena, state.copy(), setter.delay_ticks[arena].copy()))
    return found


def test_the_same_seed_gives_the_same_kickoffs_whenever_they_come():
    """Goals fall at other times in the second match of a pair, and other cars are demolished."""
    found = kickoffs_of([3, 3], [0, 1, 1, 1, 0, 0])
    of = [[(state.world.car_pos[arena], late) for arena, state, late in found if arena == each] for each in (0, 1)]
    for (ours, late), (theirs, too) in zip(*of, strict=True):
        assert (ours == theirs).all() and (late == too).all()
    assert len({ours.tobytes() for ours, _ in of[0]}) == 3


@pytest.mark.slow
def test_both_teams_begin_alike_near_a_spawn():
    spots, delays, boosts, turns = [], [], [], []
    for arena, state, late in kickoffs_of([1], [0] * 400, cars=3):
        world = state.world
        np.testing.assert_array_equal(world.car_pos[arena, :3], world.car_pos[arena, 3:] * [-1, -1, 1])
        np.testing.assert_allclose(world.car_forward[arena, :3], world.car_forward[arena, 3:] * [-1, -1, 1], atol=1e-6)
        np.testing.assert_array_equal(state.boost[arena, :3], state.boost[arena, 3:])
        away = world.car_pos[arena, :3, None, :2] - Kickoff.BLUE_POS[:, :2]
        nearest = np.abs(away).max(axis=2).argmin(axis=1)
        assert len(set(nearest)) == 3
        spots.append(away[np.arange(3), nearest])
        yaw = np.arctan2(world.car_forward[arena, :3, 1], world.car_forward[arena, :3, 0])
        turns.append(yaw - Kickoff.BLUE_YAW[nearest])
        boosts.append(state.boost[arena, :3] - KICKOFF_BOOST)
        delays.append(late)
    for found, most in ((spots, MatchKickoffs.MAX_SHIFT), (turns, MatchKickoffs.MAX_TURN), (boosts, 10)):
        assert 0.95 * most < np.max(found) <= most * 1.001 and -most * 1.001 <= np.min(found) < -0.95 * most
        assert abs(np.mean(found)) < 0.1 * most
    assert set(np.ravel(delays)) == set(range(MatchKickoffs.MAX_DELAY))
    assert abs(np.corrcoef(np.array(delays)[:, [0, 3]].T)[0, 1]) < 0.2  # every car its own
