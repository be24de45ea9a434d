"""How runs begin and begin again: another run's weights, lost files, somebody at the terminal who chooses."""

import json
import os
import re
import shutil
import signal
import sys
import time

import pytest
import yaml

from fabric_rl.ranks.devices import choose_precision
from fabric_rl.runs.records import checkpoint_name, list_checkpoints
from tests.runs import (
    CARTPOLE,
    CPU,
    PAUSING,
    TORCHRUN,
    Launched,
    Terminal,
    equal,
    kill,
    pause,
    reached,
    rows_of,
    saved,
    settings_of,
    steps_in,
    until,
    weights_of,
)

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="os.fork, terminals")
TOTAL = [*CARTPOLE, "--total_timesteps", 640, "--checkpoint_every_timesteps", 128]
PARTS = "tests.integration.parts"


@pytest.fixture(scope="module")
def child(first, call, runs):
    """A run with the weights of the first that nobody has disturbed."""
    status, _, err = call(*TOTAL, "--run_id", "child", "--initialize_from", "first")
    assert (status, err) == (0, [])
    return runs / "child"


# ---------------------------------------------------------------- with the weights of another run


@pytest.mark.slow
def test_killed_before_its_first_checkpoint_it_begins_again_to_the_bit(child, first, begin, end, call, runs):
    """The run whose weights they were is gone by then."""
    source = shutil.copytree(first, runs / "source")
    forever = ["--total_timesteps", 100_000_000, "--checkpoint_every_timesteps", 10**9]
    started = begin(*CARTPOLE, *forever, "--run_id", "early", "--initialize_from", "source")
    until(lambda: (runs / "early/metrics.csv").exists())
    kill(started.pid)
    assert end(started)[0] == -signal.SIGKILL
    assert list_checkpoints(runs / "early/checkpoints") == []
    shutil.rmtree(source)
    status, out, err = call("--run_id", "early", "--resume", *TOTAL[len(CARTPOLE) :])
    assert (status, err) == (0, [])
    assert f"no checkpoint yet: it starts from the beginning with the weights of {runs / 'early/initial.ckpt'}" in out
    changed = re.findall("changed: (.*)", out)
    assert changed == ["total_timesteps: 100000000 -> 640", "checkpoint_every_timesteps: 1000000000 -> 128"]
    assert equal(weights_of(runs / "early"), weights_of(child))
    assert not equal(weights_of(child), weights_of(first))
    assert rows_of(runs / "early") == rows_of(child)
    assert settings_of(runs / "early")["initialize_from"] == str(runs / "early/initial.ckpt")


@pytest.mark.slow
def test_torchrun_begins_it_again(child, tmp_path, runs):
    flags = [*TOTAL, *CPU, "--runs_dir", tmp_path, "--run_id", "r", *PAUSING, "--plain"]
    pause(tmp_path / "pauses", rank=0, iteration=1)
    source = shutil.copytree(runs / "first", tmp_path / "source")
    launcher = [*TORCHRUN, "--nproc-per-node", 1, "--max-restarts", 1, "train_fabric.py"]
    pauses = {"PAUSES": str(tmp_path / "pauses")}
    with Launched(tmp_path / "output", *launcher, *flags, "--initialize_from", "source", **pauses) as launched:
        rank = reached(tmp_path / "pauses", launched)
        shutil.rmtree(source)
        kill(rank)
        assert launched.wait() == 0, launched.err
        out = launched.out
    assert "torchrun has restarted the ranks of run r (restart 1 of at most 1)" in out
    assert "run r has no checkpoint yet: it starts from the beginning with the weights of" in out
    assert equal(weights_of(tmp_path / "r"), weights_of(child))


@pytest.mark.slow
def test_its_configuration_runs_again_as_it_is(child, call, runs):
    copy = child / "initial.ckpt"
    assert (settings_of(child)["initialize_from"], settings_of(child)["inference"]) == (str(copy), False)
    assert json.loads((child / "weights.json").read_text())["inference"] is False
    status, out, err = call("--config", child / "config.yaml", "--run_id", "again")
    assert (status, err) == (0, []) and f"starting run again with the weights of {copy}" in out
    assert equal(weights_of(runs / "again"), weights_of(child))
    assert rows_of(runs / "again") == rows_of(child)


