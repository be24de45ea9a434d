"""RND: pays for observations that a network cannot predict yet."""

from collections.abc import Sequence
from typing import Any

import gymnasium
import torch
from lightning import Fabric
from torch import Tensor

from fabric_rl.base.settings import Count, NonNegative, Positive, Share, checks_arguments
from fabric_rl.signals.base import RewardSignal, Steps
from fabric_rl.signals.networks import Features
from fabric_rl.types import Stats

_SAMPLE = 1024
"""Steps of a rollout at which the target's drift is measured."""


class RND(RewardSignal):
    r"""Random network distillation (Burda et al. 2018, "Exploration by Random Network Distillation").

    A network :math:`f` with fixed random weights, the target, maps each observation to a vector. Another network, the
    predictor :math:`\hat f`, learns to output the same vector. Its error is large where the agent has rarely been:

    .. math:: r_t = \lVert \hat f(x_{t+1}) - f(x_{t+1}) \rVert^2, \qquad x = \mathrm{clip}((s - \mu) / \sigma, -5, 5),

    divided by the running standard deviation of its discounted sums. The loss of the predictor is the mean of the
    undivided error.

    Although the target's weights are fixed, its output for a state changes a little with the statistics
    :math:`\mu, \sigma`. `rnd/target_drift` is this change as a share of the target's variance over the rollout.
    `normalize_steps` freezes the statistics, too.

    Args:
        observation_space: Observation space of one sub-environment.
        action_space: Not used.
        strength: Factor for the reward.
        gamma: Discount factor of the signal's returns.
        encoding_size: Length of the vectors.
        hidden_sizes: Sizes of the hidden layers of the target; the predictor has one more layer, of the last size.
        learning_rate: Learning rate of the predictor.
        epochs: Passes over each rollout; default: as many as the policy's.
        minibatch_size: Steps per minibatch and rank; default: the policy's minibatch size.
        episodic: True if returns end with an episode. In the paper they do not (section 2.3), because novelty does not
            depend on the end of an episode.
        normalize_steps: Steps of all ranks after which the statistics of observations are frozen; default: never.
    """

    name = "rnd"

    @checks_arguments
    def __init__(
        self,
        observation_space: gymnasium.Space[Any],
        action_space: gymnasium.Space[Any],
        strength: NonNegative = 1.0,
        gamma: Share = 0.99,
        encoding_size: Count = 64,
        hidden_sizes: Sequence[Count] = (128, 128),
        learning_rate: Positive = 1e-4,
        epochs: Count | None = None,
        minibatch_size: Count | None = None,
        episodic: bool = False,
        normalize_steps: Count | None = None,
    ) -> None:
        """Build the networks."""
        super().__init__(observation_space, strength, gamma, learning_rate, epochs, minibatch_size, episodic)
        self.normalize_steps = normalize_steps
        self.target = Features(observation_space, hidden_sizes, encoding_size).requires_grad_(False)
        self.predictor = Features(observation_space, [*hidden_sizes, *hidden_sizes[-1:]], encoding_size)

    def _errors(self, steps: Steps) -> Tensor:
        """`[B]`, the squared distance of the vectors."""
        inputs = self.normalizer(steps.next_obs)
        with torch.no_grad():
            target = self.target(inputs)
        errors: Tensor = (self.predictor(inputs).float() - target.float()).square().sum(dim=-1)
        return errors

    def reward(self, steps: Steps) -> Tensor:
        return self._errors(steps)

    def forward(self, batch: Steps) -> tuple[Tensor, Stats]:
        return self._errors(batch).mean(), {}

    @torch.no_grad()
    def update_statistics(self, steps: Steps, fabric: Fabric) -> dict[str, float]:
        """Update the statistics, see `RewardSignal.update_statistics`; also return the drift of the target."""
        count = float(self.normalizer.count)
        if self.normalize_steps is not None and count >= self.normalize_steps:
            return {}
        if not count or len(steps.next_obs) < 2:  # one observation has no variance
            return super().update_statistics(steps, fabric)
        sample = steps.next_obs[:_SAMPLE]
        before = self.target(self.normalizer(sample))
        known = super().update_statistics(steps, fabric)
        moved = (self.target(self.normalizer(sample)) - before).square().sum(dim=-1).mean()
        return known | {"target_drift": float(moved / before.var(dim=0).sum().clamp_min(1e-12))}
