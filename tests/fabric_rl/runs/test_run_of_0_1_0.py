"""A run that version 0.1.0 has saved is played with, gone on with and looked at by this one; so is its own agent."""

import csv
import shutil
from pathlib import Path

import numpy as np
import pytest

from fabric_rl import load_checkpoint, load_trained

FIXTURE = Path(__file__).parents[2] / "fixtures/run_of_0_1_0"
COUNTS = ("step", "phase/number", "phase/steps", "ppo/epochs")


@pytest.fixture
def runs(tmp_path):
    shutil.copytree(FIXTURE / "tiny", tmp_path / "tiny")
    return tmp_path


@pytest.fixture
def call(forks, runs):
    def call(*words, program="train_fabric.py"):
        (status,), out, err = forks.wait([forks.start(*words, "--runs_dir", runs, program=program)])
        assert status == 0, err
        return out

    return call


def rows_of(path):
    with open(path, newline="") as file:
        return [{name: float(cell) for name, cell in row.items() if cell} for row in csv.DictReader(file)]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "steps"), [("tiny", 2048), ("school_1v1", None)])
def test_its_agent_plays(runs, name, steps):
    trained = load_trained(name, runs)
    pool = trained.env(seed=0)
    choose = trained.choose(pool.single_observation_space, pool.single_action_space)
    obs, _ = pool.reset()
    actions = choose(obs, np.ones(len(obs), bool))
    assert actions.shape == (pool.num_envs,) and all(map(pool.single_action_space.contains, actions))
    assert steps is None or trained.path.name == f"step_{steps:012d}.ckpt"
    pool.close()


def assert_same(rows, *recorded):
    """Counts to the bit; the rest as recorded on the processor that is most like this one (AMD or Intel)."""
    expected = min(recorded, key=lambda other: abs(rows[-1]["ppo/loss"] - other[-1]["ppo/loss"]))
    assert len(rows) == len(expected)
    for row, other in zip(rows, expected, strict=True):
        assert {name: row[name] for name in COUNTS} == {name: other[name] for name in COUNTS}
        assert {name: row.get(name) for name in other} == pytest.approx(other, rel=1e-3, abs=1e-6)


@pytest.mark.slow
def test_it_goes_on_as_that_version_did(call, runs):
    out = call("--run_id", "tiny", "--resume", "--total_timesteps", 3072)
    assert "resuming run tiny after 2,048 steps" in out
    recorded = rows_of(FIXTURE / "metrics.csv"), rows_of(FIXTURE / "metrics_intel.csv")
    assert_same(rows_of(runs / "tiny/metrics.csv"), *recorded)
    assert load_checkpoint(runs / "tiny")[1]["exact"] is True


@pytest.mark.slow
def test_its_milestones_are_listed_and_gone_on_from(call, runs):
    out = call("runs", "show", "tiny", program="fabric-rl")
    assert [steps for steps in ("1,024", "2,048") if f"{steps} " in out] == ["1,024", "2,048"]
    assert out.count("Phase2-Second") >= 2
    out = call("--resume", runs / "tiny/milestones/Phase2-Second/000000001024")
    assert "resuming run tiny after 1,024 steps" in out
    recorded = rows_of(FIXTURE / "metrics.csv")[:8], rows_of(FIXTURE / "metrics_intel_milestone.csv")
    assert_same(rows_of(runs / "tiny/metrics.csv"), *recorded)


@pytest.mark.slow
def test_a_new_run_begins_with_its_weights(call, runs):
    small = ["--total_timesteps", 256, "--env.num_arenas", 2, "--accelerator", "cpu"]
    call("--config", runs / "tiny/config.yaml", "--initialize_from", runs / "tiny", "--run_id", "next", *small)
    assert load_checkpoint(runs / "next")[1]["steps"] < 1024
