"""FSDP on two real ranks: the numbers of DDP with half the memory, in the same checkpoints."""

from functools import partial

import pytest
import torch
from lightning import Fabric
from torch import nn

from agents import PPOLightningAgent
from envs import GymnasiumEnvs
from fabric_rl import Minibatch, TrainArgs, learn, train
from fabric_rl.ranks.sharding import UNIT_NUMBERS, _units
from fabric_rl.runs.checkpoint import read
from fabric_rl.runs.records import list_checkpoints

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("runs")


@pytest.fixture(scope="module")
def ranks(forks, folder):
    """What each of the two ranks has filed; see sharded_ranks.py."""
    statuses, _, err = forks.wait(forks.ranks(2, folder, program="tests.integration.sharded_ranks:main"))
    assert statuses == [0, 0], err
    return [torch.load(folder / f"rank{rank}.pt", weights_only=True) for rank in (0, 1)]


def last(folder, name):
    return read(list_checkpoints(folder / name / "checkpoints")[-1])


def without_clock(state):
    metrics = {name: value for name, value in state["metrics"].items() if not name.startswith("speed/")}
    return state | {"seconds": None, "metrics": metrics}


def assert_close(one, other, tolerance, where="state"):
    """The same structure, types, shapes and, within the tolerance, numbers."""
    assert type(one) is type(other), where
    if isinstance(one, dict):
        assert list(one) == list(other), where
        for key in one:
            assert_close(one[key], other[key], tolerance, f"{where}[{key!r}]")
        assert_close(getattr(one, "__dict__", None), getattr(other, "__dict__", None), tolerance, f"vars({where})")
    elif isinstance(one, (list, tuple)):
        assert len(one) == len(other), where
        for number, pair in enumerate(zip(one, other, strict=True)):
            assert_close(*pair, tolerance, f"{where}[{number}]")
    elif isinstance(one, (torch.Tensor, float)):
        torch.testing.assert_close(one, other, rtol=tolerance, atol=tolerance, msg=lambda text: f"{where}: {text}")
    else:
        assert (one == other) if not hasattr(one, "all") else (one == other).all(), where


@pytest.mark.parametrize("suffix", ["", "_accumulated", "_overlap"])
def test_weights_and_momentum_are_those_of_ddp(ranks, folder, suffix):
    """With plain SGD and every step clipped: gradients and their norm are means over both ranks."""
    ddp, fsdp = last(folder, f"ddp{suffix}"), last(folder, f"fsdp{suffix}")
    for name in ("agent", "optimizer", "fingerprint"):
        assert_close(fsdp[name], ddp[name], 1e-5, name)
    first = ranks[0][f"ddp{suffix}"]["metrics"][0]
    assert first["ppo/grad_norm"] > 0.1  # so that clipping does something
    for rank in ranks:
        assert_close(rank[f"fsdp{suffix}"]["metrics"], rank[f"ddp{suffix}"]["metrics"], 1e-5)
    assert ranks[0]["fsdp"]["metrics"] == ranks[1]["fsdp"]["metrics"]


def test_every_rank_holds_half(ranks):
    """Shards are padded to equal size, which costs most where rows are few: here 2 rows at most of each tensor."""
    numbers = ranks[0]["ddp"]["held"]["numbers"]
    for rank in ranks:
        assert rank["ddp"]["held"]["weights"] == 4 * numbers
        for run in ("fsdp", "adam"):
            held, moments = rank[run]["held"], {"fsdp": 1, "adam": 2}[run]
            assert held["numbers"] == numbers
            assert held["weights"] == pytest.approx(4 * numbers / 2, rel=0.06)
            assert held["optimizer"] == pytest.approx(moments * held["weights"], rel=0.12)


def test_a_callback_plays_on_one_rank_alone(ranks):
    """Between learning and the next rollout all weights are at hand."""
    assert_close(ranks[0]["fsdp"]["acted"], ranks[0]["ddp"]["acted"], 1e-5)
    assert ranks[0]["fsdp"]["stayed"] == [True] * 3
    assert ranks[1]["fsdp"]["acted"] == []


def test_a_resumed_run_is_bit_identical(ranks, folder):
    unbroken, resumed = last(folder, "adam"), last(folder, "adam_resumed")
    assert unbroken["optimizer"]["state"][0]["exp_avg"].any()
    assert_close(without_clock(resumed), without_clock(unbroken), 0)


@pytest.mark.parametrize("run", ["ddp_then_fsdp", "fsdp_then_ddp"])
def test_a_run_changes_its_strategy_on_the_way(ranks, folder, run):
    ddp, mixed = last(folder, "ddp"), last(folder, run)
    assert mixed["iteration"] == 3
    assert_close(mixed["agent"], ddp["agent"], 1e-5)
    assert_close(mixed["optimizer"], ddp["optimizer"], 1e-5)


