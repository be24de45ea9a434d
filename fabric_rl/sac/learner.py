"""ReplayLearner: adds rollouts to a replay buffer, and learns from minibatches sampled there."""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from fabric_rl.args import SACArgs
from fabric_rl.base.seeding import stream_seed
from fabric_rl.base.state_schema import state_error_context
from fabric_rl.base.trajectory import Trajectory
from fabric_rl.callback import TrainState
from fabric_rl.learning.learner import FrozenLearner, check_generator_state
from fabric_rl.learning.update import clip_gradients
from fabric_rl.metrics.timers import Timers
from fabric_rl.ranks.collectives import raised_on_all_ranks, waits_for_all_gradients
from fabric_rl.ranks.devices import is_small, single_thread
from fabric_rl.ranks.sharding import is_sharded
from fabric_rl.rollouts.rollout import Rollout
from fabric_rl.sac.replay import ReplayBuffer, concat_sequences, demonstration_buffer
from fabric_rl.signals.base import Steps
from fabric_rl.signals.signals import IntrinsicRewards
from fabric_rl.types import Minibatch, NonFiniteError, OffPolicyAgent, SettingError, Transitions, learning_parts


class ReplayLearner(FrozenLearner):
    """Learner from `num_update` minibatches after each rollout; ranks have separate buffers and average gradients."""

    agent: OffPolicyAgent

    def __init__(
        self,
        state: TrainState,
        timers: Timers,
        sac: SACArgs,
        rollout: Rollout,
        gamma: Tensor,
        signals: IntrinsicRewards,
        demonstrations: Sequence[Trajectory],
    ) -> None:
        """Allocate the buffers; raise a ValueError if they do not fit, or if the agent is sharded."""
        super().__init__(state)
        fabric, agent, args = self.fabric, self.agent, self.args
        if is_sharded(agent):
            raise ValueError("--strategy fsdp: agents that learn from replayed steps cannot be sharded; use ddp")
        self._model, self._sac, self._timers = state.model, sac, timers
        self._draws = torch.Generator().manual_seed(stream_seed(args.seed, "replay", fabric.global_rank))
        self._restored: dict[str, Any] = {}
        """The buffer in the checkpoint that the run resumes from."""
        like = rollout.flat(rollout.reward)
        self._signals = signals if signals.learns else None
        kinds = (self._draws, sac.buffer_folder, self._signals is not None)
        with raised_on_all_ranks(fabric):  # they share a disk
            self.replay = ReplayBuffer(sac.buffer_size, like, rollout.num_envs, *kinds, sac.per_alpha)
            self._demonstrations = (
                demonstration_buffer(demonstrations, args.extrinsic_strength, like, *kinds) if demonstrations else None
            )
        sequence = agent.burn_in + agent.sequence_length
        if self._demonstrations is not None and len(self._demonstrations) < sequence:
            raise ValueError(
                f"--demonstrations: {len(self._demonstrations)} steps are too few for a sequence of --agent.burn_in "
                f"{agent.burn_in} plus sequence_length {agent.sequence_length}; add files"
            )
        self._least = max(sac.buffer_init_steps, sequence * rollout.num_envs * fabric.world_size)
        self._return_settings = (sac.n_step, gamma, rollout.episodic, self._signals.rewards if self._signals else None)
        self._weights: list[Tensor] = list(agent.parameters())
        parts = learning_parts(agent)
        self._others: dict[str | None, list[Tensor]] = {  # what learns in the other parts
            name: [p for other, theirs in parts.items() if other != name for p in theirs] for name in parts
        } or {None: []}
        self._copies = {name: p.detach().clone() for name, p in agent.named_parameters()}
        self._small = is_small(agent, args.batch_size or 1)

    def learn(self, batch: Minibatch, minibatch_size: int) -> dict[str, float]:
        """Add a rollout to the buffer; learn if the buffers have `buffer_init_steps` steps in all and a sequence each.

        Return the mean losses and other metrics as `<algorithm>/<name>`, or no metrics if it did not learn.

        Raises:
            ValueError: A callback changed the size of the batch or of the minibatches.
            NonFiniteError: The loss or its gradient became NaN or infinite.
        """
        if minibatch_size != self.args.batch_size:
            raise ValueError(
                "--callbacks: SAC does not divide batches; leave out the callback that changes the minibatch size"
            )
        self._restored.clear()  # frees memory; until now, the checkpoint could be written again, as a milestone
        self.replay.add(batch)
        losses: dict[str, float] = {}
        if len(self.replay) * self.fabric.world_size >= self._least:
            with torch.no_grad():
                torch._foreach_copy_(list(self._copies.values()), self._weights)
            self._before = self._copies
            with single_thread(if_small=self._small):
                losses = self._learn_signals(batch, minibatch_size) | self._updates(minibatch_size)
            self._before = None
        else:
            losses = self._learn_signals(batch, 0)
        for normalizer in self._normalizers:
            normalizer.update(batch.obs, self.fabric)
        return losses

    def _updates(self, minibatch_size: int) -> dict[str, float]:
        """Make the updates of an iteration, in proportion to the number of ranks that collect."""
        rows: list[dict[str, Tensor]] = []
        for _ in range(self._sac.num_update * self.fabric.world_size):
            with self._timers("draw"):
                drawn, minibatch = self._minibatch(minibatch_size)
            stats: dict[str, Tensor] = {"loss": torch.zeros((), device=self.fabric.device)}
            for part, others in self._others.items():
                with self._timers("forward"), self.fabric.autocast():
                    loss, told = self._model.training_step(minibatch._replace(part=part))
                stats |= told | {"loss": stats["loss"] + loss.detach()}
                if not loss.requires_grad:
                    if part is None:
                        raise SettingError(
                            f"--agent {type(self.agent).__name__}.training_step(): the loss has no gradient any more"
                        )
                    continue  # the part rests
                if part is not None and waits_for_all_gradients(self.fabric):
                    loss = loss + 0 * torch.stack([p.sum() for p in self._weights if p.requires_grad]).sum()
                with self._timers("backward"):
                    self.fabric.backward(loss)
                for parameter in others:
                    parameter.grad = None
                if self.args.max_grad_norm:
                    norm = clip_gradients(self.fabric, self._model, self.optimizer, self.args)
                    stats["grad_norm"] = torch.hypot(norm, stats.get("grad_norm", torch.zeros_like(norm)))
                with self._timers("optimizer"):
                    self.optimizer.step()
                    self.optimizer.zero_grad()
            with self._timers("optimizer"), torch.no_grad():
                self.agent.update_targets(self._sac.tau)
            if self._sac.per_alpha:
                if stats.get("td_error", loss).dim() != 1:
                    name = type(self.agent).__name__
                    raise SettingError(f"--per_alpha: --agent {name} does not report a statistic td_error [B]")
                self.replay.update_priorities(drawn, stats["td_error"][: len(drawn)])
            rows.append({name: x.float().mean() if x.dim() else x.float() for name, x in stats.items()})
        names = dict.fromkeys(name for row in rows for name in row)  # a part that rests may report nothing
        means = [torch.stack([row[name] for row in rows if name in row]).mean() for name in names]
        losses = dict(zip(names, torch.stack(means).tolist(), strict=True))
        bad = next((name for name, figure in losses.items() if not math.isfinite(figure)), None)
        if bad is not None and getattr(self._precision, "scaler", None) is None:
            raise NonFiniteError(f"the training step's {bad} became {losses[bad]}")
        losses["learning_rate"] = self.optimizer.param_groups[0]["lr"]
        losses["replay_steps"] = float(len(self.replay))
        return {f"{self.agent.algorithm}/{name}": figure for name, figure in losses.items()}

    def _minibatch(self, size: int) -> tuple[Tensor, Transitions]:
        """Return the buffer indices of sampled steps, and a minibatch of these followed by demonstrations."""
        length, theirs = self.agent.sequence_length, self._demonstrations
        size //= length
        shown = 0 if theirs is None else min(max(1, round(size * self._sac.demonstration_share)), size - 1)
        if self.agent.learns_sequences:
            how = (length, self.agent.burn_in, *self._return_settings)
            found = self.replay.sample_sequences(size - shown, *how)
            if theirs is not None:
                found = concat_sequences(found, theirs.sample_sequences(shown, *how), length)
            return found.obs.new_empty(0), found
        drawn = self.replay.sample(size - shown)
        minibatch = self.replay.transitions(drawn, *self._return_settings)
        if self._sac.per_alpha:
            beta = self._sac.per_beta + (1 - self._sac.per_beta) * float(self.agent.progress)
            minibatch = minibatch._replace(weight=self.replay.weights(drawn, beta))
        if theirs is None:
            return drawn, minibatch
        demonstrated = theirs.transitions(theirs.sample(shown), *self._return_settings)
        if minibatch.weight is not None:
            demonstrated = demonstrated._replace(weight=minibatch.weight.new_ones(shown))
        pairs = zip(minibatch, demonstrated, strict=True)
        return drawn, Transitions(*(None if x is None or y is None else torch.cat((x, y)) for x, y in pairs))  # type: ignore[arg-type]

    def _learn_signals(self, newest: Minibatch, size: int) -> dict[str, float]:
        """Let the signals learn from replayed minibatches of `size`; with 0, only update their statistics."""
        if self._signals is None:
            return {}
        assert newest.next_obs is not None
        count = (self._sac.reward_signal_num_update or self._sac.num_update) * self.fabric.world_size if size else 0
        sizes = [signal.minibatch_size or size for signal in self._signals.signals]

        def drawn(each: int) -> Iterator[Steps]:
            return (self.replay.steps(self.replay.sample(each)) for _ in range(count))

        steps = Steps(newest.obs, newest.action, newest.next_obs)
        return self._signals.learn_from(steps, [drawn(each) for each in sizes], sizes)

    def rank_state_dict(self) -> dict[str, Any]:
        """Return the buffer, if it is saved, and the state of its generator."""
        return {
            "replay": self.replay.state_dict() if self._sac.save_replay_buffer else None,
            "draws": self._draws.get_state(),
        }

    def load_rank_state_dict(self, state: Mapping[str, Any], iterations: int) -> list[str]:
        self._draws.set_state(check_generator_state(state["draws"]))
        if state["replay"] is None:
            return ["the replay buffer was not saved (--save_replay_buffer) and is refilled before learning"]
        with state_error_context("the saved state of the replay buffer"):
            self.replay.load_state_dict(state["replay"])
        self._restored = state["replay"]
        return []

    def describe_lost(self, state: Mapping[str, Any]) -> list[str]:
        return ["the replay buffer is refilled before learning"] if state["replay"] is not None else []
