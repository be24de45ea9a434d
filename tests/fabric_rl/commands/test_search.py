"""`fabric-rl search`: demonstrations, states on the way, an interruption, and packs without those of the exam."""

import json
import sys

import numpy as np
import pytest

from envs.demonstrations.file import Demonstration
from envs.replays.replay import read_replay
from envs.resets import ReplayedStates
from fabric_rl.commands import search as command

WORDS = ("search", "random", "--goal", "save", "--player", "chaser", "--number", "4", "--budget", "2_000")
SHORT = ("--seconds", "2", "--robust", "0")


@pytest.mark.slow
def test_a_demonstration_and_the_states_before_its_end(call, tmp_path):
    files = ("--out", tmp_path / "found.frd", "--states", tmp_path / "found.npz", "--json", tmp_path / "found.json")
    record = ("--record", tmp_path / "found.frl")
    status, out, _ = call(*WORDS, *SHORT, "--last_seconds", "0.2", *files, *record)
    assert status == 0
    assert "save" in out
    found = json.loads((tmp_path / "found.json").read_text())
    solved = [each for each in found["solutions"] if each["seconds"]]
    assert found["searched"] == 4
    assert found["solved"] == len(solved) > 0
    demonstration = Demonstration(tmp_path / "found.frd")
    episodes = list(demonstration.episodes())
    assert demonstration.about["names"] == ["chaser", "idle"]
    assert [(len(each.columns["controls"]) - 1) / 15 for each in episodes] == [each["seconds"] for each in solved]
    assert not any(each.terminated and each.columns["ball"][-1, 1] < -5120 for each in episodes)
    assert [each.terminated for each in episodes] == [abs(each.columns["ball"][-1, 1]) > 5215.5 for each in episodes]
    assert len(ReplayedStates(tmp_path / "found.npz")) == 3 * len(solved)
    assert not list(tmp_path.glob("*.part.json"))
    for game, each in zip(read_replay(tmp_path / "found.frl").games, episodes, strict=True):
        assert np.allclose(game.columns["ball_pos"][-1], each.columns["ball"][-1][:3], atol=1)


@pytest.mark.slow
def test_several_guides(call, tmp_path):
    words = ("search", "kickoff", "--goal", "touch_in_air", "--player", "chaser", "advanced_1v1", "--number", "2")
    status, out, _ = call(*words, "--budget", "300", *SHORT, "--json", tmp_path / "found.json")
    assert (status, "guided by chaser and advanced_1v1, against idle" in out) == (0, True)
    found = json.loads((tmp_path / "found.json").read_text())
    assert found["player"] == ["chaser", "advanced_1v1"]
    assert all(each["cost"] >= 300 for each in found["solutions"])


@pytest.mark.slow
def test_an_interrupted_search_continues(call, tmp_path, monkeypatch):
    monkeypatch.setattr(command, "_AT_ONCE", 2)
    words = (*WORDS, *SHORT, "--out")
    call(*words, tmp_path / "whole.frd")
    search, calls = command.search, []

    def stop(*args, **kwargs):
        calls.append(args)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return search(*args, **kwargs)

    monkeypatch.setattr(command, "search", stop)
    assert call(*words, tmp_path / "found.frd")[0] == 130
    assert not (tmp_path / "found.frd").exists()
    status, _, errors = call(*words, tmp_path / "found.frd", "--seed", "1")
    assert (status, "is from a search with other settings" in errors) == (2, True)
    assert call(*words, tmp_path / "found.frd")[0] == 0
    assert len(calls) == 3  # the first two initial states are not searched again
    assert (tmp_path / "found.frd").read_bytes() == (tmp_path / "whole.frd").read_bytes()


@pytest.mark.slow
def test_each_recorded_state_is_searched_once(call, tmp_path):
    found = ("--states", tmp_path / "found.npz", "--last_seconds", "0.001", "--json", tmp_path / "found.json")
    call(*WORDS, *SHORT, *found)
    solved = json.loads((tmp_path / "found.json").read_text())["solved"]
    assert len(ReplayedStates(tmp_path / "found.npz")) == solved > 0  # at least one state of each
    again = ("search", tmp_path / "found.npz", *WORDS[2:], *SHORT, "--number", "9", "--json", tmp_path / "again.json")
    assert call(*again)[0] == 0
    assert json.loads((tmp_path / "again.json").read_text())["searched"] == solved


