"""Generalized advantage estimation, and the base class of estimators, which are selected by class path."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from fabric_rl.types import ActorCritic, TeamAgent

if TYPE_CHECKING:
    from fabric_rl.rollouts.rollout import Rollout


def gae(
    rewards: Tensor,
    values: Tensor,
    next_values: Tensor,
    terminated: Tensor,
    done: Tensor,
    gamma: float | Sequence[float] | Tensor,
    lam: float | Tensor,
) -> Tensor:
    r"""Compute generalized advantage estimates (Schulman et al. 2016, equation 16), cut at episode ends.

    With :math:`\delta_t = r_t + \gamma (1 - \mathrm{terminated}_t) V(s'_t) - V(s_t)`,

    .. math:: A_t = \delta_t + \gamma \lambda (1 - \mathrm{done}_t) A_{t+1}, \qquad A_T = 0.

    A terminated step does not bootstrap. A truncated step (done but not terminated) bootstraps from the value of the
    last observation of the same episode. Advantages never propagate from one episode to the previous one.

    Args:
        rewards: `[T, N]` or `[T, N, K]` for K reward signals, float32. Not modified.
        values: V(s_t), same shape as `rewards`.
        next_values: V(s'_t), same shape as `rewards`, where s'_t is the state that the step led to in the *same*
            episode.
        terminated: `[T, N]` bool, True where the episode terminated; or `[T, N, K]`, for each reward signal.
        done: Same shape as `terminated`, True where the episode terminated or was truncated.
        gamma: Discount factor, 0..1; or `[K]`, one for each reward signal.
        lam: GAE's lambda, 0..1; or `[T, N]`, one for each step.

    Returns:
        Advantages, same shape as `rewards`. The value targets are `advantages + values`.

    Raises:
        ValueError: The shapes do not match.
    """
    if not rewards.shape == values.shape == next_values.shape:
        raise ValueError(
            "gae: rewards, values and next_values must have the same shape, got "
            f"{list(rewards.shape)}, {list(values.shape)}, {list(next_values.shape)}"
        )
    if terminated.shape != done.shape or terminated.shape not in (rewards.shape[:2], rewards.shape):
        raise ValueError(
            f"gae: terminated {list(terminated.shape)} and done {list(done.shape)} must be [T, N] = "
            f"{list(rewards.shape[:2])}"
        )
    if isinstance(gamma, Sequence):
        gamma = torch.tensor(gamma, device=rewards.device)
    per_signal = (...,) + (None,) * (rewards.dim() - terminated.dim())
    bootstrap = gamma * (~terminated)[per_signal]
    lam = lam[(...,) + (None,) * (rewards.dim() - 2)] if isinstance(lam, Tensor) else lam
    trace = (gamma * lam) * (~done)[per_signal]
    deltas = rewards + bootstrap * next_values - values
    advantages = torch.empty_like(deltas)
    running = torch.zeros_like(deltas[0])
    for t in range(len(deltas) - 1, -1, -1):
        running = torch.addcmul(deltas[t], trace[t].to(deltas.dtype), running)
        advantages[t] = running
    return advantages


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
        return self.estimate(rollout, rollout.reward, rollout.next_value, gamma, gae_lambda)

    @staticmethod
    def estimate(
        rollout: "Rollout", reward: Tensor, next_value: Tensor, gamma: Tensor, gae_lambda: float | Tensor
    ) -> tuple[Tensor, Tensor]:
        """Return advantages and value targets for `reward` and `next_value` in place of the rollout's."""
        ends = (rollout.terminated, rollout.done)
        if rollout.episodic is not None:  # [K]
            ends = (rollout.terminated[..., None] & rollout.episodic, rollout.done[..., None] & rollout.episodic)
        advantage = gae(reward, rollout.value, next_value, *ends, gamma, gae_lambda)
        return advantage, advantage + rollout.value


class CounterfactualAdvantage(GAE):
    r"""Lambda return of the team minus a counterfactual baseline of each agent, as in MA-POCA.

    Cohen et al. 2021, "On the Use and Misuse of Absorbing States in Multi-agent Reinforcement Learning".

    The reward of a team is the mean of the rewards of its agents, also of those that have left the episode. With the
    observations :math:`o^i` of the present agents, whose number :math:`k_t` may change, and the team's value
    :math:`V`, the value target is the lambda return

    .. math::
        G^{(n)}_t = \sum_{l=1}^{n} \gamma^{l-1} r_{t+l} + \gamma^n V(o^1_{t+n}, ..., o^{k_{t+n}}_{t+n}), \qquad
        y^{(\lambda)}_t = (1 - \lambda) \sum_{n=1}^{\infty} \lambda^{n-1} G^{(n)}_t

    so an agent that has left is credited with what its team achieves afterwards. An empty team has no observations, and
    so no value: the return then contains its rewards up to the end of the episode, as with :math:`\lambda = 1`. If the
    rollout ends sooner, the value of the last step with an agent stands for the rest. The baseline :math:`Q` knows the
    observations and actions of the teammates, but only the observation of agent j:

    .. math:: A^j_t = y^{(\lambda)}_t - Q(o^j_t, (o^i_t, a^i_t)_{i \neq j})
    """

    def __call__(
        self, rollout: "Rollout", agent: ActorCritic, gamma: Tensor, gae_lambda: float
    ) -> tuple[Tensor, Tensor]:
        """Estimate, see `Estimator`; raise a ValueError unless the agents of each team end their episodes together."""
        if not isinstance(agent, TeamAgent):
            raise ValueError(f"{type(agent).__name__} has no counterfactual baseline; use --agent agents.POCAAgent")
        ends = rollout.of_team(torch.stack((rollout.done, rollout.terminated), dim=-1))  # [T, N, M, 2]
        if bool((ends != ends[:, :, :1]).any()):
            raise ValueError(
                "the agents of a team must end their episodes together; report agents that leave earlier in "
                "infos['present'] (see fabric_rl.types.HasTeams)"
            )
        exists = rollout.in_team.float()  # [N, M]
        share = exists / exists.sum(dim=1, keepdim=True)
        team_rewards = rollout.of_team(rollout.reward)  # [T, N, M] or [T, N, M, K]
        reward = torch.einsum("tnm...,nm->tn...", team_rewards, share)
        next_value, lam = self._without_empty_teams(rollout, gae_lambda)
        _, returns = self.estimate(rollout, reward, next_value, gamma, lam)
        return returns - rollout.team_baselines(agent), returns

    @staticmethod
    def _without_empty_teams(rollout: "Rollout", gae_lambda: float) -> tuple[Tensor, float | Tensor]:
        """Return next values and lambda so that no value of a team without agents counts."""
        if rollout.present is None:
            return rollout.next_value, gae_lambda
        empty = ~rollout.team_present(slice(None)).any(dim=-1)  # [T + 1, N]
        # At the end of an episode, those count that were present at its last step.
        next_empty = torch.where(rollout.done, empty[:-1], empty[1:])
        steps, rows = (torch.arange(size, device=empty.device) for size in next_empty.shape)
        last = torch.where(empty[:-1], 0, steps[:, None]).cummax(dim=0).values  # the last step with an agent
        cut = next_empty & (rollout.done | (steps[:, None] == len(steps) - 1))  # elsewhere, these values cancel
        of_signals = cut[(...,) + (None,) * (rollout.value.dim() - 2)]
        next_value = torch.where(of_signals, rollout.value[last, rows], rollout.next_value)
        return next_value, torch.where(next_empty, 1.0, gae_lambda)
