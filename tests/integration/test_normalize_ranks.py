"""Statistics over two real ranks are those of one stream."""

from pathlib import Path

import pytest
import torch
from lightning import Fabric
from lightning.fabric.strategies import DDPStrategy

from fabric_rl.learning.normalize import ObsNormalizer, ReturnScaler
from fabric_rl.types import ActorCritic
from tests.runs import assert_equal

GAMMA = torch.tensor([0.9, 0.5])
ROLLOUTS, STEPS, ENVS = 3, 20, 4
UNEVEN = [7, 0, 40]
"""Observations of rank 0 in each update, the rest of 50 being rank 1's; once it has none at all."""


class NormalizingAgent(ActorCritic):
    """A layer behind a normalizer."""

    def __init__(self):
        super().__init__(None, None)
        self.normalizer = ObsNormalizer(3)
        self.layer = torch.nn.Linear(3, 1)

    def training_step(self, obs):
        return self.layer(self.normalizer(obs)).mean()


def data():
    """What all ranks see together: observations `[updates, 50, 3]`, rewards and ends of the rollouts."""
    generator = torch.Generator().manual_seed(0)
    obs = 100 + 5 * torch.randn(len(UNEVEN), 50, 3, generator=generator, dtype=torch.float64)
    rewards = 3 * torch.randn(ROLLOUTS, STEPS, ENVS, 2, generator=generator) + 1
    return obs, rewards, torch.rand(ROLLOUTS, STEPS, ENVS, generator=generator) < 0.1


def work(fabric):
    """Normalises what is this rank's share of the data; under DDP without its broadcasts of buffers."""
    obs, rewards, done = data()
    torch.manual_seed(1)
    agent = NormalizingAgent()
    model, optimizer = fabric.setup(agent, torch.optim.SGD(agent.parameters(), lr=0.1))
    model.mark_forward_method("training_step")
    for share, batch in zip(UNEVEN, obs, strict=True):
        own = batch if fabric.world_size == 1 else (batch[:share] if fabric.global_rank == 0 else batch[share:])
        loss = model.training_step(batch[:10].float())
        fabric.backward(loss)
        optimizer.step()
        agent.normalizer.update(own, fabric)
    envs = slice(None) if fabric.world_size == 1 else slice(2 * fabric.global_rank, 2 * fabric.global_rank + 2)
    scaler = ReturnScaler(ENVS // fabric.world_size)
    scaled, sigmas = [], []
    for reward, ended in zip(rewards[:, :, envs], done[:, :, envs], strict=True):
        scaled.append(scaler.scale(reward, ended, GAMMA, fabric))
        sigmas.append(scaler.sigma)
    state = {name: tensor.clone() for name, tensor in agent.state_dict().items()}
    return {"agent": state, "scaled": torch.stack(scaled), "sigmas": torch.stack(sigmas)}


def main(folder):
    """What each of the two ranks does."""
    fabric = Fabric(accelerator="cpu", devices=2, strategy=DDPStrategy(broadcast_buffers=False))
    fabric.launch()
    torch.save(work(fabric), Path(folder, f"rank{fabric.global_rank}.pt"))


@pytest.fixture(scope="module")
def ranks(forks, tmp_path_factory):
    folder = tmp_path_factory.mktemp("ranks")
    statuses, _, err = forks.wait(forks.ranks(2, folder, program=f"{__name__}:main"))
    assert statuses == [0, 0], err
    return [torch.load(folder / f"rank{rank}.pt", weights_only=True) for rank in (0, 1)]


@pytest.fixture(scope="module")
def alone():
    return work(Fabric(accelerator="cpu", devices=1))


def test_observation_statistics_are_those_of_one_stream(ranks, alone):
    obs = data()[0].reshape(-1, 3)
    state = ranks[0]["agent"]
    assert float(state["normalizer.count"]) == 150
    for expected, name in ((obs.mean(dim=0), "mean"), ((obs - obs.mean(dim=0)).square().sum(dim=0), "m2")):
        torch.testing.assert_close(state[f"normalizer.{name}"], expected, rtol=1e-12, atol=0)
        torch.testing.assert_close(alone["agent"][f"normalizer.{name}"], expected, rtol=1e-12, atol=0)


def test_ranks_agree_bit_for_bit(ranks):
    assert_equal(*(rank["agent"] for rank in ranks))
    assert torch.equal(ranks[0]["sigmas"], ranks[1]["sigmas"])


def test_return_deviations_are_those_of_one_stream(ranks, alone):
    torch.testing.assert_close(ranks[0]["sigmas"], alone["sigmas"], rtol=1e-12, atol=0)
    both = torch.cat([rank["scaled"] for rank in ranks], dim=2)
    torch.testing.assert_close(both, alone["scaled"], rtol=1e-6, atol=0)
