"""What stops a run, what it says then, and what to do next."""

import os
import signal
import sys
from pathlib import Path

import pytest

from fabric_rl import Callback, Run, TrainArgs, train
from fabric_rl.base.argv import PRESETS
from fabric_rl.cli.report import format_summary, next_steps
from fabric_rl.commands.runs import show_run
from fabric_rl.metrics.log import BufferedLog

POSIX = pytest.mark.skipif(sys.platform == "win32", reason="signals to oneself")


class Signals(Callback):
    """Sends itself signals in the middle of the second iteration."""

    def __init__(self, *numbers):
        self.numbers = numbers

    def on_learn_start(self, state):
        if state.iteration == 1:
            for number in self.numbers:
                os.kill(os.getpid(), number)


class Stop(Callback):
    def on_iteration_end(self, state):
        state.stop |= state.iteration == 2


@pytest.fixture
def stopped(fabric, counter_env, known_agent, tmp_path):
    """Trains for up to four iterations of 15 agent-steps."""

    def call(*callbacks):
        run = Run.create(tmp_path, "bots")
        args = TrainArgs(num_steps=5, update_epochs=1, minibatch_size=15, total_timesteps=60)
        with BufferedLog() as log:
            log.open(run.dir / "log.txt")
            return run, train(fabric, counter_env, known_agent, args, run, callbacks, plain=True)

    return call


@pytest.fixture
def hangup():
    """Sets what the end of the terminal means to this process, whatever has started the tests."""
    before = signal.getsignal(signal.SIGHUP)
    yield lambda meaning: signal.signal(signal.SIGHUP, meaning)
    signal.signal(signal.SIGHUP, before)


@POSIX
@pytest.mark.parametrize(
    ("number", "name"), [("SIGINT", "Ctrl+C"), ("SIGTERM", "SIGTERM"), ("SIGUSR1", "SIGUSR1"), ("SIGHUP", "SIGHUP")]
)
def test_the_signal_that_has_stopped_it(stopped, hangup, number, name):
    hangup(signal.SIG_DFL)
    run, summary = stopped(Signals(getattr(signal, number)))
    assert summary["total_steps"] == 30
    assert summary["stopped_by"].startswith(name)
    assert f", stopped early by {name}" in format_summary(run, summary)
    assert f"stopped early by {name}" in (run.dir / "log.txt").read_text()


@POSIX
def test_under_nohup_a_closed_terminal_stops_nothing(stopped, hangup):
    hangup(signal.SIG_IGN)
    _, summary = stopped(Signals(signal.SIGHUP))
    assert summary["total_steps"] == 60 and not summary["stopped_early"]
    assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN


@pytest.mark.parametrize("hook", ["on_train_start", "on_iteration_start", "on_learn_start"])
def test_the_callback_is_named_wherever_it_stops(stopped, hook):
    class Early(Callback):
        pass

    setattr(Early, hook, lambda self, state: setattr(state, "stop", True))
    _, summary = stopped(Early())
    assert summary["stopped_by"] == "Early"


def test_a_callback_has_stopped_it(stopped, tmp_path, capsys):
    run, summary = stopped(Stop())
    assert summary["stopped_by"] == "Stop"
    assert "30 steps in" in format_summary(run, summary) and "stopped early by Stop" in format_summary(run, summary)
    capsys.readouterr()
    assert show_run("bots", tmp_path) == 0
    assert " Stop " in capsys.readouterr().out


def test_nothing_has_stopped_it(stopped):
    run, summary = stopped()
    assert summary["total_steps"] == 60 and "stopped_by" not in summary
    assert "stopped early" not in format_summary(run, summary)


class SignalAtTheEnd(Callback):
    def on_train_end(self, state):
        assert not state.stop
        os.kill(os.getpid(), signal.SIGINT)
        assert state.stop


@POSIX
def test_a_signal_at_the_end_is_told_to_callbacks_and_the_run_still_ends_in_order(stopped, capsys):
    before = signal.getsignal(signal.SIGINT)
    run, summary = stopped(SignalAtTheEnd())
    assert summary["total_steps"] == 60 and not summary["stopped_early"] and (run.dir / "summary.json").is_file()
    assert "stopping; press Ctrl+C again to stop at once" in capsys.readouterr().out
    assert signal.getsignal(signal.SIGINT) is before


@POSIX
def test_a_second_signal_says_what_it_was_in_the_log(stopped, tmp_path):
    with pytest.raises(KeyboardInterrupt):
        stopped(Signals(signal.SIGTERM, signal.SIGINT))
    (line,) = (line for line in (tmp_path / "bots/log.txt").read_text().splitlines() if "KeyboardInterrupt" in line)
    assert line.endswith("KeyboardInterrupt: a second signal (SIGINT) ended training at once")


# ---------------------------------------------------------------- what next

ARGS = TrainArgs(total_timesteps=1000)
GIVEN = ["--env_id", "CartPole-v1", "--total_timesteps", "1000", "--run_id", "bots"]


@pytest.fixture(autouse=True)
def started_as_script(monkeypatch):
    monkeypatch.setattr("sys.argv", ["train_fabric.py"])
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent), prepend=os.pathsep)


