"""The training loop of agents that learn from replayed steps: collect -> buffer -> learn."""

import warnings
from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Any, cast

import torch
from lightning import Fabric
from torch import Tensor

from fabric_rl.args import ONLY_PPO, SACArgs, Saving, TrainArgs
from fabric_rl.base.trajectory import Trajectory
from fabric_rl.callback import Callback, TrainState
from fabric_rl.learning.gae import GAE
from fabric_rl.metrics.timers import Timers
from fabric_rl.rollouts.rollout import Rollout
from fabric_rl.runs.folder import Run
from fabric_rl.sac.learner import ReplayLearner
from fabric_rl.sac.replay import ReplayBuffer
from fabric_rl.session.build import Algorithm, build, finish
from fabric_rl.session.monitor import TrainingMonitor
from fabric_rl.session.nan_dump import dump_on_nan
from fabric_rl.session.saving import Saver
from fabric_rl.session.stopping import StopSignals
from fabric_rl.signals.base import SignalFactory
from fabric_rl.signals.signals import IntrinsicRewards
from fabric_rl.types import ActorCritic, AgentFactory, EnvFactory, Minibatch, OffPolicyAgent, Transitions

BATCH_SIZE, STEPS_PER_ROW = 256, 1000


def train_off_policy(
    fabric: Fabric,
    env: EnvFactory,
    agent: AgentFactory,
    args: TrainArgs,
    run: Run | None = None,
    callbacks: Sequence[Callback] = (),
    plain: bool | None = None,
    saving: Saving = Saving(),  # noqa: B008 - frozen
    resume: dict[str, Any] | None = None,
    weights: dict[str, Any] | None = None,
    inference: bool = False,
    sac: SACArgs = SACArgs(),  # noqa: B008 - frozen
    signals: Sequence[SignalFactory] = (),
    demonstrations: Sequence[Trajectory] = (),
) -> dict[str, Any]:
    """Train an `OffPolicyAgent` with SAC. Call it on every rank, after `fabric.launch()`.

    The arguments, the return value and the errors are those of `fabric_rl.train`, with these differences: `sac` has
    the settings of the replay buffer, `args` must not set anything that only PPO uses, and a batch returned by
    `on_learn_start` is stored in the buffer instead of the rollout. `demonstrations` are the episodes of the files in
    `sac.demonstrations`. The replay buffer is removed from the dict `resume`.

    Raises:
        ValueError: As in `fabric_rl.train`; also if `args` sets something that only PPO uses, or if the size of the
            replay buffer does not fit the other settings.
    """
    algorithm = OffPolicyAlgorithm(sac, demonstrations)
    args_of_loop = loop_settings(args, sac)
    session = build(fabric, env, agent, args_of_loop, run, callbacks, GAE(), inference, algorithm, signals)
    exact = session.begin(resume, weights)
    monitor = TrainingMonitor(session, plain, resume)
    saver = Saver(session, monitor, saving, exact)
    state, hooks, collector, learner = session.state, session.hooks, session.collector, session.learner
    player = cast(OffPolicyAgent, session.agent)

    with hooks, monitor, StopSignals(state) as stops, dump_on_nan(session):
        saver.begin(resume)
        if sac.buffer_init_steps >= args.total_timesteps and not inference and fabric.is_global_zero:
            what = f"--buffer_init_steps {sac.buffer_init_steps}: the agent learns nothing within --total_timesteps"
            warnings.warn(f"{what} {args.total_timesteps}", RuntimeWarning, stacklevel=2)
        while not state.done:
            hooks.on_iteration_start()
            learner.apply_schedules(state.progress, state.learning_rate, state.learning_rate_factor)
            player.acts_at_random = not inference and state.steps < sac.buffer_init_steps
            player.holds_actions = sac.hold_random_actions and player.acts_at_random
            with monitor("collect"):
                rollout = collector.next_rollout()  # [T, N]
                session.signals.add_intrinsic_rewards(rollout)
            player.acts_at_random = player.holds_actions = False
            batch = hooks.on_learn_start(rollout.flat(rollout.reward))  # [T * N]
            with monitor("learn"):
                losses = learner.learn(batch, state.minibatch_size)  # buffer -> num_update x agent.training_step
            state.advance()
            monitor.reduce(losses)
            hooks.on_iteration_end()
            monitor.publish()
            saver.after_iteration(stops.agree(saver.minutes_due))
    return finish(session, monitor, saver)