def test_starts_that_cannot_be_combined(call):
    status, _, errors = call("search", "random", "kickoff", *WORDS[2:])
    assert (status, "start: random cannot be combined with other words" in errors) == (2, True)


def test_a_damaged_file_of_an_interrupted_search(call, tmp_path):
    out, kept = tmp_path / "found.frd", tmp_path / "found.frd.part.json"
    rules = [2_000, 0.0, 16, 8, 1, 2.0]
    made_with = [["random"], "save", ["chaser"], "idle", 4, rules, 0, []]
    whole = json.dumps({"made_with": made_with, "solutions": [[0, "abc", 1.0, 10]]})
    for content in (whole, whole[:-20]):
        kept.write_text(content)
        status, _, errors = call(*WORDS, *SHORT, "--out", out)
        assert (status, f"--out: {kept} is damaged; delete it to begin again" in errors) == (2, True)


@pytest.mark.slow
def test_states_of_another_file(call, tmp_path, monkeypatch):
    states = tmp_path / "states.npz"
    words = ("search", states, *WORDS[2:], *SHORT, "--out", tmp_path / "found.frd")
    call(*WORDS, *SHORT, "--states", states, "--last_seconds", "0.2")

    def stop(*args, **kwargs):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(command, "DemonstrationWriter", stop)
        assert call(*words)[0] == 130
    call(*WORDS, *SHORT, "--states", states, "--last_seconds", "0.2", "--seed", "1")
    status, _, errors = call(*words)
    assert (status, "is from a search with other settings" in errors) == (2, True)


def test_players_that_cannot_guide_together(call):
    status, _, errors = call(*WORDS[:4], "--player", "school_1v1", "school_2v2")
    assert (status, "choose players that were trained for the same team size" in errors) == (2, True)
    status, _, errors = call(*WORDS[:4], "--player", "chaser", "chaser")
    assert (status, "--player names the same player twice" in errors) == (2, True)


def test_shots_of_the_exam_are_left_out(call):
    pytest.importorskip("rlgym_tools")
    status, _, errors = call("search", "held_out", "--goal", "score", "--number", "1")
    assert status == 2
    assert "start: held_out and train cannot be combined" in errors
    status, _, errors = call("search", "kickof", "--goal", "score", "--number", "1")
    assert (status, "start can also be kickoff, random, an .npz file" in errors) == (2, True)


@pytest.mark.slow
def test_goals_by_class_path(call, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my_search_goal.py").write_text(
        "from envs.search import Goal\n\n\nclass Move(Goal):\n    def progress(self, state, ended):\n"
        "        return (abs(state.world.car_vel[:, 0, 1]) / 500).clip(0, 1)\n\n\nclass Fly(Move):\n"
        "    def progress(self, state, ended):\n        return state.world.car_pos[:, 0, 2] * 0\n"
    )
    status, out, _ = call(*WORDS[:2], "--goal", "my_search_goal.Move", *WORDS[4:], *SHORT)
    assert (status, "100.0%" in out) == (0, True)
    status, out, _ = call(*WORDS[:2], "--goal", "my_search_goal.Fly", *WORDS[4:], *SHORT, "--out", "no.frd")
    assert (status, "no attempt reached the goal" in out, (tmp_path / "no.frd").exists()) == (0, True, False)
    status, _, errors = call(*WORDS[:2], "--goal", "scoer")
    assert (status, "--goal scoer must be score, save, touch_in_air, first_to_ball or the class" in errors) == (2, True)
    with open(tmp_path / "my_search_goal.py", "a") as file:
        file.write("\n\nclass Nothing(Goal):\n    def progress(self, state, ended):\n        return 0.5 / ended * 0\n")
    sys.modules.pop("my_search_goal", None)
    status, _, errors = call(*WORDS[:2], "--goal", "my_search_goal.Nothing", *WORDS[4:], *SHORT)
    assert (status, "Nothing: progress() returned" in errors) == (2, True)
    status, _, errors = call(*WORDS[:2], "--goal", "no_such.Goal")
    assert (status, "no_such" in errors, errors.count("\n")) == (2, True, 1)
    status, _, errors = call(*WORDS[:2], "--goal", "envs.search.Goal")
    assert (status, "--goal envs.search.Goal: Can't instantiate" in errors, errors.count("\n")) == (2, True, 1)
