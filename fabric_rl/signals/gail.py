"""GAIL: rewards for steps that look like demonstrations."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import gymnasium
import numpy as np
import torch
from lightning import Fabric
from torch import Tensor
from torch.nn.functional import softplus

from fabric_rl.base.settings import Count, NonNegative, Positive, Share, checks_arguments
from fabric_rl.base.trajectory import Trajectory
from fabric_rl.learning.action_encoder import ActionEncoder
from fabric_rl.signals.base import ObsEncoder, RewardSignal, Steps, mlp
from fabric_rl.types import Stats

_CODE = 128
"""Length of the code of `use_vail`, as in ML-Agents."""
_MOST_KL, _BETA_STEP = 0.5, 5e-4
"""Target of the code's mean KL divergence in nats, and the step size of its weight beta."""


class Pair(NamedTuple):
    """Minibatch of the agent's steps, and of the same number of demonstrated steps."""

    obs: tuple[Tensor, Tensor]
    """`[B, ...]` observations of both kinds of steps."""
    action: tuple[Tensor, Tensor]
    """`[B, ...]` actions of both kinds of steps."""
    share: Tensor
    """`[B]` uniform random numbers in 0..1 for the gradient penalty."""
    noise: Tensor | None
    """`[2, B, code]` normal random numbers for `use_vail`."""


