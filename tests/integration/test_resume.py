"""A run that is killed and resumed ends as one that was never killed: bit for bit."""

import json
import random
import time

import pytest

from fabric_rl.runs.records import list_checkpoints
from tests.forks import kill
from tests.runs import assert_same, outcome

SMALL = "--agent.actor_hidden_sizes [16] --agent.critic_hidden_sizes [16]"
TOTAL = "--total_timesteps 2048 --update_epochs 1"
ARENAS = "--env.num_arenas 4 --env.state_setter envs.RandomState"
LEARNS = f"--num_steps 16 --standardize_returns true --agent.normalize_obs true --minibatch_size 64 {TOTAL} {SMALL}"
ROCKET = f"{ARENAS} {LEARNS}".split()
MEMORY = (
    "--env_id CartPole-v1 --num_envs 4 --num_steps 16 --agent agents.RecurrentPPOAgent --agent.sequence_length 8 "
    f"--agent.burn_in 4 --agent.memory_size 8 --minibatch_size 32 {TOTAL} "
    "--exp_buffer_size 128 --lr_schedule kl_adaptive --exact_resume"
).split()
OVERLAP = [*MEMORY, "--overlap"]
# Worker processes in two groups that begin in the middle of nowhere, collected ahead.
GROUPS = (
    "--env envs.ProcessPool --env.factory envs.RocketSimPool --env.factory.num_arenas 4 "
    "--env.factory.state_setter envs.RandomState --env.num_workers 2 --env.groups 2 --overlap "
    f"{LEARNS}"
).split()
# Opponents with memory: snapshots that come and go every iteration, and a bot that draws what it does.
SELF_PLAY = (
    f"--agent agents.RecurrentPPOAgent {ARENAS} {LEARNS} --agent.hidden_sizes [8] --agent.memory_size 8 "
    "--agent.sequence_length 8 --self_play fabric_rl.selfplay.SelfPlay --self_play.guests [random] "
    "--self_play.save_steps 64 --self_play.swap_steps 64 --self_play.window 3 "
    "--self_play.sampling fabric_rl.selfplay.PFSPHard --self_play.eviction fabric_rl.selfplay.MostSimilar "
    "--self_play.play_against_latest_model_ratio 0.3 --self_play.min_kl 1e-7"
).split()
SELF_PLAY += ["--env.done", "[{class_path: envs.NoTouchCondition, init_args: {timeout_seconds: 0.7}}]"]
SAC = (
    f"--env envs.RocketSimPool {ARENAS} --env.action envs.ContinuousAction --agent agents.SACLightningAgent "
    f"--agent.normalize_obs true {SMALL} --total_timesteps 2048 --train_interval 16 --num_update 3 --n_step 3 "
    "--batch_size 32 --summary_freq 1 --buffer_size 600 --buffer_init_steps 300 --save_replay_buffer"
).split()
# SAC with prioritized replay beside PPO with memory, which learns from two iterations at a time, and has curiosity.
KEEPER = {"class_path": "agents.SACLightningAgent"}
KEEPER["init_args"] = {"actor_hidden_sizes": [16], "critic_hidden_sizes": [16], "normalize_obs": True}
STRIKER = {"class_path": "agents.RecurrentPPOAgent"}
STRIKER["init_args"] = {"hidden_sizes": [8], "memory_size": 8, "sequence_length": 8, "value_heads": 2}
TRAINERS = {
    "keeper": {"settings": {"train_interval": 8, "batch_size": 32, "per_alpha": 0.6, "save_replay_buffer": True}},
    "striker": {"settings": {"num_steps": 32, "minibatch_size": 64, "update_epochs": 1, "standardize_returns": True}},
}
TRAINERS["keeper"]["settings"] |= {"buffer_size": 600, "buffer_init_steps": 150, "n_step": 3}
TRAINERS["striker"]["settings"] |= {"lr_schedule": "kl_adaptive", "exp_buffer_size": 256}
TRAINERS["striker"]["signals"] = [{"class_path": "fabric_rl.signals.Curiosity"}]
ROLES = (
    f"--env envs.RocketSimPool {ARENAS} --env.obs envs.TeamRoleObs --env.obs.inner envs.DefaultObs --num_steps 16 "
    "--total_timesteps 2048 --agent agents.RolesAgent --agent.roles"
).split()
ROLES += [json.dumps({"keeper": KEEPER, "striker": STRIKER}), "--trainers", json.dumps(TRAINERS)]
ROLES += ["--env.done", "[{class_path: envs.NoTouchCondition, init_args: {timeout_seconds: 0.7}}]"]


