"""Search: solutions that replay exactly, that need what the guide lacks, the same seed, and goals by hand."""

from functools import partial

import numpy as np
import pytest

from envs.bots import BallChaser, Bot, IdleBot
from envs.matches.exam import place_exam_shot
from envs.resets import Kickoff
from envs.resets.base import apply_to_arena
from envs.search import FirstToBall, Goal, Rules, Save, Score, SearchStart, TouchInAir, replay, search
from envs.search.search import _Attempt, _Attempts
from envs.state.game_state import GameState
from envs.state.layout import ORANGE

ASIDE = np.array([[9, 0, 0], [0, 0, 0], [0, 0, 0], [0, 0, 0]])
RULES = Rules(budget=20_000, robust=0.0, num_arenas=16, seconds=3.0)
AHEAD = np.array([[0, 3500, 93], [0, 0, 0], [700, 2600, 17], [0, 0.5 * np.pi, 0]])
"""A resting ball before the open goal, and a car behind it, a little to the side."""
SHOT = np.array([[0, -2000, 93], [0, -2500, 0], [900, -4500, 17], [0, np.pi, 0]])
"""A ball on its way into the own goal, and a car beside it."""


def shot(which, goalie=False):
    return SearchStart(partial(place_exam_shot, shot=which, goalie=goalie), 3.0)


def kickoff(number):
    return SearchStart(lambda state, arena: apply_to_arena(Kickoff(), state, arena, np.random.default_rng(number)), 3.0)


def ends(solution, start, goal, opponent=None):
    """Whether a replay of a solution reaches the goal, and in its last step only."""
    played = replay(start, solution.controls, goal, opponent or IdleBot(), RULES, (1, 1))
    reached = [done for _, done in played]
    return reached == [False] * len(solution.controls) + [True]


@pytest.mark.slow
@pytest.mark.parametrize(("which", "goal", "guide"), [(AHEAD, Score, BallChaser), (SHOT, Save, IdleBot)])
def test_what_the_guide_cannot_do_is_found(which, goal, guide):
    starts = [shot(which, goal is Save), shot(which + ASIDE, goal is Save)]
    for start in starts:
        rules = Rules(budget=30, robust=0.0, num_arenas=1, seconds=3.0)
        assert len(search([start], goal(), [guide()], IdleBot(), rules, (1, 1), num_threads=1)[0].controls) == 0
    found = search(starts, goal(), [guide()], IdleBot(), RULES, (1, 1), seed=3, num_threads=1)
    assert [each.start for each in found] == [0, 1]
    assert all(len(each.controls) > 0 and 0 < each.cost <= RULES.budget + RULES.num_arenas for each in found)
    assert all(ends(each, starts[each.start], goal()) for each in found)


@pytest.mark.slow
def test_the_same_seed_gives_the_same_result():
    def controls(seed, threads):
        found = search([shot(AHEAD)], Score(), [BallChaser()], IdleBot(), RULES, (1, 1), seed, threads)
        return found[0].controls

    assert np.array_equal(controls(1, 1), controls(1, 2))
    assert not np.array_equal(controls(1, 1), controls(2, 1))


@pytest.mark.slow
def test_a_solution_has_to_survive_small_changes():
    rules = Rules(budget=40_000, robust=0.5, num_arenas=32, seconds=3.0)
    found = search([shot(AHEAD)], Score(), [BallChaser()], IdleBot(), rules, (1, 1), seed=1)[0]
    assert found.robust >= 0.5
    assert ends(found, shot(AHEAD), Score())


class BoostOnTheRight(Bot):
    """Boost once a second has passed, if the car stands on the right of x = 700."""

    def act(self, state):
        controls = np.zeros_like(state.controls)
        controls[..., 6] = (state.world.car_pos[..., 0] > 700) & (state.episode_ticks[:, None] > 120)
        return controls