class GAIL(RewardSignal):
    r"""Generative adversarial imitation (Ho & Ermon 2016, "Generative Adversarial Imitation Learning", algorithm 1).

    A discriminator :math:`D(s)`, or :math:`D(s, a)` with `use_actions`, learns to distinguish the demonstrations (E)
    from the agent's steps (:math:`\pi`), and rewards steps that look like demonstrations:

    .. math::
        L = -E_E[\log D] - E_\pi[\log(1 - D)] + w E[(\lVert \nabla_x \operatorname{logit} D(x) \rVert - 1)^2], \qquad
        r = -\log(1 - D),

    with the penalty of Gulrajani et al. 2017 (equation 3) at random points :math:`x` between pairs of both.

    `use_vail` passes the input through a code :math:`z \sim N(\mu, \sigma^2)` (Peng et al. 2018, "Variational
    Discriminator Bottleneck", equations 8 and 9): :math:`L + \beta (E[KL(z | N(0, 1))] - I_c)` with
    :math:`\beta \leftarrow \max(0, \beta + n \alpha (E[KL] - I_c))` after each rollout, with the mean over its n steps.

    The reward is never negative. With `episodic` (as in ML-Agents) it therefore also rewards staying alive, which is
    right for CartPole; set it to false if a good episode ends early, as in Acrobot.

    Args:
        observation_space: Observation space of one sub-environment.
        action_space: Action space of one sub-environment.
        demos: Demonstration files from `fabric-rl demos`.
        strength: Factor for the reward.
        gamma: Discount factor of the signal's returns.
        encoding_size: Number of features of an observation.
        hidden_sizes: Sizes of the hidden layers before and after the features.
        learning_rate: Learning rate of the discriminator.
        use_actions: The discriminator also sees actions.
        use_vail: The discriminator only sees a code of limited information.
        gradient_penalty: Weight w of the gradient penalty.
        epochs: Passes over each rollout; default: `--update_epochs`.
        minibatch_size: Steps per minibatch and rank; default: the policy's minibatch size.
        episodic: True if returns end with an episode.
    """

    name, scales = "gail", False
    beta: Tensor

    @checks_arguments
    def __init__(
        self,
        observation_space: gymnasium.Space[Any],
        action_space: gymnasium.Space[Any],
        demos: Sequence[str] = (),
        strength: NonNegative = 1.0,
        gamma: Share = 0.99,
        encoding_size: Count = 128,
        hidden_sizes: Sequence[Count] = (128,),
        learning_rate: Positive = 3e-4,
        use_actions: bool = False,
        use_vail: bool = False,
        gradient_penalty: NonNegative = 10.0,
        epochs: Count | None = None,
        minibatch_size: Count | None = None,
        episodic: bool = True,
    ) -> None:
        """Build the networks."""
        super().__init__(observation_space, strength, gamma, learning_rate, epochs, minibatch_size, episodic)
        self.demos, self.gradient_penalty = list(demos), gradient_penalty
        self.actions = ActionEncoder(action_space) if use_actions else None
        self.encoder = ObsEncoder(observation_space, hidden_sizes, encoding_size)
        seen = encoding_size + (self.actions.size if self.actions else 0)
        self.code = mlp(seen, [], 2 * _CODE) if use_vail else None
        self.judge = mlp(_CODE if use_vail else seen, hidden_sizes, 1)
        self.register_buffer("beta", torch.zeros(()))
        self._shown: tuple[Tensor, Tensor] | None = None

    def show(self, episodes: Sequence[Trajectory]) -> "GAIL":
        """Store the demonstrations, without steps of weight 0, and return this signal.

        Raises:
            ValueError: There are no steps, or all have weight 0.
        """
        kept = [(x.obs[:-1][x.weight > 0], x.action[x.weight > 0]) for x in episodes]
        if not any(len(obs) for obs, _ in kept):
            raise ValueError("--signals GAIL: the demonstrations have no steps, or all have weight 0; record others")
        obs, action = (np.concatenate(parts) for parts in zip(*kept, strict=True))
        self._shown = (torch.from_numpy(obs), torch.from_numpy(action))
        return self

    @property
    def shown(self) -> tuple[Tensor, Tensor]:
        """The demonstrations' observations and actions, `[M, ...]`; raises a ValueError if there are none."""
        if self._shown is None:
            raise ValueError("--signals GAIL: there are no demonstrations; set demos to files from fabric-rl demos")
        return self._shown

    def _inputs(self, obs: Tensor, action: Tensor) -> tuple[Tensor, Tensor]:
        """Return normalized observations, and actions as vectors (empty without `use_actions`)."""
        vector = self.actions(action) if self.actions else obs.new_zeros((len(obs), 0), dtype=torch.float32)
        return self.normalizer(obs), vector

    def _logits(self, inputs: tuple[Tensor, Tensor], noise: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Return the logits `[B]` of D and the KL of the code; without noise, D sees the code's mean."""
        seen = torch.cat((self.encoder(inputs[0]), inputs[1]), dim=-1)
        if self.code is None:
            return self.judge(seen).float().squeeze(-1), seen.new_zeros(len(seen))
        mean, log_std = self.code(seen).float().chunk(2, dim=-1)
        kl = 0.5 * (mean.square() + (2 * log_std).exp() - 2 * log_std - 1).sum(dim=-1)
        code = mean if noise is None else mean + log_std.exp() * noise
        return self.judge(code).float().squeeze(-1), kl

    def penalty(self, agent: tuple[Tensor, Tensor], expert: tuple[Tensor, Tensor], share: Tensor) -> Tensor:
        """Return the mean of `(|gradient of the logit| - 1)^2` between pairs of inputs, with its graph.

        Args:
            agent: Network inputs `[B, ...]` of the agent's steps.
            expert: Network inputs `[B, ...]` of the demonstrations.
            share: `[B]` share of the demonstration's input at each point.
        """
        points = []
        for ours, theirs in zip(agent, expert, strict=True):
            each = share.view(-1, *[1] * (ours.dim() - 1))
            points.append((each * theirs + (1 - each) * ours).detach().requires_grad_())
        logits, _ = self._logits((points[0], points[1]))
        slopes = torch.autograd.grad(logits.sum(), points, create_graph=True)
        squares = torch.stack([slope.flatten(1).square().sum(dim=1) for slope in slopes]).sum(dim=0)
        return ((squares + 1e-12).sqrt() - 1).square().mean()

    def reward(self, steps: Steps) -> Tensor:
        return softplus(self._logits(self._inputs(steps.obs, steps.action))[0])

    def prepared(self, steps: Steps, generator: torch.Generator) -> Pair:
        (obs, action), n, device = self.shown, len(steps.obs), steps.obs.device
        rows = torch.randint(len(obs), (n,), generator=generator)
        share = torch.rand(n, generator=generator).to(device)
        noise = torch.randn(2, n, _CODE, generator=generator).to(device) if self.code else None
        theirs = (obs[rows].to(device), action[rows].to(device))
        return Pair((steps.obs, theirs[0]), (steps.action, theirs[1]), share, noise)

    def forward(self, batch: Pair) -> tuple[Tensor, Stats]:
        inputs = [self._inputs(obs, action) for obs, action in zip(batch.obs, batch.action, strict=True)]
        noises = (None, None) if batch.noise is None else batch.noise
        (agent, agent_kl), (expert, expert_kl) = (self._logits(x, z) for x, z in zip(inputs, noises, strict=True))
        classification, kl = softplus(-expert).mean() + softplus(agent).mean(), 0.5 * (agent_kl + expert_kl).mean()
        penalty = self.penalty(inputs[0], inputs[1], batch.share)
        stats = {"agent_estimate": agent.sigmoid().mean(), "expert_estimate": expert.sigmoid().mean()}
        stats |= {"gradient_penalty": penalty} | ({"kl": kl} if self.code else {})
        loss = classification + self.gradient_penalty * penalty + self.beta * (kl - _MOST_KL)
        return loss, {name: figure.detach() for name, figure in stats.items()}

    def after_learning(self, means: Mapping[str, float], updates: int) -> None:
        """Update `beta`, the weight of the code's information; see `RewardSignal.after_learning`."""
        if self.code:
            self.beta.add_(updates * _BETA_STEP * (means["kl"] - _MOST_KL)).clamp_min_(0)

    def update_statistics(self, steps: Steps, fabric: Fabric) -> dict[str, float]:
        """Update the statistics, first with the demonstrations; see `RewardSignal.update_statistics`."""
        if not self.normalizer.count:
            self.normalizer.update(self.shown[0])  # the same on all ranks
        return super().update_statistics(steps, fabric)
