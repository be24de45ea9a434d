"""`fabric-rl pbt`: settings near those of a parent, weak members copy strong ones, and an interruption."""

import json

import numpy as np
import pytest

from fabric_rl.commands.pbt import _judge
from fabric_rl.evaluation.settings import ContestSettings
from fabric_rl.sweeps.population import Explorer, PopulationMember
from fabric_rl.sweeps.sweep import SearchSetting
from tests.forks import ROOT

SPACE = [
    SearchSetting("lr", (), 1e-4, 1e-2, log=True),
    SearchSetting("epochs", (), 2, 10),
    SearchSetting("schedule", ("linear", "kl_adaptive")),
    SearchSetting("desired_kl", (), 0.005, 0.05, when={"schedule": ("kl_adaptive",)}),
]


def test_settings_are_drawn_near_those_of_a_parent():
    rng = np.random.default_rng(0)
    first = [Explorer({}, rng).draw(SPACE) for _ in range(200)]
    assert all(1e-4 <= each["lr"] <= 1e-2 and 2 <= each["epochs"] <= 10 for each in first)
    assert 0.4 < np.mean([each["lr"] < 1e-3 for each in first]) < 0.6  # on a logarithmic scale
    assert all(("desired_kl" in each) == (each["schedule"] == "kl_adaptive") for each in first)
    parent = {"lr": 9e-3, "epochs": 2, "schedule": "linear"}
    children = [Explorer(parent, rng).draw(SPACE) for _ in range(200)]
    assert {round(each["lr"], 6) for each in children} == {0.0072, 0.01}  # at most the upper end
    assert {each["epochs"] for each in children} == {2, 3}
    redrawn = [each for each in children if each["schedule"] == "kl_adaptive"]
    assert 0.06 < len(redrawn) / len(children) < 0.2  # one in four, half of them the other choice
    assert len({each["desired_kl"] for each in redrawn}) == len(redrawn)  # the parent had none


def test_a_population_needs_two_members(call):
    status, _, errors = call("pbt", "--config", "configs/cartpole.yaml", "--population", 1)
    assert (status, "--population must be at least 2" in errors) == (2, True)


@pytest.mark.slow
def test_the_loser_of_real_matches_copies_the_winner():
    members = [PopulationMember("shooter", {}), PopulationMember("idle", {})]
    _judge(members, np.random.default_rng(0), ContestSettings(minutes=1.0), 20, None, 1)
    assert [each.copied for each in members] == ["shooter", "shooter"]
    assert members[0].score == -members[1].score > 1


@pytest.mark.slow
def test_generations_continue_from_where_they_stopped(call, tmp_path):
    (tmp_path / "space.yaml").write_text("agent.actor_lr: {low: 1.0e-6, high: 1.0e-2, log: true}\n")
    words = ["pbt", "--config", ROOT / "configs/cartpole.yaml", "--total_timesteps", 1024, "--num_steps", 32]
    words += ["--update_epochs", 1, "--record_minutes", "null"]
    words += ["--space", tmp_path / "space.yaml", "--population", 2, "--folder"]
    assert call(*words, tmp_path / "whole", "--generations", 2)[0] == 0
    assert call(*words, tmp_path / "parts", "--generations", 1)[0] == 0
    assert call(*words, tmp_path / "parts", "--generations", 2)[0] == 0
    whole, parts = ((tmp_path / name / "population.json").read_text() for name in ("whole", "parts"))
    assert whole == parts
    first, second = json.loads(whole)["generations"]
    worse, better = sorted(first, key=lambda each: each["score"])
    assert worse["copied"] == better["run_id"]
    assert [each["parent"] for each in second] == [better["run_id"]] * 2
    place = first.index(worse)
    ratio = second[place]["settings"]["agent.actor_lr"] / better["settings"]["agent.actor_lr"]
    assert round(ratio, 6) in (0.8, 1.25) and second[1 - place]["settings"] == better["settings"]
    status, _, errors = call(*words, tmp_path / "parts", "--generations", 2, "--seed", 1)
    assert (status, "was started with different seed" in errors) == (2, True)


@pytest.mark.slow
def test_a_member_that_fails_copies_another_one(call, tmp_path):
    (tmp_path / "space.yaml").write_text("agent.actor_lr: [1.0e-3, 1.0e+30]\n")
    words = ["pbt", "--config", ROOT / "configs/cartpole.yaml", "--total_timesteps", 1024, "--num_steps", 32]
    words += ["--record_minutes", "null", "--space", tmp_path / "space.yaml", "--population", 3]
    status, told, _ = call(*words, "--seed", 2, "--generations", 2, "--folder", tmp_path / "all")
    first, second = json.loads((tmp_path / "all/population.json").read_text())["generations"]
    failed, trained = ([each for each in first if bool(each["failed"]) is wanted] for wanted in (True, False))
    assert status == 0 and failed and trained
    assert {each["settings"]["agent.actor_lr"] for each in failed} == {1e30}
    assert all("the weights became inf" in each["failed"] and each["score"] is None for each in failed)
    assert f"{failed[0]['run_id']} failed and will copy another member: {failed[0]['failed']}" in told
    names = {each["run_id"] for each in trained}
    assert {each["copied"] for each in first} <= names and {each["parent"] for each in second} <= names
    (tmp_path / "space.yaml").write_text("agent.actor_lr: [1.0e+30, 2.0e+30]\n")
    status, _, errors = call(*words, "--folder", tmp_path / "none")
    assert (status, "error: generation0_member0: the weights became" in errors) == (2, True)


def test_a_member_without_a_return_is_the_worst(tmp_path):
    members = [PopulationMember(name, {}) for name in ("good", "none", "bad")]
    for name, text in (
        ("good", "reward/episode_return\n1,5"),
        ("none", "ppo/loss\n1,5"),
        ("bad", "reward/episode_return\n1,-9"),
    ):
        (tmp_path / name).mkdir()
        (tmp_path / name / "metrics.csv").write_text(f"step,{text}\n")
    _judge(members, np.random.default_rng(0), ContestSettings(runs_dir=str(tmp_path)), 20, "reward/episode_return", 1)
    assert [each.copied for each in members] == ["good", "good", "bad"]
    assert [each.score for each in members] == [5, None, -9]
