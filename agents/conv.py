"""ConvPPOAgent: convolutions over pixels, shared by policy and value function, trained with PPO."""

from collections.abc import Sequence
from typing import Any, Literal

import gymnasium
import torch
from torch import Tensor, nn

from agents.parts.base import PPOAgent, ValueHead, check_sizes, hidden_layers
from agents.parts.encoders import Pixels, image_encoder
from agents.parts.heads import GaussianOptions, policy_head
from fabric_rl.schedules import Schedule


class ConvPPOAgent(PPOAgent):
    """PPO for images: policy and value function share a convolutional encoder and hidden layers.

    See `PPOAgent` for the settings that all PPO agents have.

    Args:
        observation_space: Observation space of one sub-environment, a Box of images: `[H, W]`, `[H, W, C]` or
            `[C, H, W]`, or several frames of the latter two. See `agents.parts.encoders.Pixels`.
        encoder: Convolutions: simple (2 layers, for images of at least 20 pixels), nature_cnn (3 layers, at least 36
            pixels), resnet (6 residual blocks, at least 15 pixels) or match3 (2 layers of 3 x 3, for grids of at least
            5 cells).
        hidden_sizes: Sizes of the hidden layers after the convolutions.
        channels_first: True if the channels (or stacked gray frames) are the first axis of an image, False if they are
            the last one. Default: the shortest axis has the channels.
        activation: Class of the activations, for example torch.nn.LeakyReLU.
        layer_norm: Layer normalization before each activation of the hidden layers.
    """

    def __init__(
        self,
        observation_space: gymnasium.Space[Any],
        action_space: gymnasium.Space[Any],
        encoder: Literal["simple", "nature_cnn", "resnet", "match3"] = "simple",
        hidden_sizes: Sequence[int] = (256,),
        channels_first: bool | None = None,
        activation: type[nn.Module] = nn.ReLU,
        layer_norm: bool = False,
        ortho_init: bool = True,
        actor_lr: float = 1e-3,
        critic_lr: float = 1e-3,
        clip_coef: float | Schedule = 0.2,
        value_coef: float = 0.5,
        entropy_coef: float | Schedule = 0.0,
        clip_value_loss: bool = False,
        value_heads: int = 1,
        state_dependent_std: bool = False,
        squash: bool = False,
        log_std_init: float = 0.0,
    ) -> None:
        """Build the networks; raise ValueError if a space or a setting is not supported."""
        super().__init__(
            observation_space, action_space, actor_lr, critic_lr, clip_coef, value_coef, entropy_coef, clip_value_loss
        )
        name = type(self).__name__
        check_sizes(name, hidden_sizes=hidden_sizes, value_heads=value_heads)
        self.value_heads = value_heads

        self.pixels = Pixels(name, observation_space, channels_first)
        self.encoder, encoded = image_encoder(name, encoder, self.pixels, activation, ortho_init)
        self.hidden = hidden_layers(encoded, hidden_sizes, activation, layer_norm, ortho_init)
        features = [encoded, *hidden_sizes][-1]
        gaussian = GaussianOptions(state_dependent_std, squash, log_std_init)
        self.policy_head = policy_head(name, features, action_space, gaussian, ortho_init)
        self.value_head = ValueHead(features, value_heads, ortho_init)

    def configure_optimizers(self) -> torch.optim.Optimizer:
        """Return Adam with one parameter group for the value function's last layer and one for everything else."""
        return self.adam(actor=[self.encoder, self.hidden, self.policy_head], critic=[self.value_head])

    def evaluate(self, obs: Tensor) -> tuple[Tensor, Tensor]:
        features = self.hidden(self.encoder(self.pixels(obs)).flatten(1))
        return self.policy_head(features), self.value_head(features)
