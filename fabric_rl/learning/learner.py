"""Learner: turns batches into new weights, and owns all that this takes."""

import math
from collections import deque
from collections.abc import Mapping
from typing import Any

import torch
from lightning import Fabric
from torch import Tensor

from fabric_rl.base.state_schema import check_like, fitting, load_part
from fabric_rl.callback import TrainState
from fabric_rl.learning.normalize import ObsNormalizer, all_reduce_moments, moments_of
from fabric_rl.learning.update import concat_batches, learn, memory_named
from fabric_rl.learning.weights import check_weights, generator_state
from fabric_rl.metrics.timers import Timers
from fabric_rl.ranks.collectives import check_same_on_all_ranks
from fabric_rl.ranks.devices import is_small, one_thread
from fabric_rl.ranks.sharding import load_weights, shard_of, take_over, whole, whole_state
from fabric_rl.schedules import Cosine, KLAdaptive, Linear, Schedule
from fabric_rl.types import ActorCritic, Minibatch, NonFiniteError


class Onlooker:
    """Has the agent's weights and learns nothing: of a player, which is given them, and of a run that only plays."""

    def __init__(self, state: TrainState) -> None:
        self.fabric, self.agent, self.optimizer, self.args = state.fabric, state.agent, state.optimizer, state.args
        self._base_lrs = [group["lr"] for group in self.optimizer.param_groups]
        adapts = self.args.lr_schedule == "kl_adaptive"
        self._kl_adaptive = KLAdaptive(self.args.desired_kl, self._base_lrs) if adapts else None
        self._precision = self.fabric.strategy.precision
        self._before: dict[str, Tensor] | None = None

    def apply_schedules(self, progress: float, learning_rate: float | None, learning_rate_factor: float) -> None:
        """Sets the agent's `progress` and the learning rates.

        Args:
            progress: Share of the run that is done, 0..1.
            learning_rate: The initial one of all parameters in place of the optimizer's own; None keeps those.
            learning_rate_factor: Multiplies all of them.
        """
        self.agent.progress.fill_(progress)
        factor = self._factor(progress) * learning_rate_factor
        rates = self._base_lrs if learning_rate is None else [learning_rate] * len(self._base_lrs)
        for group, lr in zip(self.optimizer.param_groups, rates, strict=True):
            group["lr"] = lr * factor

    def _factor(self, progress: float) -> float:
        if self._kl_adaptive is not None:
            return self._kl_adaptive.factor
        if self.args.lr_schedule == "constant":
            return 1.0
        schedule: Schedule = Linear(1.0, 0.0) if self.args.lr_schedule == "linear" else Cosine(1.0, 0.0)
        return schedule(progress)

    def learn(self, batch: Minibatch, minibatch_size: int) -> dict[str, float]:
        """Nothing."""
        return {}

    @property
    def weights_before(self) -> dict[str, Tensor]:
        """This rank's weights before the last update, if that has failed; else as they are."""
        weights = self._before or dict(self.agent.named_parameters())
        return {name: shard_of(tensor.detach().clone()) for name, tensor in weights.items()}

    def state_dict(self) -> dict[str, Any]:
        """Return the state that all ranks share; every rank calls this. Weights and optimizer are whole on rank 0."""
        keep = self.fabric.is_global_zero
        return {
            "agent": whole_state(self.agent.state_dict(), keep),
            "optimizer": whole_state(self.optimizer.state_dict(), keep),
            "precision": self._precision.state_dict(),
            "kl_adaptive": None if self._kl_adaptive is None else self._kl_adaptive.state_dict(),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> list[str]:
        """Goes on from what `state_dict` gave; every rank calls it with the same.

        Settings of the optimizer (learning rates, betas...) stay those of this run, so that changed flags take effect.

        Returns:
            What makes the run another one than without a break.

        Raises:
            ValueError: It is of another agent or optimizer.
        """
        check_weights(state["agent"], self.agent)
        with fitting("what was saved of the optimizer"):
            check_optimizer(self.optimizer, state["optimizer"], "--agent")
        precise = _same_dtypes(self.agent.state_dict(), state["agent"])
        load_weights(self.agent, state["agent"])
        precise_optimizer, differs = self._load_optimizer(state["optimizer"]["state"])
        if not (precise and precise_optimizer):
            differs.insert(0, "weights of another --precision")
        for name, part in (("precision", self._precision), ("kl_adaptive", self._kl_adaptive)):
            if state[name]:  # empty without a gradient scaler, None without that schedule
                if part is not None:
                    load_part(part, state[name], name)
            elif part is not None and part.state_dict():
                differs.append(f"nothing was saved of {name}")
        return differs

    def _load_optimizer(self, saved: Mapping[int, Mapping[str, Any]]) -> tuple[bool, list[str]]:
        """Load what `check_optimizer` has checked, by the parameters' numbers.

        Returns:
            True if the saved tensors have the same dtypes; and what was not saved.
        """
        optimizer, precise = self.optimizer.optimizer, True
        parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
        own = optimizer.state_dict()["state"]
        for number, entry in own.items():
            if number in saved:
                precise &= _same_dtypes(entry, saved[number])
                entry |= {name: take_over(value, saved[number][name]) for name, value in entry.items()}
            else:  # its gradient was never asked for
                del optimizer.state[parameters[number]]
        missing = len(own.keys() - saved.keys()) if saved else 0  # empty before the first step
        lost = f"nothing was saved of the optimizer's memory of {missing} of {len(own)} parameters"
        return precise, [lost] if missing else []

    def load_weights(self, weights: dict[str, Tensor]) -> None:
        """Takes the agent's weights and statistics only.

        Raises:
            CheckpointError: They are of another architecture; the message sets both sides beside each other.
        """
        check_weights(weights, self.agent)
        load_weights(self.agent, weights)

    def rank_state_dict(self) -> dict[str, Any]:
        """Return the state of this rank alone."""
        return {}

    def load_rank_state_dict(self, state: Mapping[str, Any], iterations: int) -> list[str]:
        """Goes on from what `rank_state_dict` gave after so many; returns what makes the run another one."""
        return []

    def lost(self, state: Mapping[str, Any]) -> list[str]:
        """Describe what of a `rank_state_dict` is lost with another number of ranks or sub-environments."""
        return []


class Learner(Onlooker):
    """Learns with PPO's scheme: epochs of shuffled minibatches over the newest rollouts, see `fabric_rl.learn`."""

    def __init__(self, state: TrainState, peers: Fabric, timers: Timers, rollouts_kept: int) -> None:
        """Takes the parts.

        Args:
            state: The run's agent, optimizer and settings.
            peers: The Fabric of the ranks that learn, too.
            timers: Measures.
            rollouts_kept: How many of the newest rollouts are learned from.
        """
        super().__init__(state)
        self._peers, self._model, self._timers = peers, state.model, timers
        self._shuffle = torch.Generator().manual_seed(self.args.seed + peers.global_rank)
        self._experience: deque[Minibatch] = deque(maxlen=rollouts_kept)
        self._normalizers = [part for part in self.agent.modules() if isinstance(part, ObsNormalizer)]

    def learn(self, batch: Minibatch, minibatch_size: int) -> dict[str, float]:
        """Learns from a batch and the ones before it that are kept; every rank brings as many steps.

        Args:
            batch: The flat rollout of this rank, see `Rollout.flat`.
            minibatch_size: Steps that go through the networks at once.

        Returns:
            Losses and what else there is to say, as `ppo/<name>`.

        Raises:
            ValueError: The ranks bring different numbers of steps.
            NonFiniteError: The loss, its gradient or a weight became NaN or infinite.
            TooLittleMemoryError: A training step needs more memory than there is.
        """
        check_same_on_all_ranks(self._peers, {"steps to learn from": batch.returns.numel()})
        self._before = {name: p.detach().clone() for name, p in self.agent.named_parameters()}
        self._experience.append(batch if self._experience.maxlen == 1 else batch.map(torch.clone))
        advice = (
            f"take a smaller one (with --batch_size {self.args.batch_size or minibatch_size} optimizer steps stay as "
            "they are), or --callbacks+=fabric_rl.callbacks.AdaptiveBatchSize, which finds one that fits"
        )
        named = memory_named(self.fabric.device, f"--minibatch_size {minibatch_size}", advice)
        with named, one_thread(if_small=is_small(self.agent, minibatch_size)):
            losses = learn(
                self._peers,
                self._model,
                self.optimizer,
                concat_batches(self._experience),
                self.args,
                minibatch_size,
                self._shuffle,
                self._kl_adaptive,
                self._timers,
            )
        losses |= _distances(self.agent, self._before)
        for normalizer in self._normalizers:  # after learning: the policy that collected is the one that learned
            normalizer.update(batch.obs, self._peers)
        self._before = None
        losses["ppo/explained_variance"] = explained_variance(batch, self._peers)
        losses["ppo/learning_rate"] = self.optimizer.param_groups[0]["lr"]
        return losses

    def rank_state_dict(self) -> dict[str, Any]:
        """The rollouts that are kept, and the shuffling generator."""
        kept = self._experience if self._experience.maxlen != 1 else ()
        return {"experience": [batch._asdict() for batch in kept], "shuffle": self._shuffle.get_state()}

    def load_rank_state_dict(self, state: Mapping[str, Any], iterations: int) -> list[str]:
        self._experience.clear()
        for fields in state["experience"]:
            self._experience.append(Minibatch(**fields).map(lambda x: x.to(self.fabric.device)))
        self._shuffle.set_state(generator_state(state["shuffle"]))
        kept = self._experience.maxlen or 1
        missing = min(kept, iterations) - len(self._experience)
        return [f"nothing was saved of {missing} older rollouts"] if kept > 1 and missing > 0 else []


def check_optimizer(optimizer: Any, saved: Mapping[str, Any], owner: str) -> None:  # noqa: ANN401 - Fabric's wrapper
    """Checks what an optimizer's `state_dict` gave; raises ValueError for that of another one than `owner` has.

    It makes a step without gradients, which says what it keeps; weights have to be loaded afterwards.
    """
    for group in optimizer.optimizer.param_groups:
        for parameter in group["params"]:
            parameter.grad = torch.zeros_like(parameter) if parameter.requires_grad else None
    optimizer.optimizer.step()
    optimizer.optimizer.zero_grad()
    own = optimizer.optimizer.state_dict()
    if [group["params"] for group in own["param_groups"]] != [group["params"] for group in saved["param_groups"]]:
        raise ValueError(f"the optimizer has other groups of parameters than that of {owner}")
    check_like(saved["state"], own["state"], f"the state of the optimizer of {owner}")


def _same_dtypes(own: Mapping[str, Any], saved: Mapping[str, Any]) -> bool:
    return all(saved[name].dtype == value.dtype for name, value in own.items() if isinstance(value, Tensor))


def load_optimizer(optimizer: Any, saved: Mapping[str, Any], owner: str) -> None:  # noqa: ANN401 - Fabric's wrapper
    """Goes on from what an optimizer's `state_dict` gave, with the settings of this one; see `check_optimizer`."""
    with fitting(f"the optimizer of {owner}"):
        check_optimizer(optimizer, saved, owner)
        groups = optimizer.optimizer.state_dict()["param_groups"]
        optimizer.optimizer.load_state_dict({"state": saved["state"], "param_groups": groups})


def explained_variance(batch: Minibatch, peers: Fabric | None = None) -> float:
    """1 - Var(returns - values) / Var(returns), of the sums over the reward signals and of the steps of all peers."""
    returns, values = batch.returns, batch.value
    if returns.dim() > batch.advantage.dim():
        returns, values = returns.sum(dim=-1), values.sum(dim=-1)
    samples = torch.stack((returns, returns - values), dim=-1)
    of_returns, of_errors = all_reduce_moments(moments_of(samples, dims=1), peers).m2.tolist()
    return 1 - of_errors / of_returns if of_returns > 0 else 0.0


def _distances(agent: ActorCritic, before: Mapping[str, Tensor]) -> dict[str, float]:
    """L2 norms of the change of all parameters, and of those of each part of the agent (`actor`, `critic`...).

    Raises:
        NonFiniteError: A parameter became NaN or infinite.
    """
    squares: dict[str, list[Tensor]] = {}
    for name, p in agent.named_parameters():
        squares.setdefault(name.partition(".")[0], []).append((p.detach() - before[name]).square().sum())
    parts = torch.stack([whole(torch.stack(each).sum()) for each in squares.values()])
    distance, *own = torch.cat((parts.sum()[None], parts)).sqrt().tolist()
    if not math.isfinite(distance):
        raise NonFiniteError(f"the weights became {distance} in the last minibatch")
    names = (f"ppo/update_magnitude_{name}" for name in squares)
    return {"ppo/update_magnitude": distance} | (dict(zip(names, own, strict=True)) if len(own) > 1 else {})
