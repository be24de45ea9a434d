"""What each of the two ranks of test_sharded.py does: the same training with DDP and with FSDP."""

import os
from datetime import timedelta
from functools import partial
from pathlib import Path

import torch
from lightning import Fabric
from lightning.fabric.strategies import DDPStrategy
from torch import nn
from torch.distributed.tensor import DTensor

from agents import PPOLightningAgent
from envs import GymnasiumEnvs
from fabric_rl import Callback, Run, Saving, TrainArgs, train
from fabric_rl.ranks.sharding import ShardedStrategy
from fabric_rl.runs.checkpoint import read
from fabric_rl.runs.records import list_checkpoints
from fabric_rl.types import NonFiniteError

STEPS = 64  # of both ranks, in an iteration


class Agent(PPOLightningAgent):
    """Units inside of units, rows that do not divide by two, and steps whose length is that of the gradient."""

    fsdp_units = ("actor", "critic", "critic.0")

    def __init__(self, observation_space, action_space):
        super().__init__(observation_space, action_space, (33,), (16, 16), normalize_obs=True)
        with torch.no_grad():
            self.actor[0].bias += int(os.environ["LOCAL_RANK"])  # which the weights of rank 0 take the place of

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.5, momentum=0.9)


class AdamAgent(Agent):
    """With the optimizer of all agents."""

    fsdp_units = ()
    configure_optimizers = PPOLightningAgent.configure_optimizers


class Scalar(PPOLightningAgent):
    """Has a parameter that nobody can divide."""

    def __init__(self, observation_space, action_space):
        super().__init__(observation_space, action_space)
        self.temperature = nn.Parameter(torch.ones(()))


class Misspelt(PPOLightningAgent):
    """Names a unit that it has not."""

    fsdp_units = ("acter",)


class Bypassed(PPOLightningAgent):
    """Uses the weights of a unit without calling it."""

    fsdp_units = ("actor",)

    def training_step(self, minibatch):
        loss, stats = super().training_step(minibatch)
        return loss + minibatch.obs.matmul(self.actor[0].weight.T).mean(), stats


class Exploding(Agent):
    """Its loss is NaN from the second iteration on."""

    def training_step(self, minibatch):
        loss, stats = super().training_step(minibatch)
        return loss * (float("nan") if self.progress > 0 else 1), stats


class Watch(Callback):
    """Keeps what every iteration reported, and what this rank holds after training; plays on rank 0 alone."""

    def __init__(self):
        self.metrics, self.acted, self.stayed = [], [], []

    def on_iteration_end(self, state):
        self.metrics.append({k: v for k, v in state.metrics.items() if k.startswith("ppo/")})
        if state.fabric.is_global_zero:  # with the weights of all ranks, but without the other ranks
            with torch.no_grad():
                self.acted.append(state.agent.act(torch.ones(3, 4)).log_prob)
            self.stayed.append(not isinstance(state.agent.actor[0].weight, DTensor))

    def on_train_end(self, state):
        self.agent = state.agent

    def held(self):
        """Bytes of this rank's weights and optimizer state, and the number of weights of the whole agent."""
        weights = list(self.agent.parameters())
        states = [x for entry in self.agent.optimizers().state.values() for x in entry.values() if x is not None]
        sizes = [sum(local(x).untyped_storage().nbytes() for x in part if x.dim()) for part in (weights, states)]
        return {"weights": sizes[0], "optimizer": sizes[1], "numbers": sum(w.numel() for w in weights)}


def local(tensor):
    return tensor.to_local() if isinstance(tensor, DTensor) else tensor


def train_once(fabric, agent, run, iterations=3, resume=None, **settings):
    watch = Watch()
    settings = {"minibatch_size": 8, "max_grad_norm": 0.1, "update_epochs": 2, "seed": 3} | settings
    args = TrainArgs(total_timesteps=iterations * STEPS, num_steps=16, **settings)
    saving = Saving(checkpoint_every_timesteps=STEPS, exact_resume=True)
    summary = train(
        fabric, partial(GymnasiumEnvs, "CartPole-v1", 2), agent, args, run, [watch], True, saving, resume=resume
    )
    assert summary["iterations"] == iterations
    return {"metrics": watch.metrics, "acted": watch.acted, "stayed": watch.stayed, "held": watch.held()}


def refused(fabric, agent, run):
    try:
        train_once(fabric, agent, run)
    except (ValueError, NonFiniteError) as error:
        return str(error)


def run_at(folder, name):
    run = Run(Path(folder, name))
    run.checkpoints.mkdir(parents=True, exist_ok=True)
    return run


def main(folder):
    waiting = timedelta(minutes=1)  # of ranks that do not do the same
    two = partial(Fabric, accelerator="cpu", devices=2)
    ddp, fsdp = two(strategy=DDPStrategy(timeout=waiting)), two(strategy=ShardedStrategy())
    ddp.launch()
    fsdp.launch()
    place = partial(run_at, folder)
    found = {
        "ddp": train_once(ddp, Agent, place("ddp")),
        "fsdp": train_once(fsdp, Agent, place("fsdp")),
        "ddp_accumulated": train_once(ddp, Agent, place("ddp_accumulated"), 2, minibatch_size=4, batch_size=8),
        "fsdp_accumulated": train_once(fsdp, Agent, place("fsdp_accumulated"), 2, minibatch_size=4, batch_size=8),
        "ddp_overlap": train_once(ddp, Agent, place("ddp_overlap"), 2, overlap=True),
        "fsdp_overlap": train_once(fsdp, Agent, place("fsdp_overlap"), 2, overlap=True),
        "adam": train_once(fsdp, AdamAgent, place("adam")),
    }
    second = {name: read(list_checkpoints(Path(folder, name, "checkpoints"))[1]) for name in ("adam", "ddp", "fsdp")}
    found |= {
        "adam_resumed": train_once(fsdp, AdamAgent, place("adam_resumed"), resume=second["adam"]),
        "ddp_then_fsdp": train_once(fsdp, Agent, place("ddp_then_fsdp"), resume=second["ddp"]),
        "fsdp_then_ddp": train_once(ddp, Agent, place("fsdp_then_ddp"), resume=second["fsdp"]),
        "refused": [refused(fsdp, agent, place("refused")) for agent in (Scalar, Misspelt, Bypassed)],
        "exploded": refused(fsdp, Exploding, place("exploded")),
    }
    torch.save(found, Path(folder, f"rank{fsdp.global_rank}.pt"))
