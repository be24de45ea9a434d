"""Learner, which updates the weights from batches; checks of saved weights, optimizers and generators."""

import math
import struct
from collections import deque
from collections.abc import Mapping
from typing import Any

import torch
from lightning import Fabric
from torch import Tensor, nn

from fabric_rl.base.seeding import stream_seed
from fabric_rl.base.state_schema import check_structure, load_child_state, state_error_context
from fabric_rl.callback import TrainState
from fabric_rl.learning.normalize import ObsNormalizer, all_reduce_moments, moments_of
from fabric_rl.learning.update import concat_batches, learn, oom_hint
from fabric_rl.metrics.timers import Timers
from fabric_rl.ranks.collectives import check_same_on_all_ranks
from fabric_rl.ranks.devices import is_small, single_thread
from fabric_rl.ranks.sharding import (
    copy_into,
    full_tensor,
    load_full_state_dict,
    local_shard,
    unsharded_class,
    whole_state,
)
from fabric_rl.schedules import Constant, Cosine, KLAdaptive, Linear
from fabric_rl.types import ActorCritic, CheckpointError, Minibatch, NonFiniteError


class FrozenLearner:
    """Learner that leaves the weights as they are, for a player (which receives them) or with `--inference`."""

    def __init__(self, state: TrainState, inference: bool = False) -> None:
        self._inference = inference
        self.fabric, self.agent, self.optimizer, self.args = state.fabric, state.agent, state.optimizer, state.args
        self._base_lrs = [group["lr"] for group in self.optimizer.param_groups]
        adapts = self.args.lr_schedule == "kl_adaptive"
        self._kl_adaptive = KLAdaptive(self.args.desired_kl, self._base_lrs) if adapts else None
        self._precision = self.fabric.strategy.precision
        self._normalizers = [part for part in self.agent.modules() if isinstance(part, ObsNormalizer)]
        self._before: dict[str, Tensor] | None = None

    def apply_schedules(self, progress: float, learning_rate: float | None, learning_rate_factor: float) -> None:
        """Set the agent's `progress` (0..1; 1 with `--inference`) and the learning rates, see `TrainState`."""
        self.agent.progress.fill_(1.0 if self._inference else progress)
        schedules = {"linear": Linear(1.0, 0.0), "cosine": Cosine(1.0, 0.0), "constant": Constant(1.0)}
        adaptive = self._kl_adaptive
        factor = schedules[self.args.lr_schedule](progress) if adaptive is None else adaptive.factor
        for group, initial in zip(self.optimizer.param_groups, self._base_lrs, strict=True):
            group["lr"] = (initial if learning_rate is None else learning_rate) * (factor * learning_rate_factor)

    def learn(self, batch: Minibatch, minibatch_size: int) -> dict[str, float]:
        """Do nothing, and return no metrics."""
        return {}

    @property
    def weights_before(self) -> dict[str, Tensor]:
        """This rank's weights, or the weights from before the last update if that update failed."""
        weights = self._before or dict(self.agent.named_parameters())
        return {name: local_shard(tensor.detach().clone()) for name, tensor in weights.items()}

    def state_dict(self) -> dict[str, Any]:
        """Return the state shared by all ranks; every rank must call this, but only rank 0 gets whole tensors."""
        keep, optimizer = self.fabric.is_global_zero, self.optimizer.state_dict()
        optimizer["state"] = dict(sorted(optimizer["state"].items()))  # else in the order of the first steps
        return {
            "agent": whole_state(self.agent.state_dict(), keep),
            "optimizer": whole_state(optimizer, keep),
            "precision": self._precision.state_dict(),
            "kl_adaptive": None if self._kl_adaptive is None else self._kl_adaptive.state_dict(),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> list[str]:
        """Restore the state that `state_dict` returned; every rank must call this with the same state.

        The optimizer keeps the settings of this run (learning rates, betas...), so that changed flags take effect.
        Return reasons why the run is not bit-identical to an uninterrupted one.
        """
        check_weights(state["agent"], self.agent)
        with state_error_context("the saved state of the optimizer"):
            check_optimizer(self.optimizer, state["optimizer"], "--agent")
        precise = _same_dtypes(self.agent.state_dict(), state["agent"])
        load_full_state_dict(self.agent, state["agent"])
        precise_optimizer, differs = self._load_optimizer(state["optimizer"]["state"])
        if not (precise and precise_optimizer):
            differs.insert(0, "weights with a different --precision")
        for name, part in (("precision", self._precision), ("kl_adaptive", self._kl_adaptive)):
            if state[name]:  # empty without a gradient scaler, None without this schedule
                if part is not None:
                    load_child_state(part, state[name], name)
            elif part is not None and part.state_dict():
                differs.append(f"{name} has no saved state")
        return differs

    def _load_optimizer(self, saved: Mapping[int, Mapping[str, Any]]) -> tuple[bool, list[str]]:
        """Load a checked state; return True if the dtypes are the same, and a message if anything is missing in it."""
        optimizer, precise = self.optimizer.optimizer, True
        parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
        own = optimizer.state_dict()["state"]
        for number, entry in own.items():
            if number in saved:
                precise &= _same_dtypes(entry, saved[number])
                entry |= {name: copy_into(value, saved[number][name]) for name, value in entry.items()}
            else:  # this parameter never had a gradient
                del optimizer.state[parameters[number]]
        missing = len(own.keys() - saved.keys()) if saved else 0  # empty before the first step
        lost = f"the optimizer has no saved state for {missing} of {len(own)} parameters"
        return precise, [lost] if missing else []

    def load_weights(self, weights: dict[str, Tensor]) -> None:
        """Load only the agent's weights and statistics; raise a CheckpointError if they do not fit."""
        check_weights(weights, self.agent)
        load_full_state_dict(self.agent, weights)

    def rank_state_dict(self) -> dict[str, Any]:
        """Return the state that only this rank has."""
        return {}

    def load_rank_state_dict(self, state: Mapping[str, Any], iterations: int) -> list[str]:
        """Restore the state of this rank after `iterations`; return reasons why the run is not bit-identical."""
        return []

    def describe_lost(self, state: Mapping[str, Any]) -> list[str]:
        """Describe the part of a `rank_state_dict` that is lost with another number of ranks or sub-environments."""
        return []


class Learner(FrozenLearner):
    """Learner for PPO: epochs of shuffled minibatches over the newest rollouts, see `fabric_rl.learn`."""

    def __init__(self, state: TrainState, peers: Fabric, timers: Timers, rollouts_kept: int) -> None:
        """Learn from the newest `rollouts_kept` rollouts; `peers` is the Fabric of the ranks that learn."""
        super().__init__(state)
        self._peers, self._model, self._timers = peers, state.model, timers
        self._shuffle = torch.Generator().manual_seed(stream_seed(self.args.seed, "minibatches", peers.global_rank))
        self._experience: deque[Minibatch] = deque(maxlen=rollouts_kept)

    def learn(self, batch: Minibatch, minibatch_size: int) -> dict[str, float]:
        """Learn from this rank's flat rollout and the older ones that are kept; return metrics as `ppo/<name>`.

        Raises:
            ValueError: The ranks have different numbers of steps.
            NonFiniteError: The loss, its gradient or a weight became NaN or infinite.
            NotEnoughMemoryError: There is not enough memory for a training step.
        """
        check_same_on_all_ranks(self._peers, {"steps to learn from": batch.returns.numel()})
        self._before = {name: p.detach().clone() for name, p in self.agent.named_parameters()}
        self._experience.append(batch if self._experience.maxlen == 1 else batch.map(torch.clone))
        advice = (
            f"use a smaller one (with --batch_size {self.args.batch_size or minibatch_size}, optimizer steps stay "
            "the same), or --callbacks+=fabric_rl.callbacks.AdaptiveBatchSize --callbacks.start 64, which finds the "
            "largest that fits"
        )
        named = oom_hint(self.fabric.device, f"--minibatch_size {minibatch_size}", advice)
        with named, single_thread(if_small=is_small(self.agent, minibatch_size)):
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
        for normalizer in self._normalizers:  # after learning, which needs the statistics used in collecting
            normalizer.update(batch.obs, self._peers)
        self._before = None
        algorithm = self.agent.algorithm
        losses[f"{algorithm}/explained_variance"] = explained_variance(batch, self._peers)
        losses[f"{algorithm}/learning_rate"] = self.optimizer.param_groups[0]["lr"]
        return losses

    def rank_state_dict(self) -> dict[str, Any]:
        """Return the kept rollouts and the shuffling generator's state."""
        kept = self._experience if self._experience.maxlen != 1 else ()
        return {"experience": [batch._asdict() for batch in kept], "shuffle": self._shuffle.get_state()}

    def load_rank_state_dict(self, state: Mapping[str, Any], iterations: int) -> list[str]:
        self._experience.clear()
        for fields in state["experience"]:
            self._experience.append(Minibatch(**fields).map(lambda x: x.to(self.fabric.device)))
        self._shuffle.set_state(check_generator_state(state["shuffle"]))
        kept = self._experience.maxlen or 1
        missing = min(kept, iterations) - len(self._experience)
        return [f"{missing} older rollouts were not saved"] if kept > 1 and missing > 0 else []


def check_weights(weights: Mapping[str, Tensor], agent: nn.Module) -> None:
    """Raise a CheckpointError unless the weights have the agent's names, shapes and dtypes, and are finite."""
    own = agent.state_dict()
    lines = [
        f"{name}: {_shape(weights, name)} in the checkpoint, {_shape(own, name)} in --agent"
        for name in dict.fromkeys((*own, *weights))
        if _shape(weights, name) != _shape(own, name)
    ]
    if lines:
        more = f" and {len(lines) - 3} more" if len(lines) > 3 else ""
        if len(lines) == len({*own, *weights}):
            more += "; they have no weights in common"
        raise CheckpointError(
            f"the checkpoint is of a different agent than {unsharded_class(agent).__name__} with these settings: "
            f"{'; '.join(lines[:3])}{more}"
        )
    try:
        for name, tensor in own.items():
            check_structure(weights[name], tensor, name)
    except ValueError as error:
        raise CheckpointError(
            f"the checkpoint's weights do not fit {unsharded_class(agent).__name__}: {error}"
        ) from error


def _shape(weights: Mapping[str, Tensor], name: str) -> str:
    if name not in weights:
        return "missing"
    return str(list(weights[name].shape)) if isinstance(weights[name], Tensor) else f"a {type(weights[name]).__name__}"


def check_generator_state(saved: Any) -> Any:  # noqa: ANN401 - whatever was saved
    """Return the saved state of a CPU generator; raise a ValueError unless torch can safely load it."""
    where, generator = "the state of a random generator", torch.Generator()
    new = generator.get_state()
    check_structure(saved, new, where)
    with state_error_context(where):
        generator.set_state(saved)
    if not torch.equal(generator.get_state(), saved) or (_is_consistent(new) and not _is_consistent(saved)):
        raise ValueError(f"{where} is not a valid generator state")
    return saved


def _is_consistent(state: Tensor) -> bool:
    """Return True if both positions of a Mersenne Twister agree; otherwise torch would read out of bounds."""
    _, left, _, following = struct.unpack_from("<QiiQ", bytes(state[:24].tolist()))  # seed, left, flag, next
    return left + following == 625 or (left, following) == (1, 0)  # the latter before the first number


def check_optimizer(optimizer: Any, saved: Mapping[str, Any], owner: str) -> None:  # noqa: ANN401 - Fabric's wrapper
    """Raise a ValueError if a saved state does not fit the optimizer of `owner`.

    To find out which state the optimizer keeps, this makes a step with zero gradients; load the weights afterwards.
    """
    for group in optimizer.optimizer.param_groups:
        for parameter in group["params"]:
            parameter.grad = torch.zeros_like(parameter) if parameter.requires_grad else None
    optimizer.optimizer.step()
    optimizer.optimizer.zero_grad()
    own = optimizer.optimizer.state_dict()
    if [group["params"] for group in own["param_groups"]] != [group["params"] for group in saved["param_groups"]]:
        raise ValueError(f"the optimizer has different parameter groups from that of {owner}")
    check_structure(saved["state"], own["state"], f"the state of the optimizer of {owner}")


def _same_dtypes(own: Mapping[str, Any], saved: Mapping[str, Any]) -> bool:
    return all(saved[name].dtype == value.dtype for name, value in own.items() if isinstance(value, Tensor))


def load_optimizer(optimizer: Any, saved: Mapping[str, Any], owner: str) -> None:  # noqa: ANN401 - Fabric's wrapper
    """Restore an optimizer's saved state, but not its settings; see `check_optimizer`."""
    with state_error_context(f"the optimizer of {owner}"):
        check_optimizer(optimizer, saved, owner)
        groups = optimizer.optimizer.state_dict()["param_groups"]
        optimizer.optimizer.load_state_dict({"state": saved["state"], "param_groups": groups})


def explained_variance(batch: Minibatch, peers: Fabric | None = None) -> float:
    """Return 1 - Var(returns - values) / Var(returns) of sums over the reward signals, over the steps of all peers."""
    returns, values = batch.returns, batch.value
    if returns.dim() > batch.advantage.dim():
        returns, values = returns.sum(dim=-1), values.sum(dim=-1)
    samples = torch.stack((returns, returns - values), dim=-1)
    of_returns, of_errors = all_reduce_moments(moments_of(samples, dims=1), peers).m2.tolist()
    return 1 - of_errors / of_returns if of_returns > 0 else 0.0


def _distances(agent: ActorCritic, before: Mapping[str, Tensor]) -> dict[str, float]:
    """Return the L2 norms of the changes of all parameters and of each part of the agent (`actor`, `critic`...)."""
    squares: dict[str, list[Tensor]] = {}
    for name, p in agent.named_parameters():
        squares.setdefault(name.partition(".")[0], []).append((p.detach() - before[name]).square().sum())
    parts = torch.stack([full_tensor(torch.stack(each).sum()) for each in squares.values()])
    distance, *own = torch.cat((parts.sum()[None], parts)).sqrt().tolist()
    if not math.isfinite(distance):
        raise NonFiniteError(f"the weights became {distance} in the last minibatch")
    whole = f"{agent.algorithm}/update_magnitude"
    names = (f"{whole}_{name}" for name in squares)
    return {whole: distance} | (dict(zip(names, own, strict=True)) if len(own) > 1 else {})
