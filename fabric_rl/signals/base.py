"""RewardSignal: the contract of what pays an agent beside its environment."""

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import gymnasium
import torch
from lightning import Fabric
from torch import Tensor, nn

from fabric_rl.learning.moments import RunningMoments
from fabric_rl.learning.normalize import ObsNormalizer
from fabric_rl.types import Stats


class Steps(NamedTuple):
    """`B` steps that a signal pays for, or learns from."""

    obs: Tensor
    """`[B, ...]` float32, or uint8 for pixels."""
    action: Tensor
    """`[B, ...]` as the agent chose it; of a Box it may lie outside."""
    next_obs: Tensor
    """`[B, ...]` the same episode's true next observation, also where it ended."""

    def map(self, rows: Tensor | slice) -> "Steps":
        """The steps `rows`."""
        return Steps(*(x[rows] for x in self))


class RewardSignal(nn.Module, ABC):
    """Base of all reward signals: `--signals package.module.Class`, in a list.

    Each signal adds a reward for every step, a value head of the agent and a discount. Its networks learn from the
    agent's rollouts, with a separate Adam optimizer.

    A subclass takes the observation and action space of *one* sub-environment and its own settings.

    Attributes:
        name: What its metrics and its reward are called.
        strength: What its reward is multiplied with.
        gamma: Discount of its returns.
        learning_rate: Of its networks.
        epochs: Passes over each rollout; None: as many as the policy's `--update_epochs`, so that it makes a step for
            each minibatch of the policy.
        minibatch_size: Steps per minibatch and rank; None: as many as the policy's. As large as a rollout, with
            `epochs` 1: one step for each rollout.
        episodic: Its returns end with an episode; else they go on in the next one.
        normalizer: Of the observations that its networks get, with the statistics of all ranks. They change once for
            each rollout, before the networks learn from it.
        returns: Running statistics of its discounted rewards, whose deviation `scaled` divides by.
        scales: Its rewards are scaled so; else they are of order 1 anyway.
    """

    name: str
    scales: bool = True

    def __init__(
        self,
        observation_space: gymnasium.Space[Any],
        strength: float,
        gamma: float,
        learning_rate: float,
        epochs: int | None,
        minibatch_size: int | None,
        episodic: bool,
    ) -> None:
        """Checks the settings.

        Raises:
            ValueError: One cannot work.
        """
        super().__init__()
        flag = f"--signals {type(self).__name__}"
        if not 0 <= strength < math.inf:
            raise ValueError(f"{flag}: strength must be 0 or more, and finite, got {strength}")
        if not 0 <= gamma <= 1:
            raise ValueError(f"{flag}: gamma must be between 0 and 1, got {gamma}")
        if not 0 < learning_rate < math.inf:
            raise ValueError(f"{flag}: learning_rate must be positive, got {learning_rate}")
        for setting, number in (("epochs", epochs), ("minibatch_size", minibatch_size)):
            if number is not None and number < 1:
                raise ValueError(f"{flag}: {setting} must be at least 1, got {number}")
        self.strength, self.gamma, self.learning_rate = strength, gamma, learning_rate
        self.epochs, self.minibatch_size, self.episodic = epochs, minibatch_size, episodic
        self.normalizer = ObsNormalizer(observation_space.shape or ())
        self.returns = RunningMoments(())

    @abstractmethod
    def reward(self, steps: Steps) -> Tensor:
        """`[B]` float32, what it pays, 0 or more; without gradients, on the bare module."""

    @abstractmethod
    def forward(self, batch: Any) -> tuple[Tensor, Stats]:  # noqa: ANN401 - what `prepared` gives
        """The loss of a minibatch (a scalar with a graph), and named statistics for the log."""

    def prepared(self, steps: Steps, generator: torch.Generator) -> Any:  # noqa: ANN401 - for `forward`
        """Return the input of `forward` for a minibatch, random draws included. By default the steps."""
        return steps

    def update_statistics(self, steps: Steps, fabric: Fabric) -> dict[str, float]:
        """Takes a rollout's observations into the statistics, before its networks learn from it.

        Args:
            steps: All steps of this rank's rollout.
            fabric: Of the ranks that learn; every rank calls it.

        Returns:
            What else there is to say, by name.
        """
        self.normalizer.update(steps.next_obs, fabric)
        return {}

    def after_learning(self, means: Mapping[str, float], updates: int) -> None:
        """Is told the means of its statistics over a rollout's minibatches and all ranks, and the number of these."""

    def scaled(self, reward: Tensor) -> Tensor:
        """Rewards of order 1, `reward / sigma` up to 10: Burda et al. 2018, section 2.4.

        `sigma` is the deviation of `R_t = reward_t + gamma R_{t-1}` over all steps of all ranks since the beginning.

        Args:
            reward: As `reward` gave it.
        """
        return (reward / self.returns.variance.sqrt().clamp_min(1e-8).to(reward)).clamp_max(10)


def check_sizes(signal: RewardSignal, encoding_size: int, hidden_sizes: Sequence[int]) -> list[int]:
    """The hidden sizes; a ValueError for sizes that are not positive."""
    if encoding_size < 1 or not hidden_sizes or any(size < 1 for size in hidden_sizes):
        raise ValueError(
            f"--signals {type(signal).__name__}: encoding_size and hidden_sizes must be positive, got {encoding_size} "
            f"and {list(hidden_sizes)}"
        )
    return list(hidden_sizes)


class SignalFactory(Protocol):
    """Builds a signal from the spaces of one sub-environment: a class, or a partial of one."""

    def __call__(self, observation_space: gymnasium.Space[Any], action_space: gymnasium.Space[Any]) -> RewardSignal:
        """Builds it; the weights come from torch's global generator."""
