"""Milestones that play each other while training goes on, in real processes."""

import json
import logging
import os
import shutil
import signal
import subprocess
import sys
import time
import warnings
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from fabric_rl import TrainArgs, TrainState, load_checkpoint, load_trained
from fabric_rl.base.argv import PRETRAINED
from fabric_rl.callbacks import MilestoneMatches, milestone_matches
from fabric_rl.metrics.log import logger
from fabric_rl.metrics.metrics_csv import read_rows
from fabric_rl.runs import checkpoint
from fabric_rl.runs.provenance import CONFIG, EXPORTED
from fabric_rl.runs.records import load_run
from fabric_rl.session.stopping import StopSignals
from tests.forks import kill
from tests.runs import descendants, until
from train_fabric import cli

SCHOOL = PRETRAINED / "school_1v1"


def run_folder(folder, *milestones):
    """A run whose milestones are the trained agent ("good") or one whose actor says nothing ("bad")."""
    folder.mkdir(exist_ok=True)
    shutil.copy(SCHOOL / CONFIG, folder / CONFIG)
    weights = checkpoint.read(SCHOOL / EXPORTED)
    for steps, kind in enumerate(milestones, 1):
        milestone = folder / "milestones" / "main" / f"{steps:012d}"
        if milestone.is_dir():
            continue
        milestone.mkdir(parents=True)
        kept = weights["agent"]
        if kind == "bad":
            kept = {name: torch.zeros_like(x) if name.startswith("actor") else x for name, x in kept.items()}
        assert kind == "good" or any((kept[name] != x).any() for name, x in weights["agent"].items())
        checkpoint.write(milestone / EXPORTED, {"agent": kept})
        (milestone / "meta.json").write_text(json.dumps({"steps": steps, "entropy": 1.5}))
    return folder


def state_of(fabric, folder):
    return TrainState(fabric, None, None, TrainArgs(total_timesteps=1000), folder=folder)


FEW = {"matches": 60, "minutes": 2.0, "confidence": 0.9}


def test_one_that_is_worse_raises_an_alarm_at_the_next_milestone(fabric, tmp_path, caplog):
    """The second one has lost all its matches to the first."""
    first, second = "main/000000000001", "main/000000000002"
    lost = {"player": second, "opponent": first, "team_size": 0, "better": "opponent", "results": "l" * 18}
    known = {"played": [lost], "judged": [{"milestone": first, "worse": False}], "best": first, "factor": 1.0}
    state = state_of(fabric, run_folder(tmp_path, "good", "bad"))
    alarm = MilestoneMatches(stop=True, lower_rate=0.5)
    alarm.load_state_dict(known)
    alarm.on_train_start(state)
    alarm.on_iteration_start(state)
    assert not state.stop and alarm.drain_metrics()["rating/elo"] == (1200, 1)  # not before there is another one

    run_folder(tmp_path, "good", "bad", "good")
    alarm.on_iteration_start(state)
    assert state.stop and state.learning_rate_factor == 0.5
    assert f"milestone {second} plays worse than {first}; best: {first}" in caplog.text
    metrics = {name: total for name, (total, count) in alarm.drain_metrics().items() if count}
    # 9 pairs lost and one drawn that is added: 400 log10(19) points less.
    assert metrics["rating/worse"] == 1 and metrics["rating/elo"] == pytest.approx(1200 - 511.50, abs=0.01)
    assert metrics["rating/openskill_mu"] < 25 and metrics["rating/openskill_sigma"] < 25 / 3
    found = json.loads((tmp_path / "ratings.json").read_text())
    assert found["best"] == first and found["ratings"][0]["rating"] == 1200 and found["matches"] == [lost]
    assert found["ratings"][1]["low"] < metrics["rating/elo"] < found["ratings"][1]["high"] < 1200
    meta = json.loads((tmp_path / "milestones" / second / "meta.json").read_text())
    assert meta == {"steps": 2, "entropy": 1.5, "rating": metrics["rating/elo"]}
    playing = alarm._process  # the third one's first match
    assert playing is not None and (os.name == "nt" or os.getpriority(os.PRIO_PROCESS, playing.pid) == 19)
    session = Path(f"/proc/{playing.pid}/autogroup")
    assert not session.exists() or session.read_text().endswith("nice 19\n")

    again = MilestoneMatches(stop=True, lower_rate=0.5)
    again.load_state_dict(alarm.state_dict())
    alarm.on_exception(state, RuntimeError())
    assert playing.poll() is not None
    resumed = state_of(fabric, tmp_path)
    again.on_train_start(resumed)
    assert resumed.learning_rate_factor == 0.5 and again.drain_metrics() == alarm.drain_metrics()
    again.on_iteration_start(resumed)
    assert not resumed.stop and again._process is not None  # it is played again, the others are not
    again.on_exception(resumed, RuntimeError())
    assert not list(tmp_path.glob(".match*"))


def plays(folder):
    matches = MilestoneMatches()
    matches._folder = run_folder(Path(folder), "good", "good")
    matches._start("main/000000000002", "main/000000000001", 0)
    time.sleep(600)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="/proc")
