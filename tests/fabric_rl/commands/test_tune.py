"""`fabric-rl tune`: what it tries, when it calls something faster, and that its file trains."""

import math
import os
import random
import signal
import statistics
import subprocess
import sys
import time
from importlib import import_module
from types import SimpleNamespace

import pytest
import yaml

from fabric_rl.ranks.devices import bfloat16_speedup
from fabric_rl.sweeps.train_processes import TrainProcesses
from fabric_rl.sweeps.tune import (
    TURNS,
    Candidate,
    clearly_faster,
    compare_alternately,
    find_fastest,
    layouts,
    measured_rate,
    single_settings,
)
from tests.command import command
from tests.forks import ROOT, SECONDS, environment

CARTPOLE = ["--config", ROOT / "configs" / "cartpole.yaml"]
tune = import_module("fabric_rl.sweeps.tune")


class Drawn:
    """A bench that draws rates with noise of 5 % in place of trainings, each of them ten seconds of `now`."""

    def __init__(self, seed=0, gain=1.0):
        self.draw, self.gain = random.Random(seed), gain
        self.now, self.tried, self.left_out, self.asked = 0.0, 0, 0, []

    def measure(self, candidate):
        self.now, self.tried, candidate.seconds = self.now + 10, self.tried + 1, 10.0
        self.asked.append(candidate.flags)
        candidate.rates.append(self.draw.gauss(1000, 50) * (self.gain if "overlap" in candidate.flags else 1))
        return True


class Still(Drawn):
    """All settings are exactly as fast; a training takes ten seconds by its own word."""

    def __init__(self, folder, gain=1.0):
        super().__init__(gain=gain)
        self.draw.gauss, self.trainings = (lambda mean, deviation: mean), TrainProcesses(1, folder)


def config(**settings):
    env = {"class_path": "envs.RocketSimPool", "init_args": {"num_arenas": 32}}
    return {"num_steps": 128, "devices": 1, "minibatch_size": 1024, "accelerator": "cpu", "env": env} | settings


def test_every_layout_has_the_same_iteration_and_optimizer_step():
    tried = list(layouts(config()))
    assert {"env.num_arenas": 64, "num_steps": 64} in tried
    for flags in tried:
        ranks, arenas = flags.get("devices", 1), flags.get("env.num_arenas", 32)
        assert ranks * arenas * flags.get("num_steps", 128) == 32 * 128
        assert ranks * flags.get("minibatch_size", 1024) == 1024


def test_a_memory_of_old_rollouts_keeps_its_length_and_only_learning_ranks_are_counted():
    for flags in layouts(config(devices=2, exp_buffer_size=16384)):
        assert flags.get("devices", 2) * flags.get("exp_buffer_size", 16384) == 2 * 16384
    assert not any("devices" in flags for flags in layouts(config(devices=2, num_players=1)))
    for devices, ranks in (("auto", 1), ([0, 1], 2), ("0,1", 2), ("2", 2), (2, 2)):
        made = list(layouts(config(devices=devices)))
        for each in made:
            made_of = each.get("devices", ranks), each.get("num_steps", 128), each.get("env.num_arenas", 32)
            assert math.prod(made_of) == ranks * 128 * 32
        assert ({"devices": 1} in [{"devices": each["devices"]} for each in made if "devices" in each]) == (ranks == 2)


def test_an_environment_that_cannot_have_more_arenas_is_given_more_ranks_only():
    env = {"class_path": "my.Env", "init_args": {}}
    assert all(set(flags) == {"devices", "num_steps", "minibatch_size"} for flags in layouts(config(env=env)))


def test_what_is_on_already_is_not_tried():
    assert {"overlap": True} in single_settings(config(precision="32-true"))
    assert list(single_settings(config(precision="bf16-mixed", overlap=True, compile=True, num_threads=1))) == []
    pool = {"class_path": "envs.ProcessPool", "init_args": {"num_workers": None}}
    assert {"env.groups": 2} in single_settings(config(env=pool))
    assert all("env.num_envs" not in flags for flags in layouts(config(env={"init_args": {"num_envs": None}})))


def test_the_first_iterations_do_not_count(tmp_path):
    rows = "step,speed/overall_steps_per_second\n100,1\n200,2\n300,100\n400,50\n"
    (tmp_path / "metrics.csv").write_text(rows)
    assert measured_rate(tmp_path / "metrics.csv") == pytest.approx(200 / 3)  # 1 s and 2 s for 100 steps each
    (tmp_path / "metrics.csv").write_text("".join(rows.splitlines(keepends=True)[:2]))
    assert measured_rate(tmp_path / "metrics.csv") == pytest.approx(1.0)
    assert (Candidate({}).rate, str(Candidate({"overlap": True}))) == (0.0, "--overlap true")


