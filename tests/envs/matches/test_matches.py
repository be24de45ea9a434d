"""Matches: results, sides, and policies as bots."""

import numpy as np
import pytest

from envs import AdvancedObs, ContinuousAction, Kickoff, LookupTable, RepeatAction, RocketSimPool, StackedObs
from envs.bots import BallChaser, IdleBot, KickoffThenShoot
from envs.bots.policy import PolicyBot
from envs.matches.matches import Matches, _Score, play_matches
from tests.envs.rewards.reward_play import Scene


def results(*goals):
    return Matches(np.array(goals), np.zeros((len(goals), 2), np.int64), minutes=1.0, cars=1)


def test_wins_draws_and_losses():
    matches = results((2, 1), (0, 0), (1, 3), (4, 0))
    assert (matches.wins, matches.draws, matches.losses) == (2, 1, 1)


def test_a_shooter_beats_one_that_stands_still_on_either_side():
    for bot, opponent, sign in ((KickoffThenShoot(), IdleBot(), 1), (IdleBot(), KickoffThenShoot(), -1)):
        matches = play_matches(bot, opponent, num_matches=4, minutes=0.5)
        differences = sign * (matches.goals[:, 0] - matches.goals[:, 1])
        assert (differences > 0).all(), matches.goals  # the first two as blue, the others as orange
        busy, still = matches.touches[:, ::sign].T
        assert (busy > 0).all() and (still < 10).all()  # the ball may hit it


def test_same_seed_same_results_for_any_number_of_threads():
    first = play_matches(BallChaser(), BallChaser(), num_matches=3, minutes=0.4, seed=5, num_threads=1)
    again = play_matches(BallChaser(), BallChaser(), num_matches=3, minutes=0.4, seed=5, num_threads=2)
    other = play_matches(BallChaser(), BallChaser(), num_matches=3, minutes=0.4, seed=6)
    assert (first.goals == again.goals).all() and (first.touches == again.touches).all()
    assert (first.touches != other.touches).any()


class Watching(BallChaser):
    """Keeps where each car sees the ball and itself, `[steps, A, C, 2, 3]`."""

    def __init__(self):
        self.seen = []

    def act(self, state):
        self.seen.append(np.stack([state.own.ball_pos, state.own.car_pos], axis=2))
        return super().act(state)


def test_sides_change_from_the_same_kickoffs():
    """Whatever the processor, a game begins alike from either side, the first touch included; not to the bit."""
    bot = Watching()
    matches = play_matches(bot, IdleBot(), num_matches=8, minutes=4 / 60, seed=1)
    blue, orange = np.array(bot.seen).reshape(2, 60, 4, 2, 2, 3)
    np.testing.assert_array_equal(blue[0, :, 0], orange[0, :, 1])
    np.testing.assert_allclose(blue[:, :, 0], orange[:, :, 1], atol=1.0)
    assert len(np.unique(blue[0, :, 0, 1], axis=0)) > 1  # kickoffs of several kinds
    assert (matches.touches == [1, 0]).all()


def test_every_match_has_its_own_kickoff_however_many_are_played_at_once(monkeypatch):
    """Match i draws from seed + i, also where the arenas do not suffice for all matches at once."""

    def kickoffs():
        bot = Watching()
        play_matches(bot, IdleBot(), num_matches=16, minutes=1 / 900, seed=1)  # one step each
        return np.concatenate([seen[:, :, 1] for seen in bot.seen])

    expected = kickoffs()
    monkeypatch.setattr("envs.matches.matches.ARENAS_AT_ONCE", 3)
    np.testing.assert_array_equal(kickoffs(), expected)


def test_of_an_odd_number_of_matches_one_more_is_played_as_blue():
    bot = Watching()
    matches = play_matches(bot, IdleBot(), num_matches=3, minutes=1 / 900)
    assert [len(seen) for seen in bot.seen] == [2, 1] and len(matches.goals) == 3


def test_the_score_counts_contacts_by_team_and_goals_of_all_episodes():
    scene, score = Scene(2, 1, arenas=2), _Score()
    every = np.array([True, True])
    score.reset(every, scene.state)

    def step(**changes):
        score.update(scene.put(8, **changes).state, np.zeros(2, bool))

    step(touched=[1, 0, 1])
    step(touched=[1, 1, 0])  # the second blue car's contact is new, the first one's is not
    step(ball=(0, 5300, 300), touched=[0, 0, 1])
    score.reset(np.array([True, False]), scene.state)
    step(ball=(0, -5300, 300), touched=[0, 0, 1])  # a new contact where a new episode has begun
    assert score.counts[0].tolist() == [[1, 1], [1, 1]]
    assert score.counts[1].tolist() == [[2, 3], [2, 2]]
    assert score.begun.all()


@pytest.mark.parametrize("name", ["num_matches", "minutes", "team_size"])
def test_refuses_nothing(name):
    with pytest.raises(ValueError, match=f"{name} must be positive, got 0"):
        play_matches(IdleBot(), IdleBot(), **{name: 0})


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


def test_policy_bot_uses_its_own_parser():
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
