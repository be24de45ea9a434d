"""The final model of a run: where it is, what it holds, and when there is none."""

import os
import signal
import subprocess
import sys
from functools import partial

import pytest
import torch

import train_fabric
from agents import PPOLightningAgent, RolesAgent
from envs import DefaultObs, GymnasiumEnvs, RocketSimPool, TeamRoleObs
from fabric_rl import Callback, Hardware, Saving, StartArgs, TrainArgs, load_checkpoint, load_trained
from fabric_rl.runs.trained import deterministic_agent

SMALL = partial(PPOLightningAgent, actor_hidden_sizes=(8,), critic_hidden_sizes=(8,))
CPU = Hardware(accelerator="cpu")


class CtrlC(Callback):
    """Does in the second iteration what Ctrl+C does."""

    def on_iteration_end(self, state):
        if state.iteration == 2:
            os.kill(os.getpid(), signal.SIGINT)


def trained(folder, steps=256, **settings):
    args = TrainArgs(total_timesteps=steps, num_steps=32, minibatch_size=64)
    start = settings.pop("start", StartArgs(run_id="run", runs_dir=str(folder)))
    settings = {"env_id": "CartPole-v1", "agent": SMALL, "plain": True, "hardware": CPU} | settings
    return train_fabric.main(args=args, start=start, **settings)


@pytest.mark.slow
def test_it_plays_like_the_last_checkpoint_and_anywhere(tmp_path, capsys):
    trained(tmp_path)
    final = tmp_path / "run" / "final"
    files = ["README.md", "check.npz", "config.yaml", "metadata.json", "play.py", "policy.onnx", "weights.ckpt"]
    assert sorted(path.name for path in final.iterdir()) == files
    assert f"final model: {final}" in capsys.readouterr().out
    envs = GymnasiumEnvs("CartPole-v1", 1)
    agent = load_trained(final).agent(envs.single_observation_space, envs.single_action_space)
    _, state = load_checkpoint(tmp_path / "run")
    assert all(torch.equal(weights, state["agent"][name]) for name, weights in agent.state_dict().items())
    card = (final / "README.md").read_text(encoding="utf-8")
    assert "trained in CartPole-v1: 256 agent-steps with seed 0, to the end of its run" in card
    assert "- mean return in the last 10 %: " in card and "torch" in card
    check = subprocess.run([sys.executable, final / "play.py", "--check"], capture_output=True, text=True, check=True)
    assert "all outputs match" in check.stdout


@pytest.mark.slow
def test_a_run_that_ctrl_c_stops_has_one_until_it_goes_on(tmp_path):
    trained(tmp_path / "a", steps=512, callbacks=CtrlC())
    card = (tmp_path / "a" / "run" / "final" / "README.md").read_text(encoding="utf-8")
    assert ": 256 agent-steps" in card and "stopped early" in card
    resume = StartArgs(run_id="run", runs_dir=str(tmp_path / "a"), resume=True)
    trained(tmp_path / "a", steps=512, start=resume)
    card = (tmp_path / "a" / "run" / "final" / "README.md").read_text(encoding="utf-8")
    assert ": 512 agent-steps" in card and "to the end of its run" in card
    assert not list((tmp_path / "a" / "run").glob(".final*"))


@pytest.mark.slow
def test_the_model_changes_nothing_in_the_run(tmp_path):
    for form in ("onnx", "none"):
        trained(tmp_path / form, steps=128, saving=Saving(final_model=form, exact_resume=True))
        start = StartArgs(run_id="run", runs_dir=str(tmp_path / form), resume=True)
        trained(tmp_path / form, steps=256, start=start, saving=Saving(final_model=form, exact_resume=True))
    ours, theirs = (load_checkpoint(tmp_path / form / "run")[1]["agent"] for form in ("onnx", "none"))
    assert all(torch.equal(weights, theirs[name]) for name, weights in ours.items())
    assert not (tmp_path / "none" / "run" / "final").exists()


@pytest.mark.slow
def test_weights_alone_if_onnx_cannot_have_it_or_nobody_wants_it(tmp_path):
    trained(tmp_path / "weights", saving=Saving(final_model="weights"))
    final = tmp_path / "weights" / "run" / "final"
    assert sorted(path.name for path in final.iterdir()) == ["README.md", "config.yaml", "weights.ckpt"]
    assert "no ONNX model: --final_model weights" in (final / "README.md").read_text(encoding="utf-8")
    pool = partial(RocketSimPool, num_arenas=2, obs=TeamRoleObs(DefaultObs()))
    roles = partial(RolesAgent, roles={"blue": SMALL, "orange": SMALL})
    trained(tmp_path / "roles", 128, env=pool, env_id=None, agent=roles, saving=Saving(record_minutes=None))
    final = tmp_path / "roles" / "run" / "final"
    assert sorted(path.name for path in final.iterdir()) == ["README.md", "config.yaml", "weights.ckpt"]
    assert "no ONNX model: " in (text := (final / "README.md").read_text(encoding="utf-8")) and "#ROLE" in text
    assert "trained in envs.RocketSimPool" in text


@pytest.mark.slow
def test_a_run_that_only_plays_has_none_and_says_how_it_acts(tmp_path, capsys):
    trained(tmp_path)
    for deterministic, words in ((False, "with sampled actions"), (True, "with the most probable actions")):
        start = StartArgs(
            run_id="run", runs_dir=str(tmp_path), resume=True, inference=True, deterministic=deterministic
        )
        capsys.readouterr()
        summary = trained(tmp_path, start=start)
        assert f"without learning, {words}" in capsys.readouterr().out
        assert not (tmp_path / summary["run_id"] / "final").exists()
    with pytest.raises(ValueError, match="--deterministic is for --inference"):
        StartArgs(deterministic=True)


def test_a_deterministic_agent_takes_the_likeliest_action():
    envs = GymnasiumEnvs("CartPole-v1", 1)
    torch.manual_seed(0)
    agent = deterministic_agent(SMALL)(envs.single_observation_space, envs.single_action_space)
    obs = torch.randn(1, 4).expand(200, 4)
    likeliest = agent.probabilities(obs).argmax(dim=-1)
    assert (agent.act(obs).action == likeliest).all()
    assert len(type(agent).act(agent, obs).action.unique()) == 2
