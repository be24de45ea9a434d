"""`fabric-rl sweep`: the space it reads, what it ends early, and real trials that break, are killed and go on."""

import os
import signal
import subprocess
import sys
import time

import optuna
import pytest
import yaml
from optuna.storages.journal import JournalFileBackend, JournalFileOpenLock

from fabric_rl.commands.seeds import training_settings
from fabric_rl.runs.records import list_runs
from fabric_rl.sweeps.sweep import SearchSetting, Sweep, flags_of, is_worse, read_space
from fabric_rl.sweeps.train_processes import TrainProcesses
from tests.command import command
from tests.forks import ROOT, SECONDS, environment

FLAGS = ["--config", str(ROOT / "configs" / "cartpole.yaml"), "--total_timesteps", "256", "--num_steps", "32"]
FLAGS += ["--record_minutes", "null"]


def space_file(tmp_path, text):
    path = tmp_path / "space.yaml"
    path.write_text(text)
    return path


@pytest.mark.slow
def test_a_space_of_choices_ranges_and_conditions(tmp_path):
    text = """
agent.actor_lr: {low: 1e-4, high: 0.01, log: true}
update_epochs: {low: 2, high: 10}
agent.actor_hidden_sizes: [[16], [32, 32]]
target_kl: [null, 0.02]
lr_schedule: [linear, kl_adaptive, cosine]
desired_kl: {low: 0.005, high: 0.05, when: {lr_schedule: kl_adaptive}}
"""
    space = read_space(space_file(tmp_path, text), lambda flags: training_settings([*FLAGS, *flags], "sweep"))
    assert space[0] == SearchSetting("agent.actor_lr", (), 1e-4, 0.01, log=True)
    assert space[1] == SearchSetting("update_epochs", (), 2, 10)
    assert space[2].choices == ("[16]", "[32, 32]") and space[3].choices == (None, 0.02)
    tried = {"agent.actor_lr": 0.001, "update_epochs": 3, "agent.actor_hidden_sizes": "[16]", "target_kl": None}
    for schedule, more in (("cosine", {}), ("kl_adaptive", {"desired_kl": 0.01})):
        trial, chosen = optuna.trial.FixedTrial(tried | {"lr_schedule": schedule, "desired_kl": 0.01}), {}
        for setting in space:
            chosen |= setting.draw(trial, chosen)
        assert chosen == tried | {"lr_schedule": schedule} | more and type(chosen["update_epochs"]) is int
    assert flags_of(tried) == [
        *("--agent.actor_lr=0.001", "--update_epochs=3", "--agent.actor_hidden_sizes=[16]", "--target_kl=null")
    ]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("gamm: [0.9, 0.99]", "--gamm: no such setting; did you mean --gamma?"),
        ("agent.actor_lrr: [0.1]", "--agent.actor_lrr: PPOLightningAgent has no such setting; did you mean actor_lr?"),
        ("gamma: [0.9, 2.0]", "--gamma must be a number from 0 to 1, got 2.0"),
        (
            "lr_schedule: [linear, bumpy]",
            "--lr_schedule: expected one of constant, linear, cosine, kl_adaptive, got bumpy",
        ),
        ("seed: [1, 2]", "leave out --seed, which fabric-rl sweep sets for every run"),
        ("gamma: 0.9", "gamma: write choices as [1, 2, 3], or a range as {low: 1.0e-4, high: 0.01, log: true}"),
        ("gamma: {low: 0.9}", "gamma: write choices as [1, 2, 3], or a range"),
        ("gamma: []", "gamma: write choices as [1, 2, 3], or a range"),
        ("gamma: {low: 0.99, high: 0.9}", "gamma: low must be below high, and above 0 with log"),
        ("ent_coef: {low: 0, high: 0.1, log: true}", "ent_coef: low must be below high, and above 0 with log"),
        ("gamma: {low: a, high: b}", "gamma: low and high must be numbers up to 2**53, got a"),
        ("gamma: {low: 0.9, high: [1]}", "gamma: low and high must be numbers up to 2**53, got [1]"),
        ("gamma: {low: 0.9, high: .inf}", "gamma: low and high must be numbers up to 2**53, got inf"),
        ("total_timesteps: {low: 1, high: 9007199254740993}", "numbers up to 2**53, got 9007199254740993"),
        ("gamma: {low: true, high: 2}", "gamma: low and high must be numbers up to 2**53, got True"),
        ("gamma: {choices: [0.9], low: 0.9, high: 0.99}", "gamma: write choices as [1, 2, 3], or a range"),
        ("gamma: {choices: [0.9], when: 3}", "gamma: write when as {lr_schedule: kl_adaptive}, or with a list of"),
        ("lr_schedule: [linear]\ngamma: {choices: [0.9], when: {lr_schedule: []}}", "gamma: write when as {"),
        ("group: [a, b]", "leave out group, which fabric-rl sweep sets for every run"),
        ("runs_dir: [a, b]", "leave out runs_dir, which fabric-rl sweep sets for every run"),
        ("config: [a.yaml, b.yaml]", "leave out config, which fabric-rl sweep sets for every run"),
        ("run_id: [a, b]", "leave out --run_id, which fabric-rl sweep sets for every run"),
        ("help: [1, 2]", "help"),
        ("gamma: {low: 0.9, high: 0.99, lag: true}", "gamma: expected choices, low, high, log or when, got lag"),
        ("gamma: {choices: [0.9], when: {seed: 1}}", "gamma: when refers to seed, which must come before it"),
        ("", "list settings by their flag names, such as gamma: [0.98, 0.99]"),
        ("a: [", "this is not a YAML file of settings"),
    ],
)
def test_a_wrong_space_is_one_line_before_any_training(tmp_path, capsys, text, words):
    path = space_file(tmp_path, text)
    assert command("sweep", *FLAGS, "--space", path, "--folder", tmp_path / "sweep") == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"fabric-rl sweep: error: --space {path}") and words in line
    assert not (tmp_path / "sweep").exists()


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--space", "nowhere.yaml"], "nowhere.yaml: there is no such file"),
        (["--runs_dir", "x"], "--runs_dir, --group: a sweep keeps its runs in its --folder; leave these flags out"),
        (["--parallel", "0"], "--parallel must be at least 1, got 0"),
        (["--trials", "0"], "--trials must be at least 1, got 0"),
        (["--trials", "-1"], "--trials must be at least 1, got -1"),
        (["--config", "nowhere.yaml"], "--config nowhere.yaml: no such file; presets: acrobot, "),
    ],
)
def test_wrong_flags_of_a_sweep(tmp_path, capsys, flags, words):
    path = space_file(tmp_path, "gamma: [0.9, 0.99]")
    assert command("sweep", *FLAGS, "--folder", tmp_path / "sweep", "--space", path, *flags) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("fabric-rl sweep: error: ") and words in line
    assert not (tmp_path / "sweep").exists()
    assert command("sweep", *FLAGS, "--folder", path, "--space", path) == 2
    assert f"--folder {path}: the folder cannot be created (File exists)" in capsys.readouterr().err


