"""Pixels and the convolutional encoders of Unity ML-Agents, rewritten from their published sizes."""

import math
from typing import Any

import gymnasium
import numpy as np
import torch
from torch import Tensor, nn

MIN_PIXELS = {"simple": 20, "nature_cnn": 36, "resnet": 15, "match3": 5}
"""Encoder -> the least height and width of its images, as in ML-Agents."""

_PLAIN = {
    "simple": ((16, 8, 4), (32, 4, 2)),
    "nature_cnn": ((32, 8, 4), (64, 4, 2), (64, 3, 1)),
    "match3": ((35, 3, 1), (144, 3, 1)),
}
"""Channels, kernel and stride of each convolution."""


def fitting(space: gymnasium.Space[Any]) -> str:
    """Which agent reads such observations, as the end of a message."""
    axes = len(space.shape) if isinstance(space, gymnasium.spaces.Box) else 0
    agent = {1: "PPOLightningAgent", 2: "ConvPPOAgent", 3: "ConvPPOAgent", 4: "ConvPPOAgent"}.get(axes)
    if any(is_image(entry) for entry in getattr(space, "entries", {}).values()):
        agent = "MultiInputPPOAgent"
    if agent is None:
        return "take an environment with arrays of numbers; --env_id makes vectors of Dict, Tuple and Discrete"
    return f"take --agent agents.{agent}, or another --env or --env_id"


def is_image(space: gymnasium.Space[Any], side: int = min(MIN_PIXELS.values())) -> bool:
    """Whether it is a Box of 3 or 4 axes, or of 2 axes of pixels, two of which are at least so long."""
    shape = space.shape if isinstance(space, gymnasium.spaces.Box) else ()
    return 2 - (space.dtype == np.uint8) < len(shape) < 5 and sorted(shape)[-2] >= side


class Pixels(nn.Module):
    """Images `[N, ...]` as environments give them -> float32 `[N, C, H, W]`.

    Pixels go from the Box's bounds (0 and 255 for uint8) to 0..1; without finite bounds they stay as they are. Images
    are `[H, W]`, or have channels as the last or the first axis (colours, or stacked grey frames), or are K frames of
    those, `[K, H, W, C]` or `[K, C, H, W]`, which makes K * C channels.
    """

    def __init__(
        self,
        agent: str,
        space: gymnasium.Space[Any],
        channels_first: bool | None = None,
        advice: str = "set --agent.channels_first true or false",
    ) -> None:
        """Reads the layout.

        Args:
            agent: Name of the agent's class, for messages.
            space: Of one image.
            channels_first: Where the channels are. None: they are the shortest axis.
            advice: What to do if no axis is that.

        Raises:
            ValueError: The observations are no images, or it is not clear which axis holds the channels.
        """
        super().__init__()
        shape: tuple[int, ...] = space.shape if isinstance(space, gymnasium.spaces.Box) else ()
        if not isinstance(space, gymnasium.spaces.Box) or len(shape) not in (2, 3, 4) or 0 in shape:
            raise ValueError(
                f"{agent} reads images (Box of 2, 3 or 4 axes), but the environment has {space}; {fitting(space)}"
            )
        image = shape[-3:]
        if len(shape) == 2:
            image, channels_first = (1, *shape), True
        elif channels_first is None:
            channels_first = image[0] < min(image[1:])
            if not channels_first and not image[-1] < min(image[:-1]):
                raise ValueError(
                    f"{agent}: cannot tell which axis of images of shape {shape} holds the channels; {advice}"
                )
        frames = shape[0] if len(shape) == 4 else 1
        colours, self.height, self.width = image if channels_first else (image[2], *image[:2])
        self.channels = frames * colours
        self.channels_first = channels_first
        low, high = float(np.min(space.low)), float(np.max(space.high))
        bounded = high > low and high - low < np.finfo(np.float32).max
        self.low, self.span = (low, high - low) if bounded else (0.0, 1.0)

    def forward(self, obs: Tensor) -> Tensor:
        """Scales and lays out `obs [N, ...]`."""
        if self.channels == 1:  # the layouts are one; with the strides of channels_last DDP would warn of the weights'
            images = obs.reshape(-1, 1, self.height, self.width).to(torch.float32)
        else:
            axes = obs.dim() - 1, obs.dim() - 3  # by negative numbers ONNX would not find them
            images = obs if self.channels_first else obs.movedim(*axes)
            images = images.reshape(-1, self.channels, self.height, self.width)
            # channels_last: about 1.5 times faster than NCHW on a CPU, and what tensor cores want.
            images = images.to(torch.float32, memory_format=torch.channels_last)
        return (images - self.low if self.low else images) / self.span


