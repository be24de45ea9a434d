"""Every mistake a user can make is one line that names the flag, status 2, and leaves no run folder behind."""

import json
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

# name: (arguments, what the line must contain). {tmp} is a folder of the case's own.
CASES = {
    "unknown key": ("--nonsense 3", ["--nonsense"]),
    "unknown key of the agent": ("--agent.nonsense 3", ["--agent", "nonsense"]),
    "missing config file": ("--config {tmp}/nowhere.yaml", ["--config", "nowhere.yaml"]),
    "unknown key in a config file": ("--config {tmp}/unknown_key.yaml", ["nonsense"]),
    "unknown class": ("--agent agents.Nope", ["--agent", "agents.Nope"]),
    "unknown environment id": ("--env_id Nope-v0", ["--env_id", "Nope-v0"]),
    "wrong base class of the agent": ("--agent envs.DefaultObs", ["--agent", "envs.DefaultObs"]),
    "wrong base class of a component": ("--env.obs envs.Kickoff", ["--env.obs", "ObsBuilder"]),
    "wrong type": ("--agent.actor_lr fast", ["--agent", "actor_lr", "fast"]),
    "action space that does not fit": ("--env-id Pendulum-v1", ["PPOLightningAgent", "Box", "--agent", "--env_id"]),
    "zero steps": ("--num-steps 0", ["--num_steps must be at least 1, got 0"]),
    "negative steps": ("--total-timesteps -5", ["--total_timesteps must be at least 1, got -5"]),
    "zero hidden units": ("--env-id CartPole-v1 --agent.actor_hidden_sizes [0]", ["--agent.actor_hidden_sizes"]),
    "zero arenas": ("--env.num_arenas 0", ["num_arenas must be at least 1, got 0"]),
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


# Imports once and forks a process for every case, which otherwise spends most of its time on importing.
RUN_ALL = """
import json, os, sys
import train_fabric

def child(arguments, folder):
    for number, name in ((1, "out"), (2, "err")):
        os.dup2(os.open(os.path.join(folder, name), os.O_CREAT | os.O_WRONLY), number)
    train_fabric.cli(arguments)
    sys.exit(0)

statuses = []
for arguments, folder in json.loads(sys.argv[1]):
    pid = os.fork()
    if pid == 0:
        child(arguments, folder)
    statuses.append(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
print(json.dumps(statuses))
"""


def arguments_of(name, tmp):
    """The case's arguments, and a folder with what it may meet there."""
    (tmp / "file").write_text("in the way")
    (tmp / "unknown_key.yaml").write_text("nonsense: 3\n")
    (tmp / "runs/taken").mkdir(parents=True)
    arguments = CASES[name][0].format(tmp=tmp).split()
    return arguments if "--runs_dir" in arguments else [*arguments, "--runs_dir", str(tmp / "runs")]


@pytest.fixture(scope="module")
def outcomes(run_python, tmp_path_factory):
    """Status, output and the files left of every case."""
    folders = {name: tmp_path_factory.mktemp("case") for name in CASES}
    outputs = {name: tmp_path_factory.mktemp("output") for name in CASES}
    jobs = [(arguments_of(name, folders[name]), str(outputs[name])) for name in CASES]
    result = run_python("-c", RUN_ALL, json.dumps(jobs))
    assert result.returncode == 0, result.stderr
    return {
        name: SimpleNamespace(
            status=status,
            out=(outputs[name] / "out").read_text(),
            err=(outputs[name] / "err").read_text(),
            left=files_in(folders[name]),
        )
        for name, status in zip(CASES, json.loads(result.stdout), strict=True)
    }


def files_in(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


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


def test_a_process_of_its_own_ends_the_same_way(run_python, tmp_path):
    """What imports might print would show here."""
    name = "zero steps"
    result = run_python("train_fabric.py", *arguments_of(name, tmp_path))
    assert result.returncode == 2
    assert result.stderr == "train_fabric.py: error: --num_steps must be at least 1, got 0\n"
    assert result.stdout == ""
    assert files_in(tmp_path) == ["file", "runs", "runs/taken", "unknown_key.yaml"]


def test_a_notebook_gets_the_exception(tmp_path: Path):
    """The one-line exit is the command line's; main() raises what a caller can catch."""
    import train_fabric

    with pytest.raises(ValueError, match="--num_envs goes with --env_id"):
        train_fabric.main(num_envs=3, runs_dir=str(tmp_path))
