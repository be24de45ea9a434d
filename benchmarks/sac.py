"""The updates per second of SAC against those of a plain PyTorch loop, written as in a single-file implementation.

Both learn with the same networks (policy and two critics, ReLU) from batches of the same size, drawn from buffers of
the same synthetic steps. A round of either is what training makes after every step of one environment: it puts the step
into the buffer, draws a batch, and learns from it (critics, policy, temperature, targets). They take turns; the ratio
is the median of the paired ratios. Time is the process's own (CPU time), so that other programs count less.

    python benchmarks/sac.py                                     # one thread; Box and discrete actions, two sizes
    python benchmarks/sac.py --threads 2 --clock wall --compile
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
from gymnasium.spaces import Box, Discrete
from gymnasium.vector import AutoresetMode, VectorEnv
from lightning import Fabric
from machine import describe_machine
from torch import Tensor, nn
from torch.distributions import Categorical, Normal
from torch.nn.functional import mse_loss

from agents import SACLightningAgent
from fabric_rl import Minibatch, SACArgs, TrainArgs
from fabric_rl.callback import TrainState
from fabric_rl.metrics.timers import Timers
from fabric_rl.rollouts.rollout import Rollout
from fabric_rl.sac.learner import ReplayLearner
from fabric_rl.signals.signals import IntrinsicRewards

OBS, STEPS, GAMMA, TAU = 17, 20_000, 0.99, 0.005
SPACES = {"box": Box(-1, 1, (6,)), "discrete": Discrete(6)}
Update = Callable[[], object]


def synthetic_steps(space: gymnasium.Space) -> Minibatch:
    """Steps of one environment with the shapes of HalfCheetah, a fiftieth of them the last of an episode."""
    generator = torch.Generator().manual_seed(0)
    obs, next_obs = (torch.randn(STEPS, OBS, generator=generator) for _ in range(2))
    if isinstance(space, Discrete):
        action = torch.randint(int(space.n), (STEPS,), generator=generator)
    else:
        action = 2 * torch.rand(STEPS, *space.shape, generator=generator) - 1
    rest = {"log_prob": torch.zeros(STEPS), "value": torch.zeros(STEPS), "returns": torch.zeros(STEPS)}
    reward, done = torch.randn(STEPS, generator=generator), torch.rand(STEPS, generator=generator) < 0.02
    done[0] = False
    rest |= {"advantage": reward, "reward": reward, "terminated": done, "done": done, "next_obs": next_obs}
    return Minibatch(obs=obs, action=action, **rest)


def mlp(*sizes: int) -> nn.Sequential:
    """Linear layers with ReLU between them."""
    layers = [layer for a, b in pairwise(sizes) for layer in (nn.Linear(a, b), nn.ReLU())]
    return nn.Sequential(*layers[:-1])


class PlainBuffer:
    """Numpy arrays with one row a step, drawn from with random indices."""

    def __init__(self, steps: Minibatch) -> None:
        columns = (steps.obs, steps.next_obs, steps.action, steps.reward, steps.terminated)
        self.columns, self.at = [column.numpy().copy() for column in columns], 0

    def add(self, *values: np.ndarray) -> None:
        """Writes one step over the oldest."""
        for column, value in zip(self.columns, values, strict=True):
            column[self.at] = value
        self.at = (self.at + 1) % STEPS

    def sample(self, count: int) -> list[Tensor]:
        """So many of them."""
        rows = np.random.randint(STEPS, size=count)
        return [torch.as_tensor(column[rows]) for column in self.columns]


def plain_box(steps: Minibatch, space: Box, sizes: list[int], batch: int) -> Update:
    """The textbook for Box actions: a network for each critic, an optimizer and a backward pass for each loss."""
    size = space.shape[0]
    actor = mlp(OBS, *sizes, 2 * size)
    critics, targets = ([mlp(OBS + size, *sizes, 1) for _ in range(2)] for _ in range(2))
    for target, critic in zip(targets, critics, strict=True):
        target.load_state_dict(critic.state_dict())
    log_alpha = torch.zeros(1, requires_grad=True)
    q_optimizer = torch.optim.Adam([p for critic in critics for p in critic.parameters()], lr=3e-4)
    actor_optimizer = torch.optim.Adam(actor.parameters(), lr=3e-4)
    alpha_optimizer = torch.optim.Adam([log_alpha], lr=3e-4)
    buffer, row = PlainBuffer(steps), [x[0].numpy() for x in _five(steps)]

    def draw(obs: Tensor) -> tuple[Tensor, Tensor]:
        mean, log_std = actor(obs).chunk(2, dim=-1)
        normal = Normal(mean, (-5 + 3.5 * (torch.tanh(log_std) + 1)).exp())
        u = normal.rsample()
        action = torch.tanh(u)
        return action, (normal.log_prob(u) - torch.log(1 - action.pow(2) + 1e-6)).sum(dim=1, keepdim=True)

    def update() -> None:
        buffer.add(*row)
        obs, next_obs, action, reward, terminated = buffer.sample(batch)
        with torch.no_grad():
            next_action, next_log_prob = draw(next_obs)
            both = torch.cat((next_obs, next_action), dim=1)
            least = torch.min(targets[0](both), targets[1](both)) - log_alpha.exp().item() * next_log_prob
            y = reward + (~terminated).float() * GAMMA * least.view(-1)
        taken = torch.cat((obs, action), dim=1)
        q_loss = sum(mse_loss(critic(taken).view(-1), y) for critic in critics)
        q_optimizer.zero_grad()
        q_loss.backward()
        q_optimizer.step()

        chosen, log_prob = draw(obs)
        both = torch.cat((obs, chosen), dim=1)
        actor_loss = (log_alpha.exp().item() * log_prob - torch.min(critics[0](both), critics[1](both))).mean()
        actor_optimizer.zero_grad()
        actor_loss.backward()
        actor_optimizer.step()

        with torch.no_grad():
            _, log_prob = draw(obs)
        alpha_loss = (-log_alpha.exp() * (log_prob - size)).mean()
        alpha_optimizer.zero_grad()
        alpha_loss.backward()
        alpha_optimizer.step()
        _follow(targets, critics)

    return update


def plain_discrete(steps: Minibatch, space: Discrete, sizes: list[int], batch: int) -> Update:
    """The textbook for discrete actions: critics give the Q-values of all actions, expectations are exact."""
    size = int(space.n)
    actor = mlp(OBS, *sizes, size)
    critics, targets = ([mlp(OBS, *sizes, size) for _ in range(2)] for _ in range(2))
    for target, critic in zip(targets, critics, strict=True):
        target.load_state_dict(critic.state_dict())
    log_alpha = torch.zeros(1, requires_grad=True)
    q_optimizer = torch.optim.Adam([p for critic in critics for p in critic.parameters()], lr=3e-4)
    actor_optimizer = torch.optim.Adam(actor.parameters(), lr=3e-4)
    alpha_optimizer = torch.optim.Adam([log_alpha], lr=3e-4)
    buffer, row, target_entropy = PlainBuffer(steps), [x[0].numpy() for x in _five(steps)], 0.2 * np.log(size)

    def chances(obs: Tensor) -> tuple[Tensor, Tensor]:
        policy = Categorical(logits=actor(obs))
        return policy.probs, torch.log_softmax(policy.logits, dim=1)

    def update() -> None:
        buffer.add(*row)
        obs, next_obs, action, reward, terminated = buffer.sample(batch)
        alpha = log_alpha.exp().item()
        with torch.no_grad():
            probs, log_probs = chances(next_obs)
            least = torch.min(targets[0](next_obs), targets[1](next_obs))
            y = reward + (~terminated).float() * GAMMA * (probs * (least - alpha * log_probs)).sum(dim=1)
        taken = action.view(-1, 1)
        q_loss = sum(mse_loss(critic(obs).gather(1, taken).view(-1), y) for critic in critics)
        q_optimizer.zero_grad()
        q_loss.backward()
        q_optimizer.step()

        probs, log_probs = chances(obs)
        with torch.no_grad():
            least = torch.min(critics[0](obs), critics[1](obs))
        actor_loss = (probs * (alpha * log_probs - least)).sum(dim=1).mean()
        actor_optimizer.zero_grad()
        actor_loss.backward()
        actor_optimizer.step()

        alpha_loss = (probs.detach() * (-log_alpha.exp() * (log_probs.detach() + target_entropy))).sum(dim=1).mean()
        alpha_optimizer.zero_grad()
        alpha_loss.backward()
        alpha_optimizer.step()
        _follow(targets, critics)

    return update


def _five(steps: Minibatch) -> tuple[Tensor, ...]:
    return steps.obs, steps.next_obs, steps.action, steps.reward, steps.terminated


def _follow(targets: list[nn.Sequential], critics: list[nn.Sequential]) -> None:
    for target, critic in zip(targets, critics, strict=True):
        for theirs, own in zip(target.parameters(), critic.parameters(), strict=True):
            theirs.data.copy_(TAU * own.data + (1 - TAU) * theirs.data)


class NoWorld(VectorEnv):
    """Spaces and no steps: enough to allocate a rollout."""

    metadata = {"autoreset_mode": AutoresetMode.SAME_STEP}  # noqa: RUF012 - gymnasium's
    num_envs = 1

    def __init__(self, space: gymnasium.Space) -> None:
        self.single_observation_space, self.single_action_space = Box(-np.inf, np.inf, (OBS,)), space


def ours(steps: Minibatch, space: gymnasium.Space, sizes: list[int], batch: int, compiled: bool = False) -> Update:
    """`fabric_rl.sac.learner.ReplayLearner` with `SACLightningAgent`."""
    fabric, world = Fabric(accelerator="cpu", devices=1), NoWorld(space)
    shape = {"actor_hidden_sizes": sizes, "critic_hidden_sizes": sizes}
    agent = SACLightningAgent(world.single_observation_space, space, **shape)
    optimizer = agent.configure_optimizers()
    if compiled:
        agent.training_step = torch.compile(agent.training_step)
    model, optimizer = fabric.setup(agent, optimizer)
    rollout = Rollout(1, world, agent=agent)
    args = TrainArgs(num_steps=1, batch_size=batch, max_grad_norm=0, gamma=GAMMA)
    sac = SACArgs(buffer_size=STEPS + 1, tau=TAU)
    state, signals = (
        TrainState(fabric, agent, world, args, model, optimizer),
        IntrinsicRewards([], args, fabric, fabric, 1),
    )
    learner = ReplayLearner(state, Timers(), sac, rollout, torch.tensor(GAMMA), signals, [])
    learner.replay.add(steps)
    step = steps.map(lambda x: x[:1])._replace(next_obs=steps.obs[:1])  # goes on where the last one ended
    return lambda: learner.learn(step, batch)


def main() -> None:
    """Times both in turn for each kind of actions and each size, prints a table and ends with one JSON line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="+", default=[64, 256], help="of both hidden layers")
    parser.add_argument("--batch_size", type=int, default=256)
    parser.add_argument("--updates", type=int, default=200, help="in a turn")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--clock", choices=("cpu", "wall"), default="cpu")
    parser.add_argument("--compile", action="store_true", help="also with --compile")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    clock = time.process_time if options.clock == "cpu" else time.perf_counter
    rows = {}
    for kind, space in SPACES.items():
        steps = synthetic_steps(space)
        for size in options.sizes:
            given = (steps, space, [size, size], options.batch_size)
            contenders = {"plain": (plain_box if kind == "box" else plain_discrete)(*given), "ours": ours(*given)}
            if options.compile:
                contenders["ours, compiled"] = ours(*given, compiled=True)
            seconds: dict[str, list[float]] = {name: [] for name in contenders}
            for number in range(options.rounds + 1):
                for name, update in contenders.items():
                    began = clock()
                    for _ in range(options.updates):
                        update()
                    if number:  # the first warms up
                        seconds[name].append((clock() - began) / options.updates)
            for name, times in seconds.items():
                ratios = [plain / own for plain, own in zip(seconds["plain"], times, strict=True)]
                rate, ratio = 1 / statistics.median(times), statistics.median(ratios)
                rows[f"{kind} {size}-{size} {name}"] = {"updates_per_second": rate, "ratio_to_plain": ratio}
    print(
        f"{describe_machine()} Batches of {options.batch_size}, {OBS} observations, {options.threads} threads, "
        f"{'process' if options.clock == 'cpu' else 'wall'} time.\n"
    )
    print("| actions, nets, learner | updates/s | ours / plain |\n|---|---|---|")
    for name, row in rows.items():
        print(f"| {name} | {row['updates_per_second']:,.0f} | {row['ratio_to_plain']:.2f} |")
    print(json.dumps({"sac": rows}))


if __name__ == "__main__":
    main()
