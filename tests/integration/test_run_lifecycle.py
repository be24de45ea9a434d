"""Names, resuming, forcing, initialising and playing: what the command line promises about runs."""

import csv
import json
import re
import shutil
import signal
import sys
import time

import pytest
import torch
import yaml

from fabric_rl import load_checkpoint
from fabric_rl.runs.checkpoint_names import checkpoints
from tests.forks import kill
from tests.integration.launching import until

TASK = ["--env_id", "CartPole-v1", "--num_envs", 2, "--num_steps", 32, "--minibatch_size", 64, "--update_epochs", 1]
CALLBACK = """
from fabric_rl import Callback

class Notify(Callback):
    def __init__(self, every: int = 1):
        self.every, self.seen = every, 0
    def on_iteration_end(self, state):
        self.seen += 1
    def drain_metrics(self):
        return {"game/notified": (float(self.every), 1.0)}
    def state_dict(self):
        return {"seen": self.seen}
    def load_state_dict(self, state):
        self.seen = state["seen"]

from lightning.fabric.loggers.logger import Logger

class Broken(Logger):
    name, version = "broken", 0
    def log_metrics(self, metrics, step=None):
        raise ConnectionError("the service is down")
    def log_hyperparams(self, *args, **kwargs):
        pass
"""


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    return tmp_path_factory.mktemp("runs")


@pytest.fixture(scope="module")
def call(forks, runs):
    """Runs the command line; returns exit status, standard output, and the lines of standard error."""

    def call(*flags):
        (status,), out, err = forks.wait([forks.start("--runs_dir", runs, "--plain", "--accelerator", "cpu", *flags)])
        return status, out, err.splitlines()

    return call


@pytest.fixture(scope="module")
def first(call, runs):
    """A run of ten iterations with checkpoints every 128 steps and milestones every 256."""
    status, _, err = call(
        *TASK,
        "--run_id",
        "a",
        "--total_timesteps",
        640,
        "--checkpoint_every_timesteps",
        128,
        "--milestone_interval",
        256,
    )
    assert (status, err) == (0, [])
    return runs / "a"


def copy_of(first, name):
    return shutil.copytree(first, first.parent / name)


def test_what_a_run_leaves_behind(first):
    assert [path.name for path in checkpoints(first / "checkpoints")] == [
        f"step_{steps:012d}.ckpt" for steps in (384, 512, 640)
    ]
    assert sorted(path.name for path in (first / "milestones/main").iterdir()) == ["000000000256", "000000000512"]
    meta = json.loads((first / "milestones/main/000000000256/meta.json").read_text())
    assert (meta["steps"], meta["phase"]) == (256, "main")
    assert 0 < meta["entropy"] < 0.7 and meta["mean_reward"] > 5 and meta["kl"] is not None
    assert load_checkpoint(first / "milestones/main/000000000256")[1]["steps"] == 256
    settings = yaml.safe_load((first / "config.yaml").read_text())
    assert settings["total_timesteps"] == 640 and not settings.get("run_id") and not settings["resume"]
    assert "torch" in json.loads((first / "environment.json").read_text())["packages"]
    timers = json.loads((first / "timers.json").read_text())["children"]
    assert timers["learn"]["children"]["forward"]["count"] == 10
    assert timers["collect"]["children"]["policy"]["count"] == 320
    assert "checkpoint" in (first / "log.txt").read_text()
    with open(first / "metrics.csv", newline="") as file:
        assert [row["step"] for row in csv.DictReader(file)] == [str(64 * i) for i in range(1, 11)]


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--run_id", "a"], "--run_id a: .* already exists; choose another run id, go on with it .* or delete it"),
        (["--run_id", "b", "--resume"], "--run_id b: no such run to resume; there are a"),
        (["--run_id", "a", "--resume", "--force"], "--force deletes the run that --resume goes on with"),
        (["--force"], "--force needs --run_id"),
        (["--resume", "--initialize_from", "a"], "--resume takes weights, optimizer and counters"),
        (["--inference"], "--inference needs weights"),
        (["--initialize_from", "nowhere"], "nowhere: no such checkpoint, run or milestone"),
        (
            ["--run_id", "a", "--resume", "--agent.actor_hidden_sizes", "[32]"],
            r"actor.0.weight: \[64, 4\] in the checkp",
        ),
        (["--keep_checkpoints", 0], "--keep_checkpoints must be at least 1"),
        (["--checkpoint_every_minutes", -1], "--checkpoint_every_minutes must be positive"),
    ],
)
def test_mistakes_are_one_line(first, call, runs, flags, message):
    before = sorted(path.name for path in runs.iterdir())
    status, _, err = call(*TASK, "--total_timesteps", 64, *flags)
    assert status == 2 and len(err) == 1
    assert re.search(message, err[0])
    assert sorted(path.name for path in runs.iterdir()) == before
    assert yaml.safe_load((first / "config.yaml").read_text())["total_timesteps"] == 640