@pytest.mark.slow
def test_its_configuration_does_not_keep_it_from_going_on(child, call, refused, runs):
    run = shutil.copytree(child, runs / "longer")
    longer = ["--run_id", "longer", "--resume", "--total_timesteps"]
    for settings, total in (([], 704), (["--config", run / "config.yaml"], 768)):
        status, out, err = call(*settings, *longer, total)
        assert (status, err) == (0, [])
        assert re.findall("changed: (.*)", out) == [f"total_timesteps: {total - 64} -> {total}"]
        assert settings_of(run)["initialize_from"] == str(run / "initial.ckpt")
    line = refused(*longer, 832, "--initialize_from", "first")
    assert "--resume loads weights, optimizer and counters, --initialize_from just weights; choose one" in line
    status, out, err = call(*longer, 832, "--print_config")
    assert (status, err) == (0, [])
    printed = yaml.safe_load(out)
    assert (printed["initialize_from"], printed["total_timesteps"]) == (str(run / "initial.ckpt"), 832)


@pytest.mark.slow
def test_a_new_run_begins_as_its_configuration_says_where_none_fits(child, call, tmp_path):
    status, out, err = call("--config", child / "config.yaml", "--resume", "--runs_dir", tmp_path)
    assert (status, err) == (0, [])
    assert "contains no run that fits --env and --agent; starting a new one" in out
    (run,) = tmp_path.iterdir()
    assert equal(weights_of(run), weights_of(child))


@pytest.mark.slow
def test_a_run_that_plays(first, call, refused, runs):
    play = ["--run_id", "player", "--inference", "--total_timesteps", 128]
    assert call(*CARTPOLE, "--initialize_from", "first", *play)[0] == 0
    player, whose = runs / "player", str(list_checkpoints(first / "checkpoints")[-1])
    own = str(player / "initial.ckpt")  # the other run may go on, and remove its checkpoints
    assert (settings_of(player)["inference"], settings_of(player)["initialize_from"]) == (True, own)
    how = {"from": whose, "inference": True, "deterministic": False}
    assert json.loads((player / "weights.json").read_text()) == how
    status, _, err = call("--config", player / "config.yaml", "--run_id", "replay")
    assert (status, err) == (0, [])
    assert rows_of(runs / "replay") == rows_of(player) and len(rows_of(player)) == 2
    assert list_checkpoints(runs / "replay/checkpoints") == []
    for flags in (["--run_id", "player", "--resume"], ["--resume", "player", "--inference"]):
        before = sorted(runs.iterdir())
        again = f"start it again with --run_id player --force --initialize_from {own} --inference"
        assert f"--resume: run player only played without learning; {again}" in refused(
            *flags, "--total_timesteps", 640
        )
        assert sorted(runs.iterdir()) == before
    assert len(rows_of(player)) == 2


# ---------------------------------------------------------------- failures, lost settings, other sizes


def test_a_run_that_fails_in_its_first_iteration_stays(begin, forks, runs):
    """With the reason in its log; one that fails before anything is collected leaves nothing."""
    failing = f"--callbacks+={PARTS}.Fails", "--callbacks.at_start"
    (status,), _, err = forks.wait([begin(*TOTAL, "--run_id", "fails", *failing, "false")])
    assert status == 1 and "on purpose" in err
    assert "RuntimeError: on purpose" in (runs / "fails/log.txt").read_text()
    assert settings_of(runs / "fails")["total_timesteps"] == 640
    (status,), _, err = forks.wait([begin(*TOTAL, "--run_id", "fails2", *failing, "true")])
    assert status == 1 and "on purpose" in err
    assert not (runs / "fails2").exists()


@pytest.mark.slow
def test_a_folder_that_is_lost_comes_back_with_its_settings(child, begin, end, runs):
    run, names = runs / "lost", ("config.yaml", "environment.json", "weights.json")
    forever = ["--total_timesteps", 100_000_000, "--checkpoint_every_timesteps", 640]
    started = begin(*CARTPOLE, *forever, "--run_id", "lost", "--initialize_from", "child")
    until(lambda: list_checkpoints(run / "checkpoints"))
    before = {name: (run / name).read_text() for name in names}
    run.rename(runs / "elsewhere")
    until(lambda: all((run / name).exists() for name in names) and list_checkpoints(run / "checkpoints"))
    kill(started.pid, signal.SIGTERM)
    assert end(started)[0] == 0
    after = {name: (run / name).read_text() for name in names}
    whose = json.loads(before["weights.json"])["from"]
    before["config.yaml"] = before["config.yaml"].replace(str(run / "initial.ckpt"), whose)
    digests = [json.loads(each["environment.json"])["config"] for each in (before, after)]
    before["environment.json"] = before["environment.json"].replace(*digests)  # it names the path, too
    assert after == before
    steps = saved(run)["steps"]
    assert json.loads((run / "summary.json").read_text())["total_steps"] == steps_in(run)[-1] == steps


