"""The algorithms in one file: own loop, metrics and settings, exact resume, several seeds; parts that rest."""

import json
import shutil
from pathlib import Path

import pytest
import torch

from fabric_rl import load_checkpoint
from fabric_rl.metrics.metrics_csv import read_metrics
from tests.command import command
from train_fabric import cli

PQN = ["--agent", "examples.pqn.PQNAgent", "--env_id", "CartPole-v1", "--num_envs", "4", "--num_steps", "16"]
PQN += ["--minibatch_size", "32", "--agent.hidden", "16", "--accelerator", "cpu", "--plain"]


def weights_of(folder):
    return load_checkpoint(folder)[1]["agent"]


@pytest.mark.slow
def test_it_resumes_bit_for_bit(tmp_path, capsys):
    run = tmp_path / "run"
    flags = [
        "--runs_dir",
        str(tmp_path),
        "--checkpoint_every_timesteps",
        "64",
        "--keep_checkpoints",
        "9",
        "--exact_resume",
    ]
    cli([*PQN, *flags, "--run_id", "run", "--total_timesteps", "256"])
    shutil.copytree(run, tmp_path / "whole")
    cli(["--resume", str(run / "checkpoints" / "step_000000000128.ckpt"), "--runs_dir", str(tmp_path), "--plain"])
    whole, resumed = weights_of(tmp_path / "whole"), weights_of(run)
    assert whole.keys() == resumed.keys() and all(torch.equal(whole[name], resumed[name]) for name in whole)
    assert (run / "checkpoints" / "set_aside").is_dir()
    metrics = read_metrics(run / "metrics.csv")
    assert {"pqn/loss", "pqn/q", "pqn/learning_rate", "pqn/update_magnitude"} <= metrics.keys()
    assert not [name for name in metrics if name.startswith("ppo/")]


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--signals+=fabric_rl.signals.RND"], "--signals and --estimator are only for PPO, not for"),
        (["--agent.epsilonn", "0.5"], "did you mean epsilon"),
        (["--buffer_size", "100"], "leave out --buffer_size, which only agents that learn with SAC use"),
    ],
)
def test_what_it_does_not_have_is_one_line(flags, message, tmp_path, capsys):
    with pytest.raises(SystemExit):
        cli([*PQN, "--runs_dir", str(tmp_path), *flags])
    assert message in capsys.readouterr().err


@pytest.mark.slow
def test_it_runs_over_seeds(tmp_path, capsys):
    words = [*PQN[:-1], "--total_timesteps", "256", "--runs_dir", tmp_path]
    assert command("seeds", "--seeds", "0..1", "--group", "pqn", *words) == 0
    runs = [tmp_path / f"pqn_seed{seed}" for seed in (0, 1)]
    assert all(json.loads((run / "summary.json").read_text())["total_steps"] == 256 for run in runs)


@pytest.fixture
def trained(forks, tmp_path):
    """A training in a process of its own: its exit status, and its errors."""

    def trained(*words):
        (status,), _, err = forks.wait(
            [forks.start(*words, "--total_timesteps", 512, WORKS_IN=tmp_path, PYTHONPATH=Path.cwd(), RANKS=2)]
        )
        return status, err

    return trained


PLAYERS = ["--devices", "2", "--num_players", "1"]


@pytest.mark.slow
def test_it_collects_while_it_learns(trained, tmp_path):
    """A loop that does not say when it learns would train without `--overlap`, or with players that never improve."""
    for name, more in (("alone", []), ("ahead", ["--overlap"]), ("two", PLAYERS)):
        status, err = trained(*PQN, *more, "--run_id", name)
        assert status == 0, err
    alone, ahead, two = (weights_of(tmp_path / "runs" / name) for name in ("alone", "ahead", "two"))
    assert all(torch.equal(ahead[name], two[name]) for name in ahead)
    assert not all(torch.equal(ahead[name], alone[name]) for name in ahead)


