"""train_fabric.py as a user runs it: one process, two ranks, config files, videos, Ctrl+C."""

import json
import os
import re
import shlex
import signal
import subprocess
from contextlib import closing
from types import SimpleNamespace

import pytest
import torch
import yaml
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

import train_fabric
from agents import PPOLightningAgent, RolesAgent
from envs import GymnasiumEnvs
from fabric_rl import load_checkpoint
from fabric_rl.cli.command_line import read_settings
from tests.forks import ROOT, environment, free_port, kill
from tests.runs import events, until

TINY = ["--accelerator", "cpu", "--devices", 1, "--num_steps", 8, "--minibatch_size", 16, "--update_epochs", 1]
RUN_MODEL = ["run", "model", "--accelerator=cpu", "--strategy=ddp", "--devices=2"]
CARTPOLE = ["--capture-video", "--env-id", "CartPole-v1", "--num-envs", 2, "--num-steps", 512]


@pytest.fixture(scope="module")
def cartpole(forks, tmp_path_factory):
    """A run of two iterations, with dashes and underscores mixed."""
    runs = tmp_path_factory.mktemp("runs")
    flags = ["--env-id", "CartPole-v1", "--num_envs", 2, "--num-steps", 64, "--total_timesteps=256"]
    flags += ["--minibatch-size", 64, "--update-epochs=2", "--runs-dir", runs, "--run_id", "cart", "--accelerator=cpu"]
    statuses, out, err = forks.wait([forks.start(*flags)])
    assert (statuses, err) == ([0], "")
    return SimpleNamespace(dir=runs / "cart", out=out)


def test_cartpole_writes_a_summary(cartpole):
    summary = json.loads((cartpole.dir / "summary.json").read_text())
    assert (summary["run_id"], summary["total_steps"], summary["iterations"]) == ("cart", 256, 2)
    assert summary["stopped_early"] is False
    assert 5 < summary["mean_return"] < 100
    assert summary["checkpoint"] == str(cartpole.dir / "checkpoints/step_000000000256.ckpt")
    assert {"wall_seconds", "collected_steps_per_second", "consumed_steps_per_second", "overall_steps_per_second"} <= {
        name for name, value in summary.items() if isinstance(value, float) and value > 0
    }


def test_cartpole_logs_to_tensorboard(cartpole):
    accumulator = events(cartpole.dir)
    ppo = ("approx_kl", "clip_fraction", "entropy", "explained_variance", "policy_loss", "value_loss", "learning_rate")
    speed = (f"{kind}_steps_per_second" for kind in ("collected", "consumed", "overall"))
    expected = {
        *(f"ppo/{name}" for name in ppo),
        *(f"speed/{name}" for name in speed),
        "reward/episode_return",
        "reward/step",
        "game/episode_length",
    }
    assert expected <= set(accumulator.Tags()["scalars"])
    assert [event.step for event in accumulator.Scalars("ppo/approx_kl")] == [128, 256]
    assert [event.value for event in accumulator.Scalars("ppo/learning_rate")] == pytest.approx([1e-3, 5e-4])
    assert accumulator.Scalars("ppo/entropy")[0].value == pytest.approx(0.693, abs=0.01)  # log 2: no opinion yet
    assert accumulator.Scalars("reward/step")[0].value == 1


def test_cartpole_shows_its_settings_and_what_they_led_to(cartpole):
    (text,) = events(cartpole.dir).Tensors("settings/text_summary")
    assert "| num_steps | 64 |" in text.tensor_proto.string_val[0].decode()
    outcome = EventAccumulator(str(cartpole.dir / "tensorboard/outcome"))
    outcome.Reload()
    (figure,) = outcome.Scalars("outcome/mean_return")
    assert figure.value == pytest.approx(json.loads((cartpole.dir / "summary.json").read_text())["mean_return"])


def test_cartpole_checkpoint_fits_the_agent(cartpole):
    checkpoint = load_checkpoint(cartpole.dir)[1]
    envs = GymnasiumEnvs("CartPole-v1", 1)
    agent = PPOLightningAgent(envs.single_observation_space, envs.single_action_space)
    agent.load_state_dict(checkpoint["agent"])
    assert (checkpoint["iteration"], checkpoint["steps"]) == (2, 256)
    assert agent.actor[0].bias.any()  # begins at zero


