"""What runs survive: mistakes, damaged files, full disks, lost folders, broken loggers, signals, closed terminals."""

import csv
import json
import os
import re
import shutil
import signal
import sys
import time

import pytest
import torch
import yaml
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from fabric_rl import load_checkpoint
from fabric_rl.commands.runs import compare_runs, show_run
from fabric_rl.commands.runs import runs as list_runs
from fabric_rl.runs.checkpoint import write
from fabric_rl.runs.checkpoint_names import checkpoints

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="os.fork")
CPU = ["--accelerator", "cpu"]
TASK = [
    *CPU,
    "--env_id",
    "CartPole-v1",
    "--num_envs",
    2,
    "--num_steps",
    32,
    "--minibatch_size",
    64,
    "--update_epochs",
    1,
]
FOREVER = ["--total_timesteps", 100_000_000]
PARTS = """
from lightning.fabric.loggers.logger import Logger
from fabric_rl import Callback

class Counting(Callback):
    seen = 0
    def on_iteration_end(self, state):
        self.seen += 1
    def drain_metrics(self):
        return {"game/seen": (float(self.seen), 1.0)}
    def state_dict(self):
        return {"seen": self.seen}
    def load_state_dict(self, state):
        self.seen = state["seen"]

class Other(Callback):
    def load_state_dict(self, state):
        assert state == {}

class Unsavable(Callback):
    def state_dict(self):
        return {"thing": object()}

class Mine(Logger):
    name, version = "mine", 0
    def __init__(self, x: int = 0):
        self.x = x
    def log_metrics(self, metrics, step=None):
        print("MINE", self.x, step, "ppo/entropy" in metrics)
    def log_hyperparams(self, *args, **kwargs):
        pass
    def finalize(self, status):
        print("MINE", status)
"""


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    return tmp_path_factory.mktemp("runs")


@pytest.fixture(scope="module")
def begin(forks, runs):
    """Starts a command line."""
    return lambda *flags, **variables: forks.start(
        *flags, "--runs_dir", runs, files={"more_parts.py": PARTS}, **variables
    )


@pytest.fixture(scope="module")
def end(forks):
    """Waits for a command line; its exit status, output and the lines of its errors."""

    def end(process):
        (status,), out, err = forks.wait([process])
        assert "Traceback" not in err, err
        return status, out, err.splitlines()

    return end


@pytest.fixture(scope="module")
def call(begin, end):
    return lambda *flags, **variables: end(begin(*flags, **variables))


@pytest.fixture(scope="module")
def first(call, runs):
    """Ten iterations with checkpoints every 128 steps and milestones every 256."""
    saving = ["--checkpoint_every_timesteps", 128, "--milestone_interval", 256]
    status, _, err = call(*TASK, "--run_id", "first", "--total_timesteps", 640, *saving)
    assert (status, err) == (0, [])
    return runs / "first"


def copy_of(first, name):
    return shutil.copytree(first, first.parent / name)


def steps_in(run):
    with open(run / "metrics.csv", newline="") as file:
        return [int(row["step"]) for row in csv.DictReader(file)]


def names_in(folder):
    return [path.name for path in checkpoints(folder)]


def weights_of(run):
    return load_checkpoint(run)[1]["agent"]


def equal(one, other):
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


def until(condition, seconds=60):
    began = time.monotonic()
    while not condition():
        assert time.monotonic() - began < seconds
        time.sleep(0.01)


# ---------------------------------------------------------------- going on


