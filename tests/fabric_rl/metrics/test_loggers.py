"""Metrics: rows and their means, loggers and what they are told, the live view on a terminal of 80 columns."""

import io
import os
import re
import time
from functools import partial

import pytest
from lightning.fabric.loggers import CSVLogger, TensorBoardLogger
from rich.console import Console
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.plugins.hparams import plugin_data_pb2

from agents import PPOLightningAgent
from envs import GymnasiumEnvs
from fabric_rl import Callback, StartArgs, TrainArgs, load_checkpoint, train
from fabric_rl.metrics.console import TrainConsole, metrics_table
from fabric_rl.metrics.loggers import Loggers, MetricsFile, wait_for_next_second
from fabric_rl.metrics.metrics_csv import parse_number, read_rows
from fabric_rl.runs.announcement import Announcement, build_loggers
from fabric_rl.runs.start_or_resume import open_run

SETTINGS = {"num_steps": 8, "env": "envs.RocketSimPool", "agent.sizes": [8, 8], "env_id": None}
SUMMARY = {
    "run_id": "a",
    "mean_return": 3.5,
    "goals_per_minute": {"start": 0.5, "end": 2.5},
    "mean_return_last_20": None,
}


def read(folder):
    accumulator = EventAccumulator(str(folder))
    accumulator.Reload()
    return accumulator


def test_tensorboard_shows_settings_and_changes_as_text(tmp_path):
    logger = TensorBoardLogger(tmp_path, name="tb", version="")
    Loggers([logger]).log_settings(SETTINGS, ["num_steps: 4 -> 8"], 640)
    logger.finalize("success")
    found = read(tmp_path / "tb")
    (settings,), (changes,) = (found.Tensors(f"{name}/text_summary") for name in ("settings", "changed settings"))
    assert "| agent.sizes | [8, 8] |" in settings.tensor_proto.string_val[0].decode()
    assert (changes.step, changes.tensor_proto.string_val[0]) == (640, b"- num_steps: 4 -> 8")


def test_the_hparams_tab_has_one_row_for_a_run_the_newest(tmp_path):
    for returned, step in ((1.5, 64), (3.5, 128)):
        logger = TensorBoardLogger(tmp_path, name="tb", version="")
        Loggers([logger]).log_outcome(SETTINGS, SUMMARY | {"mean_return": returned}, step)
        logger.finalize("success")
    found = read(tmp_path / "tb/outcome")
    figures = {name: [(e.step, e.value) for e in found.Scalars(name)] for name in found.Tags()["scalars"]}
    assert figures == {"outcome/mean_return": [(128, 3.5)], "outcome/goals_per_minute": [(128, 2.5)]}
    content = found.SummaryMetadata("_hparams_/session_start_info").plugin_data.content
    started = plugin_data_pb2.HParamsPluginData.FromString(content).session_start_info.hparams
    assert started["num_steps"].number_value == 8
    assert started["agent.sizes"].string_value == "[8, 8]"


class Service:
    """A logger of somebody's own."""

    def __init__(self, down=False):
        self.down, self.config = down, {}

    def log_hyperparams(self, params):
        if self.down:
            raise ConnectionError("nobody answers")
        self.config |= params


def test_other_loggers_get_them_as_hyperparameters_and_one_that_fails_is_a_warning(tmp_path, capsys):
    service = Service()
    Loggers([Service(down=True), CSVLogger(tmp_path), service]).log_settings(SETTINGS, [], 0)
    assert service.config == SETTINGS
    warned = "warning: Service did not get the settings of the run (ConnectionError: nobody answers)\n"
    assert capsys.readouterr().err.endswith(warned)


@pytest.mark.slow
def test_two_sessions_in_one_second_are_read_in_their_order(tmp_path, monkeypatch):
    values = range(6)
    for value in values:  # process 999,998, and so on to 1,000,003, whose names would come first
        wait_for_next_second(tmp_path)
        monkeypatch.setattr(os, "getpid", lambda value=value: 999_998 + value)
        logger = TensorBoardLogger(tmp_path, name="", version="")
        logger.log_metrics({"seen": value}, value)
        logger.finalize("success")
    accumulator = EventAccumulator(str(tmp_path))
    accumulator.Reload()
    assert [event.value for event in accumulator.Scalars("seen")] == list(values)
    assert len(list(tmp_path.iterdir())) == len(values)


