"""Kickstarting: training with a decreasing penalty on the divergence from a reference policy."""

from typing import TYPE_CHECKING, Any

import gymnasium
import torch
from lightning.pytorch.utilities.seed import isolate_rng
from torch import Tensor
from torch.distributions import kl_divergence

from fabric_rl.base.state_schema import state_error_context
from fabric_rl.callback import Callback, TrainState
from fabric_rl.learning.learner import check_weights
from fabric_rl.schedules import Linear, Schedule, as_schedule
from fabric_rl.types import Minibatch, Transitions

if TYPE_CHECKING:
    from fabric_rl.runs.trained import Trained


class Kickstart(Callback):
    r"""Add :math:`\lambda \, KL(\pi_{ref}(\cdot | s) \| \pi(\cdot | s))` to the loss (Schmitt et al. 2018, eq. 4).

    The mean is over the steps of each minibatch, with SAC over replayed ones. The run's checkpoints contain the
    reference's weights, so a resumed run does not change if the reference has been trained further. It uses another
    reference only if you name another one.
    """

    def __init__(self, reference: str, coef: float | Schedule | None = None) -> None:
        """Store the settings.

        Args:
            reference: Run, milestone, checkpoint, exported agent or included agent (school_1v1) with the same
                observations and actions.
            coef: Lambda, a number or a schedule over the course of training. Default: linear from 1 to 0.

        Raises:
            ValueError: `coef` is negative.
        """
        self.reference, self.coef = reference, coef
        self._schedule = as_schedule(
            Linear(1.0, 0.0) if coef is None else coef, "Kickstart: --kickstart.coef", at_least=0
        )
        self._trained: Trained | None = None
        self._weights: dict[str, Any] | None = None

    def take(self, trained: "Trained") -> "Kickstart":
        """Set the reference, as returned by `fabric_rl.load_trained`."""
        self._trained = trained
        return self

    def on_train_start(self, state: TrainState) -> None:
        """Build the reference, and give it to the agent.

        Raises:
            ValueError: There is no reference, or it does not fit the agent or the environment.
            TypeError: The agent does not support a reference.
        """
        flag, agent = f"--kickstart.reference {self.reference}", state.agent
        if not hasattr(agent, "reference"):
            raise TypeError(f"--kickstart: {type(agent).__name__} does not support a reference; use a PPO agent or SAC")
        if self._trained is None:
            raise ValueError(f"{flag}: the reference is not loaded; pass it to take(), or use the flag")
        try:
            with isolate_rng():  # its initial weights are random
                teacher = self._trained.agent(state.env.single_observation_space, state.env.single_action_space)
        except ValueError as error:
            raise ValueError(f"{flag}: {error}") from error
        if teacher.memory_size or not hasattr(teacher, "policy_params"):
            raise ValueError(f"{flag}: {type(teacher).__name__} cannot be a reference; use an agent without memory")
        heads = [each.policy_head for each in (teacher, agent)]
        kinds = ["tanh" if getattr(head, "squash", False) else type(getattr(head, "policy", head)) for head in heads]
        if kinds[0] != kinds[1]:
            raise ValueError(
                f"{flag}: the distribution of its policy differs from that of --agent (in class or squash)"
            )
        if self._weights is not None:
            with state_error_context("the saved reference of --kickstart"):
                check_weights(self._weights, teacher)
            teacher.load_state_dict(self._weights)
        self._weights = {name: tensor.clone() for name, tensor in teacher.state_dict().items()}
        learner: Any = agent
        learner.reference = Reference(teacher.to(state.fabric.device), self._schedule)

    def state_dict(self) -> dict[str, Any]:
        return {"reference": self.reference, "weights": self._weights or {}}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        super().load_state_dict(state)
        same = state.get("reference", self.reference) == self.reference  # older checkpoints do not name it
        self._weights = (state["weights"] or None) if same else None


class Reference:
    """Reference policy for `PPOAgent.reference`; not a submodule, so its weights are not part of the agent's."""

    def __init__(self, agent: Any, coef: Schedule) -> None:  # noqa: ANN401 - with `policy_params`
        self._agent, self.coef = agent.requires_grad_(False).eval(), coef

    @torch.no_grad()
    def policy_params(self, obs: Tensor) -> Tensor:
        """Return the policy parameters `[..., P]` for `obs [B, ...]` or `[L, S, ...]`."""
        space: gymnasium.Space[Any] = self._agent.observation_space
        axes = obs.dim() - len(space.shape or ())
        params: Tensor = self._agent.policy_params(obs.flatten(0, axes - 1))
        return params.view(*obs.shape[:axes], -1)

    def divergence(self, head: Any, params: Tensor, minibatch: Minibatch | Transitions) -> Tensor:  # noqa: ANN401 - a head
        """Return the mean over the steps of KL(reference || agent); `params` are those of the agent's policy `head`."""
        both = (self.policy_params(minibatch.obs), params)
        taught, own = (head.distribution(each, minibatch.action_mask) for each in both)
        return kl_divergence(taught, own).float().mean()
