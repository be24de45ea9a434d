"""Curiosity: pays for what an action leads to, where that could not be predicted."""

from collections.abc import Sequence
from typing import Any

import gymnasium
import torch
from torch import Tensor

from fabric_rl.signals.base import RewardSignal, Steps, check_sizes
from fabric_rl.signals.networks import Actions, Features, layers
from fabric_rl.types import Stats


class Curiosity(RewardSignal):
    r"""The intrinsic curiosity module (Pathak et al. 2017, "Curiosity-driven Exploration by Self-supervised ...").

    Features :math:`\phi` of observations are learned by telling the action from those before and after it (equations 2
    and 3), so that they hold what the agent can influence and no more. The reward is how far their prediction from the
    action is off (equations 4 to 6):

    .. math::
        \hat a_t = g(\phi(s_t), \phi(s_{t+1})), \qquad \hat\phi(s_{t+1}) = f(\phi(s_t), a_t), \qquad
        r_t = L_F = \tfrac12 \lVert \hat\phi(s_{t+1}) - \phi(s_{t+1}) \rVert^2,

    divided by the running deviation of its discounted sums. The loss is :math:`10 (0.2 L_F + 0.8 L_I)` (equation 7
    without the policy's part), where :math:`L_I` is the cross-entropy of the action, added up over its numbers, or
    in a Box the mean of their squared errors.

    The gradient of :math:`L_F` does not reach :math:`\phi` (as in Burda et al. 2018, "Large-Scale Study of
    Curiosity-Driven Learning", section 2.1): features that are easy to predict because they say nothing would lower it.

    Args:
        observation_space: Of one sub-environment.
        action_space: Of one sub-environment; Discrete, MultiDiscrete, MultiBinary or Box.
        strength: What the reward is multiplied with.
        gamma: Discount of its returns.
        encoding_size: Features.
        hidden_sizes: Hidden layers of the encoder and of both models.
        learning_rate: Of all three.
        epochs: Passes over each rollout; default: as many as the policy's.
        minibatch_size: Steps per minibatch and rank; default: as many as the policy's.
        episodic: Returns end with an episode.
    """

    name = "curiosity"

    def __init__(
        self,
        observation_space: gymnasium.Space[Any],
        action_space: gymnasium.Space[Any],
        strength: float = 1.0,
        gamma: float = 0.99,
        encoding_size: int = 64,
        hidden_sizes: Sequence[int] = (128,),
        learning_rate: float = 3e-4,
        epochs: int | None = None,
        minibatch_size: int | None = None,
        episodic: bool = False,
    ) -> None:
        """Builds the networks; a ValueError names the setting that cannot work."""
        super().__init__(observation_space, strength, gamma, learning_rate, epochs, minibatch_size, episodic)
        sizes = check_sizes(self, encoding_size, hidden_sizes)
        self.actions = Actions(action_space)
        self.encoder = Features(observation_space, sizes, encoding_size)
        self.inverse_model = layers(2 * encoding_size, sizes, self.actions.size)
        self.forward_model = layers(encoding_size + self.actions.size, sizes, encoding_size)

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