def test_files_of_other_seconds_and_other_names_are_not_waited_for(tmp_path, monkeypatch):
    for name in (f"events.out.tfevents.{int(time.time()) + 3600}.host.1.0", "events.out.tfevents.mine", "x"):
        (tmp_path / name).touch()
    monkeypatch.setattr(time, "sleep", lambda seconds: pytest.fail(f"waits for {seconds} s"))
    wait_for_next_second(tmp_path / "not_there")
    wait_for_next_second(tmp_path)


def test_a_run_that_goes_on_keeps_the_rows_up_to_its_step(tmp_path):
    first = MetricsFile(tmp_path)
    for step in (15, 30, 45):
        first.log_metrics({"a": step / 10}, step)
    again = MetricsFile(tmp_path, until=30)
    assert len(read_rows(tmp_path / "metrics.csv")) == 3  # nothing changes before there is something to log
    again.log_metrics({"a": 7.0}, 45)
    assert [tuple(row.values()) for row in read_rows(tmp_path / "metrics.csv")] == [
        ("15", "1.5"),
        ("30", "3.0"),
        ("45", "7.0"),
    ]


def test_a_metric_that_comes_later_gets_a_column_and_one_that_stays_away_an_empty_cell(tmp_path):
    file = MetricsFile(tmp_path)
    file.log_metrics({"b": 1.0}, 1)
    file.log_metrics({"b": 2.0, "a": 3.0}, 2)
    file.log_metrics({"a": 4.0}, 3)
    assert (tmp_path / "metrics.csv").read_text().splitlines() == ["step,b,a", "1,1.0,", "2,2.0,3.0", "3,,4.0"]


def test_a_new_run_leaves_no_rows_of_another(tmp_path):
    MetricsFile(tmp_path).log_metrics({"a": 1.0}, 1)
    MetricsFile(tmp_path).log_metrics({"b": 2.0}, 2)
    assert read_rows(tmp_path / "metrics.csv") == [{"step": "2", "b": "2.0"}]


def test_the_end_of_a_long_file_begins_with_a_whole_row(tmp_path):
    path = tmp_path / "metrics.csv"
    path.write_text("step,a\n100,1\n200,2\n300,3\n4")  # the last row is half written
    whole = [{"step": "100", "a": "1"}, {"step": "200", "a": "2"}, {"step": "300", "a": "3"}]
    assert read_rows(path) == read_rows(path, last_bytes=1000) == whole
    assert read_rows(path, last_bytes=12) == whole[2:]  # from within "200,2"
    assert read_rows(path, last_bytes=1) == []


def test_only_finite_numbers_are_numbers():
    assert [parse_number(cell) for cell in ("1.5", "-2", "", None, "nan", "inf", "x")] == [1.5, -2.0, *[None] * 5]


ENV = partial(GymnasiumEnvs, "CartPole-v1", 2)
EACH = 32


class Adds(Callback):
    """A metric of its own, on rank 0 only, and one that counts unevenly."""

    def on_iteration_end(self, state):
        state.metrics["custom/iteration"] = float(state.iteration)
        if state.iteration == getattr(self, "stop_after", None):
            state.stop = True

    def drain_metrics(self):
        self.calls = getattr(self, "calls", 0) + 1
        return {"custom/uneven": (10.0 * self.calls, float(self.calls**2))}


@pytest.fixture
def rows(fabric, tmp_path):
    """Trains into a folder; returns the rows of its metrics without speeds, by agent-steps."""

    def call(name, iterations, summary_freq=None, resume=False, stop_after=None):
        args = TrainArgs(iterations * EACH, num_steps=16, update_epochs=1, lr_schedule="constant")
        args = TrainArgs(**vars(args) | {"summary_freq": summary_freq})
        start = StartArgs(name, str(tmp_path), resume)
        adds = Adds()
        adds.stop_after, adds.calls = stop_after, 0 if not resume else stop_after_of[name]
        stop_after_of[name] = stop_after or 0
        with open_run(ENV, PPOLightningAgent, args, start, None) as opened:
            fabric._loggers = build_loggers(opened, None)
            opened.share(fabric)
            hooks = [adds, Announcement(opened, args, None, "")]
            train(fabric, ENV, PPOLightningAgent, args, opened.run, hooks, plain=True, resume=opened.state)
        found = read_rows(tmp_path / name / "metrics.csv")
        return {
            int(row["step"]): {name: float(x) for name, x in row.items() if x and name[:5] != "speed"} for row in found
        }

    stop_after_of = {}
    return call


