"""MultiInputPPOAgent: observations of several entries, each with an encoder of its own, trained with PPO."""

import math
from collections.abc import Sequence
from typing import Any, Literal

import gymnasium
import torch
from torch import Tensor, nn

from agents.parts.base import PPOAgent, ValueHead, check_sizes, hidden_layers
from agents.parts.encoders import Pixels, fitting, image_encoder, is_image
from agents.parts.heads import GaussianOptions, policy_head
from fabric_rl.learning.normalize import ObsNormalizer
from fabric_rl.schedules import Schedule


class MultiInputPPOAgent(PPOAgent):
    """PPO for dictionaries of images and vectors, with one encoder per entry and shared hidden layers after them.

    Images are encoded with convolutions, other entries with hidden layers. An entry counts as an image if it has 3 or 4
    axes, or 2 axes of pixels (uint8), and at least two of them are 5 or longer. See `PPOAgent` for the settings that
    all PPO agents have.

    Args:
        observation_space: Observation space of one sub-environment, a Box with one axis and an attribute `entries`
            (name -> Box of the entry), as `--env_id` creates it from a Dict or a Tuple.
        encoder: Convolutions for all images, see `agents.ConvPPOAgent`.
        entry_sizes: Sizes of the hidden layers of each entry; for an image, they follow its convolutions.
        hidden_sizes: Sizes of the hidden layers after the encoders.
        normalize_obs: Standardize all numbers; for images, this replaces the scaling of their bounds to 0..1.
        activation: Class of the activations.
        layer_norm: Layer normalization before each activation of the hidden layers.
    """

    def __init__(
        self,
        observation_space: gymnasium.Space[Any],
        action_space: gymnasium.Space[Any],
        encoder: Literal["simple", "nature_cnn", "resnet", "match3"] = "simple",
        entry_sizes: Sequence[int] = (64,),
        hidden_sizes: Sequence[int] = (64,),
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
        entries: dict[str, gymnasium.spaces.Box] = getattr(observation_space, "entries", {})
        if not entries:
            raise ValueError(
                f"{name} reads observations of several entries (Dict, Tuple), but the environment has "
                f"{observation_space}; {fitting(observation_space)}"
            )
        check_sizes(name, entry_sizes=entry_sizes, hidden_sizes=hidden_sizes, value_heads=value_heads)
        self.value_heads = value_heads
        shape = (activation, layer_norm, ortho_init)
        self.shapes = [entry.shape or (1,) for entry in entries.values()]
        self.sizes = [math.prod(shape) for shape in self.shapes]
        self.normalizer = ObsNormalizer((sum(self.sizes),)) if normalize_obs else nn.Identity()
        encoders, features = [], 0
        for key, entry in entries.items():
            layers: list[nn.Module] = [nn.Flatten()]
            inputs = math.prod(entry.shape)
            if is_image(entry):
                pixels = Pixels(f"{name}: {key}", entry, advice="pad or flatten it by a wrapper (--wrappers)")
                if normalize_obs:
                    pixels.low, pixels.span = 0.0, 1.0
                convolutions, inputs = image_encoder(f"{name}: {key}", encoder, pixels, activation, ortho_init)
                layers = [pixels, convolutions, nn.Flatten()]
            encoders.append(nn.Sequential(*layers, hidden_layers(inputs, entry_sizes, *shape)))
            features += [inputs, *entry_sizes][-1]
        self.encoders = nn.ModuleList(encoders)
        self.hidden = hidden_layers(features, hidden_sizes, *shape)
        features = [features, *hidden_sizes][-1]
        gaussian = GaussianOptions(state_dependent_std, squash, log_std_init)
        self.policy_head = policy_head(name, features, action_space, gaussian, ortho_init)
        self.value_head = ValueHead(features, value_heads, ortho_init)

    def configure_optimizers(self) -> torch.optim.Optimizer:
        """Return Adam with one parameter group for the value function's last layer and one for everything else."""
        return self.adam(actor=[self.encoders, self.hidden, self.policy_head], critic=[self.value_head])

    def evaluate(self, obs: Tensor) -> tuple[Tensor, Tensor]:
        parts = self.normalizer(obs.float()).split(self.sizes, dim=-1)
        encoded = [
            encoder(part.reshape(-1, *shape))
            for encoder, part, shape in zip(self.encoders, parts, self.shapes, strict=True)
        ]
        features = self.hidden(torch.cat(encoded, dim=-1))
        return self.policy_head(features), self.value_head(features)