NEVER = "--overlap and --num_players need a training loop that learns inside `with collector.while"
TWICE = "collector.while_learning: enter it once per rollout, and not around next_rollout()"


@pytest.mark.slow
@pytest.mark.parametrize("more", [["--overlap"], PLAYERS])
@pytest.mark.parametrize(("times", "message"), [(0, NEVER), (2, TWICE)])
def test_a_loop_that_does_not_collect_ahead_once_is_told(trained, tmp_path, more, times, message):
    """Otherwise players would never improve, or every second rollout would be lost."""
    source = Path("examples/pqn.py").read_text()
    ahead = "session.collector.while_learning(another=state.goes_on), "
    again = "with session.collector.while_learning(another=True):\n                pass\n            "
    assert f"with {ahead}" in source
    changed = source.replace(ahead, "") if times == 0 else source.replace(f"with {ahead}", f"{again}with {ahead}")
    (tmp_path / "bare.py").write_text(changed)
    status, err = trained("--agent", "bare.PQNAgent", *PQN[2:], *more)
    assert status != 0 and message in err


@pytest.mark.learning
def test_it_learns_cartpole(tmp_path, capsys):
    big = ["--num_envs", "16", "--num_steps", "32", "--minibatch_size", "128", "--agent.hidden", "128"]
    cli([*PQN, *big, "--runs_dir", str(tmp_path), "--run_id", "run", "--total_timesteps", "100_000"])
    assert json.loads((tmp_path / "run" / "summary.json").read_text())["mean_return"] > 300


TD3 = ["--agent", "examples.td3.TD3Agent", "--env_id", "Pendulum-v1", "--num_envs", "1", "--agent.hidden", "64"]
TD3 += ["--agent.lr", "1e-3", "--max_grad_norm", "0", "--accelerator", "cpu", "--plain"]


@pytest.mark.slow
@pytest.mark.parametrize("ranks", [1, 2])
def test_the_policy_of_td3_rests_in_every_second_update(trained, tmp_path, ranks):
    more = ["--buffer_init_steps", 500, "--batch_size", 32, "--train_interval", 4, "--num_update", 3]
    status, err = trained(*TD3, *more, "--devices", ranks, "--run_id", "run")
    assert status == 0, err
    checkpoint = load_checkpoint(tmp_path / "runs/run")[1]
    updates = int(checkpoint["agent"]["updates"])
    assert updates >= 12
    steps = [int(each["step"]) for each in checkpoint["optimizer"]["state"].values()]
    assert sorted(set(steps)) == [-(-updates // 2), updates]
    metrics = read_metrics(tmp_path / "runs/run/metrics.csv")
    assert {"td3/critic_loss", "td3/policy_loss", "td3/td_error", "td3/q"} <= metrics.keys()


@pytest.mark.slow
def test_td3_resumes_bit_for_bit(tmp_path, capsys):
    """The number of updates, which decides who rests, is part of the checkpoint."""
    flags = ["--runs_dir", str(tmp_path), "--exact_resume", "--save_replay_buffer", "true"]
    flags += ["--buffer_init_steps", "32", "--batch_size", "16", "--checkpoint_every_timesteps", "45"]
    cli([*TD3, *flags, "--run_id", "run", "--keep_checkpoints", "9", "--total_timesteps", "90"])
    whole = weights_of(tmp_path / "run")
    middle = sorted((tmp_path / "run/checkpoints").glob("step_*"))[0]
    cli(["--resume", str(middle), "--runs_dir", str(tmp_path), "--plain"])
    resumed = weights_of(tmp_path / "run")
    assert int(whole["updates"]) == 59 and all(torch.equal(whole[name], resumed[name]) for name in whole)


@pytest.mark.learning
def test_td3_learns_pendulum(tmp_path, capsys):
    cli([*TD3, "--runs_dir", str(tmp_path), "--run_id", "run", "--total_timesteps", "10_000"])
    assert json.loads((tmp_path / "run" / "summary.json").read_text())["mean_return"] > -400
