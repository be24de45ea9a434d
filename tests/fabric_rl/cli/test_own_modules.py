"""Modules of users: found in the working folder and beside a typed configuration, never in a stranger's run."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from fabric_rl.runs.records import modules_of

ROOT = Path(__file__).parents[3]
AGENT = """
from pathlib import Path
from agents import PPOLightningAgent

Path(__file__).with_name("imported").touch()


class Mine(PPOLightningAgent):
    pass
"""
ENV = """
from gymnasium.envs.classic_control import CartPoleEnv
import gymnasium


class Task(gymnasium.wrappers.TimeLimit):
    def __init__(self, render_mode=None):
        super().__init__(CartPoleEnv(), 20)
"""
CONFIG = {
    "total_timesteps": 32,
    "num_steps": 8,
    "minibatch_size": 16,
    "accelerator": "cpu",
    "plain": True,
    "agent": {"class_path": "agent_of_mine.Mine", "init_args": {"actor_hidden_sizes": [8], "critic_hidden_sizes": [8]}},
}
POOL = {
    "class_path": "envs.ProcessPool",
    "init_args": {
        "num_workers": 2,
        "factory": {"class_path": "envs.GymnasiumEnvs", "init_args": {"env_id": "task_of_mine.Task", "num_envs": 2}},
    },
}


@pytest.fixture
def run(forks):
    """Run a command in a folder, without the project's own folder as the working folder."""

    def run(folder, *words, program="fabric-rl", path=""):
        variables = {"PYTHONPATH": f"{ROOT}{os.pathsep}{path}"}
        if program == "fabric-rl":
            fork = forks.start(*words, program=program, WORKS_IN=folder, **variables)
            (status,), out, err = forks.wait([fork])
            return subprocess.CompletedProcess(words, status, out, err)
        command = [str(Path(sys.executable).with_name(program)), *map(str, words)]
        settings = {"env": os.environ | variables, "capture_output": True, "text": True, "timeout": 300}
        return subprocess.run(command, cwd=folder, check=False, **settings)

    return run


@pytest.fixture
def mine(tmp_path):
    """A folder with the modules and a configuration, and an empty folder to work in."""
    folder = tmp_path / "mine"
    folder.mkdir()
    (tmp_path / "here").mkdir()
    (folder / "agent_of_mine.py").write_text(AGENT)
    (folder / "task_of_mine.py").write_text(ENV)
    (folder / "mine.yaml").write_text(yaml.safe_dump(CONFIG | {"env": POOL}))
    return folder


@pytest.mark.slow
def test_modules_beside_the_typed_configuration(run, mine, tmp_path):
    """Also in the processes of a pool; and in those of `fabric run`."""
    here = tmp_path / "here"
    done = run(here, "train", "--config", mine / "mine.yaml", "--run_id", "run")
    assert done.returncode == 0, done.stderr
    assert (here / "runs" / "run" / "summary.json").exists()
    assert f"Next (add {mine}, where your code is, to PYTHONPATH first):" in done.stdout
    words = ["run", "--accelerator=cpu", "--devices=2", ROOT / "train_fabric.py", "--config", mine / "mine.yaml"]
    done = run(here, *words, "--run_id", "ranks", program="fabric")
    assert done.returncode == 0, done.stderr
    assert "2 ranks on cpu" in done.stdout + done.stderr


@pytest.mark.slow
def test_modules_in_the_working_folder(run, mine, tmp_path):
    words = ["--env_id", "CartPole-v1", "--agent", "agent_of_mine.Mine", "--total_timesteps", 32, "--num_steps", 8]
    flags = ["--minibatch_size", 16, "--accelerator", "cpu", "--plain", "--run_id", "run"]
    done = run(mine, ROOT / "train_fabric.py", *words, *flags, program="python")
    assert done.returncode == 0, done.stderr


