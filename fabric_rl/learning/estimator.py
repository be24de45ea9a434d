"""Estimator: from a rollout to advantages and value targets, a part that can be swapped by its class path."""

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from torch import Tensor

from fabric_rl.learning.gae import gae
from fabric_rl.types import ActorCritic

if TYPE_CHECKING:
    from fabric_rl.rollouts.rollout import Rollout


class Estimator(ABC):
    """Base class of advantage estimators: `--estimator package.module.Class`, with its settings as `--estimator.x`."""

    @abstractmethod
    def __call__(
        self, rollout: "Rollout", agent: ActorCritic, gamma: Tensor, gae_lambda: float
    ) -> tuple[Tensor, Tensor]:
        """Estimate advantages and value targets; called without gradients, once per rollout, on every rank.

        Args:
            rollout: This rank's rollout, see `Rollout`. Do not modify it.
            agent: The agent itself, not Fabric's wrapper. With `--overlap` or `--num_players`, it has been updated once
                since the rollout was collected.
            gamma: `--gamma`, 0-dim, or `[K]` for K reward signals.
            gae_lambda: `--gae_lambda`.

        Returns:
            Advantages and targets of the value function, same shape as `rollout.reward`, `[T, N]` or `[T, N, K]`.
        """


class GAE(Estimator):
    """Generalized advantage estimation, see `fabric_rl.gae`; the value targets are advantage + value."""

    def __call__(
        self, rollout: "Rollout", agent: ActorCritic, gamma: Tensor, gae_lambda: float
    ) -> tuple[Tensor, Tensor]:
        ends = (rollout.terminated, rollout.done)
        if rollout.episodic is not None:  # [K]
            ends = (rollout.terminated[..., None] & rollout.episodic, rollout.done[..., None] & rollout.episodic)
        advantage = gae(rollout.reward, rollout.value, rollout.next_value, *ends, gamma, gae_lambda)
        return advantage, advantage + rollout.value