@pytest.mark.slow
def test_a_run_without_settings_says_so(copy_of_first, call, refused, runs):
    (copy_of_first("nothing") / "config.yaml").unlink()
    small = ["--env.num_arenas", 1, "--num_steps", 8, "--minibatch_size", 16]
    line = refused("--run_id", "nothing", "--resume", *small)
    assert "--resume: run nothing has no config.yaml, so its settings are unknown; pass them with --config" in line
    status, out, err = call(*CARTPOLE, "--run_id", "nothing", "--resume", "--total_timesteps", 704)
    assert (status, err) == (0, []) and "no config.yaml" not in out  # all was given
    assert settings_of(runs / "nothing")["total_timesteps"] == 704


@pytest.mark.slow
def test_a_run_killed_before_its_parts_were_built_goes_on_with_its_own_task(call, runs):
    task = ["--env", f"{PARTS}.Dying", "--env.num_envs", 3, "--num_steps", 32, "--total_timesteps", 96]
    assert call("--run_id", "died", *task, DIES=1)[0] == -signal.SIGKILL
    status, out, err = call("--run_id", "died", "--resume")
    assert (status, err) == (0, []) and "run died has no checkpoint yet: it starts from the beginning" in out
    assert settings_of(runs / "died")["env"]["class_path"] == f"{PARTS}.Dying"
    assert saved(runs / "died")["steps"] == 96


@pytest.mark.slow
def test_iterations_of_another_size_are_counted_as_what_they_were(copy_of_first, call):
    """10 of 64 steps, then 2 of 96, then 3 of 64 again."""
    run = copy_of_first("sizes")
    sizes = {
        832: (["--num_envs", 3, "--minibatch_size", 96], 12),
        1024: (["--num_envs", 2, "--minibatch_size", 64], 15),
    }
    for total, (flags, iterations) in sizes.items():
        status, _, err = call("--run_id", "sizes", "--resume", *flags, "--total_timesteps", total)
        assert status == 0 and len(err) == 1
        assert "a different number of ranks or sub-environments: the run is equivalent, not bit-identical" in err[0]
        assert saved(run)["exact"] is False
        assert (saved(run)["steps"], saved(run)["iteration"]) == (total, iterations)
        assert json.loads((run / "summary.json").read_text())["iterations"] == iterations


@pytest.mark.slow
def test_the_number_of_threads_is_a_setting_of_the_run(call, refused, runs):
    """Its own, then that of `OMP_NUM_THREADS`, else the share of the cores; the order of rounding depends on it."""
    run, cores = runs / "threads", len(os.sched_getaffinity(0))
    _, out, _ = call(*CARTPOLE, "--total_timesteps", 128, "--run_id", "threads", OMP_NUM_THREADS=3)
    assert f"of {cores} cores each (3 for torch)" in out
    assert settings_of(run)["num_threads"] == saved(run)["num_threads"] == 3
    status, out, err = call("--run_id", "threads", "--resume", "--total_timesteps", 256)
    assert (status, err) == (0, [])
    assert "cores each (3 for torch)" in out and "changed: total_timesteps: 128 -> 256" in out
    assert "changed: num_threads" not in out
    status, out, err = call("--run_id", "threads", "--resume", "--total_timesteps", 384, "--num_threads", 2)
    assert status == 0 and "changed: num_threads: 3 -> 2" in out
    assert "--num_threads 2 instead of 3: the run is equivalent, not bit-identical" in err[0]
    assert settings_of(run)["num_threads"] == saved(run)["num_threads"] == 2
    assert "--num_threads must be a whole number from 1 to 1,024, got 0" in refused(*CARTPOLE, "--num_threads", 0)


