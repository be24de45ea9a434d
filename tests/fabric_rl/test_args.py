"""Settings that cannot work are refused when they are made, in one line that names the flag."""

from collections.abc import Sequence
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import get_type_hints

import pytest
import yaml
from gymnasium.spaces import Box, Discrete

from fabric_rl import Hardware, SACArgs, Saving, StartArgs, TrainArgs
from fabric_rl.base.argv import DEFAULT_CONFIG
from fabric_rl.base.settings import Finite, Positive, annotations_of
from fabric_rl.callbacks import (
    AdaptiveBatchSize,
    Debug,
    EarlyStopping,
    Evaluation,
    MilestoneMatches,
    Notify,
    StopAfter,
    VideoLogger,
)
from fabric_rl.callbacks.observers import RecordGames
from fabric_rl.cli.command_line import read_settings
from fabric_rl.curricula.lessons import Curriculum
from fabric_rl.curricula.phases import Phase, Phases, Promotion
from fabric_rl.imitation import Cloning
from fabric_rl.imitation.cloning import CloneArgs
from fabric_rl.learning.normalize import ObsNormalizer
from fabric_rl.runs.provenance import Provenance
from fabric_rl.schedules import Constant, KLAdaptive, Linear
from fabric_rl.selfplay import PFSPHard, SelfPlay
from fabric_rl.signals import GAIL, RND, Curiosity
from tests.wrong_values import wrong_values
from train_fabric import main

GROUPS = (TrainArgs, SACArgs, StartArgs, Saving, Hardware)
RANGES = [
    pytest.param(group, name, value, error, id=f"{group.__name__}-{name}-{value!r:.40}")
    for group in (TrainArgs, SACArgs, Saving, Hardware, CloneArgs)
    for name, annotation in annotations_of(group).items()
    for value, error in wrong_values(annotation)
]


@pytest.mark.parametrize(("group", "name", "value", "error"), RANGES)
def test_a_value_outside_its_range_is_refused_with_its_flag(group, name, value, error):
    with pytest.raises(error, match=rf"^--{name} must be (?!.*\n)"):
        group(**{name: value})


SPACES = {"observation_space": Box(-1, 1, (3,)), "action_space": Discrete(2)}
PARTS = {
    **{part: {} for part in (AdaptiveBatchSize, Evaluation, MilestoneMatches, SelfPlay, PFSPHard, KLAdaptive)},
    **{part: SPACES for part in (RND, Curiosity, GAIL)},
    Cloning: {"demos": ["x.frd"]},
    Constant: {"value": 1.0},
    Curriculum: {"parameters": {"a": [1.0]}, "thresholds": []},
    Debug: {"everything": True},
    EarlyStopping: {"metric": "score", "threshold": 1.0, "patience": 1},
    Linear: {"start": 1.0, "end": 0.0},
    Notify: {"url": "http://a"},
    ObsNormalizer: {"shape": 3},
    Phase: {"name": "a"},
    Phases: {"phases": [Phase("a")]},
    Promotion: {"metric": "x", "at_least": 1.0},
    RecordGames: {"folder": Path("games")},
    StopAfter: {"minutes": 1.0},
    VideoLogger: {"folder": "videos"},
}
"""Parts of a run that have ranges, and settings without which they cannot be built."""
EXPECTED = {"base_lrs": Sequence[Positive], "clip": Positive, "eps": Positive, "desired_kl": Positive}
EXPECTED |= {"max_lr": Positive, "value": Finite, "start": Finite, "end": Finite}
"""Annotations of parts whose own say less."""


def ranges_of(part):
    annotations = annotations_of(part) if is_dataclass(part) else get_type_hints(part.__init__, include_extras=True)
    expected = EXPECTED if part in (KLAdaptive, ObsNormalizer, Constant, Linear) else {}
    return {name: expected.get(name, kind) for name, kind in annotations.items()}


@pytest.mark.parametrize(
    ("part", "name", "value", "error"),
    [
        pytest.param(part, name, value, error, id=f"{part.__name__}-{name}-{value!r:.40}")
        for part in PARTS
        for name, annotation in ranges_of(part).items()
        for value, error in wrong_values(annotation)
    ],
)
def test_a_part_refuses_a_value_outside_its_range(part, name, value, error):
    with pytest.raises(error, match=rf"^{part.__name__}: {name}(\[a\])? must be (?!.*\n)"):
        part(**(PARTS[part] | {name: value}))
    part(**PARTS[part])


@pytest.mark.parametrize(
    ("group", "settings", "message"),
    [
        (StartArgs, {"run_id": "../x"}, "--run_id ../x must be a plain name"),
        (StartArgs, {"run_id": "a", "resume": True, "force": True}, "--force deletes the run that --resume continues"),
        (StartArgs, {"force": True}, "--force needs --run_id"),
        (StartArgs, {"run_id": "a", "resume": "b"}, "--resume b already names the run to resume; leave --run_id out"),
        (StartArgs, {"inference": True}, "--inference needs weights"),
        (StartArgs, {"runs_dir": " "}, "--runs_dir is empty; name a folder, or omit the flag"),
        (SACArgs, {"buffer_folder": " "}, "--buffer_folder is empty; name a folder, or omit the flag"),
        (TrainArgs, {"seed": -1}, "--seed must be a whole number from 0 to 4,294,967,295, got -1"),
        (TrainArgs, {"gamma": (0.9, 1.1)}, "--gamma must be a number from 0 to 1, got 1.1"),
        (TrainArgs, {"gamma": ()}, "--gamma needs at least one discount"),
        (
            Hardware,
            {"precision": "64-true"},
            "--precision must be one of 32-true, bf16-mixed, 16-mixed, auto, got '64-true'",
        ),
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