def test_cartpole_prints_its_progress_and_where_the_checkpoint_is(cartpole):
    lines = [line.split()[0] for line in cartpole.out.splitlines() if re.match(r" +\d+/256 ", line)]
    assert lines == ["128/256", "256/256"]
    assert f"checkpoint: {cartpole.dir / 'checkpoints/step_000000000256.ckpt'}" in cartpole.out


def test_cartpole_prints_what_may_come_next(cartpole):
    """Faster settings, the same run for ten times as long, or its flags without its name on two devices."""
    flags = "--env_id CartPole-v1 --num_envs 2 --num_steps 64"
    rest = f"--minibatch_size 64 --update_epochs=2 --runs_dir {cartpole.dir.parent} --accelerator=cpu"
    assert cartpole.out.splitlines()[-6:] == [
        "Next:",
        f"  fabric-rl report cart --runs_dir {cartpole.dir.parent}",
        f"  tensorboard --logdir {cartpole.dir.parent}",
        f"  fabric-rl tune {flags} {rest}",
        f"  python train_fabric.py {flags} {rest} --run_id cart --resume --total_timesteps 2_560",
        f"  python train_fabric.py {flags} --total_timesteps=256 {rest} --devices 2",
    ]


@pytest.mark.slow
@pytest.mark.parametrize("program", [["train_fabric.py"], ["fabric-rl", "train"]])
def test_what_may_come_next_works_as_printed(forks, tmp_path, program):
    """With spaces in the paths, and started by either name."""
    name, *command = program
    runs = tmp_path / "my runs"
    flags = ["--env_id", "CartPole-v1", "--num_steps", 8, "--total_timesteps", 64, "--minibatch_size", 16]
    flags += ["--accelerator", "cpu", "--runs_dir", runs, "--run_id", "the first"]
    statuses, out, err = forks.wait([forks.start(*command, *flags, program=name)])
    assert (statuses, err) == ([0], "")
    _, report, curves, tune, longer, wider = (shlex.split(line) for line in out.partition("Next:")[2].split("\n")[:6])
    assert report == ["fabric-rl", "report", "the first", "--runs_dir", str(runs)]
    start = ["python", "train_fabric.py"] if name == "train_fabric.py" else program
    assert curves == ["tensorboard", "--logdir", str(runs)]
    assert tune[:2] == ["fabric-rl", "tune"]
    brief = ["--minutes", "0.1", "--seconds", "0.1", "--out", str(tmp_path / "tuned.yaml")]
    assert forks.wait([forks.start(*tune[1:], *brief, program="fabric-rl")])[0] == [0]
    assert longer[:2] == wider[:2] == start
    words = longer[len(start) :]
    assert forks.wait([forks.start(*command, *words, program=name)])[0] == [0]
    assert json.loads((runs / "the first/summary.json").read_text())["total_steps"] == 640
    assert forks.wait(forks.ranks(2, *command, *wider[len(start) :], program=name))[0] == [0, 0]
    assert len(list(runs.iterdir())) == 2


@pytest.mark.slow
@pytest.mark.parametrize("program", ["python train_fabric.py", "fabric-rl train"])
def test_a_stopped_run_goes_on_as_printed_from_any_folder(root, tmp_path, program):
    program = program.replace("train_fabric.py", shlex.quote(str(root / "train_fabric.py")))
    folder = tmp_path / "a folder"
    folder.mkdir()
    (folder / "stops.py").write_text(STOPS)
    flags = "--env_id CartPole-v1 --num_steps 8 --total_timesteps 64 --minibatch_size 16 --accelerator cpu"
    flags += " --runs_dir 'my runs' --callbacks stops.Stops"
    env = environment(PYTHONPATH=f"{root}{os.pathsep}{folder}")
    shell = {"shell": True, "cwd": folder, "env": env, "capture_output": True, "text": True, "timeout": 300}
    first = subprocess.run(f"{program} {flags}", **shell)
    assert (first.returncode, first.stderr) == (0, "")
    again, report, curves = re.findall(r"^  (.*)", first.stdout.partition("Next:")[2], re.MULTILINE)
    assert again.startswith(program) and again.endswith("--resume")
    assert subprocess.run(report, **shell).returncode == 0
    assert subprocess.run(f"{curves} --inspect", **shell).returncode == 0
    second = subprocess.run(again, **shell)
    assert second.returncode == 0 and "after 32 steps" in second.stdout


