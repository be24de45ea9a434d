"""The reward signals of a run: they add rewards to a rollout, then learn from it."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import torch
from gymnasium.vector import VectorEnv
from lightning import Fabric
from lightning.pytorch.utilities.seed import isolate_rng
from torch import Tensor
from torch.nn.parallel import DistributedDataParallel

from fabric_rl.args import TrainArgs
from fabric_rl.base.seeding import stream_seed
from fabric_rl.base.state_schema import check_structure, load_child_state
from fabric_rl.learning.learner import check_generator_state, load_optimizer
from fabric_rl.metrics.log import logger
from fabric_rl.ranks.collectives import all_reduce_sums, metric_means
from fabric_rl.ranks.devices import is_small, single_thread
from fabric_rl.rollouts.rollout import Rollout
from fabric_rl.signals.base import RewardSignal, SignalFactory, Steps
from fabric_rl.types import ActorCritic, NonFiniteError

_AT_ONCE = 2**22
"""Maximum number of observation entries in one call of a signal."""


def build_signals(factories: Sequence[SignalFactory], envs: VectorEnv) -> list[RewardSignal]:
    """Build the signals for an environment, with unique names."""
    spaces = (envs.single_observation_space, envs.single_action_space)
    try:
        signals = [factory(*spaces) for factory in factories]
    except ValueError as error:
        raise ValueError(f"--signals: {error}") from error
    for number, signal in enumerate(signals):
        if not isinstance(signal, RewardSignal):
            raise TypeError(f"--signals {type(signal).__name__} is not a fabric_rl.signals.RewardSignal")
        taken, name = {other.name for other in signals[:number]}, signal.name
        names = (name, *(f"{name}_{count}" for count in range(2, number + 2)))
        signal.name = next(each for each in names if each not in taken)
    return signals


def add_value_heads(weights: Mapping[str, Any], agent: ActorCritic) -> dict[str, Any]:
    """Expand weights that have a single value head to all value heads of `agent`.

    A head has one row, or with critics of discrete actions one for each action. The additional heads keep the weights
    that `agent` has. Weights that do not fit in this way are returned unchanged.
    """
    found, own = dict(weights), agent.state_dict()
    for name in found.keys() & own.keys():
        old, new = found[name], own[name]
        if isinstance(old, Tensor) and old.dim() and new.shape == (agent.value_heads * len(old), *old.shape[1:]):
            found[name] = torch.cat([old.to(new), new[len(old) :]])
    if any(found[name] is not weights[name] for name in weights):
        logger.info("the weights have one value head of %d; those of the signals start untrained", agent.value_heads)
    return found


class IntrinsicRewards:
    """The reward signals of this rank, whose rewards are the last columns of a rollout's rewards.

    Fabric sets up each signal like the agent, so DDP averages its gradients over the ranks. Random numbers (for the
    order of steps and in signals) come from a separate generator on each rank. On a rank that does not learn (a
    player, or with `--inference`), the signals' columns stay zero.
    """

    def __init__(
        self,
        signals: Sequence[RewardSignal],
        args: TrainArgs,
        fabric: Fabric,
        peers: Fabric,
        num_envs: int,
        learns: bool = True,
    ) -> None:
        """Set up the modules, with the same weights on all ranks; `peers` is the Fabric of the ranks that learn."""
        self.signals, self.args, self._peers = signals, args, peers
        self._draws = torch.Generator().manual_seed(stream_seed(args.seed, "signals", peers.global_rank))
        self._running = torch.zeros(len(signals), num_envs, dtype=torch.float64)
        self._learning: list[tuple[RewardSignal, Any, Any]] = []
        for signal in signals if learns else ():
            trained = [p for p in signal.parameters() if p.requires_grad]
            model, optimizer = fabric.setup(signal, torch.optim.Adam(trained, lr=signal.learning_rate))
            for part in model.modules():
                if isinstance(part, DistributedDataParallel):
                    part.broadcast_buffers = False
            self._learning.append((signal, model, optimizer))
        self._figures: dict[str, float] = {}
        self._prepared = False

    @property
    def learns(self) -> bool:
        """True if there are signals that learn, and add rewards, on this rank."""
        return bool(self._learning)

    @torch.no_grad()
    def add_intrinsic_rewards(self, rollout: Rollout) -> None:
        """Write the signals' rewards into a collected rollout: 0 in the first one, which has no statistics yet."""
        if self.args.extrinsic_strength != 1:
            rollout.env_reward.mul_(self.args.extrinsic_strength)
        if not self.learns:
            return
        self._prepare_ddp(rollout)
        steps, self._figures = _steps(rollout), {}
        for number, signal in enumerate(self.signals):
            column = rollout.reward[..., number - len(self.signals)]
            if not signal.normalizer.count:
                column.zero_()
                continue
            raw = _raw_rewards(signal, steps).view(column.shape)
            column.copy_(signal.strength * (self._scaled(number, raw) if signal.scales else raw))
            self._figures |= {f"{signal.name}/reward": float(column.mean()), f"{signal.name}/raw": float(raw.mean())}

    @torch.no_grad()
    def rewards(self, steps: Steps) -> Tensor:
        """Return the current rewards `[B, S]` of the S signals for the steps, with current standard deviations."""
        raw = [(signal, _raw_rewards(signal, steps)) for signal in self.signals]
        return torch.stack([s.strength * (s.scaled(paid) if s.scales else paid) for s, paid in raw], dim=1)

    def _scaled(self, number: int, raw: Tensor) -> Tensor:
        """Add rewards `[T, N]` to the statistics of their discounted sums, and return them scaled."""
        signal, running, sums = self.signals[number], self._running[number], []
        for reward in raw.cpu().double():
            running.mul_(signal.gamma).add_(reward)
            sums.append(running.clone())
        signal.returns.update(torch.stack(sums), self._peers)
        return signal.scaled(raw)

    def learn(self, rollout: Rollout, minibatch_size: int) -> dict[str, float]:
        """Let all signals learn from this rank's rollout; return losses and other metrics as `<signal>/<name>`.

        `minibatch_size` is the size for the policy. The rollout has the same size on all ranks that learn.
        """
        if not self.learns:
            return {}
        steps = _steps(rollout)
        sizes = [min(signal.minibatch_size or minibatch_size, len(steps.obs)) for signal in self.signals]
        passes = [self._passes(signal, steps, size) for signal, size in zip(self.signals, sizes, strict=True)]
        return self.learn_from(steps, passes, sizes)

    def learn_from(
        self, newest: Steps, minibatches: Sequence[Iterable[Steps]], sizes: Sequence[int]
    ) -> dict[str, float]:
        """Let all signals learn as in `learn`, but from the given minibatches.

        Args:
            newest: All steps of this rank's newest rollout, for the statistics.
            minibatches: Minibatches of each signal, the same number on every rank.
            sizes: Minibatch size of each signal.
        """
        figures = self._figures
        for (signal, model, optimizer), its_own, size in zip(self._learning, minibatches, sizes, strict=True):
            with single_thread(if_small=is_small(signal, size)):
                said = signal.update_statistics(newest, self._peers)
                said |= self._updates(signal, model, optimizer, its_own)
            figures |= {f"{signal.name}/{name}": value for name, value in said.items()}
        return figures

    def _passes(self, signal: RewardSignal, steps: Steps, size: int) -> Iterator[Steps]:
        """Yield the shuffled minibatches of all passes."""
        for _ in range(signal.epochs or self.args.update_epochs):
            order = torch.randperm(len(steps.obs), generator=self._draws).to(steps.obs.device)
            for indices in order[: len(order) // size * size].view(-1, size):
                yield steps.map(indices)

    def _updates(
        self,
        signal: RewardSignal,
        model: Any,  # noqa: ANN401
        optimizer: Any,  # noqa: ANN401
        minibatches: Iterable[Steps],
    ) -> dict[str, float]:
        """Make an optimizer step for each minibatch; return the means of statistics over minibatches and ranks."""
        rows: list[Tensor] = []
        names: list[str] = []
        for steps in minibatches:
            loss, stats = model(signal.prepared(steps, self._draws))
            self._peers.backward(loss)
            optimizer.step()
            optimizer.zero_grad()
            stats = {"loss": loss.detach(), **stats}
            names = list(stats)
            rows.append(torch.stack([figure.float() for figure in stats.values()]))
        if not rows:
            return {}
        own = dict(zip(names, torch.stack(rows).mean(dim=0).tolist(), strict=True))
        found = metric_means(all_reduce_sums(self._peers, {name: (value, 1.0) for name, value in own.items()}))
        bad = next((name for name, value in found.items() if not math.isfinite(value)), None)
        if bad is not None:
            raise NonFiniteError(f"--signals {type(signal).__name__}: the {bad} became {found[bad]}")
        signal.after_learning(found, len(rows))
        return found

    def _prepare_ddp(self, rollout: Rollout) -> None:
        """Make a backward pass before the first step, after which DDP orders its buckets (see `session.build`)."""
        if self._prepared or self._peers.world_size == 1:
            return
        self._prepared = True
        steps, draws = _steps(rollout).map(slice(0, 2)), torch.Generator()
        for signal, model, optimizer in self._learning:
            with isolate_rng(), torch.enable_grad():
                self._peers.backward(model(signal.prepared(steps, draws))[0])
            optimizer.zero_grad()

    def state_dict(self) -> list[dict[str, Any]]:
        """Return the state shared by all ranks that learn."""
        return [
            {"name": signal.name, "module": signal.state_dict(), "optimizer": optimizer.state_dict()}
            for signal, _, optimizer in self._learning
        ]

    def rank_state_dict(self) -> dict[str, Any]:
        """Return the state of this rank."""
        return {"running": self._running.clone(), "draws": self._draws.get_state()} if self.learns else {}

    def load_state_dict(self, state: list[dict[str, Any]]) -> None:
        """Restore the state that `state_dict` returned, of the same signals in the same order, where they learn."""
        if not self.learns:
            return
        for (signal, _, optimizer), saved in zip(self._learning, state, strict=True):
            load_child_state(signal, saved["module"], f"the saved state of the signal {signal.name}")
            load_optimizer(optimizer, saved["optimizer"], f"the signal {signal.name}")

    def load_rank_state_dict(self, state: dict[str, Any]) -> None:
        """Restore the state that `rank_state_dict` returned."""
        if state and self.learns:
            check_structure(state["running"], self._running, "the running returns of the signals")
            self._running.copy_(state["running"])
            self._draws.set_state(check_generator_state(state["draws"]))


def _raw_rewards(signal: RewardSignal, steps: Steps) -> Tensor:
    """Compute a signal's unscaled rewards in chunks, `[B]` float32; raise a NonFiniteError if any is not finite."""
    rows = max(1, _AT_ONCE // max(1, steps.obs[0].numel()))
    with single_thread(if_small=is_small(signal, len(steps.obs))):
        parts = [signal.reward(steps.map(slice(at, at + rows))) for at in range(0, len(steps.obs), rows)]
    raw = torch.cat(parts).float()
    if not raw.isfinite().all():
        raise NonFiniteError(f"--signals {type(signal).__name__}: a reward became NaN or infinite")
    return raw


def _steps(rollout: Rollout) -> Steps:
    """Return all steps of a rollout, `[T * N, ...]`."""
    assert rollout.next_obs is not None  # a rollout with signals has it
    return Steps(*(x.flatten(0, 1) for x in (rollout.obs[:-1], rollout.action, rollout.next_obs)))
