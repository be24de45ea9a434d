"""The learner's throughput against a plain PyTorch loop with torch.distributions and unfused Adam, and a matmul.

Every contender learns from the same synthetic rollout with the same networks (actor and critic MLPs of 256-256-256, the
observation and action sizes of 1v1), 20,000 steps in minibatches, 2 epochs. They take turns; figures are medians over
the rounds, ratios medians of the paired ratios. `of a matmul` sets the floating point operations per second of the
networks' matrix products beside those of one large product in the contender's precision, timed in the same turn.

    python benchmarks/learner.py                          # plain loop, fp32, fp32 compiled
    python benchmarks/learner.py --precision bf16-mixed   # also bf16-mixed, where the processor can run it
    python benchmarks/learner.py --accelerator cuda --precision bf16-mixed --steps 100000 --minibatch_size 50000 \
        --hidden_sizes 2048 2048 1024 1024
"""

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

import fabric_rl  # noqa: F401 - before torch: it settles how OpenMP's threads wait

# isort: split
import gymnasium
import numpy as np
import torch
from lightning import Fabric
from machine import describe_machine
from torch import Tensor, nn
from torch.distributions import Categorical
from torch.utils.flop_counter import FlopCounterMode

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


def plain_loop(batch: Minibatch, minibatch_size: int, hidden_sizes: list[int], device: str) -> Callable[[], None]:
    """The textbook: two MLPs, Categorical, per-minibatch normalisation, Adam as PyTorch builds it."""

    def mlp(outputs: int) -> nn.Sequential:
        sizes = [OBS, *hidden_sizes]
        layers = [m for a, b in pairwise(sizes) for m in (nn.Linear(a, b), nn.ReLU())]
        return nn.Sequential(*layers, nn.Linear(sizes[-1], outputs)).to(device)

    actor, critic, batch = mlp(ACTIONS), mlp(1), batch.map(lambda x: x.to(device))
    parameters = [*actor.parameters(), *critic.parameters()]
    optimizer = torch.optim.Adam(parameters, lr=3e-4, eps=1e-5, foreach=False, fused=False)

    def run() -> None:
        for _ in range(EPOCHS):
            order = torch.randperm(len(batch.obs), device=device)
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


def ours(
    batch: Minibatch, minibatch_size: int, hidden_sizes: list[int], precision: str, compiled: bool, device: str
) -> Callable[[], None]:
    """`fabric_rl.learning.update` with `PPOLightningAgent`."""
    fabric = Fabric(accelerator=device, devices=1, precision=precision)
    sizes = {"actor_hidden_sizes": hidden_sizes, "critic_hidden_sizes": hidden_sizes}
    space = gymnasium.spaces.Box(-np.inf, np.inf, (OBS,))
    agent = PPOLightningAgent(space, gymnasium.spaces.Discrete(ACTIONS), **sizes, activation=nn.ReLU, entropy_coef=0.01)
    optimizer = agent.configure_optimizers()
    if compiled:
        agent.training_step = torch.compile(agent.training_step)
    model, optimizer = fabric.setup(agent, optimizer)
    agent.progress = agent.progress.to(fabric.device)
    args, generator = TrainArgs(update_epochs=EPOCHS), torch.Generator()
    moved = batch.map(lambda x: x.to(fabric.device))
    return lambda: learn(fabric, model, optimizer, moved, args, minibatch_size, generator) and None


def matmul_rate(precision: str, device: str) -> Callable[[], float]:
    """A function that multiplies large square matrices and returns floating point operations per second."""
    size = 8192 if device == "cuda" else 2048
    dtype = {"bf16-mixed": torch.bfloat16, "16-mixed": torch.float16}.get(precision, torch.float32)
    one, other = (torch.randn(size, size, device=device).to(dtype) for _ in range(2))
    times = 20 if device == "cuda" else 2
    product: Tensor = one @ other

    def run() -> float:
        began = finished(device)
        for _ in range(times):
            torch.mm(one, other, out=product)
        return times * 2 * size**3 / (finished(device) - began)

    return run


def finished(device: str) -> float:
    """The time when all that the device was given is done."""
    if device == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter()


def main() -> None:
    """Times all contenders in turn, prints a table and ends with one JSON line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=20_000)
    parser.add_argument("--minibatch_size", type=int, default=2_000)
    parser.add_argument("--hidden_sizes", type=int, nargs="+", default=[256, 256, 256])
    parser.add_argument("--rounds", type=int, default=7)
    precisions = ("32-true", "bf16-mixed", "16-mixed")
    parser.add_argument("--precision", nargs="+", choices=precisions, default=["32-true"], help="besides 32-true")
    parser.add_argument("--accelerator", choices=("cpu", "cuda"), default="cpu")
    options = parser.parse_args()
    if options.accelerator == "cuda" and not torch.cuda.is_available():
        parser.error("--accelerator cuda: this machine has no GPU")
    if options.minibatch_size > options.steps:
        parser.error(f"--minibatch_size {options.minibatch_size} is larger than --steps {options.steps}")
    device, sizes = options.accelerator, options.hidden_sizes
    batch = synthetic_batch(options.steps)
    contenders = {"plain": plain_loop(batch, options.minibatch_size, sizes, device)}
    precisions = list(dict.fromkeys(["32-true", *options.precision]))
    precision_of = {"plain": "32-true"}
    for precision in precisions:
        for compiled in (False, True):
            name = precision + (" compiled" if compiled else "")
            precision_of[name] = precision
            contenders[name] = ours(batch, options.minibatch_size, sizes, precision, compiled, device)
    with FlopCounterMode(display=False) as counter:
        contenders["32-true"]()
    operations = counter.get_total_flops()
    matmuls = {precision: matmul_rate(precision, device) for precision in precisions}
    for run in contenders.values():  # warm up, compile
        run()
    seconds: dict[str, list[float]] = {name: [] for name in contenders}
    rates: dict[str, list[float]] = {name: [] for name in precisions}
    for _ in range(options.rounds):
        for name, matmul in matmuls.items():
            rates[name].append(matmul())
        for name, run in contenders.items():
            began = finished(device)
            run()
            seconds[name].append(finished(device) - began)
    rows = {}
    for name, times in seconds.items():
        ratios = [plain / own for plain, own in zip(seconds["plain"], times, strict=True)]
        shares = [operations / own / rate for own, rate in zip(times, rates[precision_of[name]], strict=True)]
        rows[name] = {
            "steps_per_second": EPOCHS * options.steps / statistics.median(times),
            "ratio_to_plain": statistics.median(ratios),
            "tflops": operations / statistics.median(times) / 1e12,
            "of_matmul": statistics.median(shares),
        }
    matmul_tflops = {name: statistics.median(each) / 1e12 for name, each in rates.items()}
    told = ", ".join(f"{rate:.3g} TFLOP/s in precision {name}" for name, rate in matmul_tflops.items())
    print(
        f"{describe_machine()} Networks of {'-'.join(map(str, sizes))}, minibatches of {options.minibatch_size:,}, on "
        f"{device}. A large matrix product reaches {told}.\n"
    )
    print("| learner | steps/s | plain / ours | TFLOP/s | of a matmul |\n|---|---|---|---|---|")
    for name, row in rows.items():
        speeds = f"{row['steps_per_second']:,.0f} | {row['ratio_to_plain']:.2f} | {row['tflops']:.3g}"
        print(f"| {name} | {speeds} | {row['of_matmul']:.2f} |")
    print(json.dumps({"learner": rows, "matmul_tflops": matmul_tflops}))


if __name__ == "__main__":
    main()
