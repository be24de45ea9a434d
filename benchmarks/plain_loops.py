"""PPO and SAC as single plain loops, with the settings that CleanRL publishes for ppo, ppo_continuous_action and sac.

`benchmarks/baselines.py` runs them beside this project. They are written for Gymnasium 1, whose vector environments
begin the next episode in the step that ends one (`SAME_STEP`), as CleanRL's scripts expect.
"""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
import torch
from gymnasium.spaces import Box
from gymnasium.vector import VectorEnv
from torch import Tensor, nn
from torch.distributions import Categorical, Distribution, Independent, Normal
from torch.nn.functional import mse_loss
from unfinished import Unfinished

Stop = Callable[[], bool]


@dataclass(frozen=True)
class PPO:
    """Settings of PPO; the defaults are CleanRL's for discrete actions."""

    num_steps: int = 128
    minibatches: int = 4
    epochs: int = 4
    lr: float = 2.5e-4
    gamma: float = 0.99
    gae_lambda: float = 0.95
    entropy_coef: float = 0.01
    hidden: Sequence[int] = (64, 64)
    activation: type[nn.Module] = nn.Tanh


CONTINUOUS = PPO(num_steps=2048, minibatches=32, epochs=10, lr=3e-4, entropy_coef=0.0)


def seed_everything(seed: int) -> None:
    """Seeds Python, numpy and torch."""
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)


def orthogonal_mlp(sizes: Sequence[int], activation: type[nn.Module], last: float) -> nn.Sequential:
    """Linear layers with orthogonal weights, the last one scaled by `last`."""
    layers: list[nn.Module] = []
    for number, (a, b) in enumerate(pairwise(sizes), 1):
        linear = nn.Linear(a, b)
        nn.init.orthogonal_(linear.weight, last if number == len(sizes) - 1 else 2**0.5)
        nn.init.zeros_(linear.bias)
        layers += [linear, activation()]
    return nn.Sequential(*layers[:-1])


class ActorCritic(nn.Module):
    """Two separate networks, and a standard deviation that does not depend on the state."""

    def __init__(self, envs: VectorEnv, settings: PPO) -> None:
        super().__init__()
        space, inputs = envs.single_action_space, int(np.prod(envs.single_observation_space.shape))
        self.continuous = isinstance(space, Box)
        outputs = int(np.prod(space.shape)) if self.continuous else int(space.n)
        self.actor = orthogonal_mlp((inputs, *settings.hidden, outputs), settings.activation, 0.01)
        self.critic = orthogonal_mlp((inputs, *settings.hidden, 1), settings.activation, 1.0)
        self.log_std = nn.Parameter(torch.zeros(outputs)) if self.continuous else None

    def policy(self, obs: Tensor) -> Distribution:
        """The distribution of actions."""
        if self.log_std is None:
            return Categorical(logits=self.actor(obs))
        return Independent(Normal(self.actor(obs), self.log_std.exp()), 1)