def test_code_in_the_folder_of_the_runs_is_refused_before_it_trains(run, mine):
    """A run there could not be resumed: its code could be a stranger's."""
    words = ["train", "--env_id", "CartPole-v1", "--agent", "mine.agent_of_mine.Mine", "--runs_dir", "mine/runs"]
    refused = run(mine.parent, *words, "--total_timesteps", 32)
    assert refused.returncode == 2 and "config.yaml: mine.agent_of_mine.Mine is code in" in refused.stderr
    assert not (mine / "runs").exists()


@pytest.mark.slow
def test_the_command_that_is_printed_needs_the_folder(run, mine, tmp_path):
    """Without `--config`, no command looks beside the file."""
    here = tmp_path / "here"
    assert run(here, "train", "--config", mine / "mine.yaml", "--run_id", "run").returncode == 0
    again = ["train", "--run_id", "run", "--resume", "--total_timesteps", 64]
    assert "there is no module agent_of_mine; if it is your own, add its folder" in run(here, *again).stderr
    done = run(here, *again, path=mine)
    assert done.returncode == 0, done.stderr
    assert "\nNext:\n" in done.stdout
    (mine / "agent_of_mine.py").write_text(AGENT + "\n# edited\n")
    assert "\n  code of agent_of_mine: edited since\n" in run(here, "rerun", "run", path=mine).stdout


@pytest.mark.slow
def test_a_group_has_one_version_of_the_code(run, mine):
    """An edited agent is neither added to a group nor called the same by `compare`."""
    words = ["seeds", "--config", "mine.yaml", "--seeds", "0..1", "--group"]
    assert run(mine, *words, "old").returncode == 0
    agent = mine / "agent_of_mine.py"
    agent.write_text(agent.read_text() + "\n# edited\n")
    refused = "old_mine_seed0 already exists with other code (agent_of_mine); choose another --group"
    for seeds in ("0..2", "2"):
        done = run(mine, *words[:-2], seeds, "--group", "old")
        assert done.returncode == 2 and refused in done.stderr
    assert not (mine / "runs" / "old_mine_seed2").exists()
    assert run(mine, *words, "new").returncode == 0
    told = run(mine, "compare", "old", "new", "--metric", "ppo/loss").stdout
    assert "code of agent_of_mine" in told and "have the same settings" not in told
    done = run(mine, "train", "--run_id", "old_mine_seed0", "--resume", "--total_timesteps", 64)
    assert "changed: code of agent_of_mine" in done.stdout
    (file, versions) = modules_of(mine / "runs" / "old_mine_seed0")["agent_of_mine"]
    assert file == str(agent) and len(set(versions)) == 2
    assert run(mine, *words, "old").returncode == 2  # trained with two versions, although the newest is that of today


FAILS = """
    def training_step(self, minibatch):
        return super().training_step(minibatch) if self.progress < 0.1 else self.typo
"""
EDITS = """
    def training_step(self, minibatch):
        with Path(__file__).open("a") as file:
            file.write("# edited while the first seed trained")
        return super().training_step(minibatch)
"""


@pytest.mark.slow
def test_a_mended_mistake_does_not_block_a_group(run, mine):
    """A run that has failed before its first checkpoint is trained again with the mended code."""
    agent, words = mine / "agent_of_mine.py", ["seeds", "--config", "mine.yaml", "--seeds", "0", "--group", "g"]
    agent.write_text(AGENT.replace("    pass\n", FAILS))
    assert run(mine, *words).returncode == 1
    agent.write_text(AGENT)
    done = run(mine, *words)
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_an_edit_between_two_seeds_ends_the_command(run, mine):
    (mine / "agent_of_mine.py").write_text(AGENT.replace("    pass\n", EDITS))
    done = run(mine, "seeds", "--config", "mine.yaml", "--seeds", "0..1", "--group", "g", "--parallel", 1)
    assert done.returncode == 2 and "g_mine_seed0 already exists with other code (agent_of_mine)" in done.stderr
    assert not (mine / "runs" / "g_mine_seed1").exists()


