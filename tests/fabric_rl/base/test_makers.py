"""Settings of strangers: nothing that they name is called before it is known to be of the right base."""

import sys

import gymnasium
import pytest
import torch
import yaml
from rlgym.api import RLGym

from agents import PPOLightningAgent
from fabric_rl import load_trained
from fabric_rl.base.argv import DEFAULT_CONFIG
from fabric_rl.base.config_files import read_yaml
from fabric_rl.cli.command_line import read_settings
from fabric_rl.runs import checkpoint
from fabric_rl.types import CheckpointError
from train_fabric import cli, main

KINDS = (
    *("the environment", "the agent", "the agent writes", "the reward", "observations", "the workers' environment"),
    *("RLGym's environment", "an id with a module", "callbacks", "the logger", "the estimator", "YAML's own objects"),
    "an id in the file",
)
READ_BY_TRAINING_ONLY = ("callbacks", "the logger", "the estimator")


def attacks(canary):
    """Settings by kind; each one would leave the canary."""
    system = {"class_path": "os.system", "init_args": {"command": f"touch {canary}"}}
    pool = {"class_path": "envs.RocketSimPool", "init_args": {"num_arenas": 1}}
    agent = {"class_path": "agents.PPOLightningAgent"}
    write = {"class_path": "builtins.open", "init_args": {"file": str(canary), "mode": "w"}}
    stranger = f"{canary.name}_module"
    (canary.parent / f"{stranger}.py").write_text(f"open({str(canary)!r}, 'w').close()\n")
    processes = {"class_path": "envs.ProcessPool", "init_args": {"factory": system, "num_workers": 1}}
    rlgym = {"class_path": "envs.RLGymPool", "init_args": {"build_env": system, "num_envs": 1}}
    gymnasium = {"class_path": "envs.GymnasiumEnvs", "init_args": {"env_id": f"{stranger}:CartPole-v1"}}

    def inside(**parts):
        return {"env": pool | {"init_args": pool["init_args"] | parts}, "agent": agent}

    return {
        "the environment": {"env": system, "agent": agent},
        "the agent": {"env": pool, "agent": system},
        "the agent writes": {"env": pool, "agent": write},
        "the reward": inside(reward=system),
        "observations": inside(obs=write),
        "the workers' environment": {"env": processes, "agent": agent},
        "RLGym's environment": {"env": rlgym, "agent": agent},
        "an id with a module": {"env": gymnasium, "agent": agent},
        "callbacks": {"env": pool, "agent": agent, "callbacks": [system]},
        "the logger": {"env": pool, "agent": agent, "logger": [write]},
        "the estimator": {"env": pool, "agent": agent, "estimator": system},
        "YAML's own objects": f"env: !!python/object/apply:os.system ['touch {canary}']\n",
        "an id in the file": {"env_id": f"{stranger}:CartPole-v1"},
    }


@pytest.fixture
def given(tmp_path, monkeypatch):
    """Writes the folder that a stranger hands on; checks in the end that nothing has run."""
    monkeypatch.syspath_prepend(tmp_path)
    canary = tmp_path / "canary"

    def write(kind):
        settings = attacks(canary)[kind]
        (tmp_path / "config.yaml").write_text(settings if isinstance(settings, str) else yaml.safe_dump(settings))
        checkpoint.write(tmp_path / "weights.ckpt", {"agent": {}})
        return tmp_path

    yield write
    assert not canary.exists() and f"{canary.name}_module" not in sys.modules


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_of_a_strangers_settings_is_called(given, kind, capfd):
    folder = given(kind)
    with pytest.raises(SystemExit) as end:
        cli(["--config", str(folder / "config.yaml"), "--runs_dir", str(folder / "runs")])
    assert end.value.code == 2 and capfd.readouterr().err.count("\n") == 1


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in READ_BY_TRAINING_ONLY])
def test_nothing_of_a_strangers_agent_is_called(given, kind):
    with pytest.raises(ValueError, match=r"^[^\n]+$"):
        load_trained(given(kind)).env(seed=0)


def untyped():
    return RLGym(*[None] * 7)


def typed() -> RLGym:
    return RLGym(*[None] * 7)