def test_a_match_ends_with_a_training_that_is_killed_and_the_next_one_has_files_of_its_own(forks, tmp_path):
    (tmp_path / ".match.json").write_text("of an older one")
    older = (tmp_path / ".match.json").open()
    training = forks.start(tmp_path, program="tests.fabric_rl.callbacks.test_milestone_matches:plays")
    until(lambda: descendants(training.pid))
    until(lambda: (tmp_path / ".match.json").read_text() == "")
    assert older.read() == "of an older one"
    older.close()
    (match,) = descendants(training.pid)
    kill(training.pid)
    until(lambda: not os.path.exists(f"/proc/{match}"), seconds=20)


def seeds_played(tmp_path, **settings):
    """Those with which the third milestone meets the second and the first."""
    matches, found = MilestoneMatches(**settings), []
    matches._folder = run_folder(tmp_path, "good", "good", "good")
    for opponent in ("main/000000000002", "main/000000000001"):
        matches._process = matches._start("main/000000000003", opponent, 0)
        found += [word for word in matches._process.args if word.startswith("--seed=")]
        matches._end()
    return found


def test_each_two_play_from_kickoffs_of_their_own_the_same_ones_again(tmp_path):
    played = seeds_played(tmp_path)
    assert seeds_played(tmp_path) == played and len({*played, *seeds_played(tmp_path, seed=1)}) == 4


class SignalOnceItWaits(logging.Handler):
    def emit(self, record):
        self.said = record.getMessage()
        os.kill(os.getpid(), signal.SIGTERM)


@pytest.mark.skipif(sys.platform == "win32", reason="signals to oneself")
def test_a_finished_run_says_that_it_waits_and_a_signal_ends_that(fabric, tmp_path):
    state = state_of(fabric, run_folder(tmp_path, "good", "good", "good"))
    matches, waits = MilestoneMatches(minutes=10_000), SignalOnceItWaits(logging.INFO)
    matches.on_train_start(state)
    logger.addHandler(waits)
    with StopSignals(state):
        matches.on_train_end(state)
    logger.removeHandler(waits)
    assert waits.said.startswith("waiting for the matches of milestone main/000000000002 and later ones; after Ctrl+C")
    assert matches._process.poll() is not None and len(matches._judged) == 1 and not list(tmp_path.glob(".match*"))


@pytest.mark.learning  # matches of a minute of processor time
def test_one_that_is_better_becomes_the_best_without_waiting(fabric, tmp_path):
    state = state_of(fabric, run_folder(tmp_path, "bad", "good", "good"))
    matches = MilestoneMatches(**FEW, team_sizes=[1])
    matches.on_train_start(state)
    while len(matches._judged) < 3:
        matches.on_iteration_start(state)
        if matches._process is not None:
            matches._process.wait()
    assert matches._best == "main/000000000002" and [each["worse"] for each in matches._judged] == [False] * 3
    assert matches.drain_metrics()["rating/elo_1v1"][0] > 1250 and not state.stop
    assert [(each["player"][-1], each["opponent"][-1]) for each in matches._played] == [("2", "1"), ("3", "2")]
    assert "ratings_1v1" in json.loads((tmp_path / "ratings.json").read_text())


def test_a_newer_best_is_set_aside(fabric, tmp_path):
    """The run has gone back to its first milestone."""
    state = state_of(fabric, run_folder(tmp_path, "good"))
    checkpoint.write(tmp_path / "milestones/main/000000000001/step_000000000001.ckpt", {"steps": 1})
    state.steps = 1
    (tmp_path / "best").mkdir()
    (tmp_path / "best/meta.json").write_text(json.dumps({"steps": 2}))
    matches = MilestoneMatches(**FEW, team_sizes=[1])
    matches._judged, matches._best = [{"milestone": "main/000000000001", "worse": False}], "main/000000000001"
    matches.on_train_start(state)
    assert json.loads((tmp_path / "set_aside/best/meta.json").read_text())["steps"] == 2
    assert json.loads((tmp_path / "best/meta.json").read_text())["steps"] == 1


SMALL = ["--num_steps", "16", "--accelerator", "cpu", "--plain", "--env", "envs.RocketSimPool", "--env.num_arenas", "2"]
SMALL += ["--agent.actor_hidden_sizes", "[16]", "--agent.critic_hidden_sizes", "[16]", "--milestone_interval", "64"]
SMALL += [
    "--callbacks",
    "fabric_rl.callbacks.MilestoneMatches",
    "--callbacks.matches",
    "20",
    "--callbacks.minutes",
    "0.02",
]


