"""`fabric-rl demos` as a user calls it, and what learners get of its files."""

import json
from functools import partial

import numpy as np
import pytest
import yaml

from agents import PPOLightningAgent
from envs import AdvancedObs, ContinuousAction, GymnasiumEnvs, RocketSimPool
from fabric_rl.commands.demonstrations import trajectories_of
from fabric_rl.commands.main import main
from fabric_rl.runs import checkpoint
from fabric_rl.runs.provenance import CONFIG, EXPORTED


def command(*argv):
    """The exit status of `fabric-rl ...`."""
    with pytest.raises(SystemExit) as ended:
        main([str(word) for word in argv])
    return ended.value.code


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
        (partial(RocketSimPool, tick_skip=4), "a frame every 8 ticks, the environment decides every 4"),
        (partial(RocketSimPool, team_size=2), "1v1, the environment has 2v2"),
        (partial(GymnasiumEnvs, "CartPole-v1"), "states of Rocket League, not observations of CartPole-v1"),
    ],
)
def test_another_environment_is_one_line(chased, env, said):
    with pytest.raises(ValueError, match=rf"^--cloning\.demos .*chaser\.frd: {said}"):
        trajectories_of([chased], env)


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


def test_episodes_of_gymnasium_are_recorded(cartpole, tmp_path, capsys):
    file = tmp_path / "pole.frd"
    assert command("demos", "record", cartpole, file, "--episodes", "5", "--sample") == 0
    assert command("demos", "show", file, "--json") == 0
    found = json.loads(capsys.readouterr().out.partition("\n")[2])
    assert (found["env"], found["episodes"], found["terminated"]) == ("CartPole-v1", 5, 5)
    assert found["steps"] == 5 * found["mean_return"] == pytest.approx(5 * found["mean_length"])
    assert len(trajectories_of([file], partial(GymnasiumEnvs, "CartPole-v1"))) == 5
    with pytest.raises(ValueError, match=r"pole\.frd: its env is CartPole-v1, not Acrobot-v1"):
        trajectories_of([file], partial(GymnasiumEnvs, "Acrobot-v1"))
    with pytest.raises(ValueError, match=r"pole\.frd: observations of CartPole-v1, not states of Rocket League"):
        trajectories_of([file], RocketSimPool)
    assert command("demos", "record", cartpole, file, "--opponent", "chaser") == 2
