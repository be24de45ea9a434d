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
    """Images through convolutions, other entries through a layer, then hidden layers that policy and value share.

    For the settings that all PPO agents have see `PPOAgent`. An entry is an image if it has 3 axes or more, or 2 of
    pixels (uint8), two of them 5 long or more.

    Args:
        observation_space: Of one sub-environment; a Box with one axis that says its `entries`, as `--env_id` makes it
            of a Dict or a Tuple: name -> Box of the entry.
        encoder: Convolutions of all images, see `agents.ConvPPOAgent`.
        entry_sizes: Hidden layers of each entry's own; an image has them after its convolutions.
        hidden_sizes: Hidden layers after all entries.
        normalize_obs: Standardise all numbers, those of images in place of their bounds' 0..1.
        activation: Class of the activations.
        layer_norm: Layer normalisation before each activation of the hidden layers.
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
        """Builds the networks; a ValueError names the space or the setting that cannot work."""
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
        """Adam with one parameter group for the value function's last layer and one for everything else."""
        return self.adam(actor=[self.encoders, self.hidden, self.policy_head], critic=[self.value_head])

    def evaluate(self, obs: Tensor) -> tuple[Tensor, Tensor]:
        parts = self.normalizer(obs.float()).split(self.sizes, dim=-1)
        encoded = [
            encoder(part.reshape(-1, *shape))
            for encoder, part, shape in zip(self.encoders, parts, self.shapes, strict=True)
        ]
        features = self.hidden(torch.cat(encoded, dim=-1))
        return self.policy_head(features), self.value_head(features)
