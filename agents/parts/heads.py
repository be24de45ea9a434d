"""The policy heads, and which one fits an action space."""

from typing import Any

import gymnasium
import numpy as np
from gymnasium.spaces import Box, Discrete, MultiBinary, MultiDiscrete

from agents.parts.discrete_heads import BernoulliHead, CategoricalHead, MultiCategoricalHead
from agents.parts.gaussian_head import GaussianHead, GaussianOptions
from agents.parts.policy_head import PolicyHead, linear

__all__ = [
    "BernoulliHead",
    "CategoricalHead",
    "GaussianHead",
    "GaussianOptions",
    "MultiCategoricalHead",
    "PolicyHead",
    "linear",
    "policy_head",
]


def policy_head(
    agent: str,
    inputs: int,
    action_space: gymnasium.Space[Any],
    gaussian: GaussianOptions | None = None,
    ortho_init: bool = True,
) -> PolicyHead:
    """The head for an action space.

    Args:
        agent: Name of the agent's class, for messages.
        inputs: Size of the features.
        action_space: Of one sub-environment: Discrete, MultiDiscrete, MultiBinary, or Box of floats.
        gaussian: For a Box only.
        ortho_init: Orthogonal weights with gain 0.01, so that a policy explores evenly at first.

    Raises:
        ValueError: No head fits the space, or the options do not fit it.
    """
    gain = 0.01 if ortho_init else None
    if isinstance(action_space, Box) and np.issubdtype(action_space.dtype, np.floating):
        try:
            return GaussianHead(inputs, action_space, gaussian, gain)
        except ValueError as error:
            raise ValueError(f"{agent}: --agent.{error}") from error
    if isinstance(action_space, (Discrete, MultiDiscrete, MultiBinary)):
        if gaussian not in (None, GaussianOptions()):
            raise ValueError(
                f"{agent}: --agent.state_dependent_std, squash and log_std_init are for Box actions, but the "
                f"environment has {action_space}; leave them out"
            )
        if isinstance(action_space, Discrete):
            return CategoricalHead(inputs, action_space, gain)
        if isinstance(action_space, MultiDiscrete):
            return MultiCategoricalHead(inputs, action_space, gain)
        return BernoulliHead(inputs, action_space, gain)
    raise ValueError(
        f"{agent} takes Discrete, MultiDiscrete, MultiBinary or (float) Box actions, but the environment has "
        f"{action_space}; choose another --agent, --env or --env_id"
    )