class DidTheRightThing(Goal):
    """After 1.5 s, boost exactly if the car stands on the right of x = 700."""

    def progress(self, state, ended):
        right = (state.world.car_pos[:, 0, 0] > 700) == (state.controls[:, 0, 6] > 0)
        return np.where(state.episode_ticks == 184, right.astype(float), 0.0)


def test_the_guide_reacts_to_small_changes(monkeypatch):
    monkeypatch.setitem(search.__globals__, "INTERRUPTIONS", (0.0,))
    away = SHOT + np.array([[0, 0, 0], [0, 500, 0], [-200, 0, 0], [0, -0.5 * np.pi, 0]])  # at x = 700, facing +y
    rules = Rules(budget=5_000, robust=0.5, num_arenas=4, seconds=3.0)
    found = search([shot(away)], DidTheRightThing(), [BoostOnTheRight()], IdleBot(), rules, (1, 1))[0]
    assert found.robust == 1.0  # the same actions again would be right in half of the replays


@pytest.mark.parametrize("seed", range(3))
def test_the_guide_of_an_attempt_also_plays_its_replays(seed, monkeypatch):
    monkeypatch.setitem(search.__globals__, "INTERRUPTIONS", (0.0,))
    away = SHOT + np.array([[0, 0, 0], [0, 500, 0], [-200, 0, 0], [0, -0.5 * np.pi, 0]])
    rules = Rules(budget=20_000, robust=0.9, num_arenas=4, seconds=3.0)
    guides = [IdleBot(), BoostOnTheRight()]  # the first is right in half of the replays
    found = search([shot(away)], DidTheRightThing(), guides, IdleBot(), rules, (1, 1), seed)[0]
    assert found.robust == 1.0


class TwoControls(Bot):
    def act(self, state):
        return state.controls[..., :2]


def test_a_guide_with_wrong_controls_is_named():
    with pytest.raises(ValueError, match=r"TwoControls: act\(\) must return numbers \[16, 2, 8\]"):
        search([shot(AHEAD)], Score(), [IdleBot(), TwoControls()], IdleBot(), RULES, (1, 1), num_threads=1)


def test_decisions_of_another_guide_are_not_the_guides_own():
    attempts = _Attempts([shot(AHEAD)], Score(), [IdleBot(), BallChaser()], Rules(num_arenas=32), seed=0)
    work, own, other = attempts.works[0], [], []
    attempts._keep(work, _Attempt(0.5, 60, 0, 1, np.arange(60 * 8, dtype=np.float32).reshape(60, 8)))
    for number in range(400):
        planned, guided = attempts._variation(work, number % 2)
        if np.array_equal(planned, work.elite[0].controls[: len(planned)]):  # a cut; other variations change decisions
            (own if number % 2 else other).append((len(planned), guided))
    assert len(own) > 50 and len(other) > 50
    assert all(guided == 0 for length, guided in own if length < 60)
    assert all(guided == length for length, guided in other)


class _ByHand:
    """Attempts of one initial state, which begin and end as the test says; the first of 20 has reached the goal."""

    def __init__(self, guided=0, **rules):
        start = SearchStart(lambda state, arena: None, 3.0)
        self.attempts = _Attempts([start], Score(), [IdleBot()], Rules(num_arenas=32, **rules), seed=0)
        self.state, self.work = GameState(32, 1, 1), self.attempts.works[0]
        self.attempts.reset(np.ones(32, bool), self.state)
        self.begin(range(20))
        self.attempts._guided[:] = guided
        self.end([0], reached=True)

    def begin(self, arenas):
        for arena in arenas:
            self.attempts._apply_one(self.state, arena, np.random.default_rng(0))

    def end(self, arenas, reached):
        for arena in arenas:
            self.attempts._step[arena], self.attempts._best[arena] = 10, float(reached)
            self.attempts._judge(arena)


