"""What a run leaves behind, and how it goes on, begins again, plays and stops."""

import json
import re
import shutil
import signal
import sys
import time

import pytest

from fabric_rl import load_checkpoint
from fabric_rl.commands.runs import compare_runs, show_run
from fabric_rl.commands.runs import runs as list_runs
from fabric_rl.runs.records import list_checkpoints
from tests.forks import kill
from tests.runs import CARTPOLE, equal, events, names_in, rows_of, settings_of, steps_in, until, weights_of

FOREVER = ["--total_timesteps", 100_000_000]
PARTS = "tests.integration.parts"


def content_of(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file() and path.name != "log.txt"}


def test_what_a_run_leaves_behind(first):
    assert names_in(first / "checkpoints") == [f"step_{steps:012d}.ckpt" for steps in (384, 512, 640)]
    assert sorted(path.name for path in (first / "milestones/main").iterdir()) == ["000000000256", "000000000512"]
    meta = json.loads((first / "milestones/main/000000000256/meta.json").read_text())
    assert (meta["steps"], meta["phase"]) == (256, "main")
    assert 0 < meta["entropy"] < 0.7 and meta["mean_reward"] > 5 and meta["kl"] is not None
    assert load_checkpoint(first / "milestones/main/000000000256")[1]["steps"] == 256
    settings = settings_of(first)
    assert settings["total_timesteps"] == 640 and not settings.get("run_id") and not settings["resume"]
    assert "torch" in json.loads((first / "environment.json").read_text())["packages"]
    timers = json.loads((first / "timers.json").read_text())["children"]
    assert timers["learn"]["children"]["forward"]["count"] == 10
    assert timers["collect"]["children"]["policy"]["count"] == 320
    assert "checkpoint" in (first / "log.txt").read_text()
    assert steps_in(first) == list(range(64, 641, 64))


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--run_id", "first"], "--run_id first: .* already exists; choose another run id, resume it .* or delete it"),
        (["--resume=false", "--run_id", "first"], "already exists"),
        (["--run_id", "b", "--resume"], "--run_id b: no such run to resume; the runs in "),
        (["--run_id", "first", "--resume", "--force"], "--force deletes the run that --resume continues"),
        (["--resume", "first", "--run_id", "other"], "--resume first already names the run to resume; leave"),
        (["--run_id", ""], "--run_id is empty; set a name"),
        (["--run_id=", "--resume"], "--run_id is empty; set a name"),
        (["--force"], "--force needs --run_id"),
        (["--resume", "--initialize_from", "first"], "--resume loads weights, optimizer and counters"),
        (["--inference"], "--inference needs weights"),
        (["--initialize_from", "nowhere"], "nowhere: no such checkpoint, run or milestone"),
        (
            ["--run_id", "first", "--resume", "--agent.actor_hidden_sizes", "[32]"],
            r"actor.0.weight: \[64, 4\] in the checkp",
        ),
        (
            ["--run_id", "first", "--resume", "--env_id", "Acrobot-v1", "--total_timesteps", 704],
            r"observations Box\(\[-4.8.*actions Discrete\(2\) in the checkpoint, Discrete\(3\) here",
        ),
        (["--callbacks+", f"{PARTS}.Unsavable"], r"Unsavable.state_dict\(\): checkpoint: state\['thing'\] is a built"),
        (["--keep_checkpoints", 0], "--keep_checkpoints must be a whole number of at least 1"),
        (["--checkpoint_every_minutes", -1], "--checkpoint_every_minutes must be a number above 0"),
    ],
)
def test_mistakes_are_one_line(first, refused, runs, flags, message):
    before = sorted(path.name for path in runs.iterdir())
    assert re.search(message, refused(*CARTPOLE, "--total_timesteps", 64, *flags))
    assert sorted(path.name for path in runs.iterdir()) == before
    assert settings_of(first)["total_timesteps"] == 640


# ---------------------------------------------------------------- going on