def test_a_trial_is_worse_by_an_interval_of_paired_differences():
    best = [[1.0, 10.0], [2.0, 20.0], [3.0, 30.0]]
    assert not is_worse([[0.0, 0.0]], best)  # one seed has no interval
    # Differences -5 and -7: mean -6, s / sqrt(2) = 1; six looks: t(1 - 0.05 / 6) = 38.19.
    assert not is_worse([[0.0, 5.0], [0.0, 13.0]], best)
    assert not is_worse([[0.0, 5.0], [0.0, 14.73]], best)  # -5 and -5.27, s / sqrt(2) = 0.135: the upper end is 0.02
    assert is_worse([[0.0, 5.0], [0.0, 14.74]], best)  # -5 and -5.26: -0.16
    assert is_worse([[0.0, 15.0], [0.0, 25.26]], best, sign=-1) and not is_worse([[0.0, 15.0], [0.0, 25.26]], best)


def test_trials_are_compared_at_the_same_part_of_their_steps():
    best = [[10.0, 0.0], [2.0, 0.0]]
    assert is_worse([[0.0, 9.0], [-8.0, None]], best)  # by the first look; the second is not there yet
    assert not is_worse([[0.0, 9.0], [None, None]], best)
    assert not is_worse([[0.0, -9.0], [-8.0, None]], [[None, 0.0], [None, 0.0]])  # whose metric began later
    assert is_worse([[None, 0.0], [None, 0.0]], [[None, 5.0], [None, 5.0]])


