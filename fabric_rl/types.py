"""The contracts between the framework, the agents and the environments."""

from typing import Any, NamedTuple, Protocol, runtime_checkable

import gymnasium
import torch
from gymnasium.vector import VectorEnv
from lightning import LightningModule
from torch import Tensor

Stats = dict[str, Tensor]
"""Named scalars of one minibatch, detached and on the agent's device."""


class ActOutput(NamedTuple):
    """What an agent returns for a batch of `N` observations."""

    action: Tensor
    """`[N, ...]` as the action space wants it."""
    log_prob: Tensor
    """`[N]` float32, log-probability of `action`."""
    value: Tensor
    """`[N]` float32, value of the observation."""
    state: Tensor | None = None
    """The agent's memory after this step, `[N, ...]`, or None for an agent without memory."""


class Minibatch(NamedTuple):
    """`B` steps of experience, all tensors on the agent's device."""

    obs: Tensor
    """`[B, ...]`."""
    action: Tensor
    """`[B, ...]`."""
    log_prob: Tensor
    """`[B]` under the policy that collected the step."""
    value: Tensor
    """`[B]` estimated when the rollout was collected."""
    advantage: Tensor
    """`[B]`, normalised if `TrainArgs.normalize_advantages`."""
    returns: Tensor
    """`[B]` regression target of the value function."""


class ActorCritic(LightningModule):
    """Base of all agents: an actor-critic that `fabric_rl.train` can train.

    A subclass takes the observation and action space of *one* sub-environment and its own hyperparameters, and
    implements the four methods below. It never sees an environment. Rollouts call `act` on the bare module; only
    `training_step` goes through Fabric's wrapper, so gradients synchronise exactly once per step.
    """

    def __init__(self, observation_space: gymnasium.Space[Any], action_space: gymnasium.Space[Any]) -> None:
        """Keeps the spaces of one sub-environment."""
        super().__init__()
        self.observation_space, self.action_space = observation_space, action_space

    def act(self, obs: Tensor, state: Tensor | None = None, deterministic: bool = False) -> ActOutput:
        """Chooses actions for `obs [N, ...]`: samples, or takes the most likely one if `deterministic`."""
        raise NotImplementedError

    def value(self, obs: Tensor, state: Tensor | None = None) -> Tensor:
        """`[N]` float32, values of `obs [N, ...]`."""
        raise NotImplementedError

    def training_step(self, minibatch: Minibatch) -> tuple[Tensor, Stats]:  # type: ignore[override]  # Fabric allows it
        """The loss (a scalar with a graph) and named statistics for the log."""
        raise NotImplementedError

    def configure_optimizers(self) -> torch.optim.Optimizer:
        """One optimizer over all parameters. Its learning rates are the initial ones of the schedule."""
        raise NotImplementedError


class AgentFactory(Protocol):
    """Builds the agent from the spaces of one sub-environment: an agent class, or a partial of one."""

    def __call__(self, observation_space: gymnasium.Space[Any], action_space: gymnasium.Space[Any]) -> LightningModule:
        """Builds it; the weights come from torch's global generator."""


class EnvFactory(Protocol):
    """Builds this rank's environment: a VectorEnv class, or a partial of one."""

    def __call__(self, *, seed: int) -> VectorEnv:
        """Builds it; `reset(seed=...)` follows."""


@runtime_checkable
class HasMetrics(Protocol):
    """An environment that reports metrics of its own."""

    def drain_metrics(self) -> dict[str, tuple[float, float]]:
        """Name -> (sum, count) since the last call. The names are the same on every call and on every rank."""


@runtime_checkable
class HasSeeds(Protocol):
    """An environment whose `reset(seed=s)` uses another number of seeds than one per sub-environment."""

    @property
    def num_seeds(self) -> int:
        """`reset(seed=s)` uses `s, s + 1, ..., s + num_seeds - 1`."""


class NonFiniteError(RuntimeError):
    """NaN or infinity arose in training; the message says where and what was saved."""
