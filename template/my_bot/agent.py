"""Agent of this bot: its networks and how they learn. The file my_bot.yaml sets their sizes."""

from collections.abc import Sequence
from typing import Any

import gymnasium
import torch
from torch import Tensor, nn

from fabric_rl import ActorCritic, ActOutput, Minibatch, ppo_loss


class MyAgent(ActorCritic):
    """PPO agent with one trunk for policy and value, for vector observations and discrete actions."""

    def __init__(
        self,
        observation_space: gymnasium.Space[Any],
        action_space: gymnasium.Space[Any],
        hidden_sizes: Sequence[int] = (128, 128),
        lr: float = 1e-3,
        entropy_coef: float = 0.005,
    ) -> None:
        """Build the networks."""
        super().__init__(observation_space, action_space)
        self.lr, self.entropy_coef = lr, entropy_coef
        width = int(observation_space.shape[0])  # type: ignore[index]  # a vector
        layers: list[nn.Module] = []
        for size in hidden_sizes:
            layers += [nn.Linear(width, size), nn.LayerNorm(size), nn.ReLU()]
            width = size
        self.trunk = nn.Sequential(*layers)
        self.policy_head = nn.Linear(width, int(action_space.n))  # type: ignore[attr-defined]  # Discrete
        self.value_head = nn.Linear(width, 1)

    def log_probs(self, obs: Tensor) -> Tensor:
        """Return the log-probabilities of all actions, `[N, actions]`."""
        return self.policy_head(self.trunk(obs.float())).log_softmax(-1)

    def act(self, obs: Tensor, state: Tensor | None = None, deterministic: bool = False) -> ActOutput:
        """Choose an action for each row of `obs` `[N, D]`: sampled, or the most probable one if `deterministic`."""
        log_probs = self.log_probs(obs)
        action = log_probs.argmax(-1) if deterministic else torch.multinomial(log_probs.exp(), 1).squeeze(-1)
        return ActOutput(action, log_probs.gather(-1, action[:, None]).squeeze(-1), self.value(obs))

    def value(self, obs: Tensor, state: Tensor | None = None) -> Tensor:
        """Estimate the discounted future reward of each row, `[N]`."""
        return self.value_head(self.trunk(obs.float())).squeeze(-1)

    def training_step(self, minibatch: Minibatch) -> tuple[Tensor, dict[str, Tensor]]:
        """Return the loss of a minibatch, and statistics to log."""
        log_probs = self.log_probs(minibatch.obs)
        loss, stats = ppo_loss(
            log_probs.gather(-1, minibatch.action[:, None]).squeeze(-1),
            -(log_probs.exp() * log_probs).sum(-1),
            self.value(minibatch.obs),
            minibatch.log_prob,
            minibatch.value,
            minibatch.advantage,
            minibatch.returns,
            entropy_coef=self.entropy_coef,
        )
        return loss, stats._asdict()

    def configure_optimizers(self) -> torch.optim.Optimizer:
        """Return one Adam optimizer for all weights."""
        return torch.optim.Adam(self.parameters(), lr=self.lr, eps=1e-5)
