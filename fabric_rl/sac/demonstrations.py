"""replayed(): demonstrations as a replay buffer beside the run's own."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from fabric_rl.imitation.batches import Trajectory
from fabric_rl.sac.replay import ReplayBuffer
from fabric_rl.types import Minibatch


def replayed(
    trajectories: Sequence[Trajectory],
    strength: float,
    like: Minibatch,
    generator: torch.Generator,
    folder: str | Path | None,
    keep_ends: bool,
) -> ReplayBuffer:
    """A buffer with all steps of some trajectories, one after the other, to draw from in proportion to their weights.

    Args:
        trajectories: With rewards.
        strength: What these are multiplied with.
        like: A flat rollout of the run, for shapes, dtypes and device.
        generator: See `ReplayBuffer`, as are the others.
        folder: See there.
        keep_ends: See there.

    Raises:
        ValueError: Nobody knows what the steps were worth, or they do not fit into memory.
    """
    if any(each.reward is None for each in trajectories) or sum(len(each.action) for each in trajectories) < 2:
        raise ValueError("--demonstrations: two steps are the least, each with the reward that it was given")

    def column(parts: Sequence[NDArray[Any]]) -> Tensor:
        return torch.from_numpy(np.concatenate(parts)).to(like.obs.device)

    def ends(really: bool) -> list[NDArray[np.bool_]]:
        return [(np.arange(1, len(x.action) + 1) == len(x.action)) & (really or x.terminated) for x in trajectories]

    assert like.reward is not None
    reward = strength * column([x.reward for x in trajectories])  # type: ignore[misc]
    if like.reward.dim() > 1:  # what signals pay is told anew
        known = reward.view(len(reward), -1)
        reward = torch.cat((known, known.new_zeros(len(known), like.reward.shape[1] - known.shape[1])), dim=1)
    mask = None
    if like.action_mask is not None:
        width = like.action_mask.shape[1]
        masks = ((x.action_mask, (len(x.action), width)) for x in trajectories)  # nobody may know what was allowed
        mask = column([np.ones(shape, np.bool_) if known is None else known for known, shape in masks])
    steps = like._replace(
        obs=column([x.obs[:-1] for x in trajectories]),
        action=column([x.action for x in trajectories]),
        reward=reward,
        next_obs=column([x.obs[1:] for x in trajectories]),
        terminated=column(ends(False)),
        done=column(ends(True)),
        action_mask=mask,
        next_action_mask=mask,
    )
    replay = ReplayBuffer(len(reward), steps, 1, generator, folder, keep_ends, alpha=1.0)
    replay.add(steps)
    weight = column([x.weight for x in trajectories])
    if not weight.any():
        raise ValueError("--demonstrations: all of their steps have the weight 0")
    replay.prioritize(torch.arange(len(reward)), weight, least=0.0)
    return replay