def test_going_back_to_a_milestone_leaves_the_later_time_behind(first, call):
    """What was saved after the milestone must not be what the next --resume finds."""
    run = copy_of(first, "back")
    flags = ["--total_timesteps", 384, "--checkpoint_every_timesteps", 64]
    status, out, err = call("--resume", run / "milestones/main/000000000256", *flags)
    assert (status, err) == (0, [])
    assert "newer checkpoints: 3 moved to" in out
    assert f"newer milestones: 1 moved to {run / 'milestones/set_aside'}" in out
    assert [path.name for path in (run / "milestones/set_aside/main").iterdir()] == ["000000000512"]
    assert [path.name for path in (run / "milestones/main").iterdir()] == ["000000000256"]
    assert names_in(run / "checkpoints") == [f"step_{steps:012d}.ckpt" for steps in (256, 320, 384)]
    assert names_in(run / "checkpoints/set_aside") == [f"step_{steps:012d}.ckpt" for steps in (384, 512, 640)]
    assert load_checkpoint(run)[1]["steps"] == 384
    assert steps_in(run) == [64, 128, 192, 256, 320, 384]
    accumulator = EventAccumulator(str(run / "tensorboard"))
    accumulator.Reload()
    assert [event.step for event in accumulator.Scalars("ppo/entropy")] == [64, 128, 192, 256, 320, 384]


def test_a_finished_run_stays_as_it_is(first, call):
    before = {path: path.read_bytes() for path in first.rglob("*") if path.is_file() and path.name != "log.txt"}
    status, out, err = call("--resume", "first")
    assert (status, err) == (0, [])
    assert "nothing to do: it has done its 640 steps" in out
    after = {path: path.read_bytes() for path in first.rglob("*") if path.is_file() and path.name != "log.txt"}
    assert after == before


@pytest.mark.slow
def test_one_process_at_a_time_works_on_a_run(begin, call, end, runs):
    process = begin(*TASK, "--run_id", "mine", *FOREVER, "--checkpoint_every_timesteps", 64)
    until(lambda: names_in(runs / "mine/checkpoints") if (runs / "mine/checkpoints").exists() else False)
    for flags in (["--resume"], ["--force"]):
        status, _, err = call(*TASK, "--run_id", "mine", *flags, "--total_timesteps", 64)
        assert (status, len(err)) == (2, 1)
        assert f"--run_id mine: another process works on {runs / 'mine'}; stop it first" in err[0]
    os.kill(process.pid, signal.SIGKILL)
    assert end(process)[0] == -signal.SIGKILL
    assert call("--run_id", "mine", "--resume", "--total_timesteps", 64)[0] == 0  # nothing is left of its lock


@pytest.mark.parametrize("stale", [False, True])
def test_a_run_that_was_killed_before_its_summary_gets_it(first, call, stale):
    run = copy_of(first, f"unsummed{stale}")
    written = json.loads((run / "summary.json").read_text())
    if stale:  # that of an earlier stop
        (run / "summary.json").write_text(json.dumps(written | {"total_steps": 64, "mean_return": -1.0}))
    else:
        (run / "summary.json").unlink()
    assert call("--resume", run.name)[0] == 0
    again = json.loads((run / "summary.json").read_text())
    assert again.pop("checkpoint") == written.pop("checkpoint").replace("/first/", f"/{run.name}/")
    assert again == written | {"run_id": run.name}


@pytest.mark.parametrize("flag", ["--resume=True", "--resume=yes"])
def test_resume_takes_words_for_true(first, call, flag):
    status, out, _ = call(flag, "--run_id", "first")
    assert status == 0 and "nothing to do" in out


def test_resume_takes_a_word_for_false(first, call):
    status, _, err = call(*TASK, "--resume=false", "--run_id", "first")
    assert status == 2 and "already exists" in err[0]


def test_a_run_killed_before_its_first_checkpoint_begins_again(first, begin, call, end, runs):
    flags = [*TASK, "--run_id", "early", "--total_timesteps", 640, "--checkpoint_every_timesteps", 128]
    flags += ["--milestone_interval", 256]
    process = begin(*flags, *FOREVER, "--checkpoint_every_timesteps", 10**9, "--milestone_interval", 10**9)
    until(lambda: (runs / "early/metrics.csv").exists())
    os.kill(process.pid, signal.SIGKILL)
    assert end(process)[0] == -signal.SIGKILL
    assert names_in(runs / "early/checkpoints") == []
    status, _, err = call("--resume", "early", "--inference", "--total_timesteps", 64)
    assert status == 2 and "holds no checkpoints to play with" in err[0]
    status, out, err = call(*flags, "--resume")
    assert (status, err) == (0, []) and "run early has no checkpoint yet: it begins again" in out
    assert equal(weights_of(runs / "early"), weights_of(first))
    assert steps_in(runs / "early") == list(range(64, 641, 64))


