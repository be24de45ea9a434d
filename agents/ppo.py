"""PPOLightningAgent: actor and critic MLPs trained with PPO."""

from collections.abc import Sequence
from typing import Any

import gymnasium
import torch
from torch import Tensor, nn

from agents.base import mlp, vector_size
from fabric_rl.ppo import ppo_loss
from fabric_rl.types import ActorCritic, ActOutput, Minibatch, Stats


class PPOLightningAgent(ActorCritic):
    """Separate actor and critic MLPs over vector observations, discrete actions."""

    def __init__(
        self,
        observation_space: gymnasium.Space[Any],
        action_space: gymnasium.Space[Any],
        actor_hidden_sizes: Sequence[int] = (64, 64),
        critic_hidden_sizes: Sequence[int] = (64, 64),
        activation: type[nn.Module] = nn.Tanh,
        layer_norm: bool = False,
        ortho_init: bool = True,
        actor_lr: float = 1e-3,
        critic_lr: float = 1e-3,
        clip_coef: float = 0.2,
        value_coef: float = 0.5,
        entropy_coef: float = 0.0,
        clip_value_loss: bool = False,
    ) -> None:
        """Builds the networks.

        Args:
            observation_space: Of one sub-environment; a Box with one axis.
            action_space: Of one sub-environment; Discrete.
            actor_hidden_sizes: Hidden layers of the policy.
            critic_hidden_sizes: Hidden layers of the value function.
            activation: Class of the activations, for example torch.nn.ReLU.
            layer_norm: Layer normalisation before each activation.
            ortho_init: Orthogonal initialisation (gain sqrt 2, last layers 0.01 for the policy and 1 for the value).
            actor_lr: Learning rate of the policy.
            critic_lr: Learning rate of the value function.
            clip_coef: PPO's clip range.
            value_coef: Weight of the value loss.
            entropy_coef: Weight of the entropy bonus.
            clip_value_loss: Clip the value function's update as the policy's.

        Raises:
            ValueError: A space that this agent cannot handle, or a size that cannot work.
        """
        super().__init__(observation_space, action_space)
        inputs = vector_size(type(self).__name__, observation_space)
        if not isinstance(action_space, gymnasium.spaces.Discrete) or action_space.start != 0:
            raise ValueError(
                f"{type(self).__name__} takes Discrete actions from 0 on, but the environment has {action_space}; "
                "choose another --agent, --env or --env_id"
            )
        for name, sizes in (("actor_hidden_sizes", actor_hidden_sizes), ("critic_hidden_sizes", critic_hidden_sizes)):
            if any(size < 1 for size in sizes):
                raise ValueError(f"{type(self).__name__}: --agent.{name} must be positive sizes, got {list(sizes)}")
        for name, number in (("actor_lr", actor_lr), ("critic_lr", critic_lr), ("clip_coef", clip_coef)):
            if not number > 0:
                raise ValueError(f"{type(self).__name__}: --agent.{name} must be positive, got {number}")
        shape = (activation, layer_norm, ortho_init)
        self.actor = mlp(inputs, actor_hidden_sizes, int(action_space.n), *shape, output_gain=0.01)
        self.critic = mlp(inputs, critic_hidden_sizes, 1, *shape, output_gain=1.0)
        self.actor_lr, self.critic_lr = actor_lr, critic_lr
        self.clip_coef, self.clip_value_loss = clip_coef, clip_value_loss
        self.value_coef, self.entropy_coef = value_coef, entropy_coef

    def act(self, obs: Tensor, state: Tensor | None = None, deterministic: bool = False) -> ActOutput:
        """See `ActorCritic.act`; actions `[N]` int64."""
        log_probs = self._log_probs(obs)
        probs = log_probs.exp()
        action = probs.argmax(dim=-1) if deterministic else torch.multinomial(probs, 1).squeeze(-1)
        return ActOutput(action, _pick(log_probs, action), self.value(obs))

    def value(self, obs: Tensor, state: Tensor | None = None) -> Tensor:
        """See `ActorCritic.value`."""
        values: Tensor = self.critic(obs).squeeze(-1).float()
        return values

    def training_step(self, minibatch: Minibatch) -> tuple[Tensor, Stats]:  # type: ignore[override]  # as the base's
        """PPO's loss on one minibatch; see `fabric_rl.ppo.ppo_loss`."""
        log_probs = self._log_probs(minibatch.obs)
        loss, stats = ppo_loss(
            log_prob=_pick(log_probs, minibatch.action),
            entropy=-(log_probs.exp() * log_probs).sum(dim=-1),
            value=self.value(minibatch.obs),
            old_log_prob=minibatch.log_prob,
            old_value=minibatch.value,
            advantage=minibatch.advantage,
            returns=minibatch.returns,
            clip_coef=self.clip_coef,
            value_coef=self.value_coef,
            entropy_coef=self.entropy_coef,
            clip_value_loss=self.clip_value_loss,
        )
        return loss, stats._asdict()

    def configure_optimizers(self) -> torch.optim.Optimizer:
        """Adam (eps 1e-5) with one parameter group for the actor and one for the critic."""
        groups = [
            {"params": list(self.actor.parameters()), "lr": self.actor_lr},
            {"params": list(self.critic.parameters()), "lr": self.critic_lr},
        ]
        return torch.optim.Adam(groups, eps=1e-5, fused=True)

    def _log_probs(self, obs: Tensor) -> Tensor:
        """`[N, actions]` in float32 under any precision, so that rollout and training agree."""
        return torch.log_softmax(self.actor(obs).float(), dim=-1)


def _pick(log_probs: Tensor, action: Tensor) -> Tensor:
    return log_probs.gather(-1, action.unsqueeze(-1)).squeeze(-1)
