"""The exam: shots by hand that pass or fail by themselves, and the same marks with any number of threads."""

import numpy as np
import pytest

from envs import GameState
from envs.bots import BallChaser, Bot, IdleBot, KickoffThenShoot, RandomBot
from envs.matches.exam import CLEARANCE, _Exam, run_exam
from envs.resets import check_start
from envs.resets.training_packs import Pack

CAR = ((0, 0, 17), (0, np.pi / 2, 0))


def pack(kind, *shots, limit=3.0, car=CAR):
    """`shots` are the ball's positions and velocities."""
    rows = np.array([(*shot, *car) for shot in shots], float)
    return Pack({"type": kind, "difficulty": "Pro", "code": kind}, rows, np.full(len(rows), limit))


def idle(seed):
    return IdleBot()


def mirrored(shots):
    return [((-x, -y, z), (-u, -v, w)) for (x, y, z), (u, v, w) in shots]


GOES_IN, MISSES, RESTS = (
    ((0, 4000, 93.15), (0, 1500, 0)),
    ((3000, 4000, 93.15), (0, 1500, 0)),
    ((0, 3000, 93.15), (0, 0, 0)),
)
OWN_GOAL = mirrored([GOES_IN])[0]


@pytest.mark.slow
def test_shots_that_pass_or_fail_by_themselves():
    packs = [
        pack("Striker", GOES_IN, MISSES, RESTS, OWN_GOAL),
        pack("Goalie", *mirrored([GOES_IN, MISSES, RESTS, OWN_GOAL])),
    ]
    for team_size in ((1, 0), (2, 1)):
        striker, goalie = run_exam(idle, packs, team_size=team_size)
        assert striker.tolist() == [True, False, False, False] and goalie.tolist() == [False, True, True, True]
    rolls, flies = GOES_IN, ((0, 4000, 400), (0, 1500, 300))
    for kind, shots, passed in (
        ("Striker", [rolls, flies], [False, True]),
        ("Goalie", mirrored([rolls, flies]), [True, False]),
    ):
        assert run_exam(idle, [pack(kind, *shots, limit=0.4)])[0].tolist() == passed
    behind = ((0, 2000, 17), (0, np.pi / 2, 0))
    assert run_exam(lambda seed: KickoffThenShoot(), [pack("Striker", RESTS, limit=5.0, car=behind)])[0].tolist() == [
        True
    ]


def test_the_ball_cannot_stay_in_the_air_for_ever():
    exam = _Exam([pack("Goalie", RESTS, RESTS, limit=2.0)], 8)
    exam.at[:] = 0, -1
    both = np.zeros((2, 1, 3))
    for ticks, over in ((12 * 120 - 16, False), (12 * 120 - 8, False), (12 * 120, True)):
        state = GameState.from_numbers(both, 1, ball_pos=(0, 0, 800), episode_ticks=ticks)
        if ticks == 12 * 120 - 16:
            exam.reset(np.ones(2, bool), state)
        ended = exam.check(state)
        assert ended.tolist() == [over, False] and exam.passed.tolist() == [over, False]


class Watching(Bot):
    """Random play; keeps what it saw."""

    def __init__(self, seed):
        self.inner, self.first = RandomBot(seed), None

    def act(self, state):
        self.first = state.copy() if self.first is None else self.first
        return self.inner.act(state)


@pytest.mark.parametrize("kind", ["Striker", "Goalie"])
def test_further_cars_stand_beside_the_goal_that_is_safe_and_stay_there(kind):
    seen = []

    def player(seed):
        seen.append(Watching(seed))
        return seen[-1]

    beside = ((2600, -4700, 93.15), (0, 0, 0)) if kind == "Striker" else ((2600, 4700, 93.15), (0, 0, 0))
    run_exam(player, [pack(kind, beside, RESTS, limit=0.2)], team_size=(2, 2))
    state = seen[0].first
    check_start(state, 0, "exam")
    further = state.world.car_pos[:, 1:]
    assert (further[..., 1] == (-4700 if kind == "Striker" else 4700)).all() and (np.abs(further[..., 0]) > 1300).all()
    assert np.linalg.norm(further - state.world.ball_pos[:, None], axis=-1).min() > CLEARANCE
    assert (state.boost == 100).all()


@pytest.mark.parametrize(("player", "at_once"), [(RandomBot, 7), (lambda seed: BallChaser(), 5)])
def test_marks_depend_neither_on_threads_nor_on_how_many_are_played_at_once(player, at_once):
    """What players draw depends on the second; and every shot is played once, whatever its length."""
    rng = np.random.default_rng(0)
    shots = [((x, y, 93.15), (0, 2500, 0)) for x, y in rng.uniform((-1500, 3200), (1500, 4200), (24, 2))]
    packs = [pack("Striker", *shots[:16], limit=0.6), pack("Goalie", *mirrored(shots[16:]), limit=1.0)]
    told = []
    one = run_exam(player, packs, seed=3, num_threads=1, at_once=7, progress=told.append)
    two = run_exam(player, packs, seed=3, num_threads=2, at_once=at_once)
    assert [len(marks) for marks in one] == [16, 8]
    assert all((a == b).all() for a, b in zip(one, two, strict=True))
    assert 0 < one[0].sum() < 16 and 0 < one[1].sum() < 8
    assert told == sorted(told) and told[-1] == 1


def test_refuses_nothing_to_do():
    with pytest.raises(ValueError, match="run_exam: the packs contain no shots"):
        run_exam(idle, [])
    with pytest.raises(ValueError, match="seed must be one non-negative integer"):
        run_exam(idle, [pack("Striker", RESTS)], seed=-1)