def test_resumed_with_its_own_settings_and_changes(first, call):
    run = copy_of(first, "longer")
    flags = ["--run_id", "longer", "--resume", "--total_timesteps", 768, "--agent.actor_lr", 5e-4]
    status, out, err = call(*flags)
    assert (status, err) == (0, [])
    assert "resuming run longer after 640 steps" in out
    assert "changed: total_timesteps: 640 -> 768\n" in out and "changed: agent.actor_lr: 0.001 -> 0.0005\n" in out
    assert "changed: agent.actor_lr" in (run / "log.txt").read_text()
    with open(run / "metrics.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["step"] for row in rows] == [str(64 * i) for i in range(1, 13)]
    assert float(rows[-1]["ppo/learning_rate"]) == pytest.approx(5e-4 / 12)
    status, out, err = call(*flags)
    assert (status, err) == (0, []) and "nothing to do: it has done its 768 steps" in out


def test_damaged_checkpoints(first, call):
    run = copy_of(first, "damaged")
    files = checkpoints(run / "checkpoints")
    files[-1].write_bytes(files[-1].read_bytes()[:1000])
    content = bytearray(files[-2].read_bytes())
    content[len(content) // 2] ^= 1
    files[-2].write_bytes(content)
    status, out, err = call("--run_id", "damaged", "--resume")
    assert status == 0 and "after 384 steps" in out
    assert len(err) == 2 and "cut short" in err[0] and "its checksum is wrong" in err[1]
    log = (run / "log.txt").read_text()
    assert "WARNING checkpoint" in log and "cut short" in log and "its checksum is wrong" in log
    with open(run / "metrics.csv", newline="") as file:
        assert [row["step"] for row in csv.DictReader(file)] == [str(64 * i) for i in range(1, 11)]
    for file in checkpoints(run / "checkpoints"):
        torch.save({"agent": {}}, file)
    status, _, err = call("--run_id", "damaged", "--resume")
    assert status == 2 and "none of the 3 checkpoints" in err[-1]


def test_weights_of_another_run(first, call, runs):
    status, out, err = call(*TASK, "--initialize_from", "a", "--run_id", "child", "--total_timesteps", 64)
    assert (status, err) == (0, []) and "run child begins with the weights of" in out
    assert load_checkpoint(runs / "child")[1]["steps"] == 64


def test_playing_changes_nothing(first, call, runs):
    before = {path: path.read_bytes() for path in first.rglob("*") if path.is_file()}
    others = set(runs.iterdir())
    status, _, err = call("--run_id", "a", "--resume", "--inference", "--total_timesteps", 128)
    assert (status, err) == (0, [])
    assert {path: path.read_bytes() for path in first.rglob("*") if path.is_file()} == before
    (played,) = set(runs.iterdir()) - others
    assert checkpoints(played / "checkpoints") == []
    assert json.loads((played / "summary.json").read_text())["total_steps"] == 128


def test_the_newest_run_that_fits_goes_on(first, call, tmp_path):
    shutil.copytree(first, tmp_path / "fits")
    time.sleep(0.01)
    other = [*TASK[2:], "--env_id", "Acrobot-v1", "--total_timesteps", 64, "--run_id", "other"]
    assert call(*other, "--runs_dir", tmp_path)[0] == 0
    status, out, err = call(*TASK, "--resume", "--total_timesteps", 704, "--runs_dir", tmp_path)
    assert (status, err) == (0, [])
    assert "--resume: run other does not fit" in out
    assert "resuming run fits after 640 steps" in out


def test_force_starts_again(first, call):
    run = copy_of(first, "forced")
    status, _, err = call(*TASK, "--run_id", "forced", "--force", "--total_timesteps", 64)
    assert (status, err) == (0, [])
    assert [path.name for path in checkpoints(run / "checkpoints")] == ["step_000000000064.ckpt"]
    assert not (run / "milestones").exists()


def test_the_configuration_runs_again_as_it_is(first, call, runs):
    status, _, err = call("--config", first / "config.yaml", "--run_id", "again")
    assert (status, err) == (0, [])
    again, before = (load_checkpoint(run)[1]["agent"] for run in (runs / "again", first))
    assert all(torch.equal(again[name], before[name]) for name in before)


def test_callbacks_and_a_logger_that_fails(forks, runs, tmp_path):
    (tmp_path / "more.yaml").write_text("callbacks: [{class_path: my_parts.Notify, init_args: {every: 7}}]\n")
    flags = [*TASK, "--config", tmp_path / "more.yaml", "--logger", "my_parts.Broken", "--total_timesteps", 128]
    here = ["--runs_dir", runs, "--run_id", "parts", "--plain", "--accelerator", "cpu"]
    statuses, _, err = forks.wait([forks.start(*flags, *here, files={"my_parts.py": CALLBACK})])
    assert statuses == [0], err
    assert err.count("\n") == 1 and "Broken failed and is left out" in err
    with open(runs / "parts/metrics.csv", newline="") as file:
        assert [row["game/notified"] for row in csv.DictReader(file)] == ["7.0", "7.0"]
    assert load_checkpoint(runs / "parts")[1]["callbacks"][0] == {"seen": 2}
    assert "Broken failed" in (runs / "parts/log.txt").read_text()


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGUSR1])
def test_a_signal_saves_and_ends_in_order(forks, call, runs, number):
    name = f"signal{int(number)}"
    flags = [*TASK, "--total_timesteps", 10_000_000, "--runs_dir", runs, "--run_id", name, "--accelerator", "cpu"]
    process = forks.start(*flags)
    until(lambda: re.search(r"^ +\d+/", process.out, re.MULTILINE))
    kill(process.pid, number)
    statuses, _, err = forks.wait([process])
    assert statuses == [0], err
    steps = load_checkpoint(runs / name)[1]["steps"]
    status, out, _ = call("--run_id", name, "--resume", "--total_timesteps", steps + 64)
    assert status == 0
    assert "(equivalent to a run without breaks, not bit-identical)" in out