def test_equally_fast_settings_are_not_called_faster():
    ratios = [find_fastest(Drawn(seed), config(), math.inf)[1] for seed in range(1000)]
    assert statistics.mean(statistics.median(each) if each else 1 for each in ratios) == pytest.approx(1, abs=0.01)
    assert sum(map(clearly_faster, ratios)) < 0.08 * len(ratios)


def test_what_is_much_faster_is_found():
    tunings = [find_fastest(Drawn(seed, gain=1.3), config(), math.inf, overlap=True) for seed in range(100)]
    assert sum(clearly_faster(ratios) and best.flags["overlap"] for best, ratios in tunings) > 95


def test_overlap_is_not_tried_unless_asked_for():
    bench = Drawn(gain=1.3)
    best, _ = find_fastest(bench, config(), math.inf)
    assert "overlap" not in best.flags and all("overlap" not in flags for flags in bench.asked)


def test_what_is_faster_only_together_is_found(monkeypatch):
    bench = Drawn()
    monkeypatch.setattr(tune, "available_cores", lambda: 2)

    def gains(candidate):
        flags = candidate.flags
        rate = 1000 * (1.5 if flags.get("precision") else 1.0)
        rate *= {None: 1.0, 1: 0.9}[flags.get("devices")] * (1.0 if "overlap" not in flags else 0.8)
        candidate.rates.append(rate * (2.0 if flags.keys() >= {"devices", "overlap"} else 1.0))
        return True

    monkeypatch.setattr(bench, "measure", gains)
    monkeypatch.setattr(tune, "bfloat16_speedup", lambda device: 4.0)
    best, _ = find_fastest(bench, config(devices=2, precision="32-true"), math.inf, overlap=True)
    assert best.flags["overlap"] and best.flags["devices"] == 1 and best.flags["precision"] == "bf16-mixed"


def test_collecting_while_learning_is_tried_with_each_number_of_ranks_and_nothing_twice(monkeypatch):
    bench = Drawn()
    monkeypatch.setattr(tune, "available_cores", lambda: 2)
    rates = {(1, False): 1.0, (2, False): 1.38, (1, True): 1.6, (2, True): 1.28}
    asked = []

    def measure(candidate):
        flags = candidate.flags
        alone = not flags.keys() & {"env.num_arenas", "num_steps"} or flags.get("env.num_arenas") == 16
        rate = rates[flags.get("devices", 1), "overlap" in flags] if alone else 0.5
        asked.extend([flags] * (not candidate.rates))
        candidate.rates.append(rate)
        return True

    monkeypatch.setattr(bench, "measure", measure)
    best, _ = find_fastest(bench, config(), math.inf, overlap=True)
    assert best.flags == {"overlap": True}
    asked = asked[: len(asked) - 2]  # without the two that take turns
    assert all(flags not in asked[:place] for place, flags in enumerate(asked))


def test_what_cannot_train_or_learns_otherwise_is_not_tried(monkeypatch):
    monkeypatch.setattr(tune, "available_cores", lambda: 6)
    for flags in layouts(config(minibatch_size=2048, batch_size=8192)):
        minibatch, batch = flags.get("minibatch_size", 2048), flags.get("batch_size", 8192)
        assert batch % minibatch == 0 and flags.get("devices", 1) * batch == 8192
    memory = {"class_path": "agents.RecurrentPPOAgent", "init_args": {"sequence_length": 64}}
    made = list(layouts(config(agent=memory)))
    assert made and all(
        flags.get("num_steps", 128) % 64 == flags.get("minibatch_size", 1024) % 64 == 0 for flags in made
    )
    monkeypatch.setattr(tune, "available_cores", lambda: 16)
    shards = {"class_path": "envs.ProcessPool", "init_args": {"factory": {}, "num_workers": None, "groups": 2}}
    assert min(flags["num_steps"] for flags in layouts(config(env=shards))) == 32
    tried = [name for flags in single_settings(config(env=shards)) for name in flags]
    assert "env.groups" not in tried and tried.count("env.num_workers") == 1


def test_another_layout_replaces_all_of_the_one_before(monkeypatch):
    bench = Drawn()
    monkeypatch.setattr(tune, "available_cores", lambda: 2)
    monkeypatch.setattr(bench.draw, "gauss", lambda mean, deviation: mean * 1.2**bench.tried)  # each is the fastest
    find_fastest(bench, config(), math.inf)
    layouts_asked = [{name: flags[name] for name in flags.keys() & tune.LAYOUT} for flags in bench.asked]
    assert all(flags in [{}, *layouts(config())] for flags in layouts_asked)


