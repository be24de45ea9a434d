"""Runs that `main()` starts from Python keep their settings, and are played, exported and gone on with as any other."""

from functools import partial
from pathlib import Path

import gymnasium
import pytest
import torch
import yaml
from lightning import Fabric
from lightning.fabric.loggers.logger import Logger

from agents import PPOLightningAgent
from envs import CombinedReward, GoalReward, GymnasiumEnvs, RandomState, RocketSimPool, TouchReward
from fabric_rl import Hardware, History, StartArgs, TrainArgs, load_trained, train
from fabric_rl.callbacks import Callbacks, Evaluation
from fabric_rl.schedules import Linear
from fabric_rl.signals import RND
from tests.command import command
from tests.runs import settings_of
from train_fabric import cli, main

ARGS = TrainArgs(total_timesteps=64, num_steps=16, update_epochs=1)
CPU = Hardware(accelerator="cpu")
REWARD = CombinedReward([TouchReward(), GoalReward()], [1.0, 10.0])
POOL = partial(RocketSimPool, 2, reward=REWARD, state_setter=RandomState(grounded_share=0.25), tick_skip=4)
AGENT = partial(
    PPOLightningAgent,
    actor_hidden_sizes=(16,),
    critic_hidden_sizes=[16],
    activation=torch.nn.ReLU,
    entropy_coef=Linear(0.1, 0.0),
)


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    main(POOL, AGENT, ARGS, StartArgs(run_id="py", runs_dir=str(folder)), hardware=CPU, callbacks=[History()])
    return folder


@pytest.mark.slow
def test_partials_are_written_as_the_command_line_would(runs, capsys):
    flags = ["--env", "envs.RocketSimPool", "--env.num_arenas", "2", "--env.tick_skip", "4"]
    flags += ["--env.reward", "envs.CombinedReward", "--env.reward.weights", "[1.0, 10.0]"]
    flags += ["--env.reward.rewards", "[{class_path: envs.TouchReward}, {class_path: envs.GoalReward}]"]
    flags += ["--env.state_setter", "envs.RandomState", "--env.state_setter.grounded_share", "0.25"]
    flags += ["--agent.actor_hidden_sizes", "[16]", "--agent.critic_hidden_sizes", "[16]"]
    flags += ["--agent.activation", "torch.nn.ReLU", "--agent.entropy_coef", "fabric_rl.schedules.Linear"]
    flags += ["--agent.entropy_coef.start", "0.1", "--agent.entropy_coef.end", "0.0", "--update_epochs", "1"]
    flags += ["--total_timesteps", "64", "--num_steps", "16", "--accelerator", "cpu", "--runs_dir", str(runs)]
    cli([*flags, "--callbacks+=fabric_rl.History", "--run_id", "words"])
    assert settings_of(runs / "py") == settings_of(runs / "words")


@pytest.mark.slow
def test_the_command_line_goes_on_with_it(runs, capsys):
    cli(["--resume", "py", "--total_timesteps", "128", "--runs_dir", str(runs)])
    out = capsys.readouterr().out
    assert [line for line in out.splitlines() if line.startswith("changed")] == ["changed: total_timesteps: 64 -> 128"]
    assert "Run py: 128 steps" in out


def test_it_is_played_and_exported(runs, tmp_path, capsys):
    trained = load_trained("py", runs)
    pool = trained.env(seed=0)
    assert isinstance(pool.reward, CombinedReward) and pool.tick_skip == 4
    assert trained.agent(pool.single_observation_space, pool.single_action_space).actor[1].__class__ is torch.nn.ReLU
    assert command("evaluate", "py", "idle", "--runs_dir", runs, "--matches", 1, "--minutes", 0.05) == 0
    assert command("export", "py", tmp_path / "bot", "--runs_dir", runs) == 0
    assert settings_of(tmp_path / "bot")["env"]["init_args"].keys() & {"reward", "state_setter"} == set()


@pytest.fixture(scope="module")
def own(tmp_path_factory):
    """A run of what no configuration can hold, and its environment and agent; its output."""

    class Own(PPOLightningAgent):
        """Of a notebook."""

    return tmp_path_factory.mktemp("own"), lambda seed: GymnasiumEnvs("CartPole-v1", 2, seed), Own