def test_changed_settings_take_effect_and_are_logged(first, call):
    run = copy_of(first, "changed")
    flags = ["--minibatch_size", 32, "--agent.entropy_coef", 0.1, "--total_timesteps", 704]
    status, out, err = call("--run_id", "changed", "--resume", *flags)
    assert (status, err) == (0, [])
    for line in ("minibatch_size: 64 -> 32", "agent.entropy_coef: 0.0 -> 0.1", "total_timesteps: 640 -> 704"):
        assert f"changed: {line}\n" in out and line in (run / "log.txt").read_text()
    timers = json.loads((run / "timers.json").read_text())["children"]
    assert timers["learn"]["children"]["optimizer"]["count"] == 2  # two minibatches
    assert yaml.safe_load((run / "config.yaml").read_text())["minibatch_size"] == 32


def test_another_number_of_environments_is_accepted_and_said_to_be_inexact(first, call):
    run = copy_of(first, "wider")
    flags = ["--num_envs", 3, "--minibatch_size", 96, "--total_timesteps", 800]
    status, _, err = call("--run_id", "wider", "--resume", *flags)
    assert status == 0 and len(err) == 1
    assert "another number of ranks or sub-environments: equivalent, not bit-identical" in err[0]
    assert load_checkpoint(run)[1]["exact"] is False


def test_callbacks_find_their_own_memory(call, runs):
    flags = [*TASK, "--run_id", "memory", "--callbacks+=more_parts.Counting", "--callbacks+=more_parts.Other"]
    assert call(*flags, "--total_timesteps", 128)[0] == 0
    flags[-1], flags[-2] = flags[-2], flags[-1]
    status, _, err = call(*flags, "--resume", "--total_timesteps", 256)
    assert (status, err) == (0, [])
    with open(runs / "memory/metrics.csv", newline="") as file:
        assert [row["game/seen"] for row in csv.DictReader(file)] == ["0.0", "1.0", "2.0", "3.0"]
    accumulator = EventAccumulator(str(runs / "memory/tensorboard"))
    accumulator.Reload()
    assert [event.value for event in accumulator.Scalars("game/seen")] == [0, 1, 2, 3]


def test_checkpoints_by_minutes_say_that_they_are_inexact(call, runs):
    flags = ["--checkpoint_every_minutes", 0.001, "--total_timesteps", 1280, "--keep_checkpoints", 100]
    assert call(*TASK, "--run_id", "minutes", *flags)[0] == 0
    assert len(names_in(runs / "minutes/checkpoints")) > 1
    assert not any(load_checkpoint(path)[1]["exact"] for path in checkpoints(runs / "minutes/checkpoints"))


# ---------------------------------------------------------------- mistakes and damage


def test_force_with_another_mistake_keeps_the_old_run(first, call, runs):
    run = copy_of(first, "kept")
    status, _, err = call(*TASK, "--run_id", "kept", "--force", "--minibatch_size", 9999)
    assert status == 2 and "--minibatch_size 9999" in err[0]
    assert equal(weights_of(run), weights_of(first))
    assert not list(runs.glob(".*"))
    status, _, err = call(*TASK, "--run_id", "kept", "--force", "--total_timesteps", 64)
    assert (status, err) == (0, [])
    assert names_in(run / "checkpoints") == ["step_000000000064.ckpt"]
    assert not list(runs.glob(".*"))