def train_ppo(envs: VectorEnv, steps: int, seed: int, settings: PPO, stop: Stop = lambda: False) -> int:
    """Trains on `envs` (`N` environments) for so many steps, or until `stop`; returns the number of steps."""
    seed_everything(seed)
    agent, count = ActorCritic(envs, settings), envs.num_envs
    optimizer = torch.optim.Adam(agent.parameters(), lr=settings.lr, eps=1e-5)
    size = count * settings.num_steps
    iterations = max(1, steps // size)
    obs, done = torch.as_tensor(envs.reset(seed=seed)[0], dtype=torch.float32), torch.zeros(count)
    for iteration in range(iterations):
        optimizer.param_groups[0]["lr"] = settings.lr * (1 - iteration / iterations)
        rows: list[tuple[Tensor, ...]] = []
        for _ in range(settings.num_steps):
            with torch.no_grad():
                policy = agent.policy(obs)
                action = policy.sample()
                told = obs, action, policy.log_prob(action), agent.critic(obs).squeeze(-1), done
            next_obs, reward, terminated, truncated, _ = envs.step(action.numpy())
            rows.append((*told, torch.as_tensor(reward, dtype=torch.float32)))
            obs, done = torch.as_tensor(next_obs, dtype=torch.float32), torch.as_tensor(terminated | truncated).float()
        b_obs, b_action, b_log_prob, b_value, b_done, b_reward = (torch.stack(each) for each in zip(*rows, strict=True))
        advantage, last = torch.zeros_like(b_reward), torch.zeros(count)
        with torch.no_grad():
            next_value, next_done = agent.critic(obs).squeeze(-1), done
        for t in reversed(range(settings.num_steps)):
            alive = 1 - next_done
            delta = b_reward[t] + settings.gamma * next_value * alive - b_value[t]
            advantage[t] = last = delta + settings.gamma * settings.gae_lambda * alive * last
            next_value, next_done = b_value[t], b_done[t]
        batch = (b_obs, b_action, b_log_prob, b_value, advantage, advantage + b_value)
        flat = [x.flatten(0, 1) for x in batch]
        for _ in range(settings.epochs):
            for rows_ in torch.randperm(size).split(size // settings.minibatches):
                mb_obs, mb_action, mb_log_prob, mb_value, mb_advantage, mb_returns = (x[rows_] for x in flat)
                policy = agent.policy(mb_obs)
                ratio = (policy.log_prob(mb_action) - mb_log_prob).exp()
                mb_advantage = (mb_advantage - mb_advantage.mean()) / (mb_advantage.std() + 1e-8)
                policy_loss = torch.max(-mb_advantage * ratio, -mb_advantage * ratio.clamp(0.8, 1.2)).mean()
                value = agent.critic(mb_obs).squeeze(-1)
                clipped = mb_value + (value - mb_value).clamp(-0.2, 0.2)
                errors = torch.max((value - mb_returns).square(), (clipped - mb_returns).square())
                loss = policy_loss + 0.5 * 0.5 * errors.mean() - settings.entropy_coef * policy.entropy().mean()
                optimizer.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(agent.parameters(), 0.5)
                optimizer.step()
        if stop():
            return (iteration + 1) * size
    return iterations * size


def relu_mlp(*sizes: int) -> nn.Sequential:
    """Linear layers with ReLU between them."""
    return nn.Sequential(*[m for a, b in pairwise(sizes) for m in (nn.Linear(a, b), nn.ReLU())][:-1])


def train_sac(envs: VectorEnv, steps: int, seed: int, unfinished: Unfinished, every: int) -> int:
    """Trains SAC on one environment with a Box of actions, saves it after each `every` steps; returns the steps.

    Unlike CleanRL's script, the temperature learns from the log-probabilities that its policy's last step was made of.
    """
    seed_everything(seed)
    space, size = envs.single_action_space, int(envs.single_action_space.shape[0])
    inputs, batch, warm_up, gamma, tau = int(np.prod(envs.single_observation_space.shape)), 256, 5_000, 0.99, 0.005
    scale, bias = (
        torch.as_tensor(x, dtype=torch.float32) for x in ((space.high - space.low) / 2, (space.high + space.low) / 2)
    )
    actor = relu_mlp(inputs, 256, 256, 2 * size)
    critics, targets = ([relu_mlp(inputs + size, 256, 256, 1) for _ in range(2)] for _ in range(2))
    for target, critic in zip(targets, critics, strict=True):
        target.load_state_dict(critic.state_dict())
    log_alpha = torch.zeros(1, requires_grad=True)
    q_optimizer = torch.optim.Adam([p for critic in critics for p in critic.parameters()], lr=1e-3)
    actor_optimizer, alpha_optimizer = (
        torch.optim.Adam(actor.parameters(), lr=3e-4),
        torch.optim.Adam([log_alpha], lr=1e-3),
    )
    buffer = [torch.zeros(steps, *shape) for shape in ((inputs,), (inputs,), (size,), (), ())]

    def draw(obs: Tensor) -> tuple[Tensor, Tensor]:
        mean, log_std = actor(obs).chunk(2, dim=-1)
        normal = Normal(mean, (-5 + 3.5 * (torch.tanh(log_std) + 1)).exp())
        u = normal.rsample()
        squashed = torch.tanh(u)
        log_prob = normal.log_prob(u) - torch.log(scale * (1 - squashed.square()) + 1e-6)
        return squashed * scale + bias, log_prob.sum(dim=1, keepdim=True)

    def least(networks: Sequence[nn.Module], obs: Tensor, action: Tensor) -> Tensor:
        both = torch.cat((obs, action), dim=1)
        return torch.min(networks[0](both), networks[1](both))

    parts = [actor, *critics, *targets, q_optimizer, actor_optimizer, alpha_optimizer]

    def save(folder: Path) -> None:
        torch.save(([part.state_dict() for part in parts], log_alpha.detach(), buffer), folder / "state.pt")

    begun = unfinished.steps
    if unfinished.state is not None:
        states, alpha, rows = torch.load(unfinished.state / "state.pt", weights_only=True)
        for part, state in zip(parts, states, strict=True):
            part.load_state_dict(state)
        log_alpha.data.copy_(alpha)
        for column, saved in zip(buffer, rows, strict=True):
            column.copy_(saved)
        torch.manual_seed(seed + begun)
    obs = torch.as_tensor(envs.reset(seed=seed + begun)[0], dtype=torch.float32)
    envs.action_space.seed(seed + begun)
    for step in range(begun, steps):
        if step > begun and step % every == 0:
            unfinished.save(step, save)
        with torch.no_grad():
            action = draw(obs)[0] if step >= warm_up else torch.as_tensor(envs.action_space.sample())
        next_obs, reward, terminated, truncated, infos = envs.step(action.numpy())
        final = infos["final_obs"][0] if (terminated | truncated)[0] else next_obs[0]
        row = (obs[0], torch.as_tensor(final, dtype=torch.float32), action[0], float(reward[0]), float(terminated[0]))
        for column, value in zip(buffer, row, strict=True):
            column[step] = value
        obs = torch.as_tensor(next_obs, dtype=torch.float32)
        if step <= warm_up:
            continue
        rows = torch.randint(step + 1, (batch,))
        mb_obs, mb_next, mb_action, mb_reward, mb_terminated = (column[rows] for column in buffer)
        with torch.no_grad():
            next_action, log_prob = draw(mb_next)
            value = least(targets, mb_next, next_action) - log_alpha.exp() * log_prob
            y = mb_reward + (1 - mb_terminated) * gamma * value.view(-1)
        taken = torch.cat((mb_obs, mb_action), dim=1)
        q_loss = sum(mse_loss(critic(taken).view(-1), y) for critic in critics)
        q_optimizer.zero_grad()
        q_loss.backward()
        q_optimizer.step()
        for _ in range(2 if step % 2 == 0 else 0):  # the policy is delayed, and makes up for it
            chosen, log_prob = draw(mb_obs)
            actor_loss = (log_alpha.exp().detach() * log_prob - least(critics, mb_obs, chosen)).mean()
            actor_optimizer.zero_grad()
            actor_loss.backward()
            actor_optimizer.step()
            alpha_loss = (-log_alpha.exp() * (log_prob.detach() - size)).mean()
            alpha_optimizer.zero_grad()
            alpha_loss.backward()
            alpha_optimizer.step()
        with torch.no_grad():
            for target, critic in zip(targets, critics, strict=True):
                for theirs, own in zip(target.parameters(), critic.parameters(), strict=True):
                    theirs.lerp_(own, tau)
    return steps
