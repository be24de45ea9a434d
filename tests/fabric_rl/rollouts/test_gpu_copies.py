"""Copies to and from a GPU, and that nothing in between waits for one."""

import functools

import numpy as np
import pytest
import torch
from gymnasium.spaces import Box, Discrete, MultiBinary, MultiDiscrete
from torch.utils._python_dispatch import TorchDispatchMode

from agents import AttentionPPOAgent, ConvPPOAgent, PPOLightningAgent, RecurrentPPOAgent
from fabric_rl import Minibatch, TrainArgs, learn
from fabric_rl.ranks.devices import to_device, to_host

DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU"))]


class HostReads(TorchDispatchMode):
    """Counts what makes a host wait for a GPU: reading a number, or what makes a tensor whose size depends on data."""

    WAITING = ("_local_scalar_dense", "nonzero", "masked_select", "_unique2", "multinomial", "equal")

    def __init__(self):
        super().__init__()
        self.seen = []

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        name = function.overloadpacket.__name__
        # Indexing with a mask waits, too: it has to know how many there are.
        masks = name in ("index", "index_put_") and any(x is not None and x.dtype == torch.bool for x in args[1])
        if name in self.WAITING or masks:
            self.seen.append(name)
        return function(*args, **(kwargs or {}))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", [np.float32, np.uint8, np.bool_, np.int64])
def test_there_and_back(device, dtype):
    numbers = np.arange(24).reshape(4, 6).astype(dtype)
    for array in (numbers, numbers[:, ::2], numbers[1:1]):
        there = to_device(array, torch.device(device))
        assert there.device.type == device and there.shape == array.shape
        back = to_host(there)
        assert back.dtype == dtype and np.array_equal(back, array)
    part = to_device(numbers, torch.device(device))[:, 1::2]
    assert np.array_equal(to_host(part), numbers[:, 1::2])


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_what_was_sent_may_be_overwritten():
    """A pool writes its next observations into the same array, while the copy may not have begun."""
    device = torch.device("cuda")
    busy = torch.randn(4096, 4096, device=device)
    for _ in range(50):
        busy = busy @ busy / 64
    array = np.full(2**20, 1, np.float32)
    there = to_device(array, device)
    array[:] = 2
    assert to_host(there).tolist() == [1] * 2**20


def host_reads(agent, fabric, minibatch_size, **settings):
    """What the host reads while an agent learns from 48 steps."""
    torch.manual_seed(0)
    module = agent()
    model, optimizer = fabric.setup(module, module.configure_optimizers())
    args = TrainArgs(update_epochs=3, **settings)
    with HostReads() as reads:
        learn(fabric, model, optimizer, random_batch(module), args, minibatch_size, torch.Generator())
    return reads.seen


def random_batch(module, steps=48):
    obs = torch.stack([torch.from_numpy(module.observation_space.sample()) for _ in range(steps)])
    action = torch.tensor(np.stack([module.action_space.sample() for _ in range(steps)]))
    numbers = [torch.randn(steps) for _ in range(4)]
    batch = Minibatch(obs, action, -numbers[0].abs(), *numbers[1:])
    if not module.memory_size:
        return batch
    length = module.sequence_length
    sequences = batch.map(lambda x: x.unflatten(0, (length, steps // length)))
    starts = torch.rand(length, steps // length) < 0.2
    return sequences._replace(state=torch.zeros(steps // length, module.memory_size), episode_start=starts)


def agents():
    vector, pixels = Box(-1, 1, (6,), np.float32), Box(0, 255, (3, 40, 40), np.uint8)
    for actions in (Discrete(3), MultiDiscrete([3, 2]), MultiBinary(4), Box(-1, 1, (2,), np.float32)):
        yield functools.partial(PPOLightningAgent, vector, actions, (8,), (8,), normalize_obs=True)
    # An LSTM has a path of its own on the CPU; elsewhere it goes the GRU's way.
    yield functools.partial(RecurrentPPOAgent, vector, Discrete(3), cell="gru", memory_size=8, sequence_length=4)
    yield functools.partial(ConvPPOAgent, pixels, Discrete(3))
    yield functools.partial(AttentionPPOAgent, Box(0, 1, (4, 5), np.float32), Discrete(3), embed_size=8)


@pytest.mark.parametrize("agent", list(agents()), ids=str)
def test_the_host_reads_once_however_many_minibatches_there_are(agent, fabric):
    """On a GPU every read in between would let it run dry."""
    few, many = (host_reads(agent, fabric, size) for size in (24, 8))
    assert few == many
    with_kl = host_reads(agent, fabric, 8, target_kl=100.0)
    assert len(with_kl) == len(few) + 3  # once an epoch


def test_such_reads_are_noticed():
    x = torch.arange(4.0)
    with HostReads() as reads:
        float(x.sum())
        x[x > 1]
    assert reads.seen == ["_local_scalar_dense", "index"]