def test_one_rank_goes_on_without_fsdp(ranks, folder):
    fabric = Fabric(accelerator="cpu", devices=1)
    agent = partial(PPOLightningAgent, actor_hidden_sizes=(33,), critic_hidden_sizes=(16, 16), normalize_obs=True)
    saved = last(folder, "adam")
    saved["fingerprint"]["agent"] = "agents.ppo.PPOLightningAgent"  # of which AdamAgent is a subclass
    args = TrainArgs(total_timesteps=256, num_steps=16, minibatch_size=16, update_epochs=1)
    with pytest.warns(UserWarning, match="a different number of ranks"):
        summary = train(fabric, partial(GymnasiumEnvs, "CartPole-v1", 2), agent, args, plain=True, resume=saved)
    assert (summary["world_size"], summary["total_steps"]) == (1, 256)


def test_what_cannot_be_sharded_is_one_line(ranks):
    scalar, misspelt, bypassed = ranks[0]["refused"]
    assert ranks[1]["refused"][:2] == [scalar, misspelt]
    assert "strategy fsdp cannot shard the 0-dimensional parameter temperature of Scalar" in scalar
    assert "strategy fsdp: fsdp_units of Misspelt names 'acter', which is not one of its submodules (" in misspelt
    assert "strategy fsdp: Bypassed.training_step() fails with sharded weights (" in bypassed
    assert all("strategy ddp" in line or "actor" in line for line in ranks[0]["refused"])
    assert not any("\n" in line for line in ranks[0]["refused"])


def test_what_becomes_nan_leaves_the_shards_as_evidence(ranks, folder):
    for number, rows in enumerate((17, 16)):
        path = folder / "exploded" / f"nonfinite-rank{number}.pt"
        assert ranks[number]["exploded"].startswith("the training step's loss became nan in epoch 1, minibatch 1 of 4")
        assert str(path) in ranks[number]["exploded"]
        assert torch.load(path, weights_only=True)["weights_before"]["actor.0.weight"].shape == (rows, 4)


def test_large_sequentials_are_units_unless_the_agent_names_some():
    class Agent(nn.Module):
        def __init__(self):
            super().__init__()
            width = 1 + int(UNIT_NUMBERS**0.5)
            self.large = nn.Sequential(nn.Sequential(nn.Linear(width, width)))
            self.small = nn.Sequential(nn.Linear(4, 4))
            self.blocks = nn.ModuleList(nn.Linear(4, 4) for _ in range(2))

    agent = Agent()
    assert _units(agent) == {agent.large}
    agent.fsdp_units = ("small", "blocks")
    assert _units(agent) == {agent.small, *agent.blocks}
    agent.fsdp_units = ()
    assert _units(agent) == set()


def test_one_rank_is_sharded_with_the_same_numbers(forks, tmp_path):
    """On the command line, where the launcher starts no other process."""
    flags = ["--env_id", "CartPole-v1", "--num_envs", 2, "--num_steps", 16, "--minibatch_size", 16, "--plain"]
    flags += ["--total_timesteps", 64, "--accelerator", "cpu", "--devices", 1, "--runs_dir", tmp_path]
    for name in ("fsdp", "auto"):
        statuses, _, err = forks.wait([forks.start(*flags, "--strategy", name, "--run_id", name)])
        assert statuses == [0], err
    sharded, plain = last(tmp_path, "fsdp"), last(tmp_path, "auto")
    for name in ("fingerprint", "agent", "optimizer", "ranks"):
        assert_close(sharded[name], plain[name], 0, name)


def test_bf16_mixed_reaches_a_training_step_that_is_not_wrapped():
    """Fabric itself sees to it with DDP only: not on one rank, and not with FSDP."""
    seen = []

    class Recording(nn.Module):
        algorithm = "ppo"

        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.ones(2))

        def training_step(self, minibatch):
            seen.append(torch.is_autocast_enabled("cpu"))
            return (self.weight * minibatch.obs).sum(), {}

    fabric, module = Fabric(accelerator="cpu", devices=1, precision="bf16-mixed"), Recording()
    model, optimizer = fabric.setup(module, torch.optim.SGD(module.parameters(), lr=0.1))
    batch = Minibatch(torch.ones(4, 2), *torch.ones(5, 4))
    learn(fabric, model, optimizer, batch, TrainArgs(update_epochs=1), 2, torch.Generator())
    assert seen == [True, True]