STOPS = """
from fabric_rl import Callback

class Stops(Callback):
    def on_iteration_end(self, state):
        state.stop = True
"""


def test_the_usage_names_what_was_started(forks):
    for words in (["train_fabric.py"], ["fabric-rl", "train"]):
        _, out, _ = forks.wait([forks.start(*words[1:], "--help", program=words[0])])
        assert out.startswith(f"usage: {' '.join(words)} ")
        _, _, err = forks.wait([forks.start(*words[1:], "--num_steps", 0, program=words[0])])
        assert err.startswith(f"{' '.join(words)}: error: --num_steps")


def test_print_config_is_a_config_file(forks, root, tmp_path):
    flags = ["--config", root / "configs/rocket_1v1.yaml", *TINY, "--total-timesteps", 1]
    flags += ["--env.num-arenas", 2, "--agent.actor-hidden-sizes", "[8]", "--agent.critic_hidden_sizes", "[8]"]
    statuses, printed, _ = forks.wait([forks.start(*flags, "--runs_dir", tmp_path / "runs", "--print_config")])
    assert statuses == [0]
    assert not (tmp_path / "runs").exists()
    (tmp_path / "printed.yaml").write_text(printed)
    settings = yaml.safe_load(printed)
    assert settings["total_timesteps"] == 1
    assert settings["env"]["init_args"]["num_arenas"] == 2
    assert settings["agent"]["init_args"]["actor_hidden_sizes"] == [8]
    assert settings["agent"]["init_args"]["actor_lr"] == 3e-4  # from the file

    statuses, _, err = forks.wait([forks.start("--config", tmp_path / "printed.yaml", "--run_id", "again")])
    assert statuses == [0], err
    summary = json.loads((tmp_path / "runs/again/summary.json").read_text())
    assert summary["total_steps"] == 8 * 2 * 2
    assert summary["touches_per_minute"].keys() == summary["goals_per_minute"].keys() == {"start", "end"}
    weights = load_checkpoint(tmp_path / "runs/again")[1]["agent"]
    assert weights["actor.0.weight"].shape[0] == 8


@pytest.mark.slow
def test_a_class_with_settings_and_wrappers_trains_and_plays_from_its_run(forks, root, tmp_path):
    """Dict and Tuple observations; once here, once in another process, then as the run's own settings say."""
    task = ["--env_id", "tests.envs.adapters.tasks.Entries", "--num_envs", 2, "--env_kwargs", '{"length": 4}']
    task += ["--wrappers+=gymnasium.wrappers.FilterObservation", "--wrappers.filter_keys", "[here,seen]"]
    flags = [*TINY, "--agent", "agents.MultiInputPPOAgent", "--total_timesteps", 32, "--runs_dir", tmp_path]
    far = ["--num_players", 1, "--devices", 2]
    runs = [forks.start(*task, *flags, "--run_id", "here"), forks.start(*task, *flags, *far, "--run_id", "far")]
    statuses, _, err = forks.wait(runs)
    assert statuses == [0, 0], err
    settings = yaml.safe_load((tmp_path / "here/config.yaml").read_text())
    assert settings["env_id"] == "tests.envs.adapters.tasks.Entries" and settings["env_kwargs"] == {"length": 4}
    longer = ["--runs_dir", tmp_path, "--run_id", "here", "--resume", "--total_timesteps", 64]
    assert forks.wait([forks.start(*longer)])[0] == [0]
    for name in ("here", "far"):
        assert load_checkpoint(tmp_path / name)[1]["agent"]["encoders.1.1.0.weight"].shape == (64, 2)
    played = ["evaluate", "here", "--runs_dir", tmp_path, "--episodes", 4]
    statuses, out, err = forks.wait([forks.start(*played, program="fabric-rl")])
    assert statuses == [0], err
    assert "mean length 4" in out


CONFIGS = sorted((ROOT / "configs").glob("*.yaml"))