class OffPolicyAlgorithm(Algorithm):
    """Algorithm for agents that learn from replayed steps."""

    flags = ("--train_interval", "--batch_size")

    def __init__(self, sac: SACArgs, demonstrations: Sequence[Trajectory] = ()) -> None:
        self.sac, self.demonstrations = sac, demonstrations

    def minibatch_size(self, args: TrainArgs, rollout_steps: int, agent: ActorCritic) -> int:
        if not isinstance(agent, OffPolicyAgent):
            raise TypeError(f"--agent {type(agent).__name__} learns from rollouts; train it with fabric_rl.train")
        size, length = args.batch_size or BATCH_SIZE, agent.sequence_length
        if size % length:
            raise ValueError(
                f"--batch_size {size} must be a multiple of --agent.sequence_length {length}, because the agent "
                "learns from whole sequences"
            )
        if size == length and self.demonstrations:
            what = "steps" if length == 1 else "sequences"
            raise ValueError(
                f"--batch_size {size} has no room for both --demonstrations and the run's own {what}; raise it"
            )
        if self.sac.per_alpha and agent.learns_sequences:
            raise ValueError(
                "--per_alpha does not work with an agent that has --agent.memory_size; leave one of them out"
            )
        return size

    def make_batch(self, size: int, flat: Minibatch, agent: ActorCritic) -> Transitions:
        length, num_envs = agent.sequence_length, len(flat.returns) // (agent.burn_in + agent.sequence_length)
        gamma = torch.full((agent.value_heads,), 0.99)
        replay = ReplayBuffer(len(flat.returns) + 2 * num_envs, flat, num_envs, torch.Generator())
        replay.add(flat)
        if agent.learns_sequences:
            return replay.sample_sequences(size // length, length, agent.burn_in, 1, gamma)
        return replay.transitions(replay.sample(size), 1, gamma)

    def learner(
        self,
        state: TrainState,
        peers: Fabric,
        timers: Timers,
        rollout: Rollout,
        rollout_steps: int,
        gamma: Tensor,
        signals: IntrinsicRewards,
    ) -> ReplayLearner:
        self._check_buffer(state, rollout, rollout_steps)
        if self.sac.demonstrations and not self.demonstrations:
            raise ValueError("--demonstrations names files, but the argument demonstrations has no episodes")
        if self.sac.reward_signal_num_update and not signals.signals:
            raise ValueError("--reward_signal_num_update has no effect without --signals; leave this flag out")
        for signal in signals.signals:
            if signal.epochs is not None:
                name = type(signal).__name__
                raise ValueError(f"--signals {name}: epochs is only for PPO; for SAC, use --reward_signal_num_update")
        return ReplayLearner(state, timers, self.sac, rollout, gamma, signals, self.demonstrations)

    def _check_buffer(self, state: TrainState, rollout: Rollout, rollout_steps: int) -> None:
        sac, agent, envs = self.sac, state.agent, rollout.num_envs
        rows = sac.buffer_size // envs  # steps of each sub-environment
        whole = rows * envs * state.fabric.world_size
        sequence = agent.burn_in + agent.sequence_length
        for wrong, message in (
            (
                rollout_steps > sac.buffer_size,
                f"--buffer_size {sac.buffer_size} is smaller than a rollout, --train_interval "
                f"{sac.train_interval} x {envs} sub-environments",
            ),
            (
                sac.buffer_init_steps > whole,
                f"--buffer_init_steps {sac.buffer_init_steps} does not fit into the buffers of all ranks, which hold "
                f"{whole} steps; raise --buffer_size",
            ),
            (
                sac.hold_random_actions and rollout.action_mask is not None,
                "--hold_random_actions does not work with action masks, which change every step; leave the flag out",
            ),
            (
                sequence > rows,
                f"--agent.burn_in {agent.burn_in} plus sequence_length {agent.sequence_length} does not fit into the "
                f"buffer, which holds {rows} steps of each sub-environment; raise --buffer_size",
            ),
            (
                sac.n_step > rows,
                f"--n_step {sac.n_step} does not fit into the buffer, which holds {rows} steps of each "
                "sub-environment; raise --buffer_size",
            ),
        ):
            if wrong:
                raise ValueError(message)


def loop_settings(args: TrainArgs, sac: SACArgs) -> TrainArgs:
    """Return the settings of the loop, with rollouts of `train_interval` steps; raise a ValueError for PPO settings."""
    given = [
        field.name for field in fields(args) if field.name in ONLY_PPO and getattr(args, field.name) != field.default
    ]
    given += ["lr_schedule kl_adaptive"] if args.lr_schedule == "kl_adaptive" else []
    if given:
        raise ValueError(
            f"leave out {', '.join(f'--{name}' for name in given)}, which SAC does not use, or use an SAC preset "
            "(configs/sac_*.yaml)"
        )
    return replace(args, num_steps=sac.train_interval, summary_freq=args.summary_freq or STEPS_PER_ROW)
