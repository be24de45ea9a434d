"""Trajectories as batches to learn from."""

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
import torch
from lightning import Fabric
from numpy.typing import NDArray
from torch import Tensor

from fabric_rl.learning.imitation import CanImitate, Shown
from fabric_rl.types import ActorCritic, reads_masks


class Trajectory(Protocol):
    """One episode of T steps, as `envs.demonstrations.Trajectory` is."""

    @property
    def obs(self) -> NDArray[Any]:
        """`[T + 1, ...]`."""

    @property
    def action(self) -> NDArray[Any]:
        """`[T, ...]`."""

    @property
    def weight(self) -> NDArray[np.float32]:
        """`[T]` how much each step counts."""

    @property
    def action_mask(self) -> NDArray[np.bool_] | None:
        """`[T, n]`."""

    @property
    def soft(self) -> NDArray[np.float32] | None:
        """`[T, n]`."""

    @property
    def reward(self) -> NDArray[np.float32] | None:
        """`[T]`, or `[T, K]` of K reward signals, where it is known."""

    @property
    def terminated(self) -> bool:
        """True if the episode terminated, and was not truncated."""

    @property
    def episode(self) -> str:
        """Shared by all players of an episode; empty: there is one."""


def check_imitates(agent: ActorCritic, flag: str) -> None:
    """Raises TypeError for an agent that cannot be shown anything."""
    if not isinstance(agent, CanImitate):
        name = type(agent).__name__
        raise TypeError(f"{flag}: {name} cannot imitate; take one of the PPO agents, or give yours a method imitate()")


def shown(trajectories: Sequence[Trajectory], agent: ActorCritic) -> Shown:
    """All steps of some trajectories, as this agent learns from them.

    For an agent with memory they are cut into sequences of its length, the last one of a trajectory filled up. Memory
    is zero at the beginning of each: nobody knows what this agent would have remembered.
    """
    length, device = agent.sequence_length, agent.device
    masked, soft = trajectories[0].action_mask is not None and reads_masks(agent), trajectories[0].soft is not None

    def joined(parts: list[NDArray[Any]]) -> Tensor:
        if not agent.learns_sequences:
            return torch.from_numpy(np.concatenate(parts)).to(device)
        padded = [np.concatenate([x, np.repeat(x[-1:], -len(x) % length, axis=0)]) for x in parts]
        pieces = np.concatenate([x.reshape(-1, length, *x.shape[1:]) for x in padded])
        return torch.from_numpy(np.ascontiguousarray(pieces.swapaxes(0, 1))).to(device)

    filled = [np.concatenate([x.weight, np.zeros(-len(x.weight) % length, np.float32)]) for x in trajectories]
    found = Shown(
        joined([x.obs[: len(x.action)] for x in trajectories]),
        joined([x.action for x in trajectories]),
        joined(filled if agent.learns_sequences else [x.weight for x in trajectories]),
        joined([x.action_mask for x in trajectories]) if masked else None,  # type: ignore[misc]
        joined([x.soft for x in trajectories]) if soft else None,  # type: ignore[misc]
    )
    if agent.learns_sequences:
        starts = torch.zeros_like(found.weight, dtype=torch.bool)
        starts[0] = True
        found = found._replace(state=torch.zeros(found.size, agent.memory_size, device=device), episode_start=starts)
    return found


def learn_pass(
    fabric: Fabric,
    model: Any,  # noqa: ANN401 - Fabric's wrapper, with the forward method `imitate`
    optimizer: Any,  # noqa: ANN401 - likewise
    steps: Shown,
    rows: Tensor,
    batch_size: int,
    max_grad_norm: float,
) -> float:
    """One pass over `rows` of what was shown, in minibatches of so many of them; returns the mean loss."""
    losses = []
    for part in torch.split(rows.to(steps.obs.device), batch_size):
        with fabric.autocast():
            loss, _ = model.imitate(steps.take(part))
        fabric.backward(loss)
        if max_grad_norm:
            fabric.clip_gradients(model, optimizer, max_norm=max_grad_norm, error_if_nonfinite=False)
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.detach())
    return float(torch.stack(losses).mean())