def test_what_is_logged_late_is_no_early_look(tmp_path):
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / "metrics.csv").write_text("step,score\n60,1\n80,2\n100,3\n")
    sweep = Sweep(None, tmp_path, [], [], 100, TrainProcesses(1, tmp_path), "score")
    assert sweep._looks("run", 100, done=True) == [None, None, 1, 3]
    (folder / "metrics.csv").write_text("step,score\n60,1\n80,2\n")
    assert sweep._looks("run", 100) == [None, None, 1, None]
    assert sweep._looks("run", 100, done=True) == [None, None, 1, 2]


def study_of(folder, direction="maximize"):
    journal = str(folder / "study.journal")
    backend = JournalFileBackend(journal, lock_obj=JournalFileOpenLock(journal))
    storage = optuna.storages.JournalStorage(backend)
    return optuna.create_study(study_name="sweep", storage=storage, direction=direction, load_if_exists=True)


def first(folder, *settings):
    """What a sweep tries before anything else."""
    folder.mkdir()
    for each in settings:
        study_of(folder).enqueue_trial(each)


@pytest.mark.slow
def test_a_trial_without_the_metric_is_broken_and_the_metric_may_change_until_one_has_a_score(tmp_path, capsys):
    path, folder = space_file(tmp_path, "total_timesteps: [8, 300]\n"), tmp_path / "sweep"
    words = ["sweep", *FLAGS, "--num_steps", 2, "--minibatch_size", 8, "--space", path, "--seeds", 0]
    words += ["--folder", folder]
    first(folder, *({"total_timesteps": steps} for steps in (300, 8, 300)))
    assert command(*words, "--trials", 1, "--metric", "reward/episode_returns") == 1
    out = capsys.readouterr().out
    assert "trial 0: failed: --metric reward/episode_returns: run trial0_seed0 has no such metric; did you mean" in out
    assert command(*words, "--trials", 3) == 0
    assert "trial 1: failed: --metric reward/episode_return: run trial1_seed0 has no" in capsys.readouterr().out
    assert [trial.state.name for trial in study_of(folder).trials] == ["FAIL", "FAIL", "COMPLETE"]
    assert command(*words, "--trials", 3, "--metric", "ppo/learning_rate") == 2
    assert "has trials scored by reward/episode_return; choose another folder" in capsys.readouterr().err
    assert command(*words, "--trials", 3, "--metric", "reward/episode_return") == 0
    journal = folder / "study.journal"
    whole = journal.read_bytes()
    journal.write_bytes(whole + whole[:20])
    assert command(*words, "--trials", 3) == 0
    assert journal.read_bytes().startswith(whole) and len(study_of(folder).trials) == 3
    for damaged in (b'{"op_code":\n' + whole, whole + b"\0\n", b"5\n", b'{"op_code":4}\n'):
        journal.write_bytes(damaged)
        assert command(*words, "--trials", 3) == 2
        (line,) = capsys.readouterr().err.splitlines()
        assert line.startswith(f"fabric-rl sweep: error: {journal} is damaged (") and journal.read_bytes() == damaged


@pytest.mark.slow
def test_a_broken_trial_is_listed_and_stops_nothing(tmp_path, capsys):
    path, folder = space_file(tmp_path, "minibatch_size: [32, 4096]\n"), tmp_path / "sweep"
    words = ["sweep", *FLAGS, "--space", path, "--seeds", "3", "--folder", folder, "--parallel", 2]
    first(folder, *({"minibatch_size": size} for size in (4096, 32)))
    assert command(*words, "--trials", 2) == 0
    out = capsys.readouterr().out
    assert "trial 0: failed: --minibatch_size 4096 is larger than the rollout of one rank, 128 steps" in out
    assert [trial.state.name for trial in study_of(folder).trials] == ["FAIL", "COMPLETE"]
    assert "Failed trials" in (page := (folder / "report.html").read_text()) and "minibatch_size 32" in page
    best = yaml.safe_load((folder / "best.yaml").read_text())
    assert (best["minibatch_size"], best["total_timesteps"]) == (32, 256)
    (run,) = list_runs(folder / "runs")
    assert (run.name, run.group, run.status) == ("trial1_seed3", "trial1", "finished")
    assert command(*words, "--trials", 2, "--gamma", "0.9") == 2
    assert "contains a sweep that was started with different settings; choose" in capsys.readouterr().err


