"""`Session`, the live objects of a run on this rank, which are saved as one state and restored exactly."""

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
from fabric_rl.base.state_schema import state_error_context
from fabric_rl.callback import TrainState
from fabric_rl.dry_run import error_context
from fabric_rl.hooks import Hooks
from fabric_rl.learning.gae import Estimator
from fabric_rl.learning.learner import FrozenLearner, check_generator_state, check_weights
from fabric_rl.metrics.timers import Timers
from fabric_rl.ranks.collectives import Sums, fill_missing_names, gather_object, raised_on_all_ranks
from fabric_rl.ranks.sharding import unsharded
from fabric_rl.rollouts.collectors import Collector
from fabric_rl.rollouts.players import PlayerTrainerLink
from fabric_rl.rollouts.rollout import Rollout
from fabric_rl.rollouts.step_checks import check_tuple, describe_type
from fabric_rl.runs.checkpoint import check_run_state
from fabric_rl.runs.folder import Run
from fabric_rl.runs.start_or_resume import check_fingerprint, fingerprint
from fabric_rl.signals.signals import IntrinsicRewards, add_value_heads
from fabric_rl.types import ActorCritic, CheckpointError


@dataclass
class Session:
    """Live objects of `train` on this rank: everything that the rest of the run depends on.

    After `state_dict`, this run continues exactly like one that loads the result: environments that can be saved are
    restored from their state here, too, as it lacks RocketSim's contact caches. Other environments, if allowed, start
    new episodes from the same seed.
    """

    fabric: Fabric
    args: TrainArgs
    run: Run | None
    """The run's folder; None if nothing is saved."""
    state: TrainState
    hooks: Hooks
    agent: ActorCritic
    """The bare module."""
    estimator: Estimator
    gamma: Tensor
    """The discount, 0-dim, or `[K]` for K reward signals."""
    collector: Collector
    learner: FrozenLearner
    timers: Timers
    signals: IntrinsicRewards
    inference: bool
    link: PlayerTrainerLink | None = None
    """Link between players and trainers; None without players."""
    settings: dict[str, Any] = field(default_factory=dict)
    """Settings of training, environment and agent by dotted names, for loggers."""
    iterations_missed: int = field(default=0, init=False)
    """Number of all iterations done minus `state.iteration`, which counts iterations of the current size."""

    @property
    def iterations_done(self) -> int:
        """Number of iterations, including those with other numbers of ranks or sub-environments."""
        return self.state.iteration + self.iterations_missed

    def estimate(self, rollout: Rollout) -> tuple[Tensor, Tensor]:
        """Return advantages, combined as in `combine_advantages`, and value targets of a rollout; see `Estimator`.

        Raises:
            ValueError: The result of the estimator is malformed.
        """
        what, shape = f"--estimator {type(self.estimator).__name__}", rollout.reward.shape
        with torch.no_grad(), self.fabric.autocast(), unsharded(self.agent), error_context(what):
            made = self.estimator(rollout, self.agent, self.gamma, self.args.gae_lambda)
        for name, tensor in zip(
            ("advantages", "returns"), check_tuple(what, made, ("advantages", "returns")), strict=True
        ):
            if not isinstance(tensor, Tensor) or tensor.shape != shape or not tensor.is_floating_point():
                got = f"{tensor.dtype} {list(tensor.shape)}" if isinstance(tensor, Tensor) else describe_type(tensor)
                raise ValueError(f"{what}: the {name} must be a float tensor {list(shape)}, got {got}")
        advantage, returns = made
        if self.args.combine_advantages == "mean" and advantage.dim() == 3:
            advantage = advantage.mean(dim=-1)
        return advantage.detach(), returns.detach()

    def dry_run_estimator(self) -> None:
        """Try a copy of the estimator on the empty rollout, so that a wrong result causes an error at the start."""
        kept, self.estimator = self.estimator, copy.deepcopy(self.estimator)
        try:
            with isolate_rng():
                self.estimate(self.collector.rollout)
        finally:
            self.estimator = kept

    def all_names(self, local: Sums) -> Sums:
        """Return `local` with empty sums for names that only other ranks have; every rank calls it."""
        differ = self.link is not None or getattr(self.state.env, "metrics_vary", False)
        return fill_missing_names(self.fabric, local) if differ else local

    # ------------------------------------------------------------------ saving and restoring

    def begin(self, resume: dict[str, Any] | None, weights: dict[str, Any] | None) -> bool:
        """Load another run's weights, or restore a checkpoint; every rank calls it with the same arguments.

        Args:
            resume: The state that `state_dict` returned.
            weights: `agent`: the weights of another run (if they have one value head, the heads of signals are new);
                `trained_with`: the first words of the error if these weights do not fit.

        Returns:
            True if the run continues exactly like an uninterrupted one.

        Raises:
            CheckpointError: The state or the weights belong to another environment or agent.
        """
        if weights is not None:
            agent = weights["agent"]
            try:
                self.learner.load_weights(add_value_heads(agent, self.agent) if self.signals.signals else agent)
            except CheckpointError as error:
                first = weights.get("trained_with")
                raise CheckpointError(f"{first} ({error})" if first else str(error)) from error
        if resume is None:
            return True
        try:
            differs = self.restore(resume)
        except ValueError as error:
            raise CheckpointError(str(error)) from error
        if differs and self.fabric.is_global_zero:
            warnings.warn(f"{'; '.join(differs)}: the run is equivalent, not bit-identical", stacklevel=2)
        return not differs and bool(resume["exact"])

    def state_dict(self, new_episodes: bool = False) -> dict[str, Any] | None:
        """Gather the state of all ranks; every rank calls it.

        Args:
            new_episodes: Environments that cannot be saved start new episodes, so that this run continues exactly like
                one that loads the state. False: only a run that loads the state starts new episodes.

        Returns:
            The state on rank 0, None on the others.
        """
        shared = self.learner.state_dict()
        on_gpu = self.fabric.device.type == "cuda"
        mine = self.collector.state_dict(self.state.iteration, new_episodes) | self.learner.rank_state_dict()
        mine["torch"] = torch.get_rng_state()
        mine["cuda"] = torch.cuda.get_rng_state(self.fabric.device) if on_gpu else None
        mine["signals"] = self.signals.rank_state_dict()
        ranks = gather_object(self.fabric, mine)
        if ranks is None:
            return None
        return {
            "fingerprint": fingerprint(self.collector.envs, self.agent),
            "world_size": self.fabric.world_size,
            "num_players": self.args.num_players,
            "num_threads": torch.get_num_threads(),
            "seed_scheme": self.state.seed_scheme,
            "iteration": self.iterations_done,
            "steps": self.state.steps,
            "metrics": dict(self.state.metrics),
            "signals": self.signals.state_dict(),
            "ranks": ranks,
        } | (shared | self.hooks.state_dict())

    def _check_is_of_this_run(self, saved: dict[str, Any]) -> None:
        """Raise ValueError, the same on all ranks, for the state of another environment or agent."""
        with state_error_context("the checkpoint", "this run"):
            check_run_state(saved)
        check_fingerprint(saved["fingerprint"], fingerprint(self.collector.envs, self.agent))
        had, has = [each["name"] for each in saved.get("signals", [])], [each.name for each in self.signals.signals]
        if had != has:  # each has a value head, in this order
            before, here = (", ".join(names) or "none" for names in (had, has))
            raise ValueError(
                f"--signals: the run had {before}, not {here}; use the same signals, in the same order, or leave "
                "--config out"
            )
        check_weights(saved["agent"], self.agent)

    def restore(self, saved: dict[str, Any]) -> list[str]:
        """Restore the state `saved` part by part; every rank calls it with the same state.

        With another number of ranks or sub-environments, weights, optimizer and counters are restored, but environments
        and random generators start again.

        Returns:
            Reasons why the run differs from an uninterrupted one; empty if it does not.

        Raises:
            ValueError: The state does not fit this run; the same on all ranks.
        """
        self._check_is_of_this_run(saved)
        rank, state = self.fabric.global_rank, self.state
        theirs = (saved["world_size"], saved.get("num_players", 0))  # older checkpoints have none
        same = theirs == (self.fabric.world_size, self.args.num_players)
        number = rank if same else len(saved["ranks"]) - 1  # the last rank plays, and only players have statistics
        mine = saved["ranks"][number]
        with state_error_context("the checkpoint", "this run"):
            differs = self.learner.load_state_dict(saved)
            self.signals.load_state_dict(saved.get("signals", []))
        if saved.get("num_threads", threads := torch.get_num_threads()) != threads:  # older checkpoints have none
            differs.append(f"--num_threads {threads} instead of {saved['num_threads']}")
        state.steps, state.metrics = saved["steps"], dict(saved["metrics"])
        state.seed_scheme = self.collector.seed_scheme = saved.get("seed_scheme", 1)
        left = math.ceil(max(0, self.args.total_timesteps - state.steps) / state.steps_per_iteration)
        state.iteration = state.iterations - left
        self.iterations_missed = saved["iteration"] - state.iteration
        with raised_on_all_ranks(self.fabric), state_error_context("the checkpoint", "this run"):
            self.hooks.load_state_dict(saved)
            if same and self.collector.has_same_size(mine):
                differs += self._load_rank(saved, mine)
            else:
                self.collector.load_statistics(mine)
                differs += ["a different number of ranks or sub-environments", *self.learner.describe_lost(mine)]
        everyone = gather_object(self.fabric, differs) or []
        return list(self.fabric.broadcast(list(dict.fromkeys(why for each in everyone for why in each))))

    def _load_rank(self, saved: dict[str, Any], mine: dict[str, Any]) -> list[str]:
        """Restore the state of this rank, and return reasons why the run differs from an uninterrupted one."""
        iteration = self.state.iteration
        differs = self.collector.load_state_dict(mine, iteration, saved["seconds"]["collect"] / max(1, iteration))
        differs += self.learner.load_rank_state_dict(mine, saved["iteration"])
        self.signals.load_rank_state_dict(mine.get("signals", {}))
        torch.set_rng_state(check_generator_state(mine["torch"]))
        if self.fabric.device.type == "cuda":
            if mine["cuda"] is None:
                return [*differs, "the GPU's random generator has no saved state"]
            torch.cuda.set_rng_state(mine["cuda"], self.fabric.device)
        return differs
