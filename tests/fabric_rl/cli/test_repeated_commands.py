"""A command that is repeated with `--resume` has the settings of the run, not its lists twice."""

import pytest
import yaml

from fabric_rl.base.argv import DEFAULT_CONFIG
from fabric_rl.cli.command_line import read_settings
from fabric_rl.runs.folder import Run
from train_fabric import main

STOP = "--callbacks+=fabric_rl.callbacks.StopAfter"
PATIENT = ["--callbacks+=fabric_rl.callbacks.EarlyStopping", "--callbacks.metric=ppo/loss", "--callbacks.patience=3"]
WRAPPER = "--env.wrappers+=gymnasium.wrappers.RecordEpisodeStatistics"
ENV = ["--env", "envs.GymnasiumEnvs", "--env.env_id", "CartPole-v1"]


@pytest.mark.slow
@pytest.mark.parametrize("env", [ENV, [*ENV, WRAPPER]])
def test_what_a_list_has_is_not_appended_again(tmp_path, env):
    first = [
        *PATIENT,
        STOP,
        "--callbacks.minutes",
        "5",
        "--signals+=fabric_rl.signals.RND",
        "--runs_dir",
        str(tmp_path),
    ]
    first += ["--run_id", "r"]
    settings = read_settings(main, [*env, *first], "", DEFAULT_CONFIG).arguments
    Run.create(tmp_path, "r", config=settings["resolved_config"])
    flags = [*first, *([WRAPPER] if WRAPPER in env else []), "--resume"]
    again = read_settings(main, flags, "", DEFAULT_CONFIG).arguments
    assert [type(each).__name__ for each in again["callbacks"]] == ["EarlyStopping", "StopAfter"]
    assert len(again["signals"]) == 1
    wrappers = yaml.safe_load(again["resolved_config"])["env"]["init_args"]["wrappers"]
    assert len(wrappers or ()) == (WRAPPER in env)
    longer = read_settings(main, [*flags, STOP, "--callbacks.minutes", "6"], "", DEFAULT_CONFIG).arguments
    assert [type(each).__name__ for each in longer["callbacks"]] == ["EarlyStopping", "StopAfter", "StopAfter"]
    anew = read_settings(main, [*flags, "--callbacks=[]", STOP, "--callbacks.minutes=5"], "", DEFAULT_CONFIG).arguments
    assert [type(each).__name__ for each in anew["callbacks"]] == ["StopAfter"]