@pytest.mark.slow
def test_a_strangers_run_brings_no_code(run, mine, tmp_path):
    """A run folder with a module that its configuration names: no command imports it.

    Also with "" in the path, as in a notebook: `run` leaves the second part of PYTHONPATH empty.
    """
    assert run(mine, "train", "--config", mine / "mine.yaml", "--run_id", "run").returncode == 0
    stranger = tmp_path / "here" / "runs" / "stranger"
    shutil.copytree(mine / "runs" / "run", stranger)
    shutil.copy(mine / "agent_of_mine.py", stranger)
    shutil.copy(mine / "task_of_mine.py", stranger)
    here, config = tmp_path / "here", (stranger / "config.yaml").read_text()
    for inside in ("", "runs.stranger."):  # the working folder is one where Python looks, so the second is a module
        renamed = re.sub("(?=agent_of_mine|task_of_mine)", inside, config)
        (stranger / "config.yaml").write_text(renamed)
        for words in (
            ["evaluate", stranger, "--episodes", 1],
            ["export", "stranger", here / f"exported{inside}"],
            ["rerun", "stranger"],
            ["train", "--run_id", "stranger", "--resume", "--total_timesteps", 64],
            ["train", "--initialize_from", "stranger", "--run_id", "mine", "--env_id", "CartPole-v1"],
        ):
            ended = run(here, *words)
            assert not (stranger / "imported").exists(), words
            assert not inside or (ended.returncode == 2 and "is not imported" in ended.stderr), words


MISTAKEN = AGENT.replace(
    "    pass",
    """    steps = 0

    def training_step(self, *words, **more):
        Mine.steps += 1
        if Mine.steps > 2:
            import late_of_mine
        return super().training_step(*words, **more)
""",
)


@pytest.mark.slow
def test_only_code_that_has_trained_something_counts(run, mine):
    """Neither a start that failed before the first checkpoint, nor runs that only begin like those of the group."""
    words = ["seeds", "--config", "mine.yaml", "--parallel", "1", "--group", "g", "--seeds"]
    (mine / "agent_of_mine.py").write_text(MISTAKEN)
    failed = run(mine, *words, "0..1")
    assert failed.returncode == 1 and failed.stdout.count("there is no module late_of_mine") == 2, failed.stdout
    (mine / "agent_of_mine.py").write_text(f"{MISTAKEN}\n# mended: there is the module now\n")
    late = mine / "late_of_mine.py"
    late.touch()
    done = run(mine, *words, "0..1")
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(modules_of(mine / "runs" / "g_mine_seed0")["agent_of_mine"][1]) == 1
    assert run(mine, "rerun", "g_mine_seed0").returncode == 0
    assert (mine / "runs" / "g_mine_seed0-rerun").exists()
    done = run(mine, *words, "0..2")
    assert done.returncode == 0, done.stdout + done.stderr
    late.write_text("edited = True\n")
    done = run(mine, *words, "0..3")
    assert done.returncode == 2 and "already exists with other code (late_of_mine)" in done.stderr


@pytest.mark.slow
def test_rerun_names_edited_modules_that_git_ignores(run, mine):
    for words in (
        ["init", "-q"],
        ["add", "."],
        ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "first"],
    ):
        subprocess.run(["git", *words], cwd=mine, check=True)
    ignored = mine / "ignored" / "part_of_mine.py"
    ignored.parent.mkdir()
    (mine / ".git" / "info" / "exclude").write_text("ignored\nruns\n__pycache__\nimported\n")
    ignored.touch()
    agent = mine / "agent_of_mine.py"
    agent.write_text(f"import part_of_mine\n{AGENT}")
    done = run(mine, "train", "--config", "mine.yaml", "--run_id", "run", path=ignored.parent)
    assert done.returncode == 0, done.stderr
    agent.write_text(f"{agent.read_text()}# edited\n")
    ignored.write_text("# edited\n")
    told = run(mine, "rerun", "run", path=ignored.parent).stdout
    assert "\n  code of part_of_mine: edited since\n" in told
    assert "changed: agent_of_mine.py;" in told and "code of agent_of_mine" not in told
