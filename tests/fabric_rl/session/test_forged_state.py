"""A checkpoint that somebody has changed, with a right checksum: its structure is that of what this run would save."""

from functools import partial

import pytest
import torch

from agents import PPOLightningAgent
from envs import RocketSimPool
from fabric_rl import Run, TrainArgs, load_checkpoint, train
from fabric_rl.runs.checkpoint import check_run_state
from fabric_rl.types import CheckpointError
from tests.campaigns.mutated_checkpoints import replaced

SIZES = {"num_steps": 8, "minibatch_size": 16, "update_epochs": 1}
POOL = partial(RocketSimPool, 2, num_threads=1)
AGENT = partial(PPOLightningAgent, actor_hidden_sizes=(8,), critic_hidden_sizes=(8,), normalize_obs=True)
WEIGHT = "actor.0.weight"


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


PARTS = {
    "weights": ("agent", WEIGHT),
    "optimizer": ("optimizer", "state", 0, "exp_avg"),
    "episodes": ("ranks", 0, "episodes", "length"),
    "deviation of the returns": ("ranks", 0, "scaler", "m2"),
    "rollout": ("ranks", 0, "rollout", "episode_start"),
    "generator": ("ranks", 0, "shuffle"),
    "environment": ("ranks", 0, "env", "state", "ball_rows"),
}
"""A part's name in messages -> an array or tensor in its state."""


def without(state, path):
    *inside, key = path
    part = value_at(state, inside)
    return replaced(state, inside, type(part)((name, value) for name, value in part.items() if name != key))


def refused(fabric, forged):
    """The line that refuses it."""
    args = TrainArgs(total_timesteps=128, standardize_returns=True, **SIZES)
    with pytest.raises(CheckpointError) as caught:
        train(fabric, POOL, AGENT, args, resume=forged, plain=True)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("change", ["missing", "shape", "dtype"])
def test_a_part_that_does_not_fit_is_one_line_that_names_it(fabric, saved, part, change):
    path = PARTS[part]
    value = torch.as_tensor(value_at(saved, path))
    if change == "missing":
        forged = without(saved, path)
    else:
        other = value[:-1].clone() if change == "shape" else value.int()
        forged = replaced(saved, path, other if isinstance(value_at(saved, path), torch.Tensor) else other.numpy())
    line = refused(fabric, forged)
    assert str(path[-1]) in line or part in line


FORGED = {
    "NaN in a weight": (("agent", WEIGHT), lambda x: torch.full_like(x, torch.nan), f"{WEIGHT} contains NaN"),
    "a weight that is text": (("agent", WEIGHT), lambda x: "text", f"{WEIGHT}: a str"),
    "other groups in the optimizer": (("optimizer", "param_groups", 0, "params"), lambda x: [9999], "groups"),
    "steps that are no number": (("steps",), lambda x: "64", "steps is '64'"),
    "more iterations than steps": (("iteration",), lambda x: 65, "65 iterations, 64 steps"),
    "more ranks than there were": (("world_size",), lambda x: 2, "ranks"),
    "a generator out of step": (("ranks", 0, "torch"), lambda x: out_of_step(x), "is not a valid generator state"),
    "an arena too few": (("ranks", 0, "env", "arenas"), lambda x: x[:-1], "arenas"),
}


def out_of_step(state):
    """torch would read behind its numbers."""
    changed = state.clone()
    changed[16] += 1
    return changed


@pytest.mark.parametrize("name", FORGED)
def test_what_cannot_be_is_refused_too(fabric, saved, name):
    path, change, words = FORGED[name]
    assert words in refused(fabric, replaced(saved, path, change(value_at(saved, path))))


def test_as_it_was_it_goes_on(fabric, saved):
    args = TrainArgs(total_timesteps=128, standardize_returns=True, **SIZES)
    assert train(fabric, POOL, AGENT, args, resume=saved, plain=True)["total_steps"] == 128


def test_an_optimizer_of_another_precision_is_told(fabric, saved):
    path = ("optimizer", "state", 0, "exp_avg_sq")
    args = TrainArgs(total_timesteps=128, standardize_returns=True, **SIZES)
    with pytest.warns(UserWarning, match="weights with a different --precision"):
        train(fabric, POOL, AGENT, args, resume=replaced(saved, path, value_at(saved, path).half()), plain=True)


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("num_threads", 10**6, "num_threads must be a whole number from 1 to 1,024"),
        ("num_players", 9, "num_players must be a whole number from 0 to 1"),
        ("callbacks", [{}], "callbacks, but 1 states"),
    ],
)
def test_what_would_crash_or_mix_up_the_start_is_refused_when_the_state_is_read(saved, key, value, said):
    with pytest.raises(ValueError, match=said):
        check_run_state(saved | {key: value})
