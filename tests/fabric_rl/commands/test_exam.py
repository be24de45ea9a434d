"""`fabric-rl exam` on packs of rlgym-tools, and its summary by hand."""

import json
import sys
from functools import partial

import numpy as np
import pytest

from envs.replays.replay import read_replay
from envs.resets.training_packs import Pack
from fabric_rl.commands.evaluate import exam_table
from fabric_rl.evaluation.results import choose_packs, exam_summary

SHORT = "800B-18F9-C2F1-ACEE"
"""12 shots for goalies."""


def pack(code, kind="Striker", difficulty="Pro", tags=("Shots",), shots=4):
    metadata = {"type": kind, "difficulty": difficulty, "tags": list(tags), "code": code}
    return Pack(metadata, np.zeros((shots, 4, 3)), np.ones(shots))


def test_packs_are_chosen_by_any_word_that_they_have():
    packs = [pack("A"), pack("B", "Goalie"), pack("C", difficulty="All-Star", tags=["Aerials"])]

    def codes(*words):
        return "".join(one.metadata["code"] for one in choose_packs(packs, words))

    assert (codes(), codes("A"), codes("Goalie"), codes("Pro")) == ("ABC", "A", "B", "AB")
    assert codes("Aerials", "B") == "BC"
    assert (codes("held_out"), codes("train"), codes("all"), codes("train", "Goalie")) == ("A", "BC", "ABC", "B")
    with pytest.raises(ValueError, match="--packs: held_out and train cannot be combined; choose one"):
        choose_packs(packs, ["train", "held_out"])
    with pytest.raises(ValueError, match=r"--packs X: .* \(types, difficulties: All-Star, Goalie, Pro, Striker\)"):
        choose_packs(packs, ["A", "X"])


def test_summary_by_hand():
    one, two, three = (np.array(marks, bool) for marks in ([1, 0, 0, 0], [0, 0, 0, 0, 0, 1], [1, 1]))
    packs = [pack("A"), pack("B", difficulty="All-Star", shots=6), pack("C", "Goalie", shots=2)]
    found = exam_summary(packs, (one, two, three))
    rows = [(g["type"], g["difficulty"], g["packs"], g["passed"], g["shots"]) for g in found["groups"]]
    assert rows == [
        ("Goalie", "Pro", 1, 2, 2),
        ("Goalie", "all", 1, 2, 2),
        ("Striker", "Pro", 1, 1, 4),
        ("Striker", "All-Star", 1, 1, 6),
        ("Striker", "all", 2, 2, 10),
    ]
    assert [p["marks"] for p in found["packs"]] == ["1000", "000001", "11"]
    # Clopper and Pearson's for 2 of 10 (any table): 2.52 % to 55.61 %; all of 2: from 0.025^(1/2).
    assert found["groups"][4]["interval_95"] == pytest.approx([0.02521, 0.55610], abs=1e-5)
    assert found["groups"][0]["interval_95"] == pytest.approx([0.15811, 1.0], abs=1e-5)
    made = exam_table("two", found)
    assert list(map(str, made.columns[2].cells)) == ["1", "1", "1", "1", "2", "A", "B", "C"]
    assert str(list(made.columns[6].cells)[4]) == "2.5% to 55.6%"


@pytest.fixture
def exam(call):
    return partial(call, "exam")


@pytest.mark.slow
def test_a_bot_takes_one_pack_and_the_same_again(exam, tmp_path):
    pytest.importorskip("rlgym_tools")
    found = []
    for name in ("a.json", "b.json"):
        status, output, _ = exam("chaser", "--packs", SHORT, "--seed", 2, "--json", tmp_path / name)
        assert status == 0 and "chaser: 12 shots of 1 training packs" in output and SHORT in output
        found.append(json.loads((tmp_path / name).read_text()))
    assert found[0] == found[1]
    assert found[0]["team_size"] == [1, 0] and found[0]["shots_left_out"] == 0
    assert len(found[0]["packs"][0]["marks"]) == 12


@pytest.mark.slow
def test_an_agent_sees_as_many_cars_as_in_its_training(exam, tmp_path):
    pytest.importorskip("rlgym_tools")
    files = ("--json", tmp_path / "a.json", "--record", tmp_path / "a.frl")
    status, output, _ = exam("school_1v1", "--packs", SHORT, *files)
    assert status == 0 and "it takes its most probable actions" in output
    assert json.loads((tmp_path / "a.json").read_text())["team_size"] == [1, 1]
    assert len(read_replay(tmp_path / "a.frl").games) == 1


@pytest.mark.slow
def test_json_goes_to_standard_output_where_no_file_is_named(exam):
    pytest.importorskip("rlgym_tools")
    status, output, errors = exam("idle", "--packs", SHORT, "--json")
    assert status == 0 and json.loads(output)["player"] == "idle" and "idle" in errors


@pytest.mark.slow
def test_shots_are_recorded(exam, tmp_path):
    pytest.importorskip("rlgym_tools")
    plain, recorded = (tmp_path / f"{name}.json" for name in ("plain", "recorded"))
    assert exam("shooter", "--packs", SHORT, "--json", plain)[0] == 0
    assert exam("shooter", "--packs", SHORT, "--json", recorded, "--record", tmp_path / "shots.frl")[0] == 0
    assert plain.read_bytes() == recorded.read_bytes()
    (game,) = read_replay(tmp_path / "shots.frl").games
    assert game.columns["begins"].sum() >= 1 and np.abs(game.columns["ball_vel"][1]).max() > 100
    assert exam("shooter", "--packs", "none", "--record", tmp_path / "no.frl")[0] == 2
    assert not (tmp_path / "no.frl").exists()


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["chaser", "--packs", "Golie"], "--packs Golie: no training pack has this code, type, difficulty or tag"),
        (["chaser", "--json", "a.txt"], "--json a.txt must end in .json"),
        (["chaser", "--tick_skip", "0"], "--tick_skip must be a whole number from 1 to 100,000, got 0"),
        (["nobody"], "nobody"),
    ],
)
def test_mistakes_are_one_line(exam, args, said):
    pytest.importorskip("rlgym_tools")
    status, _, errors = exam(*args)
    assert status == 2 and said in errors and len(errors.strip().splitlines()) == 1


def test_without_the_packs_it_says_what_to_install(exam, monkeypatch):
    monkeypatch.setitem(sys.modules, "rlgym_tools", None)
    status, _, errors = exam("chaser")
    assert status == 2 and "pip install -U rlgym-tools" in errors and len(errors.strip().splitlines()) == 1