def few(file):
    """Flags with which a configuration needs a second: two environments, one short iteration."""
    text = file.read_text()
    env, path = yaml.safe_load(text)["env"], "--env"
    if "factory" in env["init_args"]:  # of a ProcessPool
        env, path = env["init_args"]["factory"], "--env.factory"
    size = "num_arenas" if "RocketSimPool" in env["class_path"] else "num_envs"
    tiny = ["--batch_size", 8, "--buffer_init_steps", 0, "--summary_freq", 1] if "agents.SAC" in text else TINY
    sequences = ["--agent.sequence_length", 4] if "sequence_length" in text else []
    return [*tiny, *sequences, "--total_timesteps", 1, f"{path}.{size}", 2]


@pytest.mark.slow
@pytest.mark.parametrize("file", CONFIGS, ids=lambda file: file.stem)
def test_every_config_file_builds_an_environment_and_an_agent_that_acts_in_it(file):
    """In this process; test_config_files_train has the training of one of each kind."""
    words = ["--config", file, *few(file)]
    found = read_settings(train_fabric.main, [str(word) for word in words], "", file).arguments
    assert found["args"].total_timesteps == 1
    with closing(found["env"](seed=0)) as env:
        agent = found["agent"](env.single_observation_space, env.single_action_space)
        obs, infos = env.reset(seed=0)
        mask = infos.get("action_mask")
        with torch.no_grad():
            acted = agent.act(torch.as_tensor(obs), action_mask=None if mask is None else torch.as_tensor(mask))
        assert env.step(acted.action.numpy())[0].shape == obs.shape
    for each in agent.agents if isinstance(agent, RolesAgent) else [agent]:
        assert each.configure_optimizers().param_groups


@pytest.mark.slow
@pytest.mark.parametrize("name", ["rocket_1v1", "rocket_1v1_processes", "sac_rocket_1v1", "bot_school"])
def test_config_files_train(forks, root, tmp_path, name):
    file = root / f"configs/{name}.yaml"
    run = forks.start("--config", file, *few(file), "--runs_dir", tmp_path, "--run_id", name)
    statuses, out, err = forks.wait([run])
    assert (statuses, err) == ([0], "")
    assert re.search(r"^--total_timesteps 1 is rounded up to [\d,]+: iterations are not cut", out, re.MULTILINE)
    assert json.loads((tmp_path / name / "summary.json").read_text())["iterations"] == 1
    tags = set(events(tmp_path / name).Tags()["scalars"])  # every component of the reward and the game itself show up
    assert {"game/touches_per_minute", "game/goals_per_minute"} <= tags
    assert len([tag for tag in tags if tag.startswith("reward/")]) >= 4


@pytest.mark.slow
def test_lightning_run_model_trains_on_two_ranks(forks, tmp_path):
    """Video in the run folder and in TensorBoard; only rank 0 records, logs and prints."""
    launcher = [*RUN_MODEL, f"--main-port={free_port()}", "train_fabric.py", *CARTPOLE, "--total-timesteps", 4096]
    few = ["--update-epochs", 1, "--minibatch-size", 512, "--runs-dir", tmp_path, "--run_id", "v"]
    statuses, out, err = forks.wait([forks.start(*launcher, *few, program="lightning")])
    assert statuses == [0], err
    assert "Traceback" not in err
    assert out.count("Run v: 4,096 steps") == 1
    longer = (
        "\n  fabric run --accelerator=cpu --strategy=ddp --devices=2 train_fabric.py --capture_video=true --env_id "
    )
    assert out.count(longer) == 1
    assert out.rstrip().endswith("--total_timesteps 40_960")
    assert [path.name for path in tmp_path.iterdir()] == ["v"]
    assert json.loads((tmp_path / "v/summary.json").read_text())["world_size"] == 2

    videos = list((tmp_path / "v/videos").glob("*.mp4"))
    assert len(videos) > 1
    assert {"rl-video-episode-0.mp4", "rl-video-episode-1.mp4"} <= {path.name for path in videos}
    assert all(b"ftyp" in path.read_bytes()[:16] and path.stat().st_size > 1000 for path in videos)
    accumulator = events(tmp_path / "v")
    assert accumulator.Tags()["images"] == ["video/episode"]
    for image in accumulator.Images("video/episode"):
        assert image.encoded_image_string[:6] == b"GIF89a"
        assert (image.width, image.height) == (320, 214)
        assert image.encoded_image_string.count(b"\x21\xf9\x04") > 3  # frames: it moves
    assert [event.step for event in accumulator.Scalars("ppo/approx_kl")] == [2048, 4096]


