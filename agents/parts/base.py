"""What agents share besides their policy heads: networks, value heads, settings, PPO's step and its optimizer."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import gymnasium
import torch
from torch import Tensor, nn

from agents.parts.heads import PolicyHead, linear
from fabric_rl.learning.ppo import ppo_loss
from fabric_rl.schedules import Schedule, as_schedule
from fabric_rl.types import Minibatch, Stats


def hidden_layers(
    inputs: int,
    hidden_sizes: Sequence[int],
    activation: type[nn.Module] = nn.Tanh,
    layer_norm: bool = False,
    ortho_init: bool = True,
) -> nn.Sequential:
    """Layers of linear, layer norm (if asked for) and activation: `[..., inputs]` -> `[..., hidden_sizes[-1]]`.

    Without hidden sizes it is the identity.

    Args:
        inputs: Size of the input vector.
        hidden_sizes: Sizes of the layers.
        activation: Class of the activations.
        layer_norm: Normalise before each activation.
        ortho_init: Orthogonal weights with gain sqrt(2), zero biases.
    """
    layers: list[nn.Module] = []
    for size_in, size_out in pairwise([inputs, *hidden_sizes]):
        layers.append(linear(size_in, size_out, math.sqrt(2) if ortho_init else None))
        if layer_norm:
            layers.append(nn.LayerNorm(size_out))
        layers.append(activation())
    return nn.Sequential(*layers)


def mlp(
    inputs: int,
    hidden_sizes: Sequence[int],
    outputs: int,
    activation: type[nn.Module],
    layer_norm: bool,
    ortho_init: bool,
    output_gain: float,
) -> nn.Sequential:
    """`hidden_layers` and a linear layer to `outputs` numbers with orthogonal gain `output_gain`."""
    layers = hidden_layers(inputs, hidden_sizes, activation, layer_norm, ortho_init)
    last = linear([inputs, *hidden_sizes][-1], outputs, output_gain if ortho_init else None)
    return nn.Sequential(*layers, last)


class ValueHead(nn.Module):
    """The last layer of a value function: `[..., inputs]` -> `[...]`, or `[..., K]` for K > 1 values, float32."""

    def __init__(self, inputs: int, value_heads: int = 1, ortho_init: bool = True) -> None:
        """Builds the layer; orthogonal weights have gain 1."""
        super().__init__()
        self.layer = linear(inputs, value_heads, 1.0 if ortho_init else None)

    def forward(self, features: Tensor) -> Tensor:
        """Values of `features [..., inputs]`."""
        values: Tensor = self.layer(features).float()
        return values.squeeze(-1) if self.layer.out_features == 1 else values


def vector_size(agent: str, space: gymnasium.Space[Any], privileged: bool = False) -> int:
    """The length of a vector observation.

    Args:
        agent: Name of the agent's class, for messages.
        space: Of one sub-environment's observations.
        privileged: The agent can keep columns from its actor, see `actor_size`.

    Raises:
        ValueError: The observations are not vectors, or some columns are for the critic only and the agent cannot tell.
    """
    if not isinstance(space, gymnasium.spaces.Box) or len(space.shape) != 1:
        raise ValueError(
            f"{agent} reads vector observations (Box with one axis), but the environment has {space}; "
            "choose another --agent, --env or --env_id"
        )
    size = int(space.shape[0])
    if not privileged and actor_size(space) != size:
        raise ValueError(
            f"{agent} has one network for policy and value, but the last {size - actor_size(space)} columns of the "
            "observations are for the critic only; use agents.PPOLightningAgent with separate networks"
        )
    return size


def actor_size(space: gymnasium.Space[Any]) -> int:
    """How many columns of a vector observation, from the first on, the actor may read.

    A space says so with the attribute `actor_features` (`envs.PrivilegedObs` does); else it is all of them.
    """
    return int(getattr(space, "actor_features", (space.shape or (0,))[0]))


def check_sizes(agent: str, **sizes: int | Sequence[int]) -> None:
    """Raises ValueError naming the flag `--agent.NAME` for sizes that are not positive."""
    for name, value in sizes.items():
        if isinstance(value, int):
            if value < 1:
                raise ValueError(f"{agent}: --agent.{name} must be positive, got {value}")
        elif any(size < 1 for size in value):
            raise ValueError(f"{agent}: --agent.{name} must be positive sizes, got {list(value)}")


def check_positive(agent: str, **numbers: float) -> None:
    """Raises ValueError naming the flag `--agent.NAME` for numbers that are not positive and finite."""
    for name, number in numbers.items():
        if not 0 < number < math.inf:
            raise ValueError(f"{agent}: --agent.{name} must be positive, got {number}")


@dataclass(frozen=True)
class PPOCoefs:
    """Coefficients of PPO's loss; see `fabric_rl.learning.ppo.ppo_loss`."""

    clip_coef: Schedule
    """Clip range over the training."""
    value_coef: float
    """Weight of the value loss."""
    entropy_coef: Schedule
    """Weight of the entropy bonus over the training."""
    clip_value_loss: bool
    """Clip the value function's update as the policy's."""