def start_run(forks, runs, settings, devices, *more, **variables):
    flags = [*settings, "--checkpoint_every_timesteps", 256, "--devices", devices, "--accelerator", "cpu", "--plain"]
    return forks.ranks(devices, *flags, "--runs_dir", runs, "--run_id", "r", *more, **variables)


def finish(forks, ranks):
    statuses, _, err = forks.wait(ranks)
    assert statuses == [0] * len(ranks), err


def longer(settings, total):
    return [*settings, "--total_timesteps", total]


@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    ("settings", "devices", "kills"),
    [
        (ROCKET, 1, 3),
        pytest.param(ROCKET, 2, 2, marks=pytest.mark.slow),
        pytest.param(MEMORY, 1, 2, marks=pytest.mark.slow),
        pytest.param(OVERLAP, 2, 2, marks=pytest.mark.slow),
        pytest.param(GROUPS, 1, 2, marks=pytest.mark.slow),
        pytest.param(SELF_PLAY, 1, 2, marks=pytest.mark.slow),
        pytest.param([*SELF_PLAY, "--overlap"], 2, 2, marks=pytest.mark.slow),
        pytest.param(SAC, 1, 2, marks=pytest.mark.slow),
        pytest.param(SAC, 2, 2, marks=pytest.mark.slow),
        pytest.param(ROLES, 1, 3, marks=pytest.mark.slow),
        pytest.param([*ROLES, "--self_play", "fabric_rl.selfplay.SelfPlay"], 2, 2, marks=pytest.mark.slow),
        pytest.param(longer(ROCKET, 16384), 1, 20, marks=pytest.mark.learning),
        pytest.param(longer(ROCKET, 16384), 2, 6, marks=pytest.mark.learning),
        pytest.param(longer(ROCKET, 32768), 2, 20, marks=pytest.mark.learning),
    ],
)
def test_killed_runs_end_bit_identical(forks, tmp_path, settings, devices, kills):
    threads = {"LOCAL_WORLD_SIZE": devices} if kills > 3 else {}  # all that there are
    finish(forks, start_run(forks, tmp_path / "whole", settings, devices, **threads))
    dice = random.Random(devices)
    ranks = start_run(forks, tmp_path / "killed", settings, devices, **threads)
    folder = tmp_path / "killed/r/checkpoints"
    done = 0
    for _ in range(kills):  # any moment will do: right after a new checkpoint and a little more
        before = list_checkpoints(folder)[-1:]
        while list_checkpoints(folder)[-1:] == before and all(map(forks.is_running, ranks)):
            time.sleep(0.01)
        time.sleep(dice.random() * 0.3)
        one = dice.choice(ranks)
        if forks.is_running(one):
            kill(one.pid)
            done += 1
        forks.wait(ranks)
        ranks = start_run(forks, tmp_path / "killed", settings, devices, "--resume", **threads)
    finish(forks, ranks)
    whole, killed = outcome(tmp_path / "whole"), outcome(tmp_path / "killed")
    assert_same(killed[0], whole[0])
    assert killed[1] == whole[1]
    total = int(settings[len(settings) - settings[::-1].index("--total_timesteps")])
    learners = 4 if {"--env_id", "--self_play"}.intersection(settings) else 8
    assert len(whole[1]) == total // (16 * learners * devices)
    assert done > 0
    summaries = [json.loads((tmp_path / name / "r/summary.json").read_text()) for name in ("whole", "killed")]
    for name in ("total_steps", "iterations", "mean_return"):
        assert summaries[0][name] == summaries[1][name]
