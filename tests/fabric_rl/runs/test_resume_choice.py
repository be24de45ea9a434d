"""What --resume without a name goes on from, what it says of the rest, and which milestones it offers."""

import json
import re
import time
from datetime import datetime
from pathlib import Path

import pytest
import torch

from fabric_rl.runs import start_or_resume as choose
from fabric_rl.runs.checkpoint import write
from fabric_rl.runs.folder import Run
from fabric_rl.runs.records import Milestone, checkpoint_name, list_checkpoints, list_runs
from fabric_rl.runs.start_or_resume import ask_for_milestone, milestones_that_fit
from fabric_rl.types import CheckpointError

OURS = {"observations": "Box(4)", "actions": "Discrete(2)", "agent": "agents.A", "networks": "9 numbers"}
OTHER = OURS | {"observations": "Box(6)"}


def state(steps, fingerprint=OURS):
    """The least that a checkpoint of a run holds."""
    empty = {"callback_names": [], "callbacks": [], "metrics": {}, "precision": {}, "kl_adaptive": None}
    empty |= {"optimizer": {"state": {}, "param_groups": []}, "trace": {}, "world_size": 1, "exact": True}
    empty |= {"seconds": dict.fromkeys(("wall", "collect", "learn"), 0.0)}
    rank = dict.fromkeys(("env", "scaler", "torch", "cuda")) | {"ahead": False, "rollout": {}}
    empty |= {"ranks": [rank | {"episodes": {"return": [0.0]}}], "iteration": min(1, steps)}
    return empty | {"agent": {"w": torch.ones(2)}, "fingerprint": fingerprint, "steps": steps}


def make_run(folder, *steps, fingerprint=OURS):
    (folder / "checkpoints").mkdir(parents=True)
    for number in steps:
        write(folder / "checkpoints" / checkpoint_name(number), state(number, fingerprint))
    return folder


def make_milestone(run, phase, steps, meta=None, fingerprint=OURS):
    folder = run / "milestones" / phase / f"{steps:012d}"
    write(folder / checkpoint_name(steps), state(steps, fingerprint))
    if meta is not None:
        (folder / "meta.json").write_text(json.dumps({"steps": steps, "phase": phase} | meta))
    return folder


def damage(path):
    path.write_bytes(path.read_bytes()[:-1])


# ---------------------------------------------------------------- the newest run that fits


def test_only_the_newest_of_many_runs_that_do_not_fit_is_set_beside_this_one(tmp_path, capsys):
    make_run(tmp_path / "fits", 64)
    for name in "edcba":
        time.sleep(0.01)
        make_run(tmp_path / f"{name}[red]", 64, fingerprint=OTHER)
    choice = choose.resume_choice(tmp_path, None, True, lambda: OURS)
    out = capsys.readouterr().out
    assert (choice.run.name, choice.state["steps"]) == ("fits", 64)
    assert out.count("does not fit") == 1 and "--resume: run a[red] does not fit" in out
    assert len(re.findall(r"observations .*Box\(6\).*Box\(4\)", out)) == 1
    assert out.splitlines()[-1] == "--resume: 4 more runs do not fit: b[red], c[red], d[red], ..."


def test_one_more_run_that_does_not_fit(tmp_path, capsys):
    make_run(tmp_path / "a", 64, fingerprint=OTHER)
    time.sleep(0.01)
    make_run(tmp_path / "b", 64, fingerprint=OTHER)
    assert choose.resume_choice(tmp_path, None, True, lambda: OURS) is None
    assert capsys.readouterr().out.splitlines()[-1] == "--resume: 1 more run does not fit: a"


# ---------------------------------------------------------------- damaged checkpoints


@pytest.mark.filterwarnings("ignore::fabric_rl.runs.checkpoint.CheckpointWarning")
def test_a_run_whose_checkpoints_are_damaged_names_its_milestones(tmp_path):
    run = make_run(tmp_path / "r", 64, 128)
    for path in list_checkpoints(run / "checkpoints"):
        damage(path)
    with pytest.raises(CheckpointError, match=r"none of the 2 checkpoints in .* can be read; start a new run$"):
        choose.load_checkpoint(run)
    for steps in (50, 100):
        make_milestone(run, "main", steps)
    newest = make_milestone(run, "late", 120)
    (run / "milestones/late/000000000999").mkdir()  # never finished
    with pytest.raises(CheckpointError) as raised:
        choose.load_checkpoint(run)
    assert str(raised.value) == (
        f"none of the 2 checkpoints in {run / 'checkpoints'} can be read; use one of its milestones main/000000000050, "
        f"main/000000000100, late/000000000120: --resume {newest}"
    )
    assert choose.resume_choice(tmp_path, None, str(newest), dict).state["steps"] == 120
    make_milestone(run, "main", 10)
    with pytest.raises(
        CheckpointError, match="use one of its 4 milestones, such as main/000000000050, main/000000000100, "
    ):
        choose.load_checkpoint(run)