def test_the_turns_change_their_order_and_count_no_measurement_of_before():
    bench, one, other = Drawn(), Candidate({}, [1.0]), Candidate({"overlap": True}, [9000.0])
    assert compare_alternately(bench, one, other, 2) == pytest.approx([1, 1], abs=0.3)
    assert bench.asked == [{}, {"overlap": True}, {"overlap": True}, {}]


def test_what_this_machine_cannot_gain_from_is_not_tried(monkeypatch):
    monkeypatch.setattr(tune, "available_cores", lambda: 2)
    for gain, tried in ((1.0, False), (0.0, False), (1.5, True)):
        monkeypatch.setattr(tune, "bfloat16_speedup", lambda device, gain=gain: gain)
        assert ({"precision": "bf16-mixed"} in single_settings(config(precision="32-true"))) == tried
    bench = Drawn()
    find_fastest(bench, config(devices=2), math.inf)  # with one core each threads are one anyway
    assert all(flags.get("devices", 2) == 1 for flags in bench.asked if "num_threads" in flags)
    monkeypatch.setattr(tune, "available_cores", lambda: 1)
    assert {"num_threads": 1} not in single_settings(config())


@pytest.mark.slow
def test_products_tell_what_bfloat16_gains():
    assert 0 <= bfloat16_speedup() < 100
    assert bfloat16_speedup("no_such_device") == 0


@pytest.mark.parametrize("minutes", [1, 3, 4, 5])
def test_the_search_leaves_time_for_the_turns(monkeypatch, minutes):
    bench = Drawn(gain=2.0)
    monkeypatch.setattr(tune, "bfloat16_speedup", lambda device: 1.5)
    monkeypatch.setattr(tune, "time", SimpleNamespace(monotonic=lambda: bench.now))
    best, ratios = find_fastest(bench, config(precision="32-true"), 60 * minutes)
    assert bench.now <= 60 * minutes
    assert len(ratios) == (TURNS if best.flags else 0)
    assert bench.left_out > 0 or minutes > 3
    assert bench.tried > 1 or minutes == 1


def test_what_starts_too_slowly_for_its_turns_is_not_taken(monkeypatch, capsys):
    bench = Drawn(gain=2.0)
    quick = bench.measure
    monkeypatch.setattr(tune, "available_cores", lambda: 2)
    monkeypatch.setattr(tune, "time", SimpleNamespace(monotonic=lambda: bench.now))

    def measure(candidate):
        quick(candidate)
        if "overlap" in candidate.flags:
            bench.now, candidate.seconds = bench.now + 90, 100.0
        return True

    monkeypatch.setattr(bench, "measure", measure)
    best, _ = find_fastest(bench, config(), 600, overlap=True)
    assert "overlap" not in best.flags and bench.now <= 600
    assert "--overlap true: no time left to confirm this" in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.parametrize(("minutes", "said"), [(0.5, "nothing else was tried"), (60, "nothing was clearly faster")])
def test_what_is_not_faster_is_not_written(monkeypatch, capsys, tmp_path, minutes, said):
    monkeypatch.setattr("fabric_rl.commands.tune.Benchmark", lambda training, folder, seconds: Still(folder))
    assert command("tune", *CARTPOLE, "--minutes", minutes, "--out", tmp_path / "t.yaml") == 0
    assert (tmp_path / "t.yaml").read_text() == f"# By fabric-rl tune: {said}.\n{{}}\n"
    printed = capsys.readouterr().out
    assert said in printed and "fastest" not in printed


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--minutes", "0"], "--minutes and --seconds must be above 0"),
        (["--agent", "agents.SACLightningAgent"], "--agent: fabric-rl tune measures agents that learn from rollouts"),
        (["--config", "keeper_striker"], "--agent: fabric-rl tune measures agents that learn from rollouts, not SAC"),
        (["--run_id", "x"], "leave out --run_id, which fabric-rl tune sets for every run"),
        (["--num_steps", "0"], "--num_steps"),
    ],
)
def test_wrong_flags_are_one_line(capsys, tmp_path, flags, words):
    assert command("tune", *CARTPOLE, "--out", tmp_path / "t.yaml", *flags) == 2
    assert words in capsys.readouterr().err
    assert not (tmp_path / "t.yaml").exists()


@pytest.mark.slow
def test_settings_of_before_are_not_lost(monkeypatch, capsys, tmp_path):
    out = tmp_path / "t.yaml"
    out.write_text("# By fabric-rl tune: 1.31 times the original speed.\nnum_steps: 32\n")
    assert command("tune", *CARTPOLE, "--config", out, "--out", out) == 2
    assert f"--out {out}: --config names this file, too; choose another name" in capsys.readouterr().err
    monkeypatch.setattr("fabric_rl.commands.tune.Benchmark", lambda training, folder, seconds: Still(folder))
    assert command("tune", *CARTPOLE, "--minutes", "0.5", "--out", out) == 0
    assert f"nothing else was tried\nunchanged: {out}\n" in capsys.readouterr().out
    assert "num_steps: 32" in out.read_text()


