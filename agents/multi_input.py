"""MultiInputPPOAgent: observations with several entries, each with its own encoder, trained with PPO."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import gymnasium
import torch
from torch import Tensor, nn

from agents.parts.base import PPOAgent, hidden_layers
from agents.parts.encoders import Pixels, image_encoder, is_image, suggest_agent
from fabric_rl.base.settings import Count, Positive
from fabric_rl.learning.normalize import ObsNormalizer


@dataclass(eq=False, repr=False)
class MultiInputPPOAgent(PPOAgent):
    """PPO for dictionaries of images and vectors, with one encoder per entry and shared hidden layers after them.

    Images are encoded with convolutions, other entries with hidden layers. An entry counts as an image if it has 3 or 4
    axes, or 2 axes of pixels (uint8), and at least two of them are 5 or longer. See `PPOAgent` for the settings that
    all PPO agents have.
    """

    encoder: Literal["simple", "nature_cnn", "resnet", "match3"] = "simple"
    """Convolutions for all images, see `agents.ConvPPOAgent`."""
    entry_sizes: Sequence[Count] = (64,)
    """Sizes of the hidden layers of each entry; for an image, they follow its convolutions."""
    hidden_sizes: Sequence[Count] = (64,)
    """Sizes of the hidden layers after the encoders."""
    activation: type[nn.Module] = nn.ReLU
    """Class of the activations."""
    layer_norm: bool = False
    """Layer normalization before each activation of the hidden layers."""
    normalize_obs: bool = False
    """Standardize all numbers; for images, this replaces the scaling from their bounds to 0..1."""
    clip_obs: Positive = 5.0
    """Bound of normalized observations, in standard deviations; only with `normalize_obs`."""

    def __post_init__(self) -> None:
        super().__post_init__()
        name = type(self).__name__
        entries: dict[str, gymnasium.spaces.Box] = getattr(self.observation_space, "entries", {})
        if not entries:
            raise ValueError(
                f"{name} reads observations with several entries (Dict or Tuple), but the environment has "
                f"{self.observation_space}; {suggest_agent(self.observation_space)}"
            )
        shape = (self.activation, self.layer_norm, self.ortho_init)
        self.shapes = [entry.shape or (1,) for entry in entries.values()]
        self.sizes = [math.prod(shape) for shape in self.shapes]
        self.normalizer = ObsNormalizer((sum(self.sizes),), self.clip_obs) if self.normalize_obs else nn.Identity()
        encoders, features = [], 0
        for key, entry in entries.items():
            layers: list[nn.Module] = [nn.Flatten()]
            inputs = math.prod(entry.shape)
            if is_image(entry):
                pixels = Pixels(f"{name}: {key}", entry, advice="pad or flatten it with a wrapper (--wrappers)")
                if self.normalize_obs:
                    pixels.low, pixels.span = 0.0, 1.0
                kind = (self.encoder, pixels, self.activation, self.ortho_init)
                convolutions, inputs = image_encoder(f"{name}: {key}", *kind)
                layers = [pixels, convolutions, nn.Flatten()]
            encoders.append(nn.Sequential(*layers, hidden_layers(inputs, self.entry_sizes, *shape)))
            features += [inputs, *self.entry_sizes][-1]
        self.encoders = nn.ModuleList(encoders)
        self.hidden = hidden_layers(features, self.hidden_sizes, *shape)
        features = [features, *self.hidden_sizes][-1]
        self.add_heads(features, features)

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return self.adam(actor=[self.encoders, self.hidden, self.policy_head], critic=[self.value_head])

    def evaluate(self, obs: Tensor) -> tuple[Tensor, Tensor]:
        parts = self.normalizer(obs.float()).split(self.sizes, dim=-1)
        encoded = [
            encoder(part.reshape(-1, *shape))
            for encoder, part, shape in zip(self.encoders, parts, self.shapes, strict=True)
        ]
        features = self.hidden(torch.cat(encoded, dim=-1))
        return self.policy_head(features), self.value_head(features)