@pytest.mark.slow
def test_what_matters_is_said_of_forty_trials_and_how_to_compare_the_best_two(tmp_path, capsys):
    path, folder = space_file(tmp_path, "gamma: {low: 0.9, high: 0.99}\n"), tmp_path / "a sweep"
    words = ["sweep", *FLAGS, "--space", path, "--folder", folder, "--metric", "ppo/loss", "--minimize", "--trials", 1]
    folder.mkdir()
    study_of(folder, "minimize").set_user_attr("metric", "ppo/loss")
    gamma = {"gamma": optuna.distributions.FloatDistribution(0.9, 0.99)}
    for number in range(40):
        if number == 39:
            assert command(*words) == 0 and "What matters" not in capsys.readouterr().out
        chosen = {"gamma": 0.9 + number / 1000}
        done = optuna.trial.create_trial(value=number, params=chosen, distributions=gamma)
        done.set_user_attr("scores", [[number] * 4] * 3)
        study_of(folder, "minimize").add_trial(done)
    assert command(*words) == 0
    out = capsys.readouterr().out
    assert "importance (PED-ANOVA)" in out
    compare = f"fabric-rl compare trial0 trial1 --runs_dir '{folder}/runs' --metric ppo/loss --minimize\n"
    assert out.endswith(f"is it better than the second? {compare}")


@pytest.mark.learning
def test_what_is_surely_worse_ends_early(tmp_path, capsys):
    """The metric is the learning rate, which has no luck in it."""
    path, folder = space_file(tmp_path, "agent.actor_lr: {low: 1e-5, high: 1e-2}\n"), tmp_path / "sweep"
    words = ["sweep", *FLAGS, "--lr_schedule", "constant", "--space", path, "--seeds", "0..2", "--folder", folder]
    words += ["--metric", "ppo/learning_rate"]
    first(folder, *({"agent.actor_lr": rate} for rate in (1e-3, 1e-4, 1e-2)))
    assert command(*words, "--trials", 3) == 0
    out = capsys.readouterr().out
    assert "trial 1: stopped at seed 1, because it is worse than the best trial (agent.actor_lr 0.0001)" in out
    assert [trial.state.name for trial in study_of(folder).trials] == ["COMPLETE", "PRUNED", "COMPLETE"]
    assert study_of(folder).best_trial.number == 2 and len(list_runs(folder / "runs")) == 3 + 2 + 3


@pytest.mark.learning
@pytest.mark.timeout(1800)
def test_a_sweep_that_is_killed_twice_loses_no_finished_trial(tmp_path):
    path, folder = space_file(tmp_path, "agent.actor_lr: {low: 1e-5, high: 1e-2, log: true}\n"), tmp_path / "sweep"
    words = ["sweep", *FLAGS, "--space", path, "--seeds", "0", "--trials", "20", "--parallel", "2", "--folder", folder]
    start = [sys.executable, "-c", "from fabric_rl.commands.main import main; main()", *map(str, words)]
    known = {}

    def finished():
        if not (folder / "study.journal").exists():
            return {}
        trials = study_of(folder).trials if (folder / "study.journal").stat().st_size else []
        return {trial.number: (trial.value, trial.params) for trial in trials if trial.state.name == "COMPLETE"}

    for least in (3, 9):
        running = subprocess.Popen(start, env=environment(), cwd=tmp_path, stdout=subprocess.DEVNULL)
        began = time.monotonic()
        while len(finished()) < least:
            assert time.monotonic() - began < 5 * SECONDS and running.poll() is None
            time.sleep(0.3)
        os.kill(running.pid, signal.SIGKILL)
        running.wait()
        known |= finished()
        assert len(known) < 20
    subprocess.run(start, env=environment(), cwd=tmp_path, check=True, timeout=5 * SECONDS, stdout=subprocess.DEVNULL)
    found = finished()
    assert len(found) == 20 == len(study_of(folder).trials) and found.items() >= known.items()
    runs = list_runs(folder / "runs")
    assert [run.status for run in runs] == ["finished"] * 20
    assert "trial19" in (folder / "report.html").read_text()
