"""`fabric-rl demos` as a user calls it, and what learners get of its files."""

import json
import re
from functools import partial

import gymnasium
import numpy as np
import pytest
import torch
import yaml
from gymnasium.spaces import Box, Discrete

import train_fabric
from agents import PPOLightningAgent
from envs import AdvancedObs, ContinuousAction, GymnasiumEnvs, RocketSimPool
from envs.demonstrations import Demonstration, DemonstrationWriter
from envs.pool.replay_format import Column
from fabric_rl import Saving, StartArgs, TrainArgs
from fabric_rl.evaluation.demonstrations import trajectories_of
from fabric_rl.imitation import Cloning, Kickstart
from fabric_rl.runs import checkpoint
from fabric_rl.runs.provenance import CONFIG, EXPORTED
from fabric_rl.runs.start_or_resume import load_weights
from fabric_rl.runs.trained import load_trained
from tests.command import command


@pytest.fixture(scope="module")
def chased(tmp_path_factory):
    file = tmp_path_factory.mktemp("demos") / "chaser.frd"
    assert command("demos", "record", "chaser", file, "--minutes", "0.2", "--opponent", "idle") == 0
    return file


def test_a_bot_is_recorded_and_shown(chased, capsys):
    assert command("demos", "show", chased, "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["names"] == ["chaser", "idle"] and found["demonstrators"] == [0] and found["steps"] == 180
    assert found["minutes"] == pytest.approx(0.2) and found["action_mean"][0] > 0.5 and found["inferred_share"] == 0
    assert command("demos", "--folder", chased.parent) == 0
    assert "chaser against idle" in capsys.readouterr().out


def test_mistakes_of_a_noisy_recording_are_no_part_of_what_is_shown(tmp_path, capsys):
    file = tmp_path / "noisy.frd"
    assert command("demos", "record", "chaser", file, "--minutes", "0.1", "--noise", "0.5") == 0
    assert Demonstration(file).about["noise"] == 0.5
    assert command("demos", "record", "chaser", file, "--noise", "1") == 2
    assert "--noise must be a number of at least 0 and below 1, got 1.0" in capsys.readouterr().err


def test_agents_with_other_eyes_and_hands_learn_from_it(chased):
    both = [
        trajectories_of([chased], partial(RocketSimPool, obs=obs, action=action))
        for obs, action in ((None, None), (AdvancedObs(), ContinuousAction()))
    ]
    assert [each[0].obs.shape[1:] for each in both] == [(92,), (107,)]
    assert [each[0].action.dtype for each in both] == [np.int64, np.float32]
    assert sum(len(each.action) for each in both[0]) == 180


@pytest.mark.parametrize(
    ("env", "said"),
    [
        (partial(RocketSimPool, tick_skip=4), "a frame every 8 ticks, but the environment decides every 4"),
        (partial(RocketSimPool, team_size=2), "1v1, but the environment has 2v2"),
        (partial(GymnasiumEnvs, "CartPole-v1"), "states of Rocket League, not observations of CartPole-v1"),
    ],
)
def test_another_environment_is_one_line(chased, env, said):
    with pytest.raises(ValueError, match=rf"^--cloning\.demos .*chaser\.frd .*{said}"):
        trajectories_of([chased], env)


def relabelled(file, path, columns=None, **about):
    """A demonstration again, below another header."""
    whole = Demonstration(file)
    own = {name: value for name, value in whole.about.items() if name != "columns"} | about
    with DemonstrationWriter(path, columns or whole.columns, own) as writer:
        for episode in whole.episodes():
            frames = [{name: each[i] for name, each in episode.columns.items()} for i in range(episode.steps + 1)]
            new = {each.name: np.ones(each.shape) for each in columns or () if each not in whole.columns}
            writer.add([frame | new for frame in frames], {})
    return path


def test_a_list_goes_on_after_a_bad_file_and_shows_what_names_say_as_it_is(chased, tmp_path, capsys):
    relabelled(chased, tmp_path / "b.frd", names=["[/red]", "x\x1b[31m"])
    (tmp_path / "a.frd").write_bytes(b"nonsense")
    assert command("demos", "--folder", tmp_path) == 0
    out = capsys.readouterr().out
    assert "refused" in out and "[/red] against x\\x1b[31m" in out
    assert command("demos", "show", tmp_path / "b.frd") == 0
    assert "[/red]" in (out := capsys.readouterr().out) and "\x1b" not in out


def test_columns_that_its_spaces_cannot_have_are_one_line(poled, tmp_path, capsys):
    env = partial(GymnasiumEnvs, "CartPole-v1")
    parts = list(Demonstration(poled).columns)
    masked = relabelled(poled, tmp_path / "mask.frd", [*parts, Column("action_mask", "|u1", (5,))])
    with pytest.raises(ValueError, match=r"mask\.frd: column action_mask has \[5\] per frame, not \[2\]"):
        trajectories_of([masked], env)
    wide = relabelled(poled, tmp_path / "wide.frd", [Column("obs", "<f4", (7,)), *parts[1:]])
    with pytest.raises(ValueError, match=r"wide\.frd: column obs has \[7\] per frame, not \[4\]"):
        trajectories_of([wide], env)
    named = relabelled(poled, tmp_path / "named.frd", env="Evil\x1b[31m")
    assert command("clone", named, "--runs_dir", tmp_path, "--env", "RocketSimPool") == 2
    assert "Evil\\x1b[31m" in capsys.readouterr().err


def test_no_file_is_one_line(tmp_path, capsys):
    (tmp_path / "a.frd").write_bytes(b"")
    for file in ("a.frd", "b.frd"):
        with pytest.raises((ValueError, OSError), match=rf"^--cloning\.demos .*{file}: "):
            trajectories_of([tmp_path / file], RocketSimPool)
    assert command("demos", "show", tmp_path / "a.frd") == 2
    assert command("demos", "record", "nobody", tmp_path / "c.frd") == 2
    assert command("demos", "record", "chaser", tmp_path / "c.frl") == 2
    assert len(capsys.readouterr().err.splitlines()) == 3 and not (tmp_path / "c.frd").exists()


@pytest.fixture(scope="module")
def cartpole(tmp_path_factory):
    """An agent that knows nothing of CartPole, as a folder like that of a run."""
    folder = tmp_path_factory.mktemp("runs") / "pole"
    folder.mkdir()
    env = {"class_path": "envs.GymnasiumEnvs", "init_args": {"env_id": "CartPole-v1"}}
    (folder / CONFIG).write_text(yaml.safe_dump({"env": env, "agent": "agents.PPOLightningAgent"}))
    envs = GymnasiumEnvs("CartPole-v1", 1)
    agent = PPOLightningAgent(envs.single_observation_space, envs.single_action_space)
    checkpoint.write(folder / EXPORTED, {"agent": agent.state_dict()})
    return folder


def test_action_masks_are_recorded(tmp_path):
    """The file has the masks of Taxi as they were, and the actions that they allow."""
    env = {"class_path": "envs.GymnasiumEnvs", "init_args": {"env_id": "Taxi-v4", "num_envs": 2}}
    (tmp_path / CONFIG).write_text(yaml.safe_dump({"env": env, "agent": "agents.PPOLightningAgent"}))
    envs = GymnasiumEnvs("Taxi-v4", 1)
    agent = PPOLightningAgent(envs.single_observation_space, envs.single_action_space)
    checkpoint.write(tmp_path / EXPORTED, {"agent": agent.state_dict()})
    file = tmp_path / "taxi.frd"
    assert command("demos", "record", tmp_path, file, "--episodes", "3", "--sample") == 0
    found = trajectories_of([file], partial(GymnasiumEnvs, "Taxi-v4"))
    taxi = gymnasium.make("Taxi-v4").unwrapped
    for shown in found:
        steps = np.arange(len(shown.action))
        assert not shown.action_mask.all() and shown.action_mask[steps, shown.action].all()
        states = shown.obs[:-1].argmax(axis=1)  # one-hot
        masks = [taxi.action_mask(int(state)) for state in states]
        np.testing.assert_array_equal(shown.action_mask, np.array(masks, bool))
    assert len(found) == 3


def test_episodes_of_gymnasium_are_recorded(cartpole, tmp_path, capsys):
    file = tmp_path / "pole.frd"
    assert command("demos", "record", cartpole, file, "--episodes", "5", "--sample") == 0
    assert command("demos", "show", file, "--json") == 0
    found = json.loads(capsys.readouterr().out.partition("\n")[2])
    assert (found["env"], found["episodes"], found["terminated"]) == ("CartPole-v1", 5, 5)
    assert found["steps"] == 5 * found["mean_return"] == pytest.approx(5 * found["mean_length"])
    assert len(trajectories_of([file], partial(GymnasiumEnvs, "CartPole-v1"))) == 5
    with pytest.raises(ValueError, match=r"pole\.frd was recorded with the env CartPole-v1, not with Acrobot-v1"):
        trajectories_of([file], partial(GymnasiumEnvs, "Acrobot-v1"))
    with pytest.raises(ValueError, match=r"pole\.frd contains observations of CartPole-v1, not states of Rocket"):
        trajectories_of([file], RocketSimPool)
    assert command("demos", "record", cartpole, file, "--opponent", "chaser") == 2


def test_flags_of_the_other_kind_of_environment_are_one_line(cartpole, tmp_path, capsys):
    file = tmp_path / "pole.frd"
    for flag, value in (("opponent", "chaser"), ("minutes", "3.0"), ("random_starts", "0.5"), ("noise", "0.0")):
        assert command("demos", "record", cartpole, file, f"--{flag}", value) == 2
        assert f"--{flag} {value} only applies to Rocket League, but " in capsys.readouterr().err
    assert command("demos", "record", "chaser", file, "--episodes", "5") == 2
    assert "--episodes 5 does not apply to Rocket League; use --minutes" in capsys.readouterr().err
    assert not file.exists()


@pytest.fixture(scope="module")
def poled(cartpole, tmp_path_factory):
    file = tmp_path_factory.mktemp("demos") / "pole.frd"
    assert command("demos", "record", cartpole, file, "--episodes", "6", "--sample") == 0
    return file


def test_a_clone_is_a_run(poled, tmp_path, capsys):
    """Its environment is that of the demonstrations; evaluate and training take it."""
    runs = ["--runs_dir", tmp_path]
    assert command("clone", poled, "--run_id", "it", "--epochs", "2", *runs) == 0
    assert re.search(r"cloned \d+ steps of 6 trajectories \(one per .*\): -log p 0\.69", capsys.readouterr().out)
    assert command("evaluate", tmp_path / "it", "--episodes", "4", *runs) == 0
    assert "4 episodes of it" in capsys.readouterr().out
    rows = (tmp_path / "it" / "clone.csv").read_text().splitlines()
    assert rows[0] == "epoch,loss,validation_loss" and len(rows) == 3
    assert command("clone", poled, "--run_id", "it", *runs) == 2
    assert "already exists" in capsys.readouterr().err
    assert command("clone", poled, "--agent", "SACLightningAgent", "--epochs", "2", "--run_id", "other", *runs) == 0
    assert (tmp_path / "other" / "clone.csv").exists()


def test_states_are_cloned_for_what_a_configuration_says(chased, tmp_path):
    config = tmp_path / "c.yaml"
    agent = {"class_path": "agents.PPOLightningAgent", "init_args": {"actor_hidden_sizes": [16]}}
    env = {"class_path": "envs.RocketSimPool", "init_args": {"num_arenas": 1, "obs": "envs.AdvancedObs"}}
    config.write_text(yaml.safe_dump({"env": env, "agent": agent, "total_timesteps": 5}))
    words = ("--config", config, "--epochs", "1", "--validation", "0", "--soft_labels", "--run_id", "it")
    assert command("clone", chased, *words, "--runs_dir", tmp_path) == 0
    trained = load_trained(tmp_path / "it")
    assert trained.agent(Box(-1, 1, (107,)), Discrete(90)).actor[0].weight.shape == (16, 107)


@pytest.mark.slow
def test_without_a_configuration_a_clone_is_the_agent_that_a_training_trains(chased, tmp_path, capsys):
    few = ("--epochs", "1", "--validation", "0", "--env.num_arenas", "1", "--runs_dir", tmp_path)
    assert command("clone", chased, "--run_id", "it", *few) == 0
    assert f"--config {tmp_path}/it/config.yaml --initialize_from {tmp_path}/it" in capsys.readouterr().out
    assert load_trained(tmp_path / "it").agent(Box(-1, 1, (92,)), Discrete(90)).actor[0].weight.shape == (256, 92)
    assert command("clone", chased, "--agent", "RecurrentPPOAgent", "--env.tick_skip", "4", *few) == 2
    assert "decides every 4" in capsys.readouterr().err


@pytest.mark.slow
def test_cloning_and_kickstarting_go_on_to_the_bit(poled, cartpole, tmp_path):
    def run(name, steps, **start):
        train_fabric.main(
            env=partial(GymnasiumEnvs, "CartPole-v1", 2),
            args=TrainArgs(
                total_timesteps=steps, num_steps=16, minibatch_size=16, update_epochs=1, lr_schedule="constant"
            ),
            start=StartArgs(run_id=name, runs_dir=str(tmp_path), **start),
            saving=Saving(checkpoint_every_timesteps=64, exact_resume=True),
            cloning=Cloning([str(poled)], samples_per_update=32, steps=1000),
            kickstart=Kickstart(str(cartpole), 0.5),
            plain=True,
        )
        return load_weights(tmp_path / name).agent

    whole = run("whole", 128)
    run("parts", 64)
    parts = run("parts", 128, resume=True)
    assert all(torch.equal(whole[name], parts[name]) for name in whole)
    assert "cloning/loss" in (tmp_path / "whole" / "metrics.csv").read_text()