@pytest.mark.parametrize(("name", "refused"), [("untyped", True), ("typed", False)])
def test_a_function_that_makes_an_environment_says_so(name, refused, capfd):
    words = ["--env", "envs.RLGymPool", "--env.num_envs", "1", "--env.build_env", f"{__name__}.{name}"]
    if refused:
        with pytest.raises(SystemExit):
            cli(words)
        told = "untyped is not declared to return a RLGym; end its first line with -> RLGym:"
        assert told in capfd.readouterr().err
    else:
        settings = read_settings(main, words, "", DEFAULT_CONFIG)
        assert settings.arguments["env"].keywords["build_env"] is typed


BOMBS = {
    "merges": "a0: &a0 {k: v}\n"
    + "".join(f"a{n}: &a{n} {{<<: [{', '.join([f'*a{n - 1}'] * 9)}]}}\n" for n in range(1, 10)),
    "one long number": "seed: 1" + ":1" * 20_000 + "\n",
    "a long list": "callbacks: [" + "1, " * 400_000 + "1]\n",
    "a control character": "seed: \x07\n",
    "no day": "seed: 2001-13-45\n",
}


@pytest.mark.parametrize("name", BOMBS)
def test_a_file_that_would_not_end_or_is_no_yaml_is_one_line(name, tmp_path):
    file = tmp_path / "config.yaml"
    file.write_text(BOMBS[name])
    with pytest.raises(ValueError, match=r"^--config [^\n]*config\.yaml: (the settings are|this is not a YAML)[^\n]*$"):
        read_yaml(file)


def test_a_function_that_says_only_that_it_returns_a_number_is_not_called(tmp_path):
    """So do many that open programs."""
    wrapper = {"class_path": "gymnasium.wrappers.TransformReward", "init_args": {"func": "click.launch"}}
    settings = {"env_id": "CartPole-v1", "num_envs": 1, "wrappers": [wrapper]}
    env = {"class_path": "envs.GymnasiumEnvs", "init_args": settings}
    (tmp_path / "config.yaml").write_text(yaml.safe_dump({"env": env, "agent": "agents.PPOLightningAgent"}))
    checkpoint.write(tmp_path / "weights.ckpt", {"agent": {}})
    with pytest.raises(ValueError, match="nor declared to return one"):
        load_trained(tmp_path).env(seed=0)


@pytest.mark.parametrize("change", [lambda x: x * float("nan"), lambda x: x.to(torch.complex64), lambda x: x.long()])
def test_weights_that_are_none_are_refused_by_those_who_play(change, tmp_path):
    space, actions = gymnasium.spaces.Box(-1, 1, (4,)), gymnasium.spaces.Discrete(2)
    agent = PPOLightningAgent(space, actions)
    checkpoint.write(tmp_path / "weights.ckpt", {"agent": {k: change(v) for k, v in agent.state_dict().items()}})
    (tmp_path / "config.yaml").write_text("env_id: CartPole-v1\nnum_envs: 1\nagent: agents.PPOLightningAgent\n")
    with pytest.raises(CheckpointError, match=r"^[^\n]+$"):
        load_trained(tmp_path).agent(space, actions)


def test_an_agent_that_is_only_played_writes_no_videos(tmp_path):
    settings = {"env_id": "CartPole-v1", "num_envs": 1, "video_folder": str(tmp_path / "videos")}
    env = {"class_path": "envs.GymnasiumEnvs", "init_args": settings}
    (tmp_path / "config.yaml").write_text(yaml.safe_dump({"env": env, "agent": "agents.PPOLightningAgent"}))
    checkpoint.write(tmp_path / "weights.ckpt", {"agent": {}})
    load_trained(tmp_path).env(seed=0).close()
    assert not (tmp_path / "videos").exists()


@pytest.mark.parametrize(
    ("text", "reason"),
    [("1 / 0", "ZeroDivisionError: division by zero"), ("import gone", "ModuleNotFoundError: No module named 'gone'")],
)
def test_an_environment_whose_file_fails_is_no_unknown_id(tmp_path, monkeypatch, text, reason):
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "failing.py").write_text(text)
    with pytest.raises(ValueError) as raised:
        read_settings(main, ["--env_id", "failing.Own"], "", DEFAULT_CONFIG)
    assert str(raised.value) == f"--env_id failing.Own is in a file that cannot be imported: {reason}"
    for unknown in ("gone.Own", "json.Own"):
        assert read_settings(main, ["--env_id", unknown], "", DEFAULT_CONFIG).arguments["env_id"] == unknown