@pytest.mark.slow
def test_a_training_keeps_its_best_and_shows_ratings(tmp_path):
    cli([*SMALL, "--total_timesteps", "128", "--runs_dir", str(tmp_path), "--run_id", "r"])
    record = load_run(tmp_path / "r")
    assert [m.rating for m in record.milestones] == [1200, pytest.approx(1200)]  # nobody scores in a second
    assert load_trained("r/best", tmp_path).path.name == "step_000000000064.ckpt"
    assert load_checkpoint(tmp_path / "r" / "best")[1]["steps"] == 64
    found = json.loads((tmp_path / "r" / "ratings.json").read_text())
    meta = json.loads((tmp_path / "r" / "best" / "meta.json").read_text())
    assert meta["milestone"] == "main/000000000064" and meta["steps"] == 64 and meta["fingerprint"]
    assert len(found["ratings"]) == 2 and found["matches"][0]["results"] == "d" * 20


@pytest.mark.slow
def test_in_step_training_is_the_same_to_the_bit_after_a_resume_and_its_metrics_are_logged(
    forks, monkeypatch, tmp_path
):
    forked = SimpleNamespace(**vars(subprocess) | {"Popen": forks.popen})
    monkeypatch.setattr(milestone_matches, "subprocess", forked)
    flags = [*SMALL, "--total_timesteps", "256", "--runs_dir", str(tmp_path), "--callbacks.in_step", "true"]
    cli([*flags, "--checkpoint_every_timesteps", "128", "--run_id", "whole"])
    rows = read_rows(tmp_path / "whole" / "metrics.csv")
    assert [row["rating/elo"] for row in rows] == ["", "", "1200.0", "1200.0"]  # from the second one on
    shutil.copytree(tmp_path / "whole", tmp_path / "again")
    cli([*flags, "--resume", str(tmp_path / "again" / "checkpoints" / "step_000000000128.ckpt")])
    one, other = (load_checkpoint(tmp_path / name)[1] for name in ("whole", "again"))
    assert all(torch.equal(x, other["agent"][name]) for name, x in one["agent"].items())
    judged = [[each["milestone"] for each in state["callbacks"][0]["judged"]] for state in (one, other)]
    assert judged[0] == judged[1] == [f"main/{steps:012d}" for steps in (64, 128)]


@pytest.mark.slow
def test_a_match_that_fails_is_a_warning(fabric, tmp_path):
    state = state_of(fabric, run_folder(tmp_path, "good", "good"))
    matches = MilestoneMatches()
    matches.on_train_start(state)
    (tmp_path / CONFIG).unlink()
    with pytest.warns(RuntimeWarning, match=r"plays no more matches: fabric-rl evaluate: error: .*config\.yaml"):
        matches.on_train_end(state)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        matches.on_iteration_start(state)
    assert matches._process is None


def test_too_few_matches_to_decide_are_a_warning(fabric, tmp_path):
    state = state_of(fabric, run_folder(tmp_path, "good"))
    with pytest.warns(RuntimeWarning, match=r"es: 32 matches cannot decide .* set matches to at least 34"):
        MilestoneMatches(matches=32).on_train_start(state)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        MilestoneMatches(matches=34).on_train_start(state)


@pytest.mark.slow
def test_matches_find_the_modules_of_the_run(tmp_path, monkeypatch):
    (tmp_path / "beside").mkdir()
    (tmp_path / "beside/only_here.py").write_text("HERE = 1")
    monkeypatch.syspath_prepend(tmp_path / "beside")
    monkeypatch.setattr(milestone_matches, "_PLAY", "import only_here; print('found')")
    matches = MilestoneMatches()
    matches._folder = run_folder(tmp_path, "good", "good")
    matches._start("main/000000000002", "main/000000000001", 0).wait()
    assert (matches._folder / milestone_matches._SAID).read_text() == "found\n"


def test_a_run_without_a_folder(fabric):
    with pytest.raises(ValueError, match="this run has no folder"):
        MilestoneMatches().on_train_start(state_of(fabric, None))


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda known: known["played"][0].pop("results"), "does not fit: it lacks 'results'"),
        (lambda known: known["judged"][1].update(milestone="../1"), "'../1' is not the name of a milestone"),
        (lambda known: known.update(best="/tmp/1"), "'/tmp/1' is not the name of a milestone"),
        (lambda known: known["played"][0].update(opponent="main/9"), "MilestoneMatches.* does not fit: .*main/9"),
        (lambda known: known["judged"].append(known["judged"][0]), "MilestoneMatches.* does not fit: .*not connect"),
        (lambda known: known["played"][0].update(team_size=3), "with these team_sizes, does not fit: "),
    ],
)
def test_what_cannot_have_been_saved_is_one_line(fabric, tmp_path, spoil, said):
    match = {"player": "main/2", "opponent": "main/1", "team_size": 0, "better": "player", "results": "wd" * 10}
    judged = [{"milestone": f"main/{number}", "worse": False} for number in (1, 2)]
    known = {"played": [match], "judged": judged, "best": "main/2", "factor": 1.0}
    matches = MilestoneMatches()
    matches.load_state_dict(known)
    matches.on_train_start(state_of(fabric, run_folder(tmp_path)))
    spoil(known)
    again = MilestoneMatches()
    with pytest.raises(ValueError, match=said) as error:
        again.load_state_dict(known)
        again.on_train_start(state_of(fabric, tmp_path))
    assert len(str(error.value).splitlines()) == 1
