import os
import time

import pytest
from lightning.fabric.loggers.tensorboard import TensorBoardLogger
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from fabric_rl.metrics.loggers import wait_for_a_later_name


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