def test_foreign_files_among_the_checkpoints(first, call):
    """One that fabric-rl wrote but no run, one that was renamed, an empty one, a folder, noise."""
    run = copy_of(first, "foreign")
    folder = run / "checkpoints"
    write(folder / "step_000000000900.ckpt", {"agent": {}, "steps": 900})
    shutil.copy(folder / "step_000000000640.ckpt", folder / "step_000000000901.ckpt")
    (folder / "step_000000000902.ckpt").write_bytes(b"")
    (folder / "step_000000000903.ckpt").mkdir()
    (folder / "step_000000000904.ckpt").write_bytes(b"noise" * 1000)
    status, out, err = call("--run_id", "foreign", "--resume", "--total_timesteps", 704)
    assert status == 0 and "after 640 steps" in out and "newer checkpoints: 5 moved" in out
    reasons = [
        "did not write it",
        "Is a directory",
        "did not write it",
        "by its content it is after 640",
        "not that of",
    ]
    assert len(err) == 5 and [text for text, line in zip(reasons, err, strict=True) if text not in line] == []
    assert load_checkpoint(run)[1]["steps"] == 704
    status, _, err = call(*TASK, "--initialize_from", folder / "set_aside/step_000000000900.ckpt")
    assert status == 2 and "is refused: it is not that of a run (it lacks " in err[0]


def test_another_environment_is_set_beside_this_one(first, call):
    task = [*TASK[:3], "Acrobot-v1", *TASK[4:]]
    status, _, err = call(*task, "--run_id", "first", "--resume", "--total_timesteps", 704)
    assert status == 2 and len(err) == 1
    assert "observations Box([-4.8" in err[0] and "actions Discrete(2) there, Discrete(3) here" in err[0]


def test_damaged_runs_are_named_when_the_newest_run_is_looked_for(first, forks, end, tmp_path):
    for path in checkpoints(shutil.copytree(first, tmp_path / "broken") / "checkpoints"):
        path.write_bytes(path.read_bytes()[:-1])
    status, out, err = end(forks.start(*TASK, "--resume", "--total_timesteps", 64, "--runs_dir", tmp_path))
    assert status == 0 and len(err) == 3
    assert "run broken is left out: none of the 3 checkpoints" in out and "a new one begins" in out


def test_a_callback_that_cannot_be_saved_is_refused_before_anything_runs(call, runs):
    status, _, err = call(*TASK, "--run_id", "unsavable", "--callbacks+=more_parts.Unsavable")
    assert status == 2 and len(err) == 1
    assert "--callbacks Unsavable.state_dict(): checkpoint: state['thing'] is a builtins.object" in err[0]
    assert not (runs / "unsavable").exists()


def test_any_logger_by_its_class(call, runs):
    flags = ["--logger", "more_parts.Mine", "--logger.x", 3, "--total_timesteps", 128, "--run_id", "logged"]
    status, out, err = call(*TASK, *flags)
    assert (status, err) == (0, [])
    assert [line for line in out.splitlines() if "MINE" in line] == [
        "MINE 3 64 True",
        "MINE 3 128 True",
        "MINE success",
    ]
    assert steps_in(runs / "logged") == [64, 128]


def test_profile_writes_a_trace(call, runs):
    status, _, err = call(*TASK, "--profile", "--total_timesteps", 320, "--run_id", "profiled")
    assert (status, err) == (0, [])  # torch's own lines about it are silenced
    (trace,) = (runs / "profiled/profile").glob("*.pt.trace.json")
    assert any(
        event.get("name", "").startswith("Optimizer.step") for event in json.loads(trace.read_text())["traceEvents"]
    )


# ---------------------------------------------------------------- disks, folders, signals


@pytest.mark.skipif(sys.platform != "linux", reason="prlimit")
def test_a_disk_that_is_full_at_the_end(begin, end, runs):
    """No file may grow over 50 kB: output can be written, but no checkpoint."""
    import resource

    run = runs / "lost"
    process = begin(*TASK, "--run_id", "lost", *FOREVER, "--checkpoint_every_timesteps", 640)
    until(lambda: names_in(run / "checkpoints"))
    resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (50_000, resource.RLIM_INFINITY))
    until(lambda: "cannot be written" in process.err, 120)
    os.kill(process.pid, signal.SIGTERM)
    status, out, err = end(process)
    kept = checkpoints(run / "checkpoints")[-1]
    assert status == 1
    assert re.search(rf"the last [\d,]+ steps are NOT SAVED .*; the newest good checkpoint is {kept}\n", out)
    assert f"python train_fabric.py --runs_dir {runs} --run_id lost --resume\n" in out
    assert err[-1].startswith("train_fabric.py: error: the last ") and str(kept) in err[-1]