def ppo_coefs(
    agent: str,
    clip_coef: float | Schedule,
    value_coef: float,
    entropy_coef: float | Schedule,
    clip_value_loss: bool,
) -> PPOCoefs:
    """Checks the settings of an agent called `agent`.

    Raises:
        ValueError: A clip range that is not positive, or a weight that is negative or not finite, at either end of its
            schedule.
    """
    if not 0 <= value_coef < math.inf:
        raise ValueError(f"{agent}: --agent.value_coef must be 0 or more, got {value_coef}")
    return PPOCoefs(
        as_schedule(clip_coef, f"{agent}: --agent.clip_coef", above=0),
        value_coef,
        as_schedule(entropy_coef, f"{agent}: --agent.entropy_coef", at_least=0),
        clip_value_loss,
    )


def ppo_step(
    head: PolicyHead, params: Tensor, values: Tensor, minibatch: Minibatch, coefs: PPOCoefs, progress: Tensor
) -> tuple[Tensor, Stats]:
    """PPO's loss on one minibatch and its statistics, for `ActorCritic.training_step`.

    Args:
        head: The policy's head.
        params: `[B, P]` (or `[L, S, P]`) that the head gave for the minibatch's observations.
        values: `[B]` or `[B, K]` for the same.
        minibatch: What to learn from.
        coefs: Coefficients of the loss.
        progress: 0-dim, share of the training that is done: `ActorCritic.progress`.
    """
    log_prob, entropy = head.evaluate(params, minibatch.action, minibatch.action_mask)
    progress = progress.to(params.device)
    loss, stats = ppo_loss(
        log_prob=log_prob,
        entropy=entropy,
        value=values,
        old_log_prob=minibatch.log_prob,
        old_value=minibatch.value,
        advantage=minibatch.advantage,
        returns=minibatch.returns,
        clip_coef=coefs.clip_coef(progress),
        value_coef=coefs.value_coef,
        entropy_coef=coefs.entropy_coef(progress),
        clip_value_loss=coefs.clip_value_loss,
    )
    return loss, stats._asdict()


def optimizer_for(
    actor: Iterable[nn.Parameter], critic: Iterable[nn.Parameter], actor_lr: float, critic_lr: float
) -> torch.optim.Optimizer:
    """Adam (eps 1e-5) with one parameter group for the actor and one for the critic, fused on CPU and CUDA.

    What actor and critic share belongs into `actor`.
    """
    groups = [{"params": list(actor), "lr": actor_lr}, {"params": list(critic), "lr": critic_lr}]
    fused = all(p.device.type in ("cpu", "cuda") for group in groups for p in group["params"])  # type: ignore[attr-defined]
    return torch.optim.Adam(groups, eps=1e-5, fused=fused or None)
