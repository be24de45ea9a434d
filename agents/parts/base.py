"""Common parts of PPO agents: settings, loss and optimizer, hidden layers, the value head."""

import math
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, field
from itertools import pairwise
from typing import Any, ClassVar, cast

import gymnasium
import torch
from torch import Tensor, nn
from torch.distributions import Distribution

from agents.parts.encoders import is_image, suggest_agent
from agents.parts.heads import CategoricalHead, GaussianOptions, PolicyHead, demonstrated_log_prob, linear, policy_head
from fabric_rl.base.settings import Count, NonNegative, Positive, check_settings
from fabric_rl.learning.imitation import DemonstrationBatch, cloning_loss
from fabric_rl.learning.ppo import ppo_loss
from fabric_rl.schedules import CHECKED_AT, Schedule, as_schedule
from fabric_rl.types import ActorCritic, ActOutput, Minibatch, Stats

_LARGE = 15
"""Minimum side length in pixels of an entry that is treated as an image rather than a vector."""


def hidden_layers(
    inputs: int,
    hidden_sizes: Sequence[int],
    activation: type[nn.Module] = nn.Tanh,
    layer_norm: bool = False,
    ortho_init: bool = True,
) -> nn.Sequential:
    """Build layers of linear, layer norm (optional) and activation: `[..., inputs]` -> `[..., hidden_sizes[-1]]`.

    With `ortho_init`, the weights are orthogonal with gain sqrt(2) and the biases zero. If `hidden_sizes` is empty,
    the result is the identity.
    """
    layers: list[nn.Module] = []
    for size_in, size_out in pairwise([inputs, *hidden_sizes]):
        layers.append(linear(size_in, size_out, math.sqrt(2) if ortho_init else None))
        if layer_norm:
            layers.append(nn.LayerNorm(size_out))
        layers.append(activation())
    return nn.Sequential(*layers)


class ValueHead(nn.Module):
    """The last layer of a value function: `[..., inputs]` -> `[...]`, or `[..., K]` for K > 1 values, float32."""

    def __init__(self, inputs: int, value_heads: int = 1, ortho_init: bool = True) -> None:
        super().__init__()
        self.layer = linear(inputs, value_heads, 1.0 if ortho_init else None)

    def forward(self, features: Tensor) -> Tensor:
        values: Tensor = self.layer(features).float()
        return values.squeeze(-1) if self.layer.out_features == 1 else values


def flat_obs_size(agent: str, space: gymnasium.Space[Any], privileged: bool = False) -> int:
    """Return the length of a vector observation; with `privileged`, columns can be hidden from the actor.

    Raises:
        ValueError: The observations are not vectors, contain images, or have critic-only columns although the agent is
            not privileged. The message begins with `agent`, the agent's class.
    """
    if not isinstance(space, gymnasium.spaces.Box) or len(space.shape) != 1:
        raise ValueError(
            f"{agent} reads vector observations (Box with one axis), but the environment has {space}; "
            f"{suggest_agent(space)}"
        )
    images = [name for name, entry in getattr(space, "entries", {}).items() if is_image(entry, _LARGE)]
    if images:
        raise ValueError(f"{agent} reads vectors, but the observation {images[0]} is an image; {suggest_agent(space)}")
    size = int(space.shape[0])
    if not privileged and actor_obs_size(space) != size:
        raise ValueError(
            f"{agent} has one network for policy and value, but the last {size - actor_obs_size(space)} columns of the "
            "observations are for the critic only; use agents.PPOLightningAgent with separate networks"
        )
    return size


def actor_obs_size(space: gymnasium.Space[Any]) -> int:
    """Return the number of leading columns of a vector observation that the actor may read.

    This is the space's attribute `actor_features` (set by `envs.PrivilegedObs`) if it has one, otherwise all columns.
    """
    return int(getattr(space, "actor_features", (space.shape or (0,))[0]))


