"""Curiosity and RND: rewards for observations that cannot be predicted."""

from collections.abc import Sequence
from typing import Any

import gymnasium
import torch
from lightning import Fabric
from torch import Tensor

from fabric_rl.base.settings import Count, NonNegative, Positive, Share, checks_arguments
from fabric_rl.learning.action_encoder import ActionEncoder
from fabric_rl.signals.base import ObsEncoder, RewardSignal, Steps, mlp
from fabric_rl.types import Stats

_SAMPLE = 1024
"""Number of steps of a rollout at which the target's drift is measured."""


class Curiosity(RewardSignal):
    r"""The intrinsic curiosity module (Pathak et al. 2017, "Curiosity-driven Exploration by Self-supervised ...").

    Features :math:`\phi` of observations are learned by predicting the action from the features before and after it
    (equations 2 and 3), so that they contain only what the agent can influence. The reward is the error of predicting
    the next features from the action (equations 4 to 6):

    .. math::
        \hat a_t = g(\phi(s_t), \phi(s_{t+1})), \qquad \hat\phi(s_{t+1}) = f(\phi(s_t), a_t), \qquad
        r_t = L_F = \tfrac12 \lVert \hat\phi(s_{t+1}) - \phi(s_{t+1}) \rVert^2,

    divided by the running standard deviation of its discounted sums. The loss is :math:`10 (0.2 L_F + 0.8 L_I)`
    (equation 7 without the policy's part), where :math:`L_I` is the cross-entropy of the action, summed over its
    components, or for a Box their mean squared error.

    The gradient of :math:`L_F` does not reach :math:`\phi` (as in Burda et al. 2018, "Large-Scale Study of
    Curiosity-Driven Learning", section 2.1). Otherwise, features without information would minimize it.

    Args:
        observation_space: Observation space of one sub-environment.
        action_space: Action space of one sub-environment: Discrete, MultiDiscrete, MultiBinary or Box.
        strength: Factor for the reward.
        gamma: Discount factor of the signal's returns.
        encoding_size: Number of features.
        hidden_sizes: Sizes of the hidden layers of the encoder and of both models.
        learning_rate: Learning rate of all three networks.
        epochs: Passes over each rollout; default: `--update_epochs`.
        minibatch_size: Steps per minibatch and rank; default: the policy's minibatch size.
        episodic: True if returns end with an episode.
    """

    name = "curiosity"

    @checks_arguments
    def __init__(
        self,
        observation_space: gymnasium.Space[Any],
        action_space: gymnasium.Space[Any],
        strength: NonNegative = 1.0,
        gamma: Share = 0.99,
        encoding_size: Count = 64,
        hidden_sizes: Sequence[Count] = (128,),
        learning_rate: Positive = 3e-4,
        epochs: Count | None = None,
        minibatch_size: Count | None = None,
        episodic: bool = False,
    ) -> None:
        """Build the networks."""
        super().__init__(observation_space, strength, gamma, learning_rate, epochs, minibatch_size, episodic)
        self.actions = ActionEncoder(action_space)
        self.encoder = ObsEncoder(observation_space, hidden_sizes, encoding_size)
        self.inverse_model = mlp(2 * encoding_size, hidden_sizes, self.actions.size)
        self.forward_model = mlp(encoding_size + self.actions.size, hidden_sizes, encoding_size)

    def _predicted(self, steps: Steps) -> tuple[Tensor, Tensor]:
        """Return L_F `[B]` of each step, and the inverse model's predicted actions `[B, actions.size]`."""
        before, after = (self.encoder(self.normalizer(obs)) for obs in (steps.obs, steps.next_obs))
        predicted = self.inverse_model(torch.cat((before, after), dim=-1))
        known = torch.cat((before.detach(), self.actions(steps.action)), dim=-1)
        errors: Tensor = 0.5 * (self.forward_model(known).float() - after.detach().float()).square().sum(dim=-1)
        return errors, predicted.float()

    def reward(self, steps: Steps) -> Tensor:
        return self._predicted(steps)[0]

    def forward(self, batch: Steps) -> tuple[Tensor, Stats]:
        errors, predicted = self._predicted(batch)
        forward_loss, inverse_loss = errors.mean(), self.actions.loss(predicted, batch.action)
        stats = {"forward_loss": forward_loss.detach(), "inverse_loss": inverse_loss.detach()}
        return 10 * (0.2 * forward_loss + 0.8 * inverse_loss), stats


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
        epochs: Passes over each rollout; default: `--update_epochs`.
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
        self.target = ObsEncoder(observation_space, hidden_sizes, encoding_size).requires_grad_(False)
        self.predictor = ObsEncoder(observation_space, [*hidden_sizes, *hidden_sizes[-1:]], encoding_size)

    def _errors(self, steps: Steps) -> Tensor:
        """Return the squared distances `[B]` of the vectors."""
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
