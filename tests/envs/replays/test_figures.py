"""Figures of recorded games: what is measured in a file is what was played, counted in plain loops."""

import io
from pathlib import Path

import numpy as np
import pytest

from envs.bots import BallChaser, KickoffThenShoot, TeamBots
from envs.matches.matches import RecordedMatch
from envs.matches.statistics import CELLS, MAPS, GameStatistics, get_count, pair_totals
from envs.replays.figures import NOT_RECORDED, measure_replay
from envs.replays.replay import read_replay

ONE_GOAL = Path(__file__).resolve().parents[2] / "fixtures/replays/one_goal.frl"


class UntilTheGoal(GameStatistics):
    """Sees nothing of a recording that goes on after a goal."""

    over = False

    def update(self, state, done):
        if not self.over:
            super().update(state, done | state.goal_scored)
        self.over |= bool(state.goal_scored[0])

    def reset(self, mask, state):
        self.over = False
        super().reset(mask, state)


@pytest.fixture(scope="module", params=["goal", "demo"])
def played(request, tmp_path_factory):
    """A match of a minute or more, with three goals or demolitions: its file, and what a logger saw of it.

    Processors of AMD and Intel approximate square roots differently, so each plays a match of its own.
    """
    file, seen = tmp_path_factory.mktemp("games") / "game.frl", UntilTheGoal()
    sink = io.BytesIO()
    bots = TeamBots(BallChaser(), KickoffThenShoot() if request.param == "goal" else BallChaser())
    size, seed = (2, 3) if request.param == "goal" else (3, 1)
    match = RecordedMatch(bots, sink, ("chaser", "shooter"), team_size=size, seed=seed)
    match._pool.loggers += (seen,)
    match.begin()
    for step in range(6000):
        match.step()
        if step >= 900 and get_count(seen.counts, request.param + "s").sum() > 2:
            break
    match.close()
    file.write_bytes(sink.getvalue())
    replay = read_replay(file)
    assert [event["kind"] for event in replay.games[0].events].count(request.param) > 2
    return replay, seen


def cell_of(x, y, orange):
    """As a person would: count from the corner at the left of the own goal's end, in the side's own view."""
    if orange:
        x, y = -x, -y
    across, along = int((x + 4096) * CELLS[0] / 8192), int((y + 6000) * CELLS[1] / 12000)
    return min(max(across, 0), CELLS[0] - 1), min(max(along, 0), CELLS[1] - 1)


def counted(replay):
    """Ticks of cars and touches in each cell, from the columns and events of the file."""
    maps = np.zeros((2, 2, *CELLS))
    teams = replay.about["teams"]
    for game in replay.games:
        columns = game.columns
        touching, over = [False] * len(teams), False
        goals = {event["frame"] for event in game.events if event["kind"] == "goal"}
        for frame in range(game.num_frames):
            flags = [int(columns["car_flags"][frame, car]) for car in range(len(teams))]
            if columns["begins"][frame]:
                touching, over = [False] * len(teams), False
                continue
            if over:
                continue
            over = frame in goals
            ticks = columns["ticks"][frame] - columns["ticks"][frame - 1]
            for car, team in enumerate(teams):
                if not flags[car] & 16:  # demolished
                    x, y, _ = columns["car_pos"][frame, car].tolist()
                    maps[0, team][cell_of(x, y, team == 1)] += ticks
                touches = bool(flags[car] & 32)
                if touches and not touching[car] and not flags[car] & 16:
                    x, y, _ = columns["ball_pos"][frame].tolist()
                    maps[1, team][cell_of(x, y, team == 1)] += 1
                touching[car] = touches
    return maps


@pytest.mark.parametrize("which", ["one goal", "match"])
def test_maps_are_the_recorded_positions(which, played):
    replay = read_replay(ONE_GOAL) if which == "one goal" else played[0]
    found, expected = measure_replay(replay)[1], counted(replay)
    assert expected[0].sum() > 2000 and expected[1].sum() > 3
    assert np.array_equal(found[MAPS.index("car_ticks")], expected[0])
    assert np.array_equal(found[MAPS.index("touches")], expected[1])


def test_a_recording_has_the_figures_of_the_match(played):
    replay, seen = played
    counts, maps = measure_replay(replay)
    for name, mine in pair_totals(counts[:, None, None]).items():
        if name not in NOT_RECORDED:
            other = pair_totals(seen.counts[:, :1, None])[name]
            assert mine == pytest.approx(other, rel=0.01, abs=1), name  # boost is rounded to halves
    assert maps[1].sum() == seen.maps[1].sum()
    assert maps[2].sum() == pytest.approx(seen.maps[2].sum(), abs=0.05)
    assert np.abs(maps[0] - seen.maps[0, 0]).sum() < 0.01 * maps[0].sum()  # rounded to 0.1 uu


def test_what_is_recorded_after_a_goal_does_not_count():
    """As if the recording went on for three more frames after each goal."""
    replay = read_replay(ONE_GOAL)
    before = measure_replay(replay)
    game = replay.games[0]
    goal = next(event["frame"] for event in game.events if event["kind"] == "goal")
    for name, values in game.columns.items():
        game.columns[name] = np.insert(values, goal + 1, [values[goal]] * 3, axis=0)
    game.columns["ticks"][goal + 1 :] += 24
    game.num_frames += 3
    for mine, other in zip(measure_replay(replay), before, strict=True):
        assert np.array_equal(mine, other)


def test_nothing_to_measure():
    replay = read_replay(ONE_GOAL)
    replay.games.clear()
    with pytest.raises(ValueError, match="the replay has no frames"):
        measure_replay(replay)
