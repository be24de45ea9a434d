"""Curiosity: pays for what an action leads to, where that could not be predicted."""

from collections.abc import Sequence
from typing import Any

import gymnasium
import torch
from torch import Tensor

from fabric_rl.base.settings import Count, NonNegative, Positive, Share, checks_arguments
from fabric_rl.signals.base import RewardSignal, Steps
from fabric_rl.signals.networks import Actions, Features, layers
from fabric_rl.types import Stats


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
        epochs: Passes over each rollout; default: as many as the policy's.
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
        self.actions = Actions(action_space)
        self.encoder = Features(observation_space, hidden_sizes, encoding_size)
        self.inverse_model = layers(2 * encoding_size, hidden_sizes, self.actions.size)
        self.forward_model = layers(encoding_size + self.actions.size, hidden_sizes, encoding_size)

    def _predicted(self, steps: Steps) -> tuple[Tensor, Tensor]:
        """`[B]` L_F of each step; `[B, actions.size]`, the action that the inverse model tells."""
        before, after = (self.encoder(self.normalizer(obs)) for obs in (steps.obs, steps.next_obs))
        told = self.inverse_model(torch.cat((before, after), dim=-1))
        known = torch.cat((before.detach(), self.actions(steps.action)), dim=-1)
        errors: Tensor = 0.5 * (self.forward_model(known).float() - after.detach().float()).square().sum(dim=-1)
        return errors, told.float()

    def reward(self, steps: Steps) -> Tensor:
        return self._predicted(steps)[0]

    def forward(self, batch: Steps) -> tuple[Tensor, Stats]:
        errors, told = self._predicted(batch)
        forward_loss, inverse_loss = errors.mean(), self.actions.loss(told, batch.action)
        stats = {"forward_loss": forward_loss.detach(), "inverse_loss": inverse_loss.detach()}
        return 10 * (0.2 * forward_loss + 0.8 * inverse_loss), stats