@pytest.mark.slow
def test_a_row_holds_weighted_means_of_the_iterations_since_the_last_one(rows):
    each, few = rows("each", 5), rows("few", 5, summary_freq=2 * EACH)
    assert list(each) == [32, 64, 96, 128, 160]
    assert list(few) == [64, 128, 160]  # at the end, what is left
    for step, of in ((64, (32, 64)), (128, (96, 128)), (160, (160,))):
        numbers = [each[one]["custom/iteration"] for one in of]
        assert few[step]["custom/iteration"] == sum(numbers) / len(numbers)
        assert few[step]["ppo/entropy"] == pytest.approx(sum(each[one]["ppo/entropy"] for one in of) / len(of))
        calls = [one // EACH for one in of]
        assert few[step]["custom/uneven"] == pytest.approx(sum(10 * n for n in calls) / sum(n**2 for n in calls))


def test_a_run_that_goes_on_has_the_rows_of_one_without_a_break(rows, tmp_path):
    whole = rows("whole", 6, summary_freq=2 * EACH)
    stopped = rows("stopped", 6, summary_freq=2 * EACH, stop_after=3)
    assert list(stopped) == [64, 96]
    assert load_checkpoint(tmp_path / "stopped")[1]["unpublished"]["custom/uneven"] == [30.0, 9.0]
    again = rows("stopped", 6, summary_freq=2 * EACH, resume=True)
    assert list(again) == list(whole) == [64, 128, 192]
    for name in ("custom/uneven", "custom/iteration"):
        assert [row[name] for row in again.values()] == [row[name] for row in whole.values()]


METRICS = {
    "game/episode_length": 123.4567,
    "game/goals_per_minute": 0.123456,
    "game/touches_per_minute": 12.34567,
    "ppo/approx_kl": -2.794e-09,
    "ppo/clip_fraction": 0.123456,
    "ppo/entropy": 4.123456,
    "ppo/explained_variance": -0.005701234,
    "ppo/learning_rate": 0.0003,
    "ppo/policy_loss": -0.01234567,
    "ppo/update_magnitude": 1.234567,
    "ppo/update_magnitude_policy_head": 0.1234567,
    "ppo/value_loss": 21.9312,
    "reward/VelocityPlayerToBallReward": 0.001234567,
    "reward/a_reward_of_my_own_with_a_name_that_is_longer_than_half_of_the_terminal": 1.0,
    "reward/episode_return": 1234567.0,
    "speed/collected_steps_per_second": 1234567.0,
    "speed/consumed_steps_per_second": 2345678.0,
    "speed/overall_steps_per_second": 345678.0,
}


def drawn(what, width=80):
    console = Console(width=width, file=io.StringIO())
    console.print(what)
    return console.file.getvalue()


@pytest.mark.parametrize("width", [80, 60])
def test_no_label_and_no_number_is_cut(width):
    text = drawn(metrics_table(METRICS, width), width)
    assert "…" not in text
    assert max(map(len, text.splitlines())) <= width
    numbers = ("1,234,567", "2,345,678", "-2.794e-09", "-0.005701", "345,678")
    assert all(each in text for each in numbers)
    if width == 80:
        for label in ("collected_steps/s", "consumed_steps/s", "overall_steps/s", "touches/min", "goals/min"):
            assert re.search(rf"(^| ){re.escape(label)} ", text, re.MULTILINE)
        assert "explained_variance" in text


def test_all_parts_of_a_long_label_are_shown():
    name = "a_reward_of_my_own_with_a_name_that_is_longer_than_half_of_the_terminal"
    lines = drawn(metrics_table({f"reward/{name}": 1.0}, 80)).splitlines()
    assert lines[0].strip() == "reward"
    assert "".join(line.split()[0] for line in lines[1:] if line.split()) == name


def test_names_are_no_markup():
    assert "[red]" in drawn(metrics_table({"[red]/x": 1.0}, 80))


@pytest.mark.parametrize(("done", "shown"), [(8064, 8064), (100, 5000)])
def test_the_bar_ends_where_the_run_does(done, shown, monkeypatch):
    """A run that has done more than it is asked for now, and an iteration that goes over the end."""
    monkeypatch.setenv("TERM", "dumb")
    console = TrainConsole(4608, plain=False, done=done)
    with console:
        console.show(shown, {})
    assert "4,608/4,608" in drawn(console._progress)
    assert "4,608/4,608" in drawn(TrainConsole(4608, done=8064)._progress)
