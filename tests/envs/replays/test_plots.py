"""Pictures of games: what is drawn is what was played."""

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from envs.replays.plots import action_histogram, position_map, reward_by_part, touch_map
from envs.replays.replay import extract_games, read_replay

pyplot = pytest.importorskip("matplotlib.pyplot")
ONE_GOAL = Path(__file__).resolve().parents[2] / "fixtures/replays/one_goal.frl"


@pytest.fixture(scope="module")
def replay():
    return read_replay(ONE_GOAL)


@pytest.fixture(autouse=True)
def without_a_display():
    before = pyplot.get_backend()
    pyplot.switch_backend("agg")
    yield
    pyplot.close("all")
    pyplot.switch_backend(before)


def mesh(axes):
    return np.ma.filled(axes.collections[-1].get_array(), 0.0)


def test_a_touch_map_counts_every_touch_where_it_was(replay):
    game = replay.games[0]
    touches = [event for event in game.events if event["kind"] == "touch"]
    assert len(touches) > 3 and mesh(touch_map(replay)).sum() == len(touches)
    assert sum(mesh(touch_map(replay, car)).sum() for car in (0, 1)) == len(touches)
    x, y, _ = game.columns["ball_pos"][touches[0]["frame"]]
    row, column = int((y + 6000) // 250), int((x + 4096) // 256)  # 48 x 32 cells
    axes = touch_map(replay)
    assert mesh(axes).reshape(48, 32)[row, column] >= 1
    assert axes.xaxis_inverted()  # seen from above, +x is to the left of a car that drives toward +y


def test_a_position_map_adds_up_to_what_was_played(replay):
    columns = replay.games[0].columns
    played = columns["ticks"][-1] / 120
    assert mesh(position_map(replay)).sum() == pytest.approx(played)
    demoed = (columns["car_flags"][:, 0].astype(int) & 16) > 0
    assert not demoed.any() and mesh(position_map(replay, 0)).sum() == pytest.approx(played)
    gone = columns["car_flags"].copy()
    gone[100:200, 0] = gone[100:200, 0].astype(int) | 16
    other = read_replay(ONE_GOAL)
    other.games[0].columns["car_flags"] = gone
    lost = (columns["ticks"][199] - columns["ticks"][99]) / 120
    assert mesh(position_map(other, 0)).sum() == pytest.approx(played - lost)


def test_the_parts_of_an_episode_add_up(replay):
    game = replay.games[0]
    starts = np.flatnonzero(game.columns["begins"])
    assert len(starts) == 2
    axes = reward_by_part(replay, car=0, episode=0)
    axes.figure.draw_without_rendering()
    assert axes.get_legend().get_window_extent().x0 >= axes.get_window_extent().x1  # it covers no curve
    lines = {line.get_label(): line.get_ydata() for line in axes.lines}
    paid = game.columns["rewards"][: starts[1], 0]
    assert lines["sum"][-1] == pytest.approx(paid.sum(dtype=np.float64))
    for name, part in zip(replay.about["rewards"], paid.T, strict=True):
        assert lines[name][-1] == pytest.approx(part.sum(dtype=np.float64)) if part.any() else name not in lines
    assert len(reward_by_part(replay, episode=1).lines[-1].get_xdata()) == game.num_frames - starts[1]


def test_action_shares_are_those_of_the_steps(replay):
    columns = replay.games[0].columns
    told = columns["car_controls"][columns["begins"] == 0, 0]
    axes = action_histogram(replay, 0)
    bars = {bars.get_label(): [bar.get_width() for bar in bars] for bars in axes.containers}
    assert np.allclose(np.sum(list(bars.values()), axis=0), 1)
    assert bars["1"][0] == pytest.approx((told[:, 0] > 0.99).mean())
    assert bars["-1"][1] == pytest.approx((told[:, 1] < -0.99).mean())
    assert bars["0"][5] == pytest.approx((told[:, 5] == 0).mean())


def test_where_it_draws_and_without_matplotlib(replay, monkeypatch):
    axes = pyplot.subplots()[1]
    for draw in (touch_map, position_map, reward_by_part, action_histogram):
        assert draw(replay, axes=axes) is axes
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match="pictures need matplotlib; pip install matplotlib"):
        touch_map(replay)


@pytest.mark.parametrize(
    ("draw", "message"),
    [
        (lambda replay: touch_map(replay, 2), "there is no car 2: the replay has 2, counted from 0, blue cars first"),
        (lambda replay: position_map(replay, -1), "there is no car -1"),
        (lambda replay: reward_by_part(replay, episode=2), "there is no episode 2: the replay has 2"),
        (lambda replay: reward_by_part(replace(replay, about=replay.about | {"rewards": []})), "has no rewards"),
    ],
)
def test_mistakes(draw, message, replay):
    with pytest.raises(ValueError, match=message):
        draw(replay)


def test_an_excerpt_begins_at_zero(replay, tmp_path):
    game = replay.games[0]
    goal = next(event for event in game.events if event["kind"] == "goal")
    first, last = goal["frame"] - 60, goal["frame"] + 1
    file = tmp_path / "goal.frl"
    file.write_bytes(extract_games(replay, [(game, first, last), (game, 0, 5)]))
    cut, short = read_replay(file).games
    assert (cut.num_frames, short.num_frames) == (61, 5) and cut.columns["ticks"][0] == 0
    assert cut.columns["ticks"][-1] == game.columns["ticks"][goal["frame"]] - game.columns["ticks"][first]
    for name in ("ball_pos", "car_rotation", "rewards", "car_flags"):
        assert np.array_equal(cut.columns[name], game.columns[name][first:last], equal_nan=True)
    moved = [event for event in cut.events if event["kind"] == "goal"]
    assert [event["frame"] for event in moved] == [60] and moved[0]["seconds"] == pytest.approx(4.0, abs=0.01)
    assert extract_games(replay) == ONE_GOAL.read_bytes()