@pytest.mark.slow
def test_videos_of_rocketsim_and_a_viewer_change_no_weight(forks, tmp_path):
    done = '[{"class_path": "envs.TimeoutCondition", "init_args": {"timeout_seconds": 0.5}}]'
    flags = [*TINY, "--num_steps", 64, "--env.num_arenas", 2, "--env.done", done, "--total_timesteps", 512]
    runs = [
        forks.start(*flags, *shown, "--runs_dir", tmp_path, "--run_id", name)
        for name, shown in (("plain", []), ("shown", ["--capture-video", "--render"]))
    ]
    statuses, _, err = forks.wait(runs)
    assert (statuses, err) == ([0, 0], "")
    plain, shown = (load_checkpoint(tmp_path / name)[1] for name in ("plain", "shown"))
    assert plain["agent"].keys() == shown["agent"].keys()
    assert all(torch.equal(plain["agent"][key], shown["agent"][key]) for key in plain["agent"])
    files = {path: path.read_bytes() for path in (tmp_path / "shown/videos").iterdir()}
    assert {f"rl-video-episode-{number}.mp4" for number in (0, 1)} <= {path.name for path in files}
    goes_on = ["--run_id", "shown", "--resume", "--capture-video", "--total_timesteps", 1024]
    statuses, _, err = forks.wait([forks.start(*flags[:-2], *goes_on, "--runs_dir", tmp_path)])
    assert statuses == [0], err
    assert all(path.read_bytes() == content for path, content in files.items())
    images = events(tmp_path / "shown").Images("video/episode")
    assert images and all((image.width, image.height) == (320, 180) for image in images)


@pytest.mark.slow
@pytest.mark.parametrize("devices", [1, 2])
def test_ctrl_c_ends_cleanly_with_a_checkpoint(forks, tmp_path, devices):
    """The signal reaches one process only, as `kill -INT` sends it; all ranks end after the same iteration."""
    flags = ["--env-id", "CartPole-v1", "--num_envs", 2, "--num_steps", 16, "--total_timesteps", 100_000_000]
    flags += ["--minibatch_size", 16, "--accelerator", "cpu", "--devices", devices, "--runs_dir", tmp_path]
    ranks = forks.ranks(devices, *flags, "--run_id", "c")
    until(lambda: re.search(r"^ +[\d,]+/100,000,", ranks[0].out, re.MULTILINE))
    kill(ranks[0].pid, signal.SIGINT)
    statuses, out, err = forks.wait(ranks)
    assert statuses == [0] * devices, err
    assert "Traceback" not in err
    assert "stopping after this iteration" in out
    summary = json.loads((tmp_path / "c/summary.json").read_text())
    assert (summary["stopped_early"], summary["stopped_by"]) == (True, "Ctrl+C")
    assert "stopped early by Ctrl+C" in out
    assert f"Next:\n  python train_fabric.py --runs_dir {tmp_path} --run_id c --resume\n" in out
    assert 0 < summary["total_steps"] < 100_000_000
    assert summary["world_size"] == devices
    checkpoint = load_checkpoint(tmp_path / "c")[1]
    assert checkpoint["steps"] == summary["total_steps"]
    assert len(events(tmp_path / "c").Scalars("ppo/approx_kl")) == summary["iterations"]


BROKEN = """
import numpy as np
from envs import GymnasiumEnvs
from fabric_rl.base.seeding import stream_seed

class Broken(GymnasiumEnvs):
    def __init__(self, rank: int, seed: int = 0):
        super().__init__("CartPole-v1", 2, seed)
        self.rank = rank

    def reset(self, *, seed=None, options=None):
        self.steps = 0
        self.spoil = seed == stream_seed(0, "environments") + 2 * self.rank  # the seed says whose environment this is
        return super().reset(seed=seed, options=options)

    def step(self, actions):
        obs, *rest = super().step(actions)
        self.steps += 1
        if self.spoil and self.steps == 21:
            obs[1, 3] = np.nan
        return obs, *rest
"""


