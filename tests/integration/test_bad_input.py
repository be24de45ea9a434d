"""Every mistake a user can make is one line that names the flag, status 2, and leaves no run folder behind."""

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

# name: (arguments, what the line must contain). {tmp} is a folder of the case's own.
CASES = {
    "unknown key": ("--nonsense 3", ["--nonsense"]),
    "unknown key of the agent": ("--agent.nonsense 3", ["--agent", "nonsense"]),
    "unknown key in a config file": ("--config {tmp}/unknown_key.yaml", ["nonsense"]),
    "missing config file": ("--config {tmp}/nowhere.yaml", ["--config", "nowhere.yaml"]),
    "unknown class": ("--agent agents.Nope", ["--agent", "agents.Nope"]),
    "unknown environment id": ("--env_id Nope-v0", ["--env_id", "Nope-v0"]),
    "wrong base class of the agent": ("--agent envs.DefaultObs", ["--agent", "envs.DefaultObs"]),
    "wrong base class of a component": ("--env.obs envs.Kickoff", ["--env.obs", "ObsBuilder"]),
    "wrong type": ("--agent.actor_lr fast", ["--agent", "actor_lr", "fast"]),
    "action space that does not fit": ("--env-id Pendulum-v1", ["PPOLightningAgent", "Box", "--agent", "--env_id"]),
    "zero steps": ("--num_steps 0", ["--num_steps must be at least 1, got 0"]),
    "negative steps": ("--total-timesteps -5", ["--total_timesteps must be at least 1, got -5"]),
    "zero arenas": ("--env.num_arenas 0", ["num_arenas must be at least 1, got 0"]),
    "zero hidden units": ("--env-id CartPole-v1 --agent.actor_hidden_sizes [0]", ["--agent.actor_hidden_sizes"]),
    "minibatch too large": (
        "--env.num_arenas 2 --num_steps 8 --minibatch-size 33",
        ["--minibatch_size 33", "32 steps", "--num_steps 8"],
    ),
    "number of copies without an id": ("--num-envs 4", ["--num_envs", "--env_id"]),
    "video of something that cannot be drawn": ("--env.num_arenas 1 --capture-video", ["--capture_video"]),
    "runs folder that is a file": ("--runs_dir {tmp}/file", ["--runs_dir", "file"]),
    "runs folder inside a file": ("--runs_dir {tmp}/file/runs", ["--runs_dir", "file/runs"]),
    "run id that exists": ("--run_id taken", ["--run_id taken", "already exists"]),
    "run id that is a path": ("--run_id ../elsewhere", ["--run_id ../elsewhere"]),
    "no GPU": ("--accelerator cuda", ["--accelerator", "CUDA"]),
    "no devices": ("--devices 0 --accelerator cpu", ["--devices"]),
    "unknown strategy": ("--strategy nonsense", ["--strategy", "nonsense"]),
    "precision that is not supported": ("--precision 64-true", ["--precision", "64-true"]),
    "no collision meshes": ("--env.collision_meshes {tmp}", ["--env.collision_meshes"]),
}


@pytest.fixture(scope="module")
def outcomes(run_python, tmp_path_factory):
    """Runs all cases, as many at a time as there are cores: starting Python takes most of it."""

    def outcome(name):
        tmp = tmp_path_factory.mktemp("case")
        (tmp / "file").write_text("in the way")
        (tmp / "unknown_key.yaml").write_text("nonsense: 3\n")
        (tmp / "runs/taken").mkdir(parents=True)
        arguments = CASES[name][0].format(tmp=tmp).split()
        if "--runs_dir" not in arguments:
            arguments += ["--runs_dir", str(tmp / "runs")]
        result = run_python("train_fabric.py", *arguments)
        left = sorted(str(path.relative_to(tmp)) for path in tmp.rglob("*"))
        return SimpleNamespace(status=result.returncode, out=result.stdout, err=result.stderr, left=left)

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return dict(zip(CASES, pool.map(outcome, CASES), strict=True))


@pytest.mark.parametrize("name", CASES)
def test_bad_input_is_one_line(outcomes, name):
    if name == "no GPU" and torch.cuda.is_available():
        pytest.skip("this machine has a GPU")
    outcome, named = outcomes[name], CASES[name][1]
    assert (outcome.status, outcome.err.count("\n")) == (2, 1), outcome.err
    assert outcome.err.startswith("train_fabric.py: error: ")
    assert "Traceback" not in outcome.out + outcome.err
    assert [text for text in named if text not in outcome.err] == [], outcome.err
    assert outcome.left == ["file", "runs", "runs/taken", "unknown_key.yaml"]


def test_a_notebook_gets_the_exception(tmp_path: Path):
    """The one-line exit is the command line's; main() raises what a caller can catch."""
    import train_fabric

    with pytest.raises(ValueError, match="--num_envs goes with --env_id"):
        train_fabric.main(num_envs=3, runs_dir=str(tmp_path))