class ResidualBlock(nn.Module):
    """`x + conv(act(conv(act(x))))`, 3 x 3 convolutions (Espeholt et al. 2018, figure 3)."""

    def __init__(self, channels: int, activation: type[nn.Module]) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            activation(),
            nn.Conv2d(channels, channels, 3, padding=1),
            activation(),
            nn.Conv2d(channels, channels, 3, padding=1),
        )

    def forward(self, x: Tensor) -> Tensor:
        """`[N, C, H, W]` -> the same shape."""
        out: Tensor = x + self.layers(x)
        return out


def conv_layers(encoder: str, channels: int, activation: type[nn.Module], ortho_init: bool) -> nn.Sequential:
    """An encoder without its hidden layers: `[N, channels, H, W]` in 0..1 -> `[N, C', H', W']`.

    The kernels, strides and channels are those of ML-Agents (`vis_encoder_type`):

    - simple: 16 of 8 x 8, stride 4; 32 of 4 x 4, stride 2.
    - nature_cnn (Mnih et al. 2015): 32 of 8 x 8, stride 4; 64 of 4 x 4, stride 2; 64 of 3 x 3.
    - match3 (Gudmundsson et al. 2018), for boards and grids: 35 of 3 x 3; 144 of 3 x 3.
    - resnet (IMPALA, Espeholt et al. 2018): three times a 3 x 3 convolution (16, 32, 32), 3 x 3 max-pooling of stride 2
      and two residual blocks. The pooling has no padding, in IMPALA it has.

    Args:
        encoder: One of `MIN_PIXELS`.
        channels: Of the images.
        activation: Class of the activations; ML-Agents has ReLU.
        ortho_init: Orthogonal weights with gain sqrt(2), zero biases.
    """
    layers: list[nn.Module] = []
    for size, kernel, stride in _PLAIN.get(encoder, ()):
        layers += [nn.Conv2d(channels, size, kernel, stride), activation()]
        channels = size
    if encoder == "resnet":
        for size in (16, 32, 32):
            layers += [nn.Conv2d(channels, size, 3, padding=1), nn.MaxPool2d(3, stride=2)]
            layers += [ResidualBlock(size, activation), ResidualBlock(size, activation)]
            channels = size
        layers.append(activation())
    network = nn.Sequential(*layers)
    for layer in network.modules():
        if ortho_init and isinstance(layer, nn.Conv2d):
            nn.init.orthogonal_(layer.weight, math.sqrt(2))
            nn.init.zeros_(layer.bias)  # type: ignore[arg-type]
    return network


def image_encoder(
    agent: str, encoder: str, pixels: Pixels, activation: type[nn.Module], ortho_init: bool
) -> tuple[nn.Sequential, int]:
    """See `conv_layers`; with it the number of features `C' * H' * W'` that it makes of an image.

    Raises:
        ValueError: The images are too small for the encoder.
    """
    height, width = pixels.height, pixels.width
    if min(height, width) < MIN_PIXELS[encoder]:
        smaller = [f"{other} from {size}" for other, size in MIN_PIXELS.items() if size <= min(height, width)]
        raise ValueError(
            f"{agent}: --agent.encoder {encoder} needs images of at least {MIN_PIXELS[encoder]} pixels a side, but "
            f"the environment's have {height} x {width}; choose larger images"
            + (f" or another encoder ({', '.join(smaller)})" if smaller else "")
        )
    layers = conv_layers(encoder, pixels.channels, activation, ortho_init)
    with torch.no_grad():
        return layers, layers(torch.zeros(1, pixels.channels, height, width)).numel()