# ---------------------------------------------------------------- somebody at the terminal


@pytest.fixture(scope="module")
def choice(first, tmp_path_factory):
    """A runs folder: 22 milestones of the first run, and those of one with another environment."""
    runs = tmp_path_factory.mktemp("choice")
    milestones = shutil.copytree(first, runs / "fits") / "milestones"
    template = milestones / "main" / f"{256:012d}"
    shutil.rmtree(milestones / "main" / f"{512:012d}")
    shutil.copytree(runs / "fits", runs / "other")
    for minute in range(22):
        folder = shutil.copytree(template, milestones / "late" / f"{1000 + minute:012d}")
        (folder / checkpoint_name(256)).rename(folder / checkpoint_name(1000 + minute))
        write_meta(folder, timestamp=f"2030-01-01T12:{minute:02d}:00", rating=1000.0 + minute, mean_reward=21.5)
    shutil.rmtree(template)
    write_meta(runs / "other/milestones/main" / template.name, fingerprint={"agent": "another"})
    real = template.parent.with_name("real") / template.name  # one that can be gone on from, the newest
    shutil.copytree(first / "milestones/main" / template.name, real)
    write_meta(real, timestamp="2031-01-01T12:00:00")
    return runs


def write_meta(folder, **more):
    path = folder / "meta.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | more))


def ask(begin, forks, runs, keys):
    """What the terminal shows until the end, and the exit status."""
    terminal = Terminal()
    started = begin(*CARTPOLE, "--resume", "--total_timesteps", 704, "--runs_dir", runs, **terminal.variables)
    for number, answer in enumerate(keys, start=1):
        terminal.until("Enter for the latest checkpoint: ", times=number)
        terminal.types(answer)
    while keys[-1] == "\x03" and forks.is_running(started):  # one is lost if it comes just before Python reads
        time.sleep(1)
        terminal.types(keys[-1])
    (status,), _, _ = forks.wait([started])
    return terminal.read(), status


@pytest.mark.parametrize("key", ["\x03", "\x04"])
def test_ctrl_c_and_ctrl_d_start_nothing(choice, begin, forks, key):
    before = {path: path.stat().st_mtime_ns for path in choice.rglob("*")}
    screen, status = ask(begin, forks, choice, ["99\n", key])
    assert status == 130
    assert "enter a number from 1 to 20" in screen
    assert "nothing was started" in screen
    assert {path: path.stat().st_mtime_ns for path in choice.rglob("*")} == before
    rows = [re.split(r" {2,}", line.strip()) for line in screen.splitlines() if re.match(r" +\d+  ", line)]
    assert rows[1] == ["2", "fits", "late", "1,021", "21.5", "1,021", "2030-01-01 12:21"]
    assert rows[0][1:4] == ["fits", "real", "256"] and rows[0][5:] == ["-", "2031-01-01 12:00"]
    assert [row[3] for row in rows[1:]] == [f"{steps:,}" for steps in range(1021, 1002, -1)]
    assert "and 3 older ones: --resume RUNS_DIR/RUN/milestones/PHASE/STEPS" in screen
    assert "not shown: 1 of other environments or agents" in screen


@pytest.mark.slow
def test_a_number_goes_on_from_that_milestone_and_enter_from_the_latest_checkpoint(choice, begin, forks, tmp_path):
    for keys, steps in ((["1\n"], 256), (["\n"], 640)):
        runs = shutil.copytree(choice, tmp_path / f"{steps}")
        screen, status = ask(begin, forks, runs, keys)
        assert status == 0
        name = re.search(rf"resuming run (\w+) after {steps} steps", screen)[1]
        assert saved(runs / name)["steps"] == 704


@pytest.mark.slow
def test_the_automatic_precision_is_kept_in_the_run(call, runs):
    chosen = choose_precision("auto", "cpu")
    assert chosen in ("32-true", "bf16-mixed") and choose_precision("16-mixed", "cpu") == "16-mixed"
    run = ["--run_id", "auto", "--runs_dir", runs]
    for words in ([*CARTPOLE, "--precision", "auto", "--total_timesteps", 128], ["--resume", "--total_timesteps", 192]):
        status, out, _ = call(*run, *words)
        assert status == 0 and settings_of(runs / "auto")["precision"] == chosen and "changed" not in " ".join(out)