SUMMARY = {"run_id": "bots", "total_steps": 1024, "stopped_early": False, "world_size": 2, "checkpoint": "..."}


def test_a_stopped_run_goes_on_as_it_is(tmp_path):
    steps = next_steps(GIVEN, ARGS, SUMMARY | {"stopped_early": True}, str(tmp_path))
    report = f"  fabric-rl report bots --runs_dir {tmp_path}"
    assert steps == f"Next:\n  python train_fabric.py --runs_dir {tmp_path} --run_id bots --resume\n{report}"
    steps = next_steps(GIVEN, ARGS, SUMMARY | {"stopped_early": True}, "runs")
    assert steps == "Next:\n  python train_fabric.py --run_id bots --resume\n  fabric-rl report bots"


def test_so_does_one_that_could_not_be_saved(tmp_path):
    assert "10_000" not in next_steps(GIVEN, ARGS, SUMMARY | {"unsaved_steps": 5}, str(tmp_path))


def test_more_steps_than_there_are_already(tmp_path):
    """A run of few steps ends with its first rollout; another may be named with fewer steps than it has."""
    for done in (10_000, 51_200):
        text = next_steps(GIVEN, ARGS, SUMMARY | {"total_steps": done}, str(tmp_path))
        assert text.endswith(f" --total_timesteps {10 * done:_}")


def test_tensorboard_only_where_there_are_curves_for_it(tmp_path):
    longer = "  python train_fabric.py --env_id CartPole-v1 --run_id bots --resume --total_timesteps 10_000"
    report = f"Next:\n  fabric-rl report bots --runs_dir {tmp_path}\n"
    assert next_steps(GIVEN, ARGS, SUMMARY, str(tmp_path)) == f"{report}{longer}"
    (tmp_path / "bots/tensorboard").mkdir(parents=True)
    (tmp_path / "bots/tensorboard/events.out.tfevents.1.host").touch()
    assert next_steps(GIVEN, ARGS, SUMMARY, str(tmp_path)) == f"{report}  tensorboard --logdir {tmp_path}\n{longer}"


def test_a_run_that_recorded_games_can_be_watched(tmp_path):
    (tmp_path / "bots/games").mkdir(parents=True)
    assert "fabric-rl watch" not in next_steps(GIVEN, ARGS, SUMMARY, str(tmp_path))
    (tmp_path / "bots/games/1.frl").touch()
    steps = next_steps(GIVEN, ARGS, SUMMARY, str(tmp_path))
    assert [line.split()[1] for line in steps.splitlines()[1:4]] == ["watch", "evaluate", "report"]
    assert "evaluate" not in next_steps(GIVEN, ARGS, SUMMARY | {"stopped_early": True}, str(tmp_path))


def test_a_longer_run_leaves_out_its_teacher(tmp_path):
    (tmp_path / "bots").mkdir()
    metrics = ["step", "ppo/loss", "ppo/teacher_loss", "phase/number"]
    for number, taught in ((2, False), (3, True), (4, False)):  # phases decide about their teacher themselves
        text = "\n".join([",".join(metrics[:number]), ",".join("1" * number)])
        (tmp_path / "bots/metrics.csv").write_text(f"{text}\n")
        steps = next_steps(GIVEN, ARGS, SUMMARY, str(tmp_path))
        assert steps.endswith(" --total_timesteps 10_000" + " --agent.teacher_coef 0" * taught)
    given = [*GIVEN, "--agent.teacher_coef", "Linear", "--agent.teacher_coef.start=1", "--agent.teacher_coef.end", "0"]
    (tmp_path / "bots/metrics.csv").write_text("step,ppo/teacher_loss\n1,1\n")
    assert next_steps(given, ARGS, SUMMARY, str(tmp_path)).count("teacher_coef") == 1
    (tmp_path / "bots/metrics.csv").write_text("step,keeper/sac/loss,striker/ppo/teacher_loss\n1,1,1\n")
    assert next_steps(GIVEN, ARGS, SUMMARY, str(tmp_path)).endswith(" --agent.roles.striker.teacher_coef 0")


def test_a_quickstart_is_followed_by_the_next_preset(tmp_path):
    given = ["--config", str(PRESETS / "rocket_1v1_quickstart.yaml"), "--run_id", "bots"]
    last = next_steps(given, ARGS, SUMMARY, "runs").splitlines()[-1]
    assert last.endswith(" --config rocket_1v1_advanced --initialize_from bots --run_id bots_advanced")
    own = next_steps([*given, "--env.reward", "mine.Reward"], ARGS, SUMMARY, "runs")
    assert "rocket_1v1_advanced" not in own  # it has rewards of its own


def test_tune_is_offered_after_the_first_run(tmp_path):
    for run in ("bots", "others"):
        (tmp_path / run).mkdir()
        (tmp_path / run / "summary.json").write_text("{}")
        (tmp_path / "bots/metrics.csv").write_text("step,ppo/loss\n1,0.5\n")
        offered = "fabric-rl tune --env_id CartPole-v1\n" in next_steps(GIVEN, ARGS, SUMMARY, str(tmp_path))
        assert offered == (run == "bots")