@pytest.mark.slow
def test_a_candidate_that_hangs_is_ended(monkeypatch, capsys, tmp_path):
    (tmp_path / "hangs.py").write_text(
        "import time\nfrom envs import GymnasiumEnvs\n\n\n"
        "class Hangs(GymnasiumEnvs):\n    def step(self, action):\n"
        "        time.sleep(SECONDS if self.num_envs == 8 else 0)\n        return super().step(action)\n"
        f"\n\nSECONDS = {SECONDS}\n"
    )
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), str(ROOT)]))
    monkeypatch.setattr(tune, "_PATIENCE", 1.0)
    monkeypatch.syspath_prepend(tmp_path)
    words = ["--config", str(ROOT / "configs/cartpole.yaml"), "--num_steps", "64", "--env", "hangs.Hangs"]
    bench = tune.Benchmark([*words, "--env.env_id", "CartPole-v1", "--env.num_envs", "4"], tmp_path, 0.2)
    assert bench.measure(Candidate({}))
    bench.trainings._grace, bench._patience = 1.0, bench._patience / 2
    hangs = Candidate({"env.num_envs": 8})
    assert not bench.measure(hangs)
    assert "failed: not finished after" in capsys.readouterr().out and hangs.seconds < SECONDS
    assert bench.measure(Candidate({"env.num_envs": 2}))


def test_no_file_of_others_is_written_over(capsys, tmp_path):
    own = tmp_path / "own.yaml"
    own.write_text("num_steps: 64\n")
    assert command("tune", *CARTPOLE, "--out", own) == 2
    assert f"--out {own}: this file was not written by fabric-rl tune" in capsys.readouterr().err
    assert own.read_text() == "num_steps: 64\n"
    assert command("tune", *CARTPOLE, "--out", tmp_path) == 2
    assert f"--out {tmp_path} is not a file" in capsys.readouterr().err
    assert command("tune", *CARTPOLE, "--out", tmp_path / "none" / "t.yaml") == 2
    assert f"there is no folder {tmp_path / 'none'}" in capsys.readouterr().err


@pytest.mark.slow
def test_the_fastest_settings_are_a_configuration_to_train_with(monkeypatch, capfd, tmp_path):
    out = tmp_path / "tuned.yaml"
    words = ["tune", *CARTPOLE, "--num_steps", "64", "--env.num_envs", "2", "--seconds", "0.2", "--out", out]
    words += ["--try_overlap", "true"]
    assert command(*words, "--minutes", "0.01") == 0
    assert "(unchanged): " in capfd.readouterr().out and yaml.safe_load(out.read_text()) == {}
    monkeypatch.setattr("fabric_rl.commands.tune.Benchmark", lambda training, folder, seconds: Still(folder, gain=1.25))
    assert command(*words, "--minutes", "60") == 0
    said = "1.25 times the original speed, in 4 rounds on the same machine"
    assert f"fastest: --overlap true, {said}" in capfd.readouterr().out
    assert out.read_text() == f"# By fabric-rl tune: {said}.\noverlap: true\n"
    words = ["--total_timesteps", "256", "--runs_dir", tmp_path, "--run_id", "r", "--plain"]
    again = [sys.executable, "train_fabric.py", *CARTPOLE, "--config", out, *words]
    subprocess.run(again, cwd=ROOT, env=environment(), check=True, timeout=SECONDS, capture_output=True)


@pytest.mark.slow
def test_settings_that_do_not_train_are_one_line(capsys, tmp_path):
    agent = ["--agent.normalize_obs", "true", "--env_id", "NoSuchTask-v0"]
    assert command("tune", *agent, "--out", tmp_path / "t.yaml") == 2
    assert "NoSuchTask" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="signals of one process")
@pytest.mark.parametrize("sent", ["SIGINT", "SIGTERM"])
def test_an_interrupt_ends_the_training_first(tmp_path, sent):
    words = ["tune", *map(str, CARTPOLE), "--seconds", "60", "--out", str(tmp_path / "t.yaml")]
    code = f"from fabric_rl.commands.main import main; main({words!r})"
    variables = environment() | {"TMPDIR": str(tmp_path)}
    child = subprocess.Popen([sys.executable, "-c", code], cwd=ROOT, env=variables, stdout=subprocess.DEVNULL)
    deadline = time.monotonic() + SECONDS
    while not list(tmp_path.glob("*/t1/metrics.csv")) and time.monotonic() < deadline:
        time.sleep(0.1)
    child.send_signal(getattr(signal, sent))
    assert child.wait(SECONDS) == 130
    assert list(tmp_path.iterdir()) == []