def test_resumed_with_its_own_settings_and_changes(copy_of_first, call):
    run = copy_of_first("longer")
    flags = ["--run_id", "longer", "--resume", "--total_timesteps", 768, "--agent.actor_lr", 5e-4]
    flags += ["--minibatch_size", 32, "--agent.entropy_coef", 0.1]
    status, out, err = call(*flags)
    assert (status, err) == (0, []) and "resuming run longer after 640 steps" in out
    changes = ("total_timesteps: 640 -> 768", "agent.actor_lr: 0.001 -> 0.0005", "minibatch_size: 64 -> 32")
    for line in (*changes, "agent.entropy_coef: 0.0 -> 0.1"):
        assert f"changed: {line}\n" in out and f"changed: {line}" in (run / "log.txt").read_text()
    assert steps_in(run) == list(range(64, 769, 64))
    assert float(rows_of(run)[-1]["ppo/learning_rate"]) == pytest.approx(5e-4 / 12)
    timers = json.loads((run / "timers.json").read_text())["children"]
    assert timers["learn"]["children"]["optimizer"]["count"] == 4  # two minibatches
    assert settings_of(run)["minibatch_size"] == 32
    status, out, err = call(*flags)
    assert (status, err) == (0, []) and "nothing to do: all 768 steps are done" in out


@pytest.mark.slow
def test_going_back_to_a_milestone_leaves_the_later_time_behind(copy_of_first, call):
    """What was saved after the milestone must not be what the next --resume finds."""
    run = copy_of_first("back")
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
    assert [event.step for event in events(run).Scalars("ppo/entropy")] == [64, 128, 192, 256, 320, 384]


@pytest.mark.parametrize("which", [["--resume", "first"], ["--resume=True", "--run_id", "first"], ["--resume=yes"]])
def test_a_finished_run_stays_as_it_is(first, call, which):
    before = content_of(first)
    status, out, err = call("--run_id", "first", *which)
    assert (status, err) == (0, []) and "nothing to do: all 640 steps are done" in out
    assert content_of(first) == before


@pytest.mark.parametrize("stale", [False, True])
def test_a_run_that_was_killed_before_its_summary_gets_it(copy_of_first, call, stale):
    run = copy_of_first(f"unsummed{stale}")
    written = json.loads((run / "summary.json").read_text())
    if stale:  # that of an earlier stop
        (run / "summary.json").write_text(json.dumps(written | {"total_steps": 64, "mean_return": -1.0}))
    else:
        (run / "summary.json").unlink()
    assert call("--resume", run.name)[0] == 0
    again = json.loads((run / "summary.json").read_text())
    written |= {"run_id": run.name, "checkpoint": str(list_checkpoints(run / "checkpoints")[-1])}
    assert again == written


@pytest.mark.slow
def test_a_run_killed_before_its_first_checkpoint_begins_again(first, begin, call, end, runs):
    flags = [*CARTPOLE, "--run_id", "early", "--total_timesteps", 640, "--checkpoint_every_timesteps", 128]
    flags += ["--milestone_interval", 256]
    process = begin(*flags, *FOREVER, "--checkpoint_every_timesteps", 10**9, "--milestone_interval", 10**9)
    until(lambda: (runs / "early/metrics.csv").exists())
    kill(process.pid)
    assert end(process)[0] == -signal.SIGKILL
    assert names_in(runs / "early/checkpoints") == []
    status, _, err = call("--resume", "early", "--inference", "--total_timesteps", 64)
    assert status == 2 and "contains no checkpoints to play with" in err[0]
    status, out, err = call(*flags, "--resume")
    assert (status, err) == (0, []) and "run early has no checkpoint yet: it starts from the beginning" in out
    assert equal(weights_of(runs / "early"), weights_of(first))
    assert steps_in(runs / "early") == list(range(64, 641, 64))


@pytest.mark.slow
def test_the_newest_run_that_fits_goes_on(trained, call, tmp_path):
    shutil.copytree(trained, tmp_path / "fits")
    time.sleep(0.01)
    other = [*CARTPOLE[2:], "--env_id", "Acrobot-v1", "--total_timesteps", 64, "--run_id", "other"]
    assert call(*other, "--runs_dir", tmp_path)[0] == 0
    status, out, err = call(*CARTPOLE, "--resume", "--total_timesteps", 704, "--runs_dir", tmp_path)
    assert (status, err) == (0, [])
    assert "--resume: run other does not fit" in out
    assert "resuming run fits after 640 steps" in out


@pytest.mark.slow
def test_force_starts_again_unless_there_is_another_mistake(first, copy_of_first, call, refused, runs):
    run = copy_of_first("forced")
    again = [*CARTPOLE, "--run_id", "forced", "--force", "--total_timesteps", 64]
    assert "--minibatch_size 9999" in refused(*again, "--minibatch_size", 9999)
    assert equal(weights_of(run), weights_of(first))
    assert not list(runs.glob(".*"))
    assert call(*again)[::2] == (0, [])
    assert names_in(run / "checkpoints") == ["step_000000000064.ckpt"]
    assert not (run / "milestones").exists() and not list(runs.glob(".*"))