def test_replays_count_only_for_the_attempt_that_they_repeat():
    hand = _ByHand()
    hand.begin(range(20, 26))  # the first four are replays
    hand.end([20], reached=True)
    hand.end([21, 22, 23], reached=False)
    hand.begin(range(12))  # the other twelve
    hand.end(range(6), reached=False)
    assert hand.work.tested is None  # nine of sixteen failed, and six replays are still running
    hand.end([12], reached=True)
    hand.end([6], reached=True)
    assert (hand.work.passed, hand.work.failed) == (0, 0)
    assert hand.attempts._is_obsolete(7)
    hand.begin([6])
    hand.end([6], reached=True)
    assert (hand.work.passed, hand.work.failed) == (1, 0)


def test_the_replays_that_begin_first_decide_whether_there_are_more():
    hand = _ByHand()
    hand.begin(range(20, 32))
    hand.end([24, 25, 26, 27, 28], reached=False)  # attempts that fail sooner than the replays succeed
    assert (hand.work.passed, hand.work.failed) == (0, 0)
    hand.end([20, 21, 22, 23], reached=True)
    assert (hand.work.passed, hand.work.unplayed) == (4, 12)


def test_what_breaks_counts_as_failed():
    hand = _ByHand()
    hand.begin(range(20, 24))
    arenas = hand.work.arenas
    hand.begin([20])  # its replay was never judged
    assert (hand.work.failed, hand.work.arenas) == (1, arenas)


def test_no_test_begins_after_the_budget():
    hand = _ByHand(budget=1_000)
    hand.begin(range(20, 24))
    hand.work.cost = 1_000
    hand.attempts.check(hand.state)
    assert hand.work in hand.attempts.open  # four replays are running
    hand.end([20, 21, 22, 23], reached=False)
    hand.end([1], reached=True)
    assert hand.work.tested is None
    hand.attempts.check(hand.state)
    assert hand.work not in hand.attempts.open


def test_both_ways_to_repeat_are_counted_only_where_they_differ():
    hand = _ByHand(guided=10)  # nothing was left to the guide
    hand.begin(range(20, 24))
    hand.end([20], reached=True)
    assert hand.work.passed == 1
    assert hand.work.replays.sum() == 0


@pytest.mark.slow
def test_without_a_solution_the_budget_ends_the_search():
    far = AHEAD * [[1], [1], [0], [1]] + [[0], [0], [0], [0]]
    far[2] = (0, -4500, 17)  # cannot even reach the ball
    rules = Rules(budget=2_000, robust=0.0, num_arenas=8, seconds=0.5)
    found = search([shot(far)], Score(), [BallChaser()], IdleBot(), rules, (1, 1))[0]
    assert len(found.controls) == 0
    assert found.cost == 2_000


def test_kickoff_against_a_chaser():
    found = search([kickoff(5)], FirstToBall(), [BallChaser()], BallChaser(), Rules(60_000, 0.0, 32), (1, 1), seed=2)[0]
    assert len(found.controls)
    assert ends(found, kickoff(5), FirstToBall(), BallChaser())


def test_progress_by_hand():
    state = GameState(2, 1, 1)
    state.world.ball_pos[:] = (0, 3620, 100)  # 1500 uu before the line
    state.world.car_pos[:, 0] = (1500, 3620, 100)
    state.complete()
    state.invalidate()
    running, everyone = np.zeros(2, bool), np.ones(2, bool)
    goals = Score(), Save(), TouchInAir(height=200), FirstToBall()
    for goal in goals:
        goal.reset(everyone, state)
    score, save, touch, first = (goal.progress(state, running) for goal in goals)
    away = np.exp(-1)  # 1500 uu from the ball
    assert score == pytest.approx(away / 2)
    assert save == pytest.approx(away / 2)
    assert touch == pytest.approx(away * 0.5 * 0.99)  # half as high as asked for
    assert first == pytest.approx(away / 2)
    kept = np.array([True, False])
    assert Save.progress(goals[1], state, kept)[0] == 1
    state.world.ball_pos[0] = (0, -5400, 100)
    state.complete()
    state.invalidate()
    assert state.scoring_team[0] == ORANGE
    assert Save.progress(goals[1], state, kept)[0] < 1
