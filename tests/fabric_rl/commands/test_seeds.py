"""`fabric-rl seeds`: real trainings, which are killed, locked and resumed."""

import csv
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time

import pytest
import yaml
from filelock import FileLock

from fabric_rl.runs.records import LOCK, is_training, list_runs
from fabric_rl.sweeps.train_processes import TrainProcesses, seeds_of
from tests.command import command
from tests.forks import ROOT, SECONDS, environment

CARTPOLE = ["--config", ROOT / "configs" / "cartpole.yaml", "--num_steps", "32", "--record_minutes", "null"]
CARTPOLE += ["--update_epochs", "4"]


def test_seeds_are_numbers_and_ranges():
    assert seeds_of("0..3") == [0, 1, 2, 3]
    assert seeds_of("7, 0..2,1") == [7, 0, 1, 2]


@pytest.mark.parametrize(
    "text", ["", "a", "1..", "..2", "-1", "3..1", "1,,2", "0.5", "0..9999999999", "4294967296", "0..9999,10000"]
)
def test_seeds_that_are_none(text):
    with pytest.raises(ValueError, match=r"^--seeds"):
        seeds_of(text)


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--total_timestep", "9"], "--total_timestep: no such setting; did you mean --total_timesteps?"),
        (["--seed", "1"], "leave out --seed, which fabric-rl seeds sets for every run"),
        (["--run_id=x", "--resume"], "leave out --run_id, --resume, which fabric-rl seeds sets for every run"),
        (["--seeds", "x"], "--seeds x: write numbers as in 0..4 or 0,1,5..7"),
        (["--group", "a/b"], "--group a/b must be a plain name, not a path, and must not begin with a dot"),
        (["--parallel", "0"], "--parallel must be at least 1, got 0"),
        (
            ["--runs_dir", ROOT / "README.md"],
            f"--runs_dir {ROOT / 'README.md'}: the folder cannot be created (File exists); choose another",
        ),
    ],
)
def test_wrong_flags_are_one_line_before_any_training(capsys, tmp_path, flags, words):
    assert command("seeds", *CARTPOLE, "--runs_dir", tmp_path / "runs", *flags) == 2
    assert capsys.readouterr().err == f"fabric-rl seeds: error: {words}\n"
    assert not (tmp_path / "runs").exists()


def test_without_a_configuration_a_group_needs_a_name(capsys):
    assert command("seeds", "--env_id", "CartPole-v1") == 2
    assert capsys.readouterr().err.startswith("fabric-rl seeds: error: --group: set a name for these runs")
    assert command("seeds", "--config", "nowhere.yaml") == 2
    assert "--config nowhere.yaml: no such file; presets: acrobot, " in capsys.readouterr().err


@pytest.mark.slow
def test_the_success_of_each_seed_is_told(capsys, tmp_path):
    words = ["--env_id", "tests.envs.adapters.tasks.Reported", "--num_steps", "16", "--minibatch_size", "32"]
    words += ["--total_timesteps", "256", "--seeds", "0..1", "--runs_dir", tmp_path, "--group", "g"]
    assert command("seeds", *words) == 0
    told = re.findall(
        r"g_seed\d: 256 steps, mean return .* \(last 10 %\), success (.*), .* s\n", capsys.readouterr().out
    )
    ends = [json.loads((tmp_path / f"g_seed{seed}" / "summary.json").read_text())["success"]["end"] for seed in (0, 1)]
    assert sorted(map(float, told)) == pytest.approx(sorted(ends), rel=1e-3)


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="this system cannot give a process cores")
def test_the_ranks_of_a_training_divide_its_cores(monkeypatch, tmp_path):
    """Each rank computed with the threads of all of them before: two on two cores learned at half of their speed."""
    for variable in ("OMP_NUM_THREADS", "LOCAL_WORLD_SIZE"):  # the tests themselves share the cores
        monkeypatch.delenv(variable, raising=False)
    cores = len(os.sched_getaffinity(0))
    words = [*map(str, CARTPOLE), "--devices", str(cores), "--total_timesteps", "128", "--plain"]
    record, why = TrainProcesses(1, tmp_path).train("run", words)
    assert record is not None, why
    said = (tmp_path / "run/log.txt").read_text()
    assert re.search(rf"{cores} ranks? on cpu, 1 of {cores} cores each$", said, re.MULTILINE)
    assert yaml.safe_load((tmp_path / "run/config.yaml").read_text())["num_threads"] == 1


def test_more_trainings_than_cores_are_said(capsys, tmp_path):
    TrainProcesses(10_000, tmp_path)
    assert capsys.readouterr().out.startswith("--parallel 10000: more runs than cores (")


