"""A checkpoint that somebody has changed, with a right checksum: what it says is checked before any of it is taken."""

from functools import partial

import numpy as np
import pytest
import torch

from agents import PPOLightningAgent
from envs import RocketSimPool
from fabric_rl import Run, TrainArgs, load_checkpoint, train
from fabric_rl.runs.checkpoint import CheckpointError
from tests.campaigns.mutated_checkpoints import replaced

SIZES = {"num_steps": 8, "minibatch_size": 16, "update_epochs": 1}
POOL = partial(RocketSimPool, 2, num_threads=1)
AGENT = partial(PPOLightningAgent, actor_hidden_sizes=(8,), critic_hidden_sizes=(8,), normalize_obs=True)
WEIGHT = "actor.0.weight"
EPISODES = ("ranks", 0, "episodes")
ENV = ("ranks", 0, "env")
BALL = ("ranks", 0, "env", "state", "ball_rows")


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """A checkpoint of 64 steps."""
    from lightning import Fabric

    torch.set_num_threads(1)
    fabric = Fabric(accelerator="cpu", devices=1)
    args = TrainArgs(total_timesteps=64, standardize_returns=True, **SIZES)
    run = Run.create(tmp_path_factory.mktemp("runs"), "a")
    train(fabric, POOL, AGENT, args, run, plain=True)
    return load_checkpoint(run.dir)[1]


def value_at(state, path):
    for name in path:
        state = state[name]
    return state


FORGED = {
    "other shape of a weight": (("agent", WEIGHT), lambda x: x[:, :-1].clone(), WEIGHT),
    "other kind of a weight": (("agent", WEIGHT), lambda x: x.long(), WEIGHT),
    "NaN in a weight": (("agent", WEIGHT), lambda x: torch.full_like(x, torch.nan), f"{WEIGHT} has NaN"),
    "a weight that is text": (("agent", WEIGHT), lambda x: "text", "weights are no tensors"),
    "a weight is missing": (("agent",), lambda x: {k: v for k, v in x.items() if k != WEIGHT}, WEIGHT),
    "other shape in the optimizer": (("optimizer", "state", 0, "exp_avg"), lambda x: x[:1].clone(), "exp_avg"),
    "an array in the optimizer": (("optimizer", "state", 0, "exp_avg_sq"), lambda x: x.numpy(), "exp_avg_sq"),
    "other groups in the optimizer": (("optimizer", "param_groups", 0, "params"), lambda x: [9999], "groups"),
    "steps that are no number": (("steps",), lambda x: "64", "steps"),
    "more ranks than there were": (("world_size",), lambda x: 2, "ranks"),
    "returns of another shape": ((*EPISODES, "return"), lambda x: x[:-1], "sub-environments"),
    "an arena too few": ((*ENV, "arenas"), lambda x: x[:-1], "arenas"),
    "a ball at infinity": ((*ENV, "arenas", 0), lambda x: np.where(np.arange(len(x)) == 0, np.inf, x), "number 0"),
    "a generator that is none": ((*ENV, "rngs", 0), lambda x: {"state": 3}, "PCG64"),
    "other metrics": (("metrics",), lambda x: {"loss": [1, 2]}, "metrics"),
}


@pytest.mark.parametrize("name", FORGED)
def test_it_is_refused_in_one_line_that_names_it(fabric, saved, name):
    path, change, words = FORGED[name]
    forged = replaced(saved, path, change(value_at(saved, path)))
    args = TrainArgs(total_timesteps=128, standardize_returns=True, **SIZES)
    with pytest.raises(CheckpointError) as caught:
        train(fabric, POOL, AGENT, args, resume=forged, plain=True)
    assert words in str(caught.value) and "\n" not in str(caught.value)


def test_as_it_was_it_goes_on(fabric, saved):
    args = TrainArgs(total_timesteps=128, standardize_returns=True, **SIZES)
    assert train(fabric, POOL, AGENT, args, resume=saved, plain=True)["total_steps"] == 128


def test_an_optimizer_of_another_precision_is_told(fabric, saved):
    path = ("optimizer", "state", 0, "exp_avg_sq")
    args = TrainArgs(total_timesteps=128, standardize_returns=True, **SIZES)
    with pytest.warns(UserWarning, match="weights of another --precision"):
        train(fabric, POOL, AGENT, args, resume=replaced(saved, path, value_at(saved, path).half()), plain=True)
