"""Conversion of pixels, and Unity ML-Agents' convolutional encoders, reimplemented from their published sizes."""

import math
from typing import Any

import gymnasium
import numpy as np
import torch
from torch import Tensor, nn

MIN_PIXELS = {"simple": 20, "nature_cnn": 36, "resnet": 15, "match3": 5}
"""Minimum height and width of the images for each encoder, as in ML-Agents."""

_PLAIN = {
    "simple": ((16, 8, 4), (32, 4, 2)),
    "nature_cnn": ((32, 8, 4), (64, 4, 2), (64, 3, 1)),
    "match3": ((35, 3, 1), (144, 3, 1)),
}
"""Channels, kernel and stride of each convolution."""


def suggest_agent(space: gymnasium.Space[Any]) -> str:
    """Return advice for an error message: an agent that supports such observations."""
    axes = len(space.shape) if isinstance(space, gymnasium.spaces.Box) else 0
    agent = {1: "PPOLightningAgent", 2: "ConvPPOAgent", 3: "ConvPPOAgent", 4: "ConvPPOAgent"}.get(axes)
    if any(is_image(entry) for entry in getattr(space, "entries", {}).values()):
        agent = "MultiInputPPOAgent"
    if agent is None:
        return "choose an environment with arrays of numbers; --env_id turns Dict, Tuple and Discrete into vectors"
    return f"choose --agent agents.{agent}, or another --env or --env_id"


def is_image(space: gymnasium.Space[Any], side: int = min(MIN_PIXELS.values())) -> bool:
    """Return True for a Box with 3 or 4 axes, or 2 axes of pixels, at least two of which are `side` or longer."""
    shape = space.shape if isinstance(space, gymnasium.spaces.Box) else ()
    return 2 - (space.dtype == np.uint8) < len(shape) < 5 and sorted(shape)[-2] >= side


class Pixels(nn.Module):
    """Conversion of images `[N, ...]` from environments to float32 `[N, C, H, W]`.

    Pixels are scaled from the Box's bounds (0 and 255 for uint8) to 0..1; without finite bounds they are unchanged.
    Images are `[H, W]`, or have channels (colors, or stacked gray frames) as the last or the first axis, or consist of
    K such frames, `[K, H, W, C]` or `[K, C, H, W]`, which become K * C channels.
    """

    def __init__(
        self,
        agent: str,
        space: gymnasium.Space[Any],
        channels_first: bool | None = None,
        advice: str = "set --agent.channels_first true or false",
    ) -> None:
        """Find the layout of the images.

        Args:
            agent: Name of the agent's class, for messages.
            space: Space of one image.
            channels_first: True if the channels are the first axis, False if the last, None if the shortest.
            advice: Advice in the error message if there is no single shortest axis.

        Raises:
            ValueError: The observations are not images, or the channel axis is ambiguous.
        """
        super().__init__()
        shape: tuple[int, ...] = space.shape if isinstance(space, gymnasium.spaces.Box) else ()
        if not isinstance(space, gymnasium.spaces.Box) or len(shape) not in (2, 3, 4) or 0 in shape:
            raise ValueError(
                f"{agent} reads images (Box with 2 to 4 axes), but the environment has {space}; {suggest_agent(space)}"
            )
        image = shape[-3:]
        if len(shape) == 2:
            image, channels_first = (1, *shape), True
        elif channels_first is None:
            channels_first = image[0] < min(image[1:])
            if not channels_first and not image[-1] < min(image[:-1]):
                raise ValueError(
                    f"{agent}: cannot tell which axis of images of shape {shape} contains the channels; {advice}"
                )
        frames = shape[0] if len(shape) == 4 else 1
        colours, self.height, self.width = image if channels_first else (image[2], *image[:2])
        self.channels = frames * colours
        self.channels_first = channels_first
        low, high = float(np.min(space.low)), float(np.max(space.high))
        bounded = high > low and high - low < np.finfo(np.float32).max
        self.low, self.span = (low, high - low) if bounded else (0.0, 1.0)

    def forward(self, obs: Tensor) -> Tensor:
        """Return `obs [N, ...]` scaled, as `[N, C, H, W]`."""
        if self.channels == 1:  # both layouts are the same; strides of channels_last would cause a DDP warning
            images = obs.reshape(-1, 1, self.height, self.width).to(torch.float32)
        else:
            axes = obs.dim() - 1, obs.dim() - 3  # ONNX does not support negative axes here
            images = obs if self.channels_first else obs.movedim(*axes)
            images = images.reshape(-1, self.channels, self.height, self.width)
            # channels_last: about 1.5 times faster than NCHW on a CPU, and preferred by tensor cores.
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
        out: Tensor = x + self.layers(x)
        return out


def conv_layers(encoder: str, channels: int, activation: type[nn.Module], ortho_init: bool) -> nn.Sequential:
    """Build an encoder without its hidden layers: `[N, channels, H, W]` in 0..1 -> `[N, C', H', W']`.

    The kernels, strides and channels are those of ML-Agents (`vis_encoder_type`):

    - simple: 16 of 8 x 8, stride 4; 32 of 4 x 4, stride 2.
    - nature_cnn (Mnih et al. 2015): 32 of 8 x 8, stride 4; 64 of 4 x 4, stride 2; 64 of 3 x 3.
    - match3 (Gudmundsson et al. 2018), for boards and grids: 35 of 3 x 3; 144 of 3 x 3.
    - resnet (IMPALA, Espeholt et al. 2018): three stages with a 3 x 3 convolution (16, 32, 32), 3 x 3 max-pooling with
      stride 2 and two residual blocks. Unlike IMPALA's, the pooling has no padding.

    ML-Agents' activations are leaky ReLU, in resnet Swish. With `ortho_init`, weights are orthogonal with gain sqrt(2)
    and biases zero.
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
    """Build `conv_layers` for `pixels`; return them and their number of features `C' * H' * W'`.

    Raises:
        ValueError: The images are too small for the encoder.
    """
    height, width = pixels.height, pixels.width
    if min(height, width) < MIN_PIXELS[encoder]:
        smaller = [f"{other}: at least {size}" for other, size in MIN_PIXELS.items() if size <= min(height, width)]
        raise ValueError(
            f"{agent}: --agent.encoder {encoder} needs images of at least {MIN_PIXELS[encoder]} pixels a side, but "
            f"the environment's have {height} x {width} pixels; choose larger images"
            + (f" or another encoder ({', '.join(smaller)})" if smaller else "")
        )
    layers = conv_layers(encoder, pixels.channels, activation, ortho_init)
    with torch.no_grad():
        return layers, layers(torch.zeros(1, pixels.channels, height, width)).numel()
