"""Loggers get the settings of a run, their changes, and what they have led to."""

import pytest
from lightning.fabric.loggers import CSVLogger, TensorBoardLogger
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.plugins.hparams import plugin_data_pb2

from fabric_rl.metrics.settings import log_outcome, log_settings

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
    log_settings([logger], SETTINGS, ["num_steps: 4 -> 8"], 640)
    logger.finalize("success")
    found = read(tmp_path / "tb")
    (settings,), (changes,) = (found.Tensors(f"{name}/text_summary") for name in ("settings", "changed settings"))
    assert "| agent.sizes | [8, 8] |" in settings.tensor_proto.string_val[0].decode()
    assert (changes.step, changes.tensor_proto.string_val[0]) == (640, b"- num_steps: 4 -> 8")


def test_the_hparams_tab_has_one_row_for_a_run_the_newest(tmp_path):
    for returned, step in ((1.5, 64), (3.5, 128)):
        logger = TensorBoardLogger(tmp_path, name="tb", version="")
        log_outcome([logger], SETTINGS, SUMMARY | {"mean_return": returned}, step)
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


def test_other_loggers_get_them_as_hyperparameters_and_one_that_fails_is_a_warning(tmp_path):
    service = Service()
    with pytest.warns(RuntimeWarning, match="Service has not got the settings of the run .*nobody answers"):
        log_settings([Service(down=True), CSVLogger(tmp_path), service], SETTINGS, [], 0)
    assert service.config == SETTINGS
