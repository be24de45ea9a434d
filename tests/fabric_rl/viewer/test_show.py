"""`fabric_rl.show` in a notebook, opened in a real browser."""

import html
from pathlib import Path

import pytest

import fabric_rl
from envs.replays.replay import read_replay

ONE_GOAL = Path(__file__).resolve().parents[2] / "fixtures/replays/one_goal.frl"


def until(frame, expression):
    for _ in range(600):
        if frame.evaluate(expression):
            return
        frame.page.wait_for_timeout(100)
    raise TimeoutError(expression)


def test_a_file_and_what_was_read_from_it_are_the_same():
    shown = fabric_rl.show(ONE_GOAL)
    assert shown.replay == ONE_GOAL.read_bytes() == fabric_rl.show(read_replay(ONE_GOAL)).replay
    assert fabric_rl.show(str(ONE_GOAL), height=300)._repr_html_().count("height: 300px") == 1
    assert len(shown._repr_html_()) < 700_000


def test_a_player_is_recorded(tmp_path):
    shown = fabric_rl.show("shooter", "idle", minutes=0.05, team_size=2, seed=3)
    file = tmp_path / "game.frl"
    file.write_bytes(shown.replay)
    found = read_replay(file)
    assert found.about["names"] == ["shooter", "idle"] and found.about["teams"] == [0, 0, 1, 1]
    assert found.games[0].result["seconds"] == 3


def test_a_trained_agent_keeps_its_name(tmp_path):
    shown = fabric_rl.show(fabric_rl.load_trained("school_1v1"), minutes=0.02)
    (tmp_path / "game.frl").write_bytes(shown.replay)
    found = read_replay(tmp_path / "game.frl")
    assert found.about["names"] == ["school_1v1", "chaser"] and found.about["rewards"]


@pytest.mark.parametrize(
    ("what", "asked", "message"),
    [
        ("nobody", {}, "nobody"),
        ("chaser", {"minutes": 0}, "minutes must be above 0"),
        ("damaged.frl", {}, "damaged.frl: not a replay of fabric-rl"),
    ],
)
def test_mistakes(what, asked, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("damaged.frl").write_text("no replay at all")
    with pytest.raises(ValueError, match=message):
        fabric_rl.show(what, **asked)
    with pytest.raises(FileNotFoundError):
        fabric_rl.show("absent.frl")


@pytest.mark.slow
def test_the_page_within_a_notebook(opened, tmp_path):
    """The output of a cell in a page of its own; the frame has an origin of its own, so nothing of the notebook's."""
    shown = fabric_rl.show(ONE_GOAL)
    assert html.unescape(shown._repr_html_()).count("<canvas") == 1
    file = tmp_path / "notebook.html"
    file.write_text(f"<!doctype html><title>notebook</title><p>cell</p>{shown._repr_html_()}", encoding="utf-8")
    page = opened(file.as_uri())
    frame = page.frames[1]
    until(frame, "Boolean(window.viewer && viewer.frames > 0)")
    assert frame.evaluate("viewer.game.frames") == read_replay(ONE_GOAL).games[0].num_frames
    assert frame.evaluate("origin") == "null"