def test_playing_changes_nothing(first, call, runs):
    before, others = content_of(first), set(runs.iterdir())
    status, _, err = call("--run_id", "first", "--resume", "--inference", "--total_timesteps", 128)
    assert (status, err) == (0, [])
    assert content_of(first) == before
    (played,) = set(runs.iterdir()) - others
    assert list_checkpoints(played / "checkpoints") == []
    assert json.loads((played / "summary.json").read_text())["total_steps"] == 128


@pytest.mark.slow
def test_checkpoints_by_minutes_say_that_they_are_inexact(call, runs):
    flags = ["--checkpoint_every_minutes", 0.001, "--total_timesteps", 1280, "--keep_checkpoints", 100]
    assert call(*CARTPOLE, "--run_id", "minutes", *flags)[0] == 0
    assert len(names_in(runs / "minutes/checkpoints")) > 1
    assert not any(load_checkpoint(path)[1]["exact"] for path in list_checkpoints(runs / "minutes/checkpoints"))


# ---------------------------------------------------------------- parts of the user's own


@pytest.mark.slow
def test_callbacks_find_their_own_memory_and_a_logger_that_fails_is_left_out(call, runs, tmp_path):
    (tmp_path / "more.yaml").write_text(
        f"callbacks: [{{class_path: {PARTS}.Counting, init_args: {{every: 7}}}}, {{class_path: {PARTS}.Other}}]\n"
    )
    flags = [*CARTPOLE, "--run_id", "memory", "--total_timesteps"]
    status, _, err = call(*flags, 128, "--config", tmp_path / "more.yaml", "--logger", f"{PARTS}.Broken")
    assert status == 0 and len(err) == 1 and "Broken failed and is no longer used" in err[0]
    assert "Broken failed" in (runs / "memory/log.txt").read_text()
    assert load_checkpoint(runs / "memory")[1]["callbacks"][0] == {"seen": 2}
    turned = [f"--callbacks+={PARTS}.Other", f"--callbacks+={PARTS}.Counting"]
    status, _, err = call(*flags, 256, "--resume", *turned)
    assert (status, err) == (0, [])
    assert [row["game/seen"] for row in rows_of(runs / "memory")] == ["0.0", "1.0", "2.0", "3.0"]
    assert [row["game/every"] for row in rows_of(runs / "memory")] == ["7.0", "7.0", "1.0", "1.0"]


@pytest.mark.slow
def test_any_logger_by_its_class(call, runs):
    flags = ["--logger", f"{PARTS}.Mine", "--logger.x", 3, "--total_timesteps", 128, "--run_id", "logged"]
    status, out, err = call(*CARTPOLE, *flags)
    assert (status, err) == (0, [])
    mine = [line for line in out.splitlines() if "MINE" in line]
    assert mine == ["MINE 3 64 True", "MINE 3 128 True", "MINE success"]
    assert steps_in(runs / "logged") == [64, 128]


@pytest.mark.slow
def test_profile_writes_a_trace(call, runs):
    status, _, err = call(*CARTPOLE, "--profile", "--total_timesteps", 320, "--run_id", "profiled")
    assert (status, err) == (0, [])  # torch's own lines about it are silenced
    (trace,) = (runs / "profiled/profile").glob("*.pt.trace.json")
    found = json.loads(trace.read_text())["traceEvents"]
    assert any(event.get("name", "").startswith("Optimizer.step") for event in found)


# ---------------------------------------------------------------- signals


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGUSR1])
def test_a_signal_saves_and_ends_in_order(begin, end, call, runs, number):
    name = f"signal{int(number)}"
    process = begin(*CARTPOLE, "--total_timesteps", 10_000_000, "--run_id", name)
    until(lambda: re.search(r"^ +\d+/", process.out, re.MULTILINE))
    kill(process.pid, number)
    status, _, err = end(process)
    assert status == 0, err
    steps = load_checkpoint(runs / name)[1]["steps"]
    status, out, _ = call("--run_id", name, "--resume", "--total_timesteps", steps + 64)
    assert status == 0
    assert "(equivalent to an uninterrupted run, not bit-identical)" in out


# ---------------------------------------------------------------- looking at runs


def test_runs_are_listed_shown_and_compared(first, copy_of_first, runs, capsys):
    copy_of_first("second")
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
