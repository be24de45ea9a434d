"""ConvPPOAgent: convolutions over pixels, shared by policy and value function, trained with PPO."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn

from agents.parts.base import PPOAgent, hidden_layers
from agents.parts.encoders import Pixels, image_encoder
from fabric_rl.base.settings import Count


@dataclass(eq=False, repr=False)
class ConvPPOAgent(PPOAgent):
    """PPO for images: policy and value function share a convolutional encoder and hidden layers.

    See `PPOAgent` for the settings that all PPO agents have.
    """

    encoder: Literal["simple", "nature_cnn", "resnet", "match3"] = "simple"
    """Convolutions: simple (2 layers, for images of at least 20 x 20 pixels), nature_cnn (3 layers, 36 x 36), resnet (6
    residual blocks, 15 x 15) or match3 (2 layers of 3 x 3, for grids of at least 5 x 5 cells)."""
    hidden_sizes: Sequence[Count] = (256,)
    """Sizes of the hidden layers after the convolutions."""
    channels_first: bool | None = None
    """True if the channels (or stacked gray frames) are the first axis of an image, False if they are the last one.
    Default: the shortest axis is the channel axis."""
    activation: type[nn.Module] = nn.ReLU
    """Class of the activations, for example torch.nn.LeakyReLU."""
    layer_norm: bool = False
    """Layer normalization before each activation of the hidden layers."""

    def __post_init__(self) -> None:
        super().__post_init__()
        name = type(self).__name__
        self.pixels = Pixels(name, self.observation_space, self.channels_first)
        network, encoded = image_encoder(name, self.encoder, self.pixels, self.activation, self.ortho_init)
        self.encoder = network  # type: ignore[assignment]  # replaces the setting
        self.hidden = hidden_layers(encoded, self.hidden_sizes, self.activation, self.layer_norm, self.ortho_init)
        features = [encoded, *self.hidden_sizes][-1]
        self.add_heads(features, features)

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return self.adam(actor=[self.get_submodule("encoder"), self.hidden, self.policy_head], critic=[self.value_head])

    def evaluate(self, obs: Tensor) -> tuple[Tensor, Tensor]:
        encoded: Tensor = self.encoder(self.pixels(obs))  # type: ignore[operator]
        features = self.hidden(encoded.flatten(1))
        return self.policy_head(features), self.value_head(features)


del ConvPPOAgent.encoder  # the default of the setting would hide the module of this name
