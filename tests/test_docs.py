"""The code of the documentation runs as it is printed."""

import re
from functools import partial
from pathlib import Path

import pytest
import torch
from lightning import Fabric

from envs import GymnasiumEnvs
from fabric_rl import Run, TrainArgs, load_checkpoint, train

ROOT = Path(__file__).resolve().parents[1]


def block(file, first_line):
    """The Python block of a page that begins with that line."""
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / file).read_text(encoding="utf-8"), re.DOTALL)
    found = [text for text in blocks if text.startswith(first_line)]
    assert len(found) == 1
    return found[0]


@pytest.fixture(scope="module")
def tiny_agent():
    names = {}
    exec(block("docs/agents.md", "# my_agent.py"), names)
    return names["TinyAgent"]


def test_the_agent_of_the_docs_is_short_and_learns(tiny_agent, tmp_path):
    lines = block("docs/agents.md", "# my_agent.py").splitlines()
    assert sum(bool(line.strip()) for line in lines) <= 36  # imports included
    fabric = Fabric(accelerator="cpu", devices=1)
    run = Run.create(tmp_path, "docs")
    env = partial(GymnasiumEnvs, "CartPole-v1", 4)
    args = TrainArgs(total_timesteps=12_000, num_steps=256, minibatch_size=64)
    summary = train(fabric, env, tiny_agent, args, run, plain=True)
    assert summary["mean_return_last_20"] > 60  # a random policy gets 22
    path, state = load_checkpoint(run.dir)
    envs = env(seed=0)
    agent = tiny_agent(envs.single_observation_space, envs.single_action_space)
    agent.load_state_dict(state["agent"])
    assert path.name == "step_000000012288.ckpt"
    with torch.no_grad():
        assert agent.act(torch.zeros(3, 4), deterministic=True).action.shape == (3,)
