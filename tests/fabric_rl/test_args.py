"""Settings that cannot work are refused when they are made, in one line that names the flag."""

from dataclasses import fields

import pytest
import yaml

from fabric_rl import Hardware, Saving, StartArgs, TrainArgs
from fabric_rl.cli.command_line import read_settings
from fabric_rl.flags.presets import DEFAULT_CONFIG
from fabric_rl.runs.provenance import Provenance
from train_fabric import main

GROUPS = (TrainArgs, StartArgs, Saving, Hardware)


@pytest.mark.parametrize(
    ("group", "settings", "message"),
    [
        (StartArgs, {"run_id": "../x"}, "run_id ../x: must be a plain name"),
        (StartArgs, {"run_id": "a", "resume": True, "force": True}, "force deletes the run that resume goes on"),
        (StartArgs, {"force": True}, "force needs run_id"),
        (StartArgs, {"run_id": "a", "resume": "b"}, "resume b says which run goes on; leave run_id out"),
        (StartArgs, {"inference": True}, "inference needs weights"),
        (StartArgs, {"runs_dir": " "}, "runs_dir is empty; name a folder, or leave the flag out"),
        (TrainArgs, {"seed": -1}, "seed must be between 0 and 4294967295, got -1"),
        (TrainArgs, {"max_grad_norm": float("inf")}, "max_grad_norm must be finite; 0 does not clip"),
        (TrainArgs, {"target_kl": float("inf")}, "target_kl must be finite, got inf"),
        (Saving, {"checkpoint_every_minutes": float("inf")}, "checkpoint_every_minutes must be finite, got inf"),
        (Hardware, {"timeout_minutes": 1e300}, "timeout_minutes must be at most 525600 (a year), got 1e+300"),
        (Hardware, {"timeout_minutes": float("inf")}, "timeout_minutes must be finite, got inf"),
        (Saving, {"checkpoint_every_minutes": 0}, "checkpoint_every_minutes must be positive, got 0"),
        (Saving, {"milestone_interval": float("nan")}, "milestone_interval must be positive, got nan"),
        (Saving, {"keep_checkpoints": 0}, "keep_checkpoints must be at least 1, got 0"),
        (Hardware, {"timeout_minutes": 0}, "timeout_minutes must be positive, got 0"),
        (Hardware, {"num_nodes": 0}, "num_nodes must be at least 1, got 0"),
        (Hardware, {"precision": "64-true"}, "precision 64-true: choose 32-true, bf16-mixed or 16-mixed"),
        (Hardware, {"accelerator": "tpu"}, "accelerator tpu: choose auto, cpu, gpu, cuda or mps"),
    ],
)
def test_settings_that_cannot_work_are_refused(group, settings, message):
    with pytest.raises(ValueError) as raised:
        group(**settings)
    assert str(raised.value).startswith(message)


@pytest.mark.parametrize(
    "settings",
    [
        {"run_id": "a", "resume": "a"},
        {"resume": True, "initialize_from": "b"},
        {"run_id": "a", "force": True},
        {"resume": True, "inference": True},
        {"initialize_from": "b", "inference": True},
    ],
)
def test_starts_that_go_together(settings):
    assert StartArgs(**settings)


def test_the_groups_share_no_flag():
    """They are flattened into one command line and one config.yaml."""
    names = [field.name for group in GROUPS for field in fields(group)]
    assert len(names) == len(set(names))


def test_what_is_null_and_is_so_by_no_default_stays_null_in_the_settings_that_a_run_keeps(tmp_path):
    """A run goes on, or is run again, with nothing but its config.yaml."""
    words = ["--record_minutes=null", "--checkpoint_every_timesteps=null"]
    words += ['--env.obs={"class_path": "envs.DefaultObs", "init_args": {"zero_padding": null}}']
    kept = read_settings(main, words, "", DEFAULT_CONFIG).arguments["resolved_config"]
    config = tmp_path / "config.yaml"
    config.write_text(kept)
    again = read_settings(main, [f"--config={config}"], "", DEFAULT_CONFIG).arguments
    assert again["saving"].record_minutes is again["saving"].checkpoint_every_timesteps is None
    assert yaml.safe_load(again["resolved_config"]) == yaml.safe_load(kept) and "zero_padding: null" in kept
    assert "\nnum_threads:" not in kept  # a run notes how many it had
    config.write_text("\n".join(line for line in kept.splitlines() if not line.endswith(": null")))  # a run of before
    assert Provenance(tmp_path).changed_settings(kept) == []
