"""A GPU trains, gives the same weights again and resumes exactly. Everything here needs one."""

import os

import pytest
import torch

from fabric_rl import Callback
from tests.runs import assert_same, outcome

ACCELERATOR = "cuda"
pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")

SMALL = ["--agent.actor_hidden_sizes", "[16]", "--agent.critic_hidden_sizes", "[16]", "--plain", "--seed", 10]
SMALL += ["--num_steps", 32, "--minibatch_size", 64, "--update_epochs", 2, "--checkpoint_every_timesteps", 256]
SMALL += ["--exact_resume"]
CARTPOLE = ["--env_id", "CartPole-v1", "--num_envs", 4, "--agent.normalize_obs", "true", *SMALL]
ROCKET = ["--env.num_arenas", 2, "--env.state_setter", "envs.RandomState", *SMALL]
MASKED = ["--env", "tests.integration.players_parts.Masked", *SMALL]
GROUPS = ["--env", "envs.ProcessPool", "--env.factory", "envs.RocketSimPool", "--env.factory.num_arenas", 2]
GROUPS += ["--env.factory.state_setter", "envs.RandomState", "--env.num_workers", 2, "--env.groups", 2, *SMALL]
MEMORY = ["--agent", "agents.RecurrentPPOAgent", "--agent.sequence_length", 8, "--agent.burn_in", 4, *MASKED]
SETTINGS = {
    "plain": [*ROCKET],
    "overlap": [*ROCKET, "--overlap"],
    "bf16": [*ROCKET, "--precision", "bf16-mixed", "--overlap"],
    "fp16": [*CARTPOLE, "--precision", "16-mixed"],
    "groups": GROUPS,
    "masks": MASKED,
    "memory": MEMORY,
    "memory, overlap": [*MEMORY, "--overlap"],
    "buffer": [*CARTPOLE, "--exp_buffer_size", 256, "--standardize_returns", "true"],
    "accumulated": [*CARTPOLE, "--batch_size", 128, "--lr_schedule", "kl_adaptive"],
}


class Die(Callback):
    """Ends the process in iteration `DIES_IN`, as a kill would."""

    def on_iteration_end(self, state):
        if state.iteration == int(os.environ.get("DIES_IN", "0")):
            os._exit(9)


def play(run_python, runs, *flags, status=0):
    done = run_python("train_fabric.py", "--accelerator", ACCELERATOR, *flags, "--runs_dir", runs, "--run_id", "r")
    assert done.returncode == status, done.stderr
    return done.stdout


@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS)
def test_a_killed_run_ends_with_the_weights_of_one_that_was_not(run_python, tmp_path, settings, monkeypatch):
    flags = [*settings, "--total_timesteps", 768, "--callbacks+=tests.integration.test_gpu.Die"]
    assert f"on {ACCELERATOR}" in play(run_python, tmp_path / "whole", *flags)
    with monkeypatch.context() as context:  # one iteration after a checkpoint
        context.setenv("DIES_IN", "3")
        play(run_python, tmp_path / "killed", *flags, status=9)
    play(run_python, tmp_path / "killed", *flags, "--resume")
    (whole, table), (killed, table_of_killed) = outcome(tmp_path / "whole"), outcome(tmp_path / "killed")
    assert len(table) == 6 and table == table_of_killed
    assert_same(killed["agent"], whole["agent"])
    assert_same(killed["optimizer"], whole["optimizer"])


@pytest.mark.parametrize("precision", ["32-true", "bf16-mixed"])
def test_compiled(run_python, tmp_path, precision):
    play(run_python, tmp_path, *ROCKET, "--compile", "--precision", precision, "--total_timesteps", 512)
    state, table = outcome(tmp_path)
    assert state["steps"] == 512 and all(torch.isfinite(x).all() for x in state["agent"].values())
    assert float(table[-1]["ppo/update_magnitude"]) > 0


@pytest.mark.parametrize("precision", ["32-true", "bf16-mixed"])
def test_players_on_the_processor_feed_a_trainer_on_the_gpu(run_python, tmp_path, precision):
    flags = ["--devices", 3, "--num_players", 2, "--precision", precision, "--total_timesteps", 1024]
    out = play(run_python, tmp_path, *ROCKET, *flags)
    assert "rank 0 trains, ranks 1 to 2 play" in out
    assert outcome(tmp_path)[0]["steps"] == 1024


def test_sac_clips_each_group_though_one_part_learns_at_a_time(run_python, tmp_path):
    flags = ["--config", "sac_pendulum", "--max_grad_norm", 1, "--clip_groups", "true", "--plain"]
    play(run_python, tmp_path, *flags, "--total_timesteps", 240, "--buffer_init_steps", 200)
