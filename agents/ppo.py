"""PPOLightningAgent: actor and critic MLPs trained with PPO."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from agents.parts.base import PPOAgent, ValueHead, actor_obs_size, flat_obs_size, hidden_layers
from fabric_rl.base.settings import Count, Positive
from fabric_rl.learning.normalize import ObsNormalizer
from fabric_rl.types import ActOutput


@dataclass(eq=False, repr=False)
class PPOLightningAgent(PPOAgent):
    """Actor and critic MLPs over vector observations, for any discrete or Box action space.

    See `PPOAgent` for the settings that all PPO agents have.
    """

    actor_hidden_sizes: Sequence[Count] = (64, 64)
    """Sizes of the hidden layers of the policy."""
    critic_hidden_sizes: Sequence[Count] = (64, 64)
    """Sizes of the hidden layers of the value function."""
    shared_trunk: bool = False
    """Share the hidden layers between policy and value function. Their sizes are actor_hidden_sizes and their learning
    rate is actor_lr; critic_hidden_sizes is ignored, and critic_lr is only for the value head."""
    activation: type[nn.Module] = nn.Tanh
    """Class of the activations, for example torch.nn.ReLU."""
    layer_norm: bool = False
    """Layer normalization before each activation."""
    normalize_obs: bool = False
    """Standardize observations with their running mean and standard deviation."""
    clip_obs: Positive = 5.0
    """Bound of normalized observations, in standard deviations; only with `normalize_obs`."""

    def __post_init__(self) -> None:
        super().__post_init__()
        name = type(self).__name__
        inputs = flat_obs_size(name, self.observation_space, privileged=not self.shared_trunk)
        self.actor_inputs = actor_obs_size(self.observation_space)

        shape = (self.activation, self.layer_norm, self.ortho_init)
        actor_features = [self.actor_inputs, *self.actor_hidden_sizes][-1]
        critic_features = actor_features if self.shared_trunk else [inputs, *self.critic_hidden_sizes][-1]
        self.normalizer = ObsNormalizer((inputs,), self.clip_obs) if self.normalize_obs else nn.Identity()
        self.actor = hidden_layers(self.actor_inputs, self.actor_hidden_sizes, *shape)
        self.policy_head = self.make_policy_head(actor_features)
        self.critic = None if self.shared_trunk else hidden_layers(inputs, self.critic_hidden_sizes, *shape)
        self.value_head = ValueHead(critic_features, self.value_heads, self.ortho_init)

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
        critic = [self.value_head] if self.critic is None else [self.critic, self.value_head]
        return self.adam(actor=[self.actor, self.policy_head], critic=critic)

    def evaluate(self, obs: Tensor) -> tuple[Tensor, Tensor]:
        inputs = self.normalizer(obs.float())
        features = self.actor(inputs[..., : self.actor_inputs])
        return self.policy_head(features), self.value_head(features if self.critic is None else self.critic(inputs))
