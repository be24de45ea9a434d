"""Loggers of a run: settings and what they have led to, TensorBoard's files, metrics.csv."""

import os
import time

import pytest
from lightning.fabric.loggers import CSVLogger, TensorBoardLogger
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.plugins.hparams import plugin_data_pb2

from fabric_rl.metrics.csv_tables import number, read_rows
from fabric_rl.metrics.loggers import Loggers, MetricsFile, wait_for_a_later_name

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
    warned = "warning: Service has not got the settings of the run (ConnectionError: nobody answers)\n"
    assert capsys.readouterr().err.endswith(warned)


@pytest.mark.slow
def test_two_sessions_in_one_second_are_read_in_their_order(tmp_path, monkeypatch):
    values = range(6)
    for value in values:  # process 999,998, and so on to 1,000,003, whose names would come first
        wait_for_a_later_name(tmp_path)
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
    wait_for_a_later_name(tmp_path / "not_there")
    wait_for_a_later_name(tmp_path)


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
    assert [number(cell) for cell in ("1.5", "-2", "", None, "nan", "inf", "x")] == [1.5, -2.0, *[None] * 5]