@pytest.mark.slow
def test_a_seed_that_fails_stops_no_other_and_what_is_done_stays(capsys, tmp_path):
    runs = tmp_path / "runs"
    words = ["seeds", *CARTPOLE, "--total_timesteps", 256, "--seeds", "0,3", "--runs_dir", runs, "--group", "few"]
    runs.mkdir()
    (runs / "few_cartpole_seed0").write_text("in the way")
    assert command(*words) == 1
    out = capsys.readouterr().out
    assert "few_cartpole_seed3: 256 steps, mean return" in out and "1 of 2 runs of group few are trained" in out
    failed = out.splitlines()[-2]
    assert failed.startswith("few_cartpole_seed0 failed: --run_id few_cartpole_seed0: ")
    assert "full output in" in failed and (runs / ".output" / "few_cartpole_seed0.txt").exists()
    (run,) = list_runs(runs)
    assert (run.name, run.status, run.group) == ("few_cartpole_seed3", "finished", "few")
    settings = (run.folder / "config.yaml").read_text()
    assert "\nseed: 3\n" in settings and "\nnum_threads: " in settings
    changed = run.changed
    assert command("seeds", *words[1:-1], "few", "--seeds", "3") == 0
    assert capsys.readouterr().out == "1 of 1 runs are already trained\n1 of 1 runs of group few are trained\n"
    assert list_runs(runs)[0].changed == changed
    assert command(*words, "--gamma", "0.9", "--seeds", "3") == 2
    assert "already exists with other settings (gamma: 0.99 -> 0.9); choose another --group" in capsys.readouterr().err
    assert command(*(f"{runs}/" if word is runs else word for word in words), "--seeds", "3") == 0
    assert command(*words, "--initialize_from", run.folder, "--seeds", "3") == 2
    assert "other settings (the weights of --initialize_from)" in capsys.readouterr().err
    assert command("runs", "--runs_dir", runs) == 0
    assert "Group" in (table := capsys.readouterr().out) and " few " in table


@pytest.mark.slow
def test_a_run_that_a_callback_has_ended_is_told(capsys, tmp_path):
    words = [*CARTPOLE, "--total_timesteps", 12_800, "--seeds", "0", "--runs_dir", tmp_path, "--group", "g"]
    words += ["--callbacks+=fabric_rl.callbacks.StopAfter", "--callbacks.minutes", "1e-9"]
    for _ in range(2):
        assert command("seeds", *words) == 0
        out = capsys.readouterr().out
        assert "g_cartpole_seed0 was stopped early by StopAfter after 128 of 12,800 steps\n" in out
        assert "1 of 1 runs of group g are trained, 1 stopped early\n" in out


def iterations(run):
    """Steps of the rows of a run so far, each once."""
    try:
        with open(run / "metrics.csv", newline="") as file:
            return [int(row["step"]) for row in csv.DictReader(file)]
    except (FileNotFoundError, ValueError, TypeError):
        return []


WAITS = """
import time
from pathlib import Path
import fabric_rl

class Waits(fabric_rl.Callback):
    def on_iteration_end(self, state):
        while state.iteration == 10 and not state.stop and not Path("go").exists():
            time.sleep(0.05)
"""
"""A run that is in the middle until it is stopped, or the file `go` is there."""


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_children_end_with_the_command_and_the_next_call_goes_on(tmp_path, number):
    runs = tmp_path / "runs"
    (tmp_path / "waits.py").write_text(WAITS)
    words = [*CARTPOLE, "--total_timesteps", 3_200, "--seeds", "0..2", "--parallel", 2, "--runs_dir", runs]
    words += ["--callbacks+=waits.Waits"]
    code = "from fabric_rl.commands.main import main; main()"
    start = [sys.executable, "-c", code, "seeds", *map(str, words)]
    first = subprocess.Popen(start, env=environment(), cwd=tmp_path, stdout=subprocess.PIPE, text=True)
    began, two = time.monotonic(), [runs / f"cartpole_seed{seed}" for seed in (0, 1)]
    while not all(map(iterations, two)):
        assert time.monotonic() - began < SECONDS and first.poll() is None
        time.sleep(0.1)
    os.kill(first.pid, number)
    out, _ = first.communicate(timeout=SECONDS)
    if number == signal.SIGINT:
        assert first.returncode == 130 and out.endswith("stopped; run the same command to continue\n")
        assert not any(map(is_training, two))
    while any(map(is_training, two)):
        assert time.monotonic() - began < 2 * SECONDS
        time.sleep(0.1)
    assert not (runs / "cartpole_seed2").exists()
    stopped = [json.loads((run / "summary.json").read_text()) for run in two]
    assert [each["stopped_by"] for each in stopped] == ["SIGTERM", "SIGTERM"]
    (tmp_path / "go").touch()
    again = subprocess.run(start, env=environment(), cwd=tmp_path, capture_output=True, text=True, timeout=3 * SECONDS)
    assert (again.returncode, again.stderr) == (0, "") and "3 of 3 runs of group cartpole" in again.stdout
    assert [run.status for run in list_runs(runs)] == ["finished"] * 3
    for run in two:
        assert iterations(run) == list(range(128, 3_201, 128))


@pytest.mark.slow
def test_a_run_is_trained_by_one_command_at_a_time(capsys, tmp_path):
    """The lock is what another command holds as long as it trains the run."""
    runs = tmp_path / "runs"
    (runs / ".output").mkdir(parents=True)
    words = ["seeds", *CARTPOLE, "--total_timesteps", 128, "--seeds", "0,1", "--runs_dir", runs, "--parallel", 1]
    said = runs / ".output" / "cartpole_seed0.txt"
    said.write_text("of the other command")
    with FileLock(said.with_suffix(".lock")):
        assert command(*words) == 1
    out = capsys.readouterr().out
    assert "cartpole_seed0: another process is training it\ncartpole_seed1: 128 steps" in out
    assert "cartpole_seed0 is not trained: another process is training it\n1 of 2 runs" in out
    assert said.read_text() == "of the other command" and not (runs / "cartpole_seed0").exists()


def test_a_run_that_another_process_has_just_finished_is_not_begun_again(tmp_path):
    folder = tmp_path / "one"
    folder.mkdir()

    def finish():
        (folder / "summary.json").write_text(json.dumps({"stopped_by": "a callback"}))

    with FileLock(folder / LOCK):
        timer = threading.Timer(0.5, finish)
        timer.start()
        record, reason = TrainProcesses(1, tmp_path).train("one", ["--no_such_flag"])
        timer.join()
    assert record is not None and reason == ""