@pytest.mark.slow
def test_what_cannot_be_written_is_said_once_and_can_be_given_later(own, capsys):
    runs, env, agent = own
    main(env, agent, ARGS, StartArgs(run_id="own", runs_dir=str(runs)), hardware=CPU)
    out = capsys.readouterr().out
    (note,) = (line for line in out.splitlines() if "config.yaml" in line)
    assert "env (<lambda> is not in a module that can be imported), agent (Own is not in a mod" in note
    assert [settings_of(runs / "own")[name] for name in ("env", "agent")] == [None, None]
    with pytest.raises(
        ValueError, match=r"does not say which env .* pass it to fabric_rl.load_trained\(.*, env="
    ) as no:
        load_trained("own", runs)
    assert "\n" not in str(no.value)
    trained = load_trained("own", runs, env, agent)
    envs = trained.env(seed=0)
    assert isinstance(trained.agent(envs.single_observation_space, envs.single_action_space), agent)

    for words in (["--resume", "own", "--runs_dir", str(runs)], ["--config", str(runs / "own/config.yaml")]):
        with pytest.raises(SystemExit):
            cli(words)
        error = capsys.readouterr().err
        assert "error: --env is not in the configuration; if" in error and error.count("\n") == 1
    more = TrainArgs(total_timesteps=128, num_steps=16, update_epochs=1)
    assert main(env, agent, more, StartArgs(resume="own", runs_dir=str(runs)), hardware=CPU)["total_steps"] == 128


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"env": partial(GymnasiumEnvs, "CartPol-v1")}, "GymnasiumEnvs: --env_id CartPol-v1: "),
        ({"env": partial(RocketSimPool, num_arenas=0)}, "num_arenas"),
        ({"agent": partial(PPOLightningAgent, actor_lr=-1)}, "actor_lr must be a number above 0"),
        ({"start": StartArgs(resume="nothing")}, "resume nothing: no such checkpoint, run or milestone"),
        ({"hardware": Hardware(accelerator="cpu", strategy="dpd")}, "strategy dpd: no such strategy"),
    ],
)
def test_mistakes_are_exceptions_of_one_line(tmp_path: Path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError) as raised:
        main(**({"env": partial(GymnasiumEnvs, "CartPole-v1", 2), "args": ARGS, "hardware": CPU} | arguments))
    assert message in str(raised.value) and "\n" not in str(raised.value)
    assert list(tmp_path.rglob("*.ckpt")) == []


def test_an_environment_without_a_seed_is_told_so(tmp_path):
    start = StartArgs(runs_dir=str(tmp_path))
    with pytest.raises(TypeError, match=r"^--env is called with seed=\.\.\. and must accept it .*env_id"):
        main(env=partial(gymnasium.make_vec, "CartPole-v1", num_envs=2), start=start)


class TwoHeads(PPOLightningAgent):
    """Always has two value heads, so it has no setting for them."""

    def __init__(self, observation_space, action_space, actor_lr=1e-3):
        super().__init__(observation_space, action_space, [8], [8], actor_lr=actor_lr, value_heads=2)


@pytest.mark.slow
def test_callbacks_in_a_composite_play_in_the_environment_and_agents_may_have_their_own_heads(tmp_path):
    start = StartArgs(run_id="both", runs_dir=str(tmp_path))
    history = History()
    both = Callbacks({"played": Callbacks({"inner": Evaluation(every_steps=32, episodes=1)}), "history": history})
    env = partial(GymnasiumEnvs, "CartPole-v1", 2)
    main(env, TwoHeads, ARGS, start, hardware=CPU, callbacks=both, signals=[RND])
    assert all("eval/return" in row for row in history.rows) and history.rows


class Kept(Logger):
    """A user's logger that keeps the settings it gets."""

    name, version = "kept", ""

    def __init__(self):
        self.settings = []

    def log_hyperparams(self, params):
        self.settings.append(params)

    def log_metrics(self, metrics, step=None):
        pass


@pytest.mark.slow
def test_a_logger_of_ones_own_gets_the_settings_once(tmp_path):
    """From `train()` with its own Fabric, and from `main()`, which also knows all other settings."""
    kept = Kept()
    fabric = Fabric(accelerator="cpu", devices=1, loggers=[kept])
    train(fabric, partial(GymnasiumEnvs, "CartPole-v1", 2), AGENT, ARGS)
    (settings,) = kept.settings
    assert settings["gamma"] == ARGS.gamma and settings["agent.actor_hidden_sizes"] == (16,)
    assert (settings["env"], settings["agent"]) == ("GymnasiumEnvs", "PPOLightningAgent")
    kept = Kept()
    main(POOL, AGENT, ARGS, StartArgs(run_id="kept", runs_dir=str(tmp_path)), hardware=CPU, logger=kept)
    (settings,) = kept.settings
    assert settings["gamma"] == ARGS.gamma and settings["env.num_arenas"] == 2 and settings["run_id"] == "kept"
    assert (
        yaml.safe_load((tmp_path / "kept" / "config.yaml").read_text())["run_id"] is None
    )  # `rerun` takes another name
