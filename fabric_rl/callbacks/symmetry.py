"""SymmetryAugmentation: part of every batch is replaced by its mirror image."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from fabric_rl.base.seeding import stream_seed
from fabric_rl.base.settings import Between, check_settings
from fabric_rl.base.symmetry import Symmetry
from fabric_rl.callback import Callback, TrainState
from fabric_rl.metrics.log import logger
from fabric_rl.ranks.collectives import all_gather_object
from fabric_rl.types import HasSymmetry, Minibatch, OffPolicyAgent


@dataclass(eq=False, repr=False)
class SymmetryAugmentation(Callback):
    """Learn from the mirror images of some steps, so that what is learned on one side is known on the other, too.

    A random share of each rollout's steps (of its sequences, for an agent that learns from them) is replaced: the
    observation by its reflection, the action and the action mask likewise. Advantages, value targets and the old
    log-probabilities stay (Mittal et al. 2024, "Symmetry Considerations for Learning Task Symmetric Robot Policies",
    who add the reflections to the steps). The number of steps, and so the time, stays the same. A replaced sequence
    begins with an empty memory. `ppo/approx_kl` and `ppo/clip_fraction` also contain the difference between the policy
    and its reflection, so `--target_kl` and `--lr_schedule kl_adaptive` see larger values.

    The environment tells its reflection (`fabric_rl.types.HasSymmetry`): `RocketSimPool` exchanges left and right.
    Without one, for example because a reward is not symmetric, training continues without mirror images, and a warning
    says why.
    """

    share: Annotated[float, Between(0, 1)] = 0.5
    """Share of the steps that are replaced, 0..1."""

    def __post_init__(self) -> None:
        check_settings(self)
        self._symmetry: Symmetry | None = None

    def on_train_start(self, state: TrainState) -> None:
        """Ask the environment for its reflection; with `--num_players`, a trainer uses that of the players."""
        if isinstance(state.agent, OffPolicyAgent):
            raise ValueError("--callbacks SymmetryAugmentation: replayed steps cannot be reflected; it is for PPO")
        env = state.env
        own = (env.find_symmetry() if isinstance(env, HasSymmetry) else None) or f"{type(env).__name__} has no symmetry"
        found = all_gather_object(state.fabric, own)[-1]  # the last rank plays, the first one may only train
        self._symmetry = found if isinstance(found, Symmetry) else None
        if self._symmetry is None and state.fabric.is_global_zero:
            logger.warning("SymmetryAugmentation is off: %s", found)

    def on_learn_start(self, state: TrainState) -> Minibatch | None:
        """Return the batch with some steps replaced; which ones depends on the seed, the iteration and the rank."""
        if self._symmetry is None or state.batch is None:
            return None
        peers, size = state.peers, state.batch.advantage.shape[1 if state.batch.episode_start is not None else 0]
        number = state.iteration * peers.world_size + peers.global_rank
        generator = torch.Generator().manual_seed(stream_seed(state.args.seed, "symmetry", number))
        rows = torch.randperm(size, generator=generator)[: round(self.share * size)]
        if not len(rows):
            return None
        return reflect(state.batch, self._symmetry, rows.to(state.batch.returns.device))


def reflect(batch: Minibatch, symmetry: Symmetry, rows: Tensor) -> Minibatch:
    """Return a copy of the batch in which the steps, or the sequences, with the numbers `rows` are reflected."""
    axis = 0 if batch.episode_start is None else 1

    def tensor(array: NDArray[Any]) -> Tensor:
        return torch.as_tensor(array, device=rows.device)

    def replaced(x: Tensor | None, change: Callable[[Tensor], Tensor], at: int = axis, team: int = 0) -> Tensor | None:
        if x is None:
            return None
        part = x.index_select(at, rows)
        changed = change(part.reshape(*part.shape[: at + 1 + team], -1)).to(x.dtype)
        return x.index_copy(at, rows, changed.reshape(part.shape))

    source, sign = tensor(symmetry.obs_index), tensor(symmetry.obs_sign)
    others = {
        name: replaced(getattr(batch, name), lambda x: x[..., source] * sign)
        for name in ("obs", "next_obs", "burn_in_obs")
    }
    others["team_obs"] = replaced(batch.team_obs, lambda x: x[..., source] * sign, team=1)
    if isinstance(symmetry.actions, tuple):
        choices = [tensor(column) for column in symmetry.actions]
        starts = np.cumsum([0, *map(len, choices)])
        origin = torch.cat([column.argsort() + int(at) for column, at in zip(choices, starts, strict=False)])
        masks = ("action_mask", "next_action_mask")
        others |= {name: replaced(getattr(batch, name), lambda x: x[..., origin]) for name in masks}

        def reflected(x: Tensor) -> Tensor:
            return torch.stack([c[x[..., k]] for k, c in enumerate(choices)], dim=-1)
    else:
        signs = tensor(symmetry.actions)

        def reflected(x: Tensor) -> Tensor:
            return x * signs

    others |= {name: replaced(getattr(batch, name), reflected) for name in ("action", "teacher_action")}
    others["team_action"] = replaced(batch.team_action, reflected, team=1)
    memory = batch.state if batch.episode_start is None else replaced(batch.state, torch.zeros_like, 0)
    return batch._replace(state=memory, **others)  # type: ignore[arg-type]  # None only where it was