def test_a_run_without_checkpoints_names_its_milestones(tmp_path):
    run = make_run(tmp_path / "r")
    with pytest.raises(CheckpointError, match=r"r contains no checkpoints$"):
        choose.load_checkpoint(run)
    only = make_milestone(run, "main", 50)
    with pytest.raises(CheckpointError) as raised:
        choose.load_checkpoint(run)
    assert str(raised.value).endswith(f"no checkpoints; use one of its milestones main/000000000050: --resume {only}")


def test_a_run_continues_from_its_newest_milestone_before_the_first_checkpoint(tmp_path):
    run = make_run(tmp_path / "r")
    assert choose.latest_start(Run(run)).state is None
    make_milestone(run, "main", 50, {})
    make_milestone(run, "late", 120, {})
    make_milestone(run, "set_aside/main", 200, {})
    start = choose.latest_start(Run(run))
    assert start.state["steps"] == 120 and start.going_on and start.run.dir == run
    assert choose.resume_choice(tmp_path, None, True, lambda: OURS).state["steps"] == 120
    assert choose.resume_choice(tmp_path, None, True, lambda: OTHER) is None
    write(run / "checkpoints" / checkpoint_name(80), state(80, OURS))
    assert choose.latest_start(Run(run)).state["steps"] == 80


# ---------------------------------------------------------------- milestones that fit


def test_only_milestones_that_fit_are_offered_newest_first(tmp_path):
    """Fingerprints come from meta.json without opening the checkpoint, or from it where meta.json has none."""
    old, new = make_run(tmp_path / "old"), make_run(tmp_path / "new")
    other = make_run(tmp_path / "other")
    noon, one = "2024-05-01T12:00:00", "2024-05-01T13:00:00"
    late = make_milestone(new, "main", 10, {"timestamp": one, "fingerprint": OURS}, fingerprint=OTHER)
    early = make_milestone(old, "main", 30, {"timestamp": noon}, fingerprint=OURS)
    damage(make_milestone(old, "main", 40, {"timestamp": noon}) / checkpoint_name(40))  # cannot be known
    make_milestone(other, "main", 50, {"timestamp": one, "fingerprint": OTHER}, fingerprint=OURS)
    make_milestone(other, "late", 60, None, fingerprint=OTHER)
    (other / "milestones/main/000000000070").mkdir()  # never finished
    offers, left_out = milestones_that_fit(list_runs(tmp_path), OURS)
    assert [(offer.run_id, offer.folder) for offer in offers] == [("new", late), ("old", early)]
    assert offers[0].written == datetime.fromisoformat(one)
    assert left_out == 3


def test_only_a_number_that_is_shown_chooses_a_milestone(monkeypatch, tmp_path):
    offers = [Milestone(tmp_path, "main", steps, timestamp=datetime(2026, 1, 1)) for steps in range(25)]
    answers = iter(["0", "21", "-1", "x", " 20 "])
    monkeypatch.setattr("builtins.input", lambda *_: next(answers))
    assert ask_for_milestone(offers, 0).steps == 19
    monkeypatch.setattr("builtins.input", lambda *_: "")
    assert ask_for_milestone(offers, 0) is None


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("frist", "; did you mean first? (included agents: advanced_1v1, school_1v1, school_2v2)"),
        ("runs/frist", "; did you mean first? (included agents: advanced_1v1, school_1v1, school_2v2)"),
        ("school1v1", "; did you mean school_1v1? (included agents: advanced_1v1, school_1v1, school_2v2)"),
        ("frist/best", "; did you mean first? (included agents: advanced_1v1, school_1v1, school_2v2)"),
        ("first/best", "; best/ exists once the callbacks Evaluation or MilestoneMatches have played"),
        ("best", " (included agents: advanced_1v1, school_1v1, school_2v2)"),
    ],
)
def test_a_name_of_nothing_says_what_could_be_meant(tmp_path, name, message):
    (tmp_path / "first/checkpoints").mkdir(parents=True)
    with pytest.raises(CheckpointError) as caught:
        choose.resolve_checkpoint_path("--initialize_from", tmp_path, name)
    message = message.replace("school_2v2)", f"school_2v2; runs are searched for in {tmp_path})")
    assert str(caught.value) == f"--initialize_from {name}: no such checkpoint, run or milestone{message}"


def test_a_run_and_an_exported_agent_of_one_name_are_told_apart_by_the_user(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "runs/duo/checkpoints").mkdir(parents=True)
    (tmp_path / "duo").mkdir()
    assert choose.resolve_checkpoint_path("agent", "runs", "duo") == Path("runs/duo")  # a folder that is no agent
    (tmp_path / "duo/weights.ckpt").touch()
    with pytest.raises(CheckpointError, match="agent duo: runs/duo is a run and duo is an exported agent; pass the"):
        choose.resolve_checkpoint_path("agent", "runs", "duo")
    (tmp_path / "duo/weights.ckpt").rename(tmp_path / "duo/metadata.json")  # of another format
    with pytest.raises(CheckpointError, match="pass the path"):
        choose.resolve_checkpoint_path("agent", "runs", "duo")
    assert choose.resolve_checkpoint_path("agent", "runs", "runs/duo") == Path("runs/duo")
    assert choose.resolve_checkpoint_path("agent", "runs", str(tmp_path / "duo")) == tmp_path / "duo"
