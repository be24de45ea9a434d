"""RewardSignal: base class of intrinsic rewards; parts of the signals' networks."""

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple, Protocol

import gymnasium
import numpy as np
import torch
from lightning import Fabric
from torch import Tensor, nn
from torch.nn import functional

from fabric_rl.base.settings import Count, NonNegative, Positive, Share, checks_arguments
from fabric_rl.learning.normalize import ObsNormalizer, RunningMoments
from fabric_rl.types import Stats

_SIDE = 42
"""Height and width that images are scaled to, as in Pathak et al. 2017."""


class Steps(NamedTuple):
    """`B` steps that a signal rewards or learns from."""

    obs: Tensor
    """`[B, ...]` observations, float32, or uint8 for pixels."""
    action: Tensor
    """`[B, ...]` actions as chosen by the agent; they may lie outside of a Box."""
    next_obs: Tensor
    """`[B, ...]` true next observation of the same episode, also at the end of the episode."""

    def map(self, rows: Tensor | slice) -> "Steps":
        """Return only the steps `rows`."""
        return Steps(*(x[rows] for x in self))


class RewardSignal(nn.Module, ABC):
    """Base class of reward signals: `--signals package.module.Class`, or a list of them.

    Each signal adds a reward for every step, a value head of the agent and a discount factor. Its networks learn from
    the agent's rollouts, with a separate Adam optimizer.

    A subclass takes the observation and action space of *one* sub-environment and its own settings.

    Attributes:
        name: Name of the signal in its metrics and rewards.
        strength: Factor for the reward.
        gamma: Discount factor of the signal's returns.
        learning_rate: Learning rate of the signal's networks.
        epochs: Passes over each rollout; None: `--update_epochs`, as for the policy, so that the signal makes one
            optimizer step for each minibatch of the policy.
        minibatch_size: Steps per minibatch and rank; None: the policy's minibatch size. For one optimizer step per
            rollout, use the size of a rollout with `epochs` 1.
        episodic: True if the signal's returns end with an episode; else they continue in the next one.
        normalizer: Normalizer of the networks' observations, with the statistics of all ranks. It is updated once per
            rollout, before the networks learn from it.
        returns: Running statistics of the discounted rewards; `scaled` divides by their standard deviation.
        scales: True if the rewards are divided in this way; False for rewards that are already of order 1.
    """

    name: str
    scales: bool = True

    @checks_arguments
    def __init__(
        self,
        observation_space: gymnasium.Space[Any],
        strength: NonNegative,
        gamma: Share,
        learning_rate: Positive,
        epochs: Count | None,
        minibatch_size: Count | None,
        episodic: bool,
    ) -> None:
        """Store the settings, and begin without statistics."""
        super().__init__()
        self.strength, self.gamma, self.learning_rate = strength, gamma, learning_rate
        self.epochs, self.minibatch_size, self.episodic = epochs, minibatch_size, episodic
        self.normalizer = ObsNormalizer(observation_space.shape or ())
        self.returns = RunningMoments(())

    @abstractmethod
    def reward(self, steps: Steps) -> Tensor:
        """Return the rewards `[B]` of the steps, float32, 0 or more; called without gradients."""

    @abstractmethod
    def forward(self, batch: Any) -> tuple[Tensor, Stats]:  # noqa: ANN401 - what `prepared` gives
        """Return the loss of a minibatch (a scalar with its graph) and named statistics for the log."""

    def prepared(self, steps: Steps, generator: torch.Generator) -> Any:  # noqa: ANN401 - for `forward`
        """Return the input of `forward` for a minibatch, including random numbers; by default, `steps`."""
        return steps

    def update_statistics(self, steps: Steps, fabric: Fabric) -> dict[str, float]:
        """Update the observation statistics with a rollout, before the networks learn from it.

        Args:
            steps: All steps of this rank's rollout.
            fabric: Fabric of the ranks that learn; every rank calls this method.

        Returns:
            Additional metrics by name.
        """
        self.normalizer.update(steps.next_obs, fabric)
        return {}

    def after_learning(self, means: Mapping[str, float], updates: int) -> None:
        """Run after learning, with the statistics' means over minibatches and ranks and the number of `updates`."""

    def scaled(self, reward: Tensor) -> Tensor:
        """Return rewards of order 1, `reward / sigma`, at most 10 (Burda et al. 2018, section 2.4).

        `sigma` is the standard deviation of `R_t = reward_t + gamma R_{t-1}` over all steps of all ranks so far.

        Args:
            reward: Rewards from the method `reward`.
        """
        return (reward / self.returns.variance.sqrt().clamp_min(1e-8).to(reward)).clamp_max(10)


class SignalFactory(Protocol):
    """Factory of a signal from the spaces of one sub-environment: a class, or a partial of one."""

    def __call__(self, observation_space: gymnasium.Space[Any], action_space: gymnasium.Space[Any]) -> RewardSignal:
        """Build the signal; the weights come from torch's global generator."""


def mlp(inputs: int, hidden_sizes: Sequence[int], outputs: int) -> nn.Sequential:
    """Build linear layers `[..., inputs]` -> `[..., outputs]` with ELU between them, orthogonal with gain sqrt(2)."""
    parts: list[nn.Module] = []
    for size_in, size_out in pairwise([inputs, *hidden_sizes, outputs]):
        layer = nn.Linear(size_in, size_out)
        nn.init.orthogonal_(layer.weight, math.sqrt(2))
        nn.init.zeros_(layer.bias)
        parts += [layer, nn.ELU()]
    return nn.Sequential(*parts[:-1])


class ObsEncoder(nn.Module):
    """Encoder of observations `[B, *shape]` as features `[B, size]`.

    Images, which are uint8 or have three axes or more, are scaled to 42 x 42 and go through the four convolutions of
    Pathak et al. 2017 (32 of 3 x 3, stride 2, ELU); everything else is a vector.
    """

    def __init__(self, space: gymnasium.Space[Any], hidden_sizes: Sequence[int], size: int) -> None:
        super().__init__()
        shape = space.shape or (1,)
        self.is_image = len(shape) > 2 or (len(shape) == 2 and space.dtype == np.uint8)
        if not self.is_image:
            self.convolutions: nn.Module = nn.Flatten()
            self.layers = mlp(math.prod(shape), hidden_sizes, size)
            return
        self.channels_first = len(shape) == 2 or shape[-3] < min(shape[-2:])
        channels = math.prod(shape[:-2]) if self.channels_first else math.prod(shape[:-3]) * shape[-1]
        sizes = [channels, 32, 32, 32, 32]
        parts = [(nn.Conv2d(a, b, 3, stride=2, padding=1), nn.ELU()) for a, b in pairwise(sizes)]
        self.convolutions = nn.Sequential(*(part for pair in parts for part in pair), nn.Flatten())
        self.layers = mlp(32 * 3 * 3, hidden_sizes, size)

    def forward(self, obs: Tensor) -> Tensor:
        """Return the features of normalized observations."""
        if self.is_image:
            images = obs if self.channels_first else obs.movedim(-1, -3)
            images = images.reshape(len(obs), -1, *images.shape[-2:])
            obs = functional.interpolate(images, (_SIDE, _SIDE), mode="area")
        features: Tensor = self.layers(self.convolutions(obs))
        return features