@pytest.mark.slow
@pytest.mark.parametrize("rank", [0, 1])
def test_nan_on_one_of_two_ranks_ends_the_run_and_says_where(forks, tmp_path, rank):
    flags = ["--env", "broken.Broken", "--env.rank", rank, "--num_steps", 16, "--total_timesteps", 100_000]
    flags += ["--update_epochs", 1, "--minibatch_size", 32, "--runs_dir", tmp_path / "runs", "--run_id", "n"]
    flags += ["--accelerator", "cpu", "--devices", 2]
    statuses, _, err = forks.wait(forks.ranks(2, *flags, files={"broken.py": BROKEN}))
    assert 0 not in statuses
    message = "train_fabric.py: error: the environment returned an observation that is nan: sub-environment 1, column 3"
    assert err.count(message) == 1
    evidence = tmp_path / f"runs/n/nonfinite-rank{rank}.pt"
    assert str(evidence) in err
    assert torch.load(evidence, weights_only=True)["rollout"]["obs"].shape == (17, 2, 4)


MALFORMED = """
from envs import GymnasiumEnvs
from fabric_rl.base.seeding import stream_seed

class OnRankOne(GymnasiumEnvs):
    def __init__(self, seed: int = 0):
        super().__init__("CartPole-v1", 2, seed)

    def reset(self, *, seed=None, options=None):
        obs, infos = super().reset(seed=seed, options=options)
        return obs[:, :3] if seed == stream_seed(0, "environments") + 2 else obs, infos
"""


def test_what_is_malformed_on_one_of_two_ranks_is_one_line(forks, tmp_path):
    flags = ["--env", "malformed_parts.OnRankOne", "--accelerator", "cpu", "--devices", 2, "--num_steps", 16]
    ranks = forks.ranks(2, *flags, "--runs_dir", tmp_path / "runs", files={"malformed_parts.py": MALFORMED})
    statuses, _, err = forks.wait(ranks)
    message = "--env OnRankOne.reset(): the observations must be numbers of shape [2, 4], got float32 of shape [2, 3]"
    assert (statuses, err.count("error")) == ([2, 2], 1), err
    assert err.endswith(f"train_fabric.py: error: {message}\n")
    assert list((tmp_path / "runs").iterdir()) == []


@pytest.mark.slow
def test_the_line_is_printed_once_though_the_silent_rank_fails_first(run_python, fabric_run, tmp_path):
    """A launcher ends all workers as soon as one has failed."""
    slow = "import os, time, train_fabric\ntime.sleep(2 * (os.environ['RANK'] == '0'))\ntrain_fabric.cli()\n"
    (tmp_path / "slow.py").write_text(slow)
    result = run_python(*fabric_run, "--accelerator=cpu", "--devices=2", tmp_path / "slow.py", "--num_steps", 0)
    assert result.returncode != 0
    assert result.stderr.count("train_fabric.py: error: --num_steps must be a whole number of at least 1, got 0\n") == 1


def test_flags_of_the_environment_keep_the_default_config(forks):
    _, printed, _ = forks.wait([forks.start("--env.num_arenas", 3, "--print_config")])
    settings = yaml.safe_load(printed)
    assert settings["env"]["init_args"]["num_arenas"] == 3
    assert settings["agent"]["init_args"]["actor_hidden_sizes"] == [256, 256, 256]  # configs/rocket_1v1.yaml


@pytest.mark.slow
def test_an_environment_id_wins_over_a_config_files_environment(forks, root, tmp_path):
    flags = ["--config", root / "configs/rocket_1v1.yaml", "--env_id", "CartPole-v1", *TINY, "--total_timesteps", 1]
    flags += ["--agent.teacher_coef", 0]  # CartPole has no teacher
    statuses, out, err = forks.wait([forks.start(*flags, "--runs_dir", tmp_path)])
    assert (statuses, err) == ([0], "")
    assert "32/32 " in out


@pytest.mark.learning
@pytest.mark.timeout(900)
def test_lightning_run_model_learns_on_two_ranks(run_python, tmp_path):
    lightning = (
        "import sys; sys.argv[0] = 'lightning'; from fabric_rl.cli.lightning_run_model import lightning; lightning()"
    )
    flags = [*CARTPOLE, "--total-timesteps", 100_000, "--runs_dir", tmp_path, "--run_id", "learned"]
    result = run_python("-c", lightning, *RUN_MODEL, "train_fabric.py", *flags, seconds=800)
    assert result.returncode == 0, result.stderr
    assert json.loads((tmp_path / "learned/summary.json").read_text())["mean_return"] >= 450