@dataclass(eq=False, repr=False)
class PPOAgent(ActorCritic):
    """Coefficients, loss and optimizer of PPO. A subclass adds its own settings as fields, and builds the networks.

    All PPO agents have the settings below.
    """

    observation_space: gymnasium.Space[Any]
    """Observation space of one sub-environment."""
    action_space: gymnasium.Space[Any]
    """Action space of one sub-environment: Discrete, MultiDiscrete, MultiBinary or Box."""
    _: KW_ONLY
    ortho_init: bool = True
    """Orthogonal initialization with gain sqrt(2), except 0.01 for the last layer of the policy, and 1 for the last
    layer of the value function, for memory and for projections. Biases are zero, except 1 for an LSTM's forget gate."""
    actor_lr: Positive = 1e-3
    """Learning rate of the policy and of layers that it shares with the value function."""
    critic_lr: Positive = 1e-3
    """Learning rate of the layers that only the value function uses."""
    clip_coef: float | Schedule = 0.2
    """Clip range of PPO, above 0; a number or a schedule over the course of training."""
    value_coef: NonNegative = 0.5
    """Weight of the value loss, 0 or more."""
    entropy_coef: float | Schedule = 0.0
    """Weight of the entropy bonus, 0 or more; a number or a schedule over the course of training."""
    teacher_coef: float | Schedule = 0.0
    """Weight of imitating the environment's teacher (`--env.teacher`), 0 or more; a number or a schedule. The loss is
    the teacher's negative log-likelihood in the states that the agent reaches (DAgger, Ross et al. 2011)."""
    clip_value_loss: bool = False
    """Clip the update of the value function in the same way as the policy's."""
    value_heads: Count = 1
    """Number of values per observation, one for each reward signal of the environment."""
    state_dependent_std: bool = False
    """Box actions: the network also computes the standard deviation, from 0.1 to 1, in units of half the
    width of a Box with bounds."""
    squash: bool = False
    """Box actions: tanh of a Gaussian, scaled to the bounds of the Box."""
    log_std_init: float = 0.0
    """Box actions: initial log standard deviation, if it does not depend on the state."""

    policy_head: PolicyHead = field(init=False)
    reference: ClassVar[Any] = None
    """See `fabric_rl.imitation.kickstart.Reference`, whose callback sets it."""
    teacher_factor: ClassVar[float] = 1.0
    """Factor for `teacher_coef`, which `fabric_rl.Phases` sets."""

    def __post_init__(self) -> None:
        super().__init__(self.observation_space, self.action_space)
        flag = f"{type(self).__name__}: --agent."
        check_settings(self, flag)
        self.clip_coef = as_schedule(self.clip_coef, f"{flag}clip_coef", above=0)
        self.entropy_coef = as_schedule(self.entropy_coef, f"{flag}entropy_coef", at_least=0)
        self.teacher_coef = as_schedule(self.teacher_coef, f"{flag}teacher_coef", at_least=0)
        if any(map(self.teacher_coef, CHECKED_AT)):
            self.minibatch_fields = (*self.minibatch_fields, "teacher_action")

    def make_policy_head(self, inputs: int) -> PolicyHead:
        """Return the policy head for the action space, over `inputs` features."""
        gaussian = GaussianOptions(self.state_dependent_std, self.squash, self.log_std_init)
        return policy_head(type(self).__name__, inputs, self.action_space, gaussian, self.ortho_init)

    def add_heads(self, actor_features: int, critic_features: int) -> None:
        """Add the last layers of policy and value function, for these numbers of features."""
        self.policy_head = self.make_policy_head(actor_features)
        self.value_head = ValueHead(critic_features, self.value_heads, self.ortho_init)

    def evaluate(self, obs: Tensor) -> tuple[Tensor, Tensor]:
        """Return policy parameters `[N, P]` and values `[N]` or `[N, K]` of `obs [N, ...]`, without memory."""
        raise NotImplementedError

    def act(
        self, obs: Tensor, state: Tensor | None = None, deterministic: bool = False, action_mask: Tensor | None = None
    ) -> ActOutput:
        params, values = self.evaluate(obs)
        return ActOutput(*self.policy_head.sample(params, deterministic, action_mask), values)

    def value(self, obs: Tensor, state: Tensor | None = None) -> Tensor:
        return self.evaluate(obs)[1]

    def policy_params(self, obs: Tensor, state: Tensor | None = None) -> Tensor:
        """Return the policy parameters `[N, P]` for the inputs of `act`."""
        return self.evaluate(obs)[0]

    def probabilities(
        self, obs: Tensor, state: Tensor | None = None, action_mask: Tensor | None = None
    ) -> Tensor | None:
        if not isinstance(self.action_space, gymnasium.spaces.Discrete) or self.action_space.start:
            return None
        head = cast(CategoricalHead, self.policy_head)
        return head.log_probs(self.policy_params(obs, state), action_mask).exp().squeeze(-2)

    def distributions(self, obs: Tensor, state: Tensor | None, action_mask: Tensor | None) -> list[Distribution]:
        return [self.policy_head.distribution(self.policy_params(obs, state), action_mask)]

    def evaluate_steps(self, minibatch: Minibatch | DemonstrationBatch) -> tuple[Tensor, Tensor]:
        """Evaluate a minibatch, see `evaluate`: `[B, P]`, or `[L, S, P]` for sequences."""
        return self.evaluate(minibatch.obs)

    def imitate(self, shown: DemonstrationBatch) -> tuple[Tensor, Stats]:
        """Return the imitation loss of the policy, see `fabric_rl.learning.imitation.CanImitate`."""
        params, values = self.evaluate_steps(shown)
        log_prob = demonstrated_log_prob(self.policy_head, params, shown)
        return cloning_loss(log_prob, shown.weight) + 0 * values.sum(), {}

    def training_step(self, minibatch: Minibatch) -> tuple[Tensor, Stats]:  # type: ignore[override]  # as the base's
        """Return PPO's loss on one minibatch, see `fabric_rl.learning.ppo.ppo_loss`, with the kickstart term if any."""
        params, values = self.evaluate_steps(minibatch)
        log_prob, entropy = self.policy_head.evaluate(params, minibatch.action, minibatch.action_mask)
        progress = self.progress.to(params.device)
        loss, stats = ppo_loss(
            log_prob=log_prob,
            entropy=entropy,
            value=values,
            old_log_prob=minibatch.log_prob,
            old_value=minibatch.value,
            advantage=minibatch.advantage,
            returns=minibatch.returns,
            clip_coef=cast(Schedule, self.clip_coef)(progress),
            value_coef=self.value_coef,
            entropy_coef=cast(Schedule, self.entropy_coef)(progress),
            clip_value_loss=self.clip_value_loss,
        )
        figures = stats._asdict()
        if minibatch.teacher_action is not None and self.teacher_factor:
            taught_log_prob, _ = self.policy_head.evaluate(params, minibatch.teacher_action, minibatch.action_mask)
            teacher_loss = -taught_log_prob.float().mean()
            loss = loss + self.teacher_factor * cast(Schedule, self.teacher_coef)(progress) * teacher_loss
            figures["teacher_loss"] = teacher_loss.detach()
        if self.reference is None:
            return loss, figures
        kl = self.reference.divergence(self.policy_head, params, minibatch)
        return loss + self.reference.coef(progress) * kl, figures | {"reference_kl": kl.detach()}

    def adam(self, actor: Sequence[nn.Module], critic: Sequence[nn.Module]) -> torch.optim.Optimizer:
        """Return Adam (eps 1e-5) with a parameter group for the actor and one for the critic, fused on CPU and CUDA.

        Put the layers that actor and critic share into `actor`.
        """
        groups = [
            {"params": [p for part in parts for p in part.parameters()], "lr": lr}
            for parts, lr in ((actor, self.actor_lr), (critic, self.critic_lr))
        ]
        fused = all(p.device.type in ("cpu", "cuda") for p in self.parameters())
        return torch.optim.Adam(groups, eps=1e-5, fused=fused or None)