@pytest.mark.skipif(sys.platform != "linux", reason="prlimit")
def test_a_disk_that_is_full_for_a_while(begin, end, runs):
    """No file may grow over 1000 bytes: nothing can be written. Then it can again."""
    import resource

    run = runs / "full"
    process = begin(*TASK, "--run_id", "full", *FOREVER, "--checkpoint_every_timesteps", 640)
    until(lambda: names_in(run / "checkpoints"))
    resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (1000, resource.RLIM_INFINITY))
    until(lambda: "cannot be written" in process.err, 120)
    kept = checkpoints(run / "checkpoints")[-1]
    assert load_checkpoint(kept)[1]["steps"] > 0
    resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    until(lambda: checkpoints(run / "checkpoints")[-1] != kept)
    os.kill(process.pid, signal.SIGTERM)
    status, _, err = end(process)
    assert status == 0
    assert all(line.startswith("train_fabric.py: warning: ") for line in err)
    steps = load_checkpoint(run)[1]["steps"]
    assert steps_in(run) == list(range(64, steps + 1, 64))  # what could not be written came later


def test_a_folder_that_is_deleted_while_the_run_goes_on(begin, end, runs):
    run = runs / "gone"
    process = begin(*TASK, "--run_id", "gone", *FOREVER, "--checkpoint_every_timesteps", 640)
    until(lambda: names_in(run / "checkpoints"))
    run.rename(runs / "elsewhere")
    until(lambda: names_in(run / "checkpoints"))
    os.kill(process.pid, signal.SIGTERM)
    status, _, _ = end(process)
    assert status == 0
    assert load_checkpoint(run)[1]["steps"] == json.loads((run / "summary.json").read_text())["total_steps"]
    for name in ("config.yaml", "environment.json"):
        assert (run / name).read_bytes() == (runs / "elsewhere" / name).read_bytes()
    assert steps_in(run)[-1] == load_checkpoint(run)[1]["steps"]


def test_output_that_nobody_reads_any_more(call, runs):
    status, _, err = call(*TASK, "--run_id", "unread", "--total_timesteps", 640, BROKEN_PIPE=0)
    assert (status, err) == (0, [])
    assert load_checkpoint(runs / "unread")[1]["steps"] == 640


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP])
def test_a_second_signal_ends_at_once(begin, end, runs, number):
    name = f"twice{int(number)}"
    long = ["--num_steps", 200_000, "--minibatch_size", 400_000, "--checkpoint_every_timesteps", 1]
    process = begin(*TASK, "--run_id", name, *FOREVER, *long)
    until(lambda: "rank on cpu" in process.out)
    until(lambda: (runs / name / "config.yaml").exists())
    time.sleep(0.3)  # into the long first iteration
    os.kill(process.pid, number)
    until(lambda: "press Ctrl+C again" in process.out)
    os.kill(process.pid, number)
    status, out, err = end(process)
    assert (status, err) == (130, [])
    assert "steps in" not in out


# ---------------------------------------------------------------- looking at runs


def test_runs_are_listed_shown_and_compared(first, runs, capsys):
    copy_of(first, "second")
    assert list_runs(runs) == 0
    out = capsys.readouterr().out
    assert "first" in out and "finished" in out and "milestone" in out
    assert max(map(len, out.splitlines())) <= 80
    assert show_run("first", runs) == 0
    out = capsys.readouterr().out
    assert "512" in out and "384, 512, 640" in out
    try:
        status = compare_runs(["first", "second"], ["ppo/entropy"], runs_dir=runs)
    except ImportError as error:
        assert "installed; pip install" in str(error)
    else:
        assert status == 0 and "ppo/entropy" in capsys.readouterr().out
        assert (runs / "compare.png").read_bytes()[:4] == b"\x89PNG"
