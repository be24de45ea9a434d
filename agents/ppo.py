"""PPOLightningAgent: actor and critic MLPs trained with PPO."""

from collections.abc import Sequence
from typing import Any

import gymnasium
import torch
from torch import Tensor, nn

from agents.parts.base import PPOAgent, ValueHead, actor_size, check_sizes, hidden_layers, vector_size
from agents.parts.heads import GaussianOptions, policy_head
from fabric_rl.learning.normalize import ObsNormalizer
from fabric_rl.schedules import Schedule
from fabric_rl.types import ActOutput


class PPOLightningAgent(PPOAgent):
    """Actor and critic MLPs over vector observations, for any discrete or Box action space.

    See `PPOAgent` for the settings that all PPO agents have.

    Args:
        observation_space: Observation space of one sub-environment, a Box with one axis. If it has an attribute
            `actor_features`, as with `envs.PrivilegedObs`, the actor reads only that many columns; the critic reads
            all.
        actor_hidden_sizes: Sizes of the hidden layers of the policy.
        critic_hidden_sizes: Sizes of the hidden layers of the value function.
        shared_trunk: Share the hidden layers between policy and value function. Their sizes are actor_hidden_sizes and
            their learning rate is actor_lr; critic_hidden_sizes is ignored, and critic_lr is only for the value head.
        activation: Class of the activations, for example torch.nn.ReLU.
        layer_norm: Layer normalization before each activation.
    """

    def __init__(
        self,
        observation_space: gymnasium.Space[Any],
        action_space: gymnasium.Space[Any],
        actor_hidden_sizes: Sequence[int] = (64, 64),
        critic_hidden_sizes: Sequence[int] = (64, 64),
        shared_trunk: bool = False,
        activation: type[nn.Module] = nn.Tanh,
        layer_norm: bool = False,
        ortho_init: bool = True,
        actor_lr: float = 1e-3,
        critic_lr: float = 1e-3,
        clip_coef: float | Schedule = 0.2,
        value_coef: float = 0.5,
        entropy_coef: float | Schedule = 0.0,
        clip_value_loss: bool = False,
        value_heads: int = 1,
        normalize_obs: bool = False,
        state_dependent_std: bool = False,
        squash: bool = False,
        log_std_init: float = 0.0,
    ) -> None:
        """Build the networks; raise ValueError if a space or a setting is not supported."""
        super().__init__(
            observation_space, action_space, actor_lr, critic_lr, clip_coef, value_coef, entropy_coef, clip_value_loss
        )
        name = type(self).__name__
        inputs = vector_size(name, observation_space, privileged=not shared_trunk)
        self.actor_inputs = actor_size(observation_space)
        check_sizes(
            name,
            actor_hidden_sizes=actor_hidden_sizes,
            critic_hidden_sizes=critic_hidden_sizes,
            value_heads=value_heads,
        )
        self.value_heads = value_heads

        shape = (activation, layer_norm, ortho_init)
        gaussian = GaussianOptions(state_dependent_std, squash, log_std_init)
        actor_features = [self.actor_inputs, *actor_hidden_sizes][-1]
        critic_features = actor_features if shared_trunk else [inputs, *critic_hidden_sizes][-1]
        self.normalizer = ObsNormalizer((inputs,)) if normalize_obs else nn.Identity()
        self.actor = hidden_layers(self.actor_inputs, actor_hidden_sizes, *shape)
        self.policy_head = policy_head(name, actor_features, action_space, gaussian, ortho_init)
        self.critic = None if shared_trunk else hidden_layers(inputs, critic_hidden_sizes, *shape)
        self.value_head = ValueHead(critic_features, value_heads, ortho_init)

    def act(
        self, obs: Tensor, state: Tensor | None = None, deterministic: bool = False, action_mask: Tensor | None = None
    ) -> ActOutput:
        """Choose actions, see `ActorCritic.act`; returns values only if the trunk is shared."""
        features = self.actor(self.normalizer(obs.float())[..., : self.actor_inputs])
        action, log_prob = self.policy_head.sample(self.policy_head(features), deterministic, action_mask)
        return ActOutput(action, log_prob, self.value_head(features) if self.critic is None else None)

    def value(self, obs: Tensor, state: Tensor | None = None) -> Tensor:
        features = self.normalizer(obs.float())
        values: Tensor = self.value_head((self.actor if self.critic is None else self.critic)(features))
        return values

    def configure_optimizers(self) -> torch.optim.Optimizer:
        """Return Adam with one parameter group for the actor and one for the critic."""
        critic = [self.value_head] if self.critic is None else [self.critic, self.value_head]
        return self.adam(actor=[self.actor, self.policy_head], critic=critic)

    def evaluate(self, obs: Tensor) -> tuple[Tensor, Tensor]:
        inputs = self.normalizer(obs.float())
        features = self.actor(inputs[..., : self.actor_inputs])
        return self.policy_head(features), self.value_head(features if self.critic is None else self.critic(inputs))
