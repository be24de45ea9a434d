"""The learner's throughput against a plain PyTorch loop with torch.distributions and unfused Adam.

Every contender learns from the same synthetic rollout with the same networks (actor and critic MLPs of 256-256-256, the
observation and action sizes of 1v1), 20,000 steps in minibatches, 2 epochs. They take turns; figures are medians over
the rounds, ratios medians of the paired ratios.

    python benchmarks/learner.py                          # plain loop, fp32, fp32 compiled
    python benchmarks/learner.py --precision bf16-mixed   # also bf16-mixed, where the processor can run it
"""

import argparse
import json
import os
import statistics
import sys
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
sys.path.insert(0, str(Path(__file__).parent.parent))

import gymnasium
import numpy as np
import torch
from lightning import Fabric
from machine import describe_machine
from torch import nn
from torch.distributions import Categorical

from agents import PPOLightningAgent
from fabric_rl import Minibatch, TrainArgs, learn

OBS, ACTIONS, EPOCHS = 92, 90, 2


def synthetic_batch(steps: int) -> Minibatch:
    """A rollout of the right shapes."""
    generator = torch.Generator().manual_seed(0)
    obs = torch.randn(steps, OBS, generator=generator)
    actions = torch.randint(ACTIONS, (steps,), generator=generator)
    numbers = [torch.randn(steps, generator=generator) for _ in range(3)]
    return Minibatch(obs, actions, torch.full((steps,), -float(np.log(ACTIONS))), *numbers)


def plain_loop(batch: Minibatch, minibatch_size: int) -> Callable[[], None]:
    """The textbook: two MLPs, Categorical, per-minibatch normalisation, Adam as PyTorch builds it."""

    def mlp(outputs: int) -> nn.Sequential:
        sizes = [OBS, 256, 256, 256]
        layers = [m for a, b in pairwise(sizes) for m in (nn.Linear(a, b), nn.ReLU())]
        return nn.Sequential(*layers, nn.Linear(256, outputs))

    actor, critic = mlp(ACTIONS), mlp(1)
    parameters = [*actor.parameters(), *critic.parameters()]
    optimizer = torch.optim.Adam(parameters, lr=3e-4, eps=1e-5, foreach=False, fused=False)

    def run() -> None:
        for _ in range(EPOCHS):
            order = torch.randperm(len(batch.obs))
            for rows in order.split(minibatch_size):
                policy = Categorical(logits=actor(batch.obs[rows]))
                advantage = batch.advantage[rows]
                advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-8)
                ratio = (policy.log_prob(batch.action[rows]) - batch.log_prob[rows]).exp()
                policy_loss = torch.max(-advantage * ratio, -advantage * ratio.clamp(0.8, 1.2)).mean()
                value_loss = 0.5 * (critic(batch.obs[rows]).squeeze(-1) - batch.returns[rows]).square().mean()
                loss = policy_loss + 0.5 * value_loss - 0.01 * policy.entropy().mean()
                optimizer.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(parameters, 0.5)
                optimizer.step()

    return run


def ours(batch: Minibatch, minibatch_size: int, precision: str, compiled: bool, device: str) -> Callable[[], None]:
    """`fabric_rl.learn` with `PPOLightningAgent`."""
    fabric = Fabric(accelerator=device, devices=1, precision=precision)
    sizes = {"actor_hidden_sizes": (256,) * 3, "critic_hidden_sizes": (256,) * 3}
    space = gymnasium.spaces.Box(-np.inf, np.inf, (OBS,))
    agent = PPOLightningAgent(space, gymnasium.spaces.Discrete(ACTIONS), **sizes, activation=nn.ReLU, entropy_coef=0.01)
    optimizer = agent.configure_optimizers()
    if compiled:
        agent.training_step = torch.compile(agent.training_step)
    model, optimizer = fabric.setup(agent, optimizer)
    args, generator = TrainArgs(update_epochs=EPOCHS), torch.Generator()
    moved = batch.map(lambda x: x.to(fabric.device))
    return lambda: learn(fabric, model, optimizer, moved, args, minibatch_size, generator) and None


def main() -> None:
    """Times all contenders in turn, prints a table and ends with one JSON line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=20_000)
    parser.add_argument("--minibatch_size", type=int, default=2_000)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--precision", nargs="+", default=["32-true"], help="besides 32-true: bf16-mixed, 16-mixed")
    parser.add_argument("--accelerator", default="cpu", help="of ours; the plain loop runs on the CPU")
    options = parser.parse_args()
    batch = synthetic_batch(options.steps)
    contenders = {"plain": plain_loop(batch, options.minibatch_size)}
    for precision in dict.fromkeys(["32-true", *options.precision]):
        for compiled in (False, True):
            name = precision + (" compiled" if compiled else "")
            contenders[name] = ours(batch, options.minibatch_size, precision, compiled, options.accelerator)
    seconds: dict[str, list[float]] = {name: [] for name in contenders}
    for run in contenders.values():  # warm up, compile
        run()
    for _ in range(options.rounds):
        for name, run in contenders.items():
            began = time.perf_counter()
            run()
            seconds[name].append(time.perf_counter() - began)
    rows = {}
    for name, times in seconds.items():
        ratios = [plain / own for plain, own in zip(seconds["plain"], times, strict=True)]
        rate = EPOCHS * options.steps / statistics.median(times)
        rows[name] = {"steps_per_second": rate, "ratio_to_plain": statistics.median(ratios)}
    print(f"{describe_machine()} Minibatches of {options.minibatch_size}.\n")
    print("| learner | steps/s | plain / ours |\n|---|---|---|")
    for name, row in rows.items():
        print(f"| {name} | {row['steps_per_second']:,.0f} | {row['ratio_to_plain']:.2f} |")
    print(json.dumps({"learner": rows}))


if __name__ == "__main__":
    main()
