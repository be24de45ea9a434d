"""Session: the live objects of a run on this rank, saved as one state and restored exactly."""

import copy
import math
import warnings
from dataclasses import dataclass, field
from typing import Any

import torch
from lightning import Fabric
from lightning.pytorch.utilities.seed import isolate_rng
from torch import Tensor

from fabric_rl.args import TrainArgs
from fabric_rl.callback import TrainState
from fabric_rl.hooks import Hooks
from fabric_rl.learning.estimator import Estimator
from fabric_rl.learning.learner import Onlooker
from fabric_rl.metrics.sums import Sums
from fabric_rl.metrics.timers import Timers
from fabric_rl.ranks.collectives import gather_to_rank_0
from fabric_rl.ranks.sharding import gathered
from fabric_rl.rollouts.collectors import Collector
from fabric_rl.rollouts.players import Exchange
from fabric_rl.rollouts.rollout import Rollout
from fabric_rl.rollouts.steps import checked_tuple, kind_of
from fabric_rl.runs.fingerprint import check_fits, fingerprint
from fabric_rl.trial import calling
from fabric_rl.types import ActorCritic


@dataclass
class Session:
    """What `train` works with on this rank, and all that the future of the run depends on.

    After `state_dict` this run goes on exactly as one that loads what it returned: environments that can be restored
    restore themselves (RocketSim's contact caches are in no snapshot), others begin new episodes with the same seed on
    both sides.
    """

    fabric: Fabric
    args: TrainArgs
    state: TrainState
    hooks: Hooks
    agent: ActorCritic
    """The bare module."""
    estimator: Estimator
    gamma: Tensor
    """The discount, 0-dim, or `[K]` for K reward signals."""
    collector: Collector
    learner: Onlooker
    timers: Timers
    inference: bool
    exchange: Exchange | None = None
    """What joins players and trainers."""
    iterations_missed: int = field(default=0, init=False)
    """How many more were done than `state.iteration` says, which counts in iterations of the present size."""

    @property
    def iterations_done(self) -> int:
        """Those of other sizes, with other numbers of ranks or sub-environments, included."""
        return self.state.iteration + self.iterations_missed

    def estimate(self, rollout: Rollout) -> tuple[Tensor, Tensor]:
        """Advantages and value targets of a rollout, see `Estimator`.

        Raises:
            ValueError: The estimator returned something else.
        """
        what, shape = f"--estimator {type(self.estimator).__name__}", rollout.reward.shape
        with torch.no_grad(), self.fabric.autocast(), gathered(self.agent), calling(what):
            made = self.estimator(rollout, self.agent, self.gamma, self.args.gae_lambda)
        for name, tensor in zip(
            ("advantages", "returns"), checked_tuple(what, made, ("advantages", "returns")), strict=True
        ):
            if not isinstance(tensor, Tensor) or tensor.shape != shape or not tensor.is_floating_point():
                got = f"{tensor.dtype} {list(tensor.shape)}" if isinstance(tensor, Tensor) else kind_of(tensor)
                raise ValueError(f"{what}: the {name} must be a float tensor {list(shape)}, got {got}")
        advantage, returns = made
        return advantage.detach(), returns.detach()

    def try_estimator(self) -> None:
        """Tries a copy of the estimator on the empty rollout: a malformed one is one clear line at the start."""
        kept, self.estimator = self.estimator, copy.deepcopy(self.estimator)
        try:
            with isolate_rng():
                self.estimate(self.collector.rollout)
        finally:
            self.estimator = kept

    def all_names(self, local: Sums) -> Sums:
        """`local` with nothing under the names that only other ranks have; every rank calls it."""
        return local if self.exchange is None else self.exchange.all_names(local)

    # ------------------------------------------------------------------ saving and restoring

    def begin(self, resume: dict[str, Any] | None, weights: dict[str, Any] | None) -> bool:
        """Takes another run's weights, or goes on from a checkpoint; every rank calls it with the same.

        Args:
            resume: What `state_dict` gave.
            weights: The agent's of another run, under `agent`.

        Returns:
            Whether the run is exactly one without a break.

        Raises:
            CheckpointError: They are of another environment or agent.
        """
        if weights is not None:
            self.learner.load_weights(weights["agent"])
        if resume is None:
            return True
        exact = self._load(resume)
        if not exact and self.fabric.is_global_zero:
            warnings.warn("another number of ranks or sub-environments: equivalent, not bit-identical", stacklevel=2)
        return exact and bool(resume["exact"])

    def state_dict(self, ending: bool = False) -> dict[str, Any] | None:
        """Gathers the state of all ranks; every rank calls it.

        Args:
            ending: This run does not go on, so that environments which cannot be saved need no new episodes.

        Returns:
            The state on rank 0, None on the others.
        """
        shared = self.learner.state_dict()
        on_gpu = self.fabric.device.type == "cuda"
        mine = self.collector.state_dict(self.state.iteration, ending) | self.learner.rank_state_dict()
        mine["torch"] = torch.get_rng_state()
        mine["cuda"] = torch.cuda.get_rng_state(self.fabric.device) if on_gpu else None
        ranks = gather_to_rank_0(self.fabric, mine)
        if ranks is None:
            return None
        return {
            "fingerprint": fingerprint(self.collector.envs, self.agent),
            "world_size": self.fabric.world_size,
            "num_players": self.args.num_players,
            "iteration": self.iterations_done,
            "steps": self.state.steps,
            "metrics": dict(self.state.metrics),
            "ranks": ranks,
        } | (shared | self.hooks.state_dict())

    def _load(self, saved: dict[str, Any]) -> bool:
        """Goes on from `saved`.

        Returns:
            Whether exactly. With another number of ranks or sub-environments, weights, optimizer and counters are
            restored, but environments and random generators begin anew.
        """
        check_fits(saved["fingerprint"], fingerprint(self.collector.envs, self.agent))
        self.learner.load_state_dict(saved)
        self.hooks.load_state_dict(saved)
        state = self.state
        state.steps, state.metrics = saved["steps"], dict(saved["metrics"])
        left = math.ceil(max(0, self.args.total_timesteps - state.steps) / state.steps_per_iteration)
        state.iteration = state.iterations - left
        self.iterations_missed = saved["iteration"] - state.iteration
        mine = saved["ranks"][min(self.fabric.global_rank, len(saved["ranks"]) - 1)]
        same_size = len(mine["episodes"]["return"]) == self.collector.envs.num_envs
        theirs = (saved["world_size"], saved.get("num_players", 0))  # older ones have none
        if theirs != (self.fabric.world_size, self.args.num_players) or not same_size:
            self.collector.load_statistics(saved["ranks"][-1])  # trainers have none
            return False
        self.collector.load_state_dict(mine, state.iteration, saved["seconds"]["collect"] / max(1, state.iteration))
        self.learner.load_rank_state_dict(mine)
        torch.set_rng_state(mine["torch"])
        if mine["cuda"] is not None and self.fabric.device.type == "cuda":
            torch.cuda.set_rng_state(mine["cuda"], self.fabric.device)
        return True
