"""`fabric-rl tune`: what it tries, and that its file trains."""

import signal
import subprocess
import sys
import time

import pytest
import yaml

from fabric_rl.commands.tune import Candidate, _layouts, _rate, _switches
from tests.command import command
from tests.forks import ROOT, SECONDS, environment

CARTPOLE = ["--config", ROOT / "configs" / "cartpole.yaml"]


def config(**settings):
    env = {"class_path": "envs.RocketSimPool", "init_args": {"num_arenas": 32}}
    return {"num_steps": 128, "devices": 1, "minibatch_size": 1024, "accelerator": "cpu", "env": env} | settings


def test_every_layout_has_the_same_iteration_and_optimizer_step():
    tried = list(_layouts(config()))
    assert {"env.num_arenas": 64, "num_steps": 64} in tried
    for flags in tried:
        ranks, arenas = flags.get("devices", 1), flags.get("env.num_arenas", 32)
        assert ranks * arenas * flags.get("num_steps", 128) == 32 * 128
        assert ranks * flags.get("minibatch_size", 1024) == 1024


def test_an_environment_that_cannot_have_more_arenas_is_given_more_ranks_only():
    env = {"class_path": "my.Env", "init_args": {}}
    assert all(set(flags) == {"devices", "num_steps", "minibatch_size"} for flags in _layouts(config(env=env)))


def test_what_is_on_already_is_not_tried():
    assert {"overlap": True} in _switches(config(precision="32-true"))
    assert list(_switches(config(precision="bf16-mixed", overlap=True, compile=True, num_threads=1))) == []
    pool = {"class_path": "envs.ProcessPool", "init_args": {"num_workers": None}}
    assert {"env.groups": 2} in _switches(config(env=pool))


def test_the_first_iterations_do_not_count(tmp_path):
    rows = "step,speed/overall_steps_per_second\n100,1\n200,2\n300,100\n400,50\n"
    (tmp_path / "metrics.csv").write_text(rows)
    assert _rate(tmp_path / "metrics.csv") == pytest.approx(200 / 3)  # 1 s and 2 s for 100 steps each
    (tmp_path / "metrics.csv").write_text("".join(rows.splitlines(keepends=True)[:2]))
    assert _rate(tmp_path / "metrics.csv") == pytest.approx(1.0)
    assert (Candidate({}).rate, str(Candidate({"overlap": True}))) == (0.0, "--overlap true")


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--minutes", "0"], "--minutes and --seconds must be above 0"),
        (["--agent", "agents.SACLightningAgent"], "--agent: fabric-rl tune measures agents that learn from rollouts"),
        (["--run_id", "x"], "--run_id: fabric-rl tune decides that for every run; leave it out"),
        (["--num_steps", "0"], "--num_steps"),
    ],
)
def test_wrong_flags_are_one_line(capsys, tmp_path, flags, words):
    assert command("tune", *CARTPOLE, "--out", tmp_path / "t.yaml", *flags) == 2
    assert words in capsys.readouterr().err
    assert not (tmp_path / "t.yaml").exists()


def test_no_file_of_others_is_written_over(capsys, tmp_path):
    own = tmp_path / "own.yaml"
    own.write_text("num_steps: 64\n")
    assert command("tune", *CARTPOLE, "--out", own) == 2
    assert f"--out {own}: this file is none that tune has written" in capsys.readouterr().err
    assert own.read_text() == "num_steps: 64\n"
    assert command("tune", *CARTPOLE, "--out", tmp_path / "none" / "t.yaml") == 2
    assert f"there is no folder {tmp_path / 'none'}" in capsys.readouterr().err


@pytest.mark.slow
def test_the_fastest_settings_are_a_configuration_to_train_with(capfd, tmp_path):
    out = tmp_path / "tuned.yaml"
    tried = ["--minutes", "0.2", "--seconds", "0.2", "--out", out]
    assert command("tune", *CARTPOLE, "--num_steps", "64", "--env.num_envs", "2", *tried) == 0
    said = capfd.readouterr().out
    assert "(as it is): " in said and f"written: {out}" in said
    assert set(yaml.safe_load(out.read_text())) <= {"env", "num_steps", "devices", "overlap", "precision", "compile"}
    words = ["--total_timesteps", "256", "--runs_dir", tmp_path, "--run_id", "r", "--plain"]
    again = [sys.executable, "train_fabric.py", *CARTPOLE, "--config", out, *words]
    subprocess.run(again, cwd=ROOT, env=environment(), check=True, timeout=SECONDS, capture_output=True)


@pytest.mark.slow
def test_settings_that_do_not_train_are_one_line(capsys, tmp_path):
    agent = ["--agent.normalize_obs", "true", "--env_id", "NoSuchTask-v0"]
    assert command("tune", *agent, "--out", tmp_path / "t.yaml") == 2
    assert "NoSuchTask" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="SIGINT of one process")
def test_an_interrupt_ends_the_training_first(tmp_path):
    words = ["tune", *map(str, CARTPOLE), "--seconds", "60", "--out", str(tmp_path / "t.yaml")]
    code = f"from fabric_rl.commands.main import main; main({words!r})"
    variables = environment() | {"TMPDIR": str(tmp_path)}
    child = subprocess.Popen([sys.executable, "-c", code], cwd=ROOT, env=variables, stdout=subprocess.DEVNULL)
    deadline = time.monotonic() + SECONDS
    while not list(tmp_path.glob("*/t1/metrics.csv")) and time.monotonic() < deadline:
        time.sleep(0.1)
    child.send_signal(signal.SIGINT)
    assert child.wait(SECONDS) == 130
    assert list(tmp_path.iterdir()) == []
